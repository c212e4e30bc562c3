#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of what a job gets in BENCHMARKS.md: how soon a program has its topology, and what that costs a step."""
import collections
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import Part, alternated, main, percentile
from rig.cluster import Cluster
from rig.paths import BUILD, CACHE

# --- the machines: sysfs snapshots, one of hwloc's corpus and two made with the same files as Linux has

# cores and threads in all; caches: (level, type, KiB, cores that share one); memory: MiB of a node with CPUs, and of
# one without
Made = collections.namedtuple("Made", "packages nodes far cores threads caches memory far_memory cpuinfo")

KNL = Made(1, 4, 4, 64, 4, ((1, "Data", 32, 1), (1, "Instruction", 32, 1), (2, "Unified", 1024, 2)), 24576, 4096,
           "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 87\nmodel name\t: Intel(R) Xeon Phi(TM) CPU 7210 @ "
           "1.30GHz\nstepping\t: 1\n")
EPYC = Made(2, 8, 0, 128, 2,
            ((1, "Data", 32, 1), (1, "Instruction", 32, 1), (2, "Unified", 512, 1), (3, "Unified", 32768, 8)), 65536, 0,
            "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core Processor\n"
            "stepping\t: 1\n")
MACHINES = {"small": "16amd64-8n2c", "knl": KNL, "epyc": EPYC}


def mask(cpus, width):
    """As sysfs writes it: words of 32 bits."""
    number = sum(1 << cpu for cpu in cpus)
    return ",".join(f"{number >> 32 * word & 0xffffffff:08x}" for word in reversed(range((width + 31) // 32)))


def put(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


class Sysfs:
    """PU t of core c is CPU c + t * cores, as Linux numbers them."""

    def __init__(self, root, made):
        self.root, self.m, self.width = root, made, made.cores * made.threads

    def mask(self, first, count):
        """The PUs of so many cores."""
        return mask([c + t * self.m.cores for c in range(first, first + count) for t in range(self.m.threads)],
                    self.width)

    def group(self, core, size):
        """The same of the group of cores that this core is in."""
        return self.mask(core // size * size, size)

    def write(self):
        for cpu in range(self.width):
            self.write_cpu(self.root / f"sys/devices/system/cpu/cpu{cpu}", cpu % self.m.cores)
        put(self.root / "sys/devices/system/cpu", online=f"0-{self.width - 1}", possible=f"0-{self.width - 1}")
        for node in range(self.m.nodes + self.m.far):
            self.write_node(self.root / f"sys/devices/system/node/node{node}", node)
        put(self.root / "sys/devices/system/node", online=f"0-{self.m.nodes + self.m.far - 1}")
        put(self.root / "proc", cpuinfo="\n".join(f"processor\t: {cpu}\n{self.m.cpuinfo}" for cpu in range(self.width)),
            meminfo=f"MemTotal: {1024 * (self.m.nodes * self.m.memory + self.m.far * self.m.far_memory)} kB")

    def write_cpu(self, folder, core):
        package = self.m.cores // self.m.packages
        put(folder / "topology", core_id=core % package, physical_package_id=core // package, die_id=0,
            cluster_id=65535, core_cpus=self.group(core, 1), thread_siblings=self.group(core, 1),
            die_cpus=self.group(core, package), package_cpus=self.group(core, package),
            core_siblings=self.group(core, package))
        put(folder / "cpufreq", cpuinfo_max_freq=3500000, base_frequency=2450000)
        for index, (level, kind, size, share) in enumerate(self.m.caches):
            put(folder / f"cache/index{index}", level=level, type=kind, size=f"{size}K",
                shared_cpu_map=self.group(core, share), id=core // share, coherency_line_size=64,
                number_of_sets=size * 1024 // 64 // 8, physical_line_partition=1)

    def write_node(self, folder, node):
        near = self.m.cores // self.m.nodes
        size = self.m.memory if node < self.m.nodes else self.m.far_memory
        put(folder, cpumap=self.mask(node * near, near) if node < self.m.nodes else mask([], self.width),
            meminfo=f"Node {node} MemTotal: {size * 1024} kB",
            distance=" ".join(str(self.distance(node, other)) for other in range(self.m.nodes + self.m.far)))
        put(folder / "hugepages/hugepages-2048kB", nr_hugepages=0)

    def distance(self, a, b):
        """Memory without CPUs is beside the node of its turn."""
        if a == b:
            return 10
        if max(a, b) < self.m.nodes:
            return 21 if a * self.m.packages // self.m.nodes != b * self.m.packages // self.m.nodes else 12
        return 31 if a % self.m.nodes == b % self.m.nodes else 41


def snapshot(folder, name):
    """The machine's sysfs, below the folder, and its export, as an agent makes it at boot."""
    root, what = Path(folder) / name, MACHINES[name]
    root.mkdir()
    if isinstance(what, Made):
        Sysfs(root, what).write()
    else:
        found = sorted((CACHE / "src").glob(f"hwloc-*/tests/hwloc/linux/{what}.tar.bz2"))
        if not found:
            raise SystemExit(f"topology.py: hwloc's {what}.tar.bz2 is missing: run packaging/setup")
        subprocess.run(["tar", "xjf", found[-1], "-C", root, "--strip-components=1", "--no-same-owner"], check=True)
    xml = Path(folder) / f"{name}.xml"
    subprocess.run(["lstopo-no-graphics", "--if", "fsroot", "--input", root, "--whole-io", "--of", "xml", "--force",
                    xml], check=True)
    return root, xml


# --- start: from exec to a topology, by every way, in one run, each beside an empty process of the same round

PROBE, OURS = BUILD / "bench" / "topology_probe", BUILD / "bench" / "topology_probe_ours"
SHARES = {"whole": 1, "quarter": 4}
Way = collections.namedtuple("Way", "name env command")
# What is told of a way, beside which, and the most that it may take.
GOALS = {"libtopiary": ("linked", 1.1), "environment": ("empty", 2.0)}
WORDS = {"empty": "an empty process", "linked": "an empty process that is linked with libtopiary",
         "native": "native discovery, of the snapshot", "xml": "XML of the node, unmodified hwloc",
         "shmem": "hwloc's shmem of the node, unmodified hwloc", "environment": "HWLOC_XMLFILE of the step",
         "libtopiary": "libtopiary"}


def cores(xml):
    told = subprocess.run(["hwloc-calc", "-i", xml, "-N", "core", "machine:0"], capture_output=True,
                          text=True, check=True)
    return int(told.stdout)


def ways(folder, name):
    """The machine's, of a step with all of its cores and of one with a quarter."""
    root, xml = snapshot(folder, name)
    yield Way("empty", [], [PROBE, "empty"])
    # As lstopo does for a snapshot: this machine's own CPUs are not asked.
    yield Way("native", [f"HWLOC_FSROOT={root}", "HWLOC_COMPONENTS=linux,stop"], [PROBE, "load"])
    yield Way("xml", [f"HWLOC_XMLFILE={xml}", "HWLOC_THISSYSTEM=1"], [PROBE, "load"])
    for share, part in SHARES.items():
        step = Path(folder) / f"{name}.{share}"
        step.mkdir()
        made = subprocess.run([BUILD / "bench" / "topology_make", xml, f"0-{cores(xml) // part - 1}", step],
                              capture_output=True, text=True, check=True)
        env = [f"HWLOC_XMLFILE={step}/topology.xml", "HWLOC_THISSYSTEM=1", "HWLOC_LIBXML_IMPORT=0",
               "HWLOC_PLUGINS_PATH="]
        if share == "whole":
            yield Way("shmem", [], [PROBE, "adopt", step / "whole.shm", *made.stdout.split()])
            yield Way("linked", env, [OURS, "empty"])
        yield Way(f"environment/{share}", env, [PROBE, "load"])
        yield Way(f"libtopiary/{share}", env, [OURS, "ours"])


def measure(all_ways, processes, rounds):
    """{way: (microseconds, of the processors' time) of each round}"""
    lines = "".join(" ".join(map(str, [w.name, *w.env, "--", *w.command])) + "\n" for w in all_ways)
    told = subprocess.run([BUILD / "bench" / "topology_start", str(processes), str(rounds)], input=lines,
                          capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"topology.py: {told.stderr.strip().rsplit(chr(10), 1)[-1]}")
    times = collections.defaultdict(list)
    for line in told.stdout.split("\n")[:-1]:
        name, wall, cpu = line.split()
        times[name].append((float(wall), float(cpu)))
    return times


def ratio(times, name, beside, which=0):
    """The median of the rounds' own: what else the machine does in a round, both have. which: 1 for CPU time."""
    return statistics.median(a[which] / b[which] for a, b in zip(times[name], times[beside]))


def start(sheet, args):
    with tempfile.TemporaryDirectory(prefix="topiary_bench_", dir="/tmp") as folder:
        for machine in args.machines:
            all_ways = list(ways(folder, machine))
            for processes in args.processes:
                tell_start(sheet, f"{machine}, {processes} processes",
                           measure(all_ways, processes, max(args.least, args.rounds // processes)))


def tell_start(sheet, where, times):
    rows = []
    for name in sorted(times, key=lambda name: (list(WORDS).index(name.partition("/")[0]), name.endswith("quarter"))):
        way, _, share = name.partition("/")
        if way in GOALS:
            beside, goal = GOALS[way]
            sheet.add(f"start-up with topology, {where}: by {'HWLOC_XMLFILE' if way == 'environment' else way}, "
                      f"{share} node", ratio(times, name, beside), "times an empty process", f"at most {goal}",
                      f"{ratio(times, name, beside, 1):.2f} times its CPU time")
        rows.append((f"{where}: {WORDS[way]}" + (f", {share} node" if share else ""),
                     f"{statistics.median(wall for wall, _ in times[name]) / 1000:.2f}",
                     f"{ratio(times, name, 'empty'):.2f}", f"{ratio(times, name, 'empty', 1):.2f}"))
    sheet.table(("From exec to a topology, by", "ms", "times an empty process", "times its CPU time"), rows)


# --- step: what the plugin costs a step and a task: real slurmstepds, with it and without, and its hooks by the clock

REMOTE = "2"                # S_CTX_REMOTE as the clock tells contexts: in slurmstepd
STEP = ("slurm_spank_init", "slurm_spank_init_post_opt", "slurm_spank_exit")
TASK = ("slurm_spank_task_init", "slurm_spank_task_exit")
STEP_GOAL, TASK_GOAL = 20, 1
HOST = "host"               # this very hardware, whose kernel answers
ASKED = ("--topo-place=compact", "--topo-membind=local", "--topo-omp=auto")


class Bench(Cluster):
    """One node of the machine, and a job that has all of it, whose steps are measured."""

    def __init__(self, folder, xml):
        super().__init__(folder, {"cn1": xml}, registry=False)
        self.plugstack = self.folder / "etc" / "plugstack.conf"
        self.clock = self.folder / "work" / "clock"

    def prepare_lines(self):
        ours = self.folder / "plugins" / "spank_topiary.so"
        config = f"config={self.folder}/etc/topiary.conf"
        shutil.copy(BUILD / "bench" / "topology_clock.so", self.folder / "bin")
        self.lines = {"without": "", "with": f"optional {ours} {config}\n",
                      "clock": f"optional {self.folder}/bin/topology_clock.so {ours} {self.clock} {config}\n"}

    def use(self, which):
        new = self.plugstack.with_suffix(".new")
        new.write_text(self.lines[which])
        new.rename(self.plugstack)

    def allocate(self):
        told = self.command(["salloc", "--no-shell", "-w", "cn1", "-N1", "--exclusive", "--mem=0"])
        self.job_number = told.stderr.split("job allocation ")[1].split()[0]

    def step(self, *options):
        """Milliseconds of srun true."""
        began = time.perf_counter()
        self.command(["srun", f"--jobid={self.job_number}", "--overlap", "-N1", *(options or ("-n1",)), "true"])
        return (time.perf_counter() - began) * 1000

    def clocked(self, *options):
        """{hook: (microseconds, of the processor's time) of each call} of a step, in slurmstepd and its tasks."""
        self.clock.write_text("")
        self.clock.chmod(0o666)
        self.step(*options)
        deadline, seen = time.monotonic() + 5, ""
        while f"{STEP[-1]} {REMOTE} " not in seen and time.monotonic() < deadline:
            time.sleep(0.01)
            seen = self.clock.read_text()
        calls = collections.defaultdict(list)
        for hook, context, wall, cpu in map(str.split, seen.split("\n")[:-1]):
            if context == REMOTE:
                calls[hook].append((float(wall), float(cpu)))
        return calls

    def forget(self):
        shutil.rmtree(self.folder / "nodes" / "cn1" / "run" / "cache", ignore_errors=True)


def total(calls):
    """Milliseconds of several calls, and of the processor's time."""
    return tuple(sum(column) / 1000 for column in zip(*calls))


def hooks(bench, count, cold, *options):
    """What a step's hooks took, of each step, and a task's, of each task."""
    steps, tasks = [], []
    bench.use("clock")
    for _ in range(count):
        if cold:
            bench.forget()
        calls = bench.clocked(*options)
        steps.append(total(call for hook in STEP for call in calls[hook]))
        tasks += [total(call) for call in zip(*(calls[hook] for hook in TASK))]
    return steps, tasks


def measure_steps(sheet, args, machine, bench):
    def tell(what, values, goal):
        for name, of in (("median", statistics.median), ("p99", lambda some: percentile(some, 0.99))):
            wall, cpu = map(of, zip(*values))
            sheet.add(f"{machine}: plugin time of {what}: {name}", wall, "ms", f"at most {goal}",
                      f"of {len(values)}; {cpu:.3f} ms CPU time")

    def step_with(which):
        bench.use(which)
        return bench.step()
    bench.prepare_lines()
    bench.allocate()
    bench.step()
    tell("a step, cores not in the cache", hooks(bench, args.steps, True)[0], STEP_GOAL)
    tell("a step, cores in the cache", hooks(bench, args.steps, False)[0], STEP_GOAL)
    for what, asked in (("without options", ()), ("with all options", ASKED)):
        tell(f"a task {what}", hooks(bench, args.steps // 4, False, "-n2", *asked)[1], TASK_GOAL)
    added = [with_ - without for with_, without in
             alternated(args.pairs, lambda: step_with("with"), lambda: step_with("without"))]
    sheet.add(f"{machine}: added time of `srun true` with the plugin: median", statistics.median(added), "ms",
              f"at most {STEP_GOAL}", f"of {len(added)} pairs")


def step(sheet, args):
    for machine in args.machines:
        folder = Path(tempfile.mkdtemp(prefix="topiary_bench_", dir="/tmp"))
        folder.chmod(0o755)
        try:
            with Bench(folder, None if machine == HOST else snapshot(folder, machine)[1].read_text()) as bench:
                measure_steps(sheet, args, machine, bench)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


PARTS = {
    "start": Part(start, "from exec to a topology, by every way", {
        "machines": (list(MACHINES), "which", MACHINES), "processes": ([1, 64], "so many at once"),
        "rounds": (600, "divided by the processes"), "least": (15, "but so many rounds at least")}),
    "step": Part(step, "what the plugin adds to a step and a task", {
        "machines": ([HOST, "epyc"], "the node's", [HOST, *MACHINES]), "steps": (100, "so many of each kind"),
        "pairs": (100, "of srun with the plugin and without")}),
}

if __name__ == "__main__":
    main(__doc__, PARTS, ("start", "step"), needs=("topology_start", "topology_clock.so"))
