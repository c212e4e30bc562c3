# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
The same jobs on clusters side by side, with and without Topiary. Judges that share nothing with the plugin ask of every
placement whether there was a better one: in its cores (select_judge), in the memory and in the GPUs near them. And what
it costs slurmctld as a whole.
"""
import collections
import functools
import itertools
import random
import re
import statistics
import subprocess
import time

from common import Part, cpu_seconds, shown, side_by_side, synthetic
from rig.cluster import JOB_USER, SLURM_RELEASE, Cluster, RigError, as_user
from rig.processes import wait_until
from select_judge import LEVELS, Judge, Machine, Placement

MACHINES = {"a": Machine(2, 1, 1, 6), "b": Machine(4, 1, 1, 4), "c": Machine(2, 4, 2, 4)}
NODES = {f"{kind}{number}": machine for kind, machine in MACHINES.items() for number in range(1, 5)}
# Nodes x cores on each, and how often.
SIZES = {(1, 1): 14, (1, 2): 14, (1, 3): 6, (1, 4): 16, (1, 5): 3, (1, 6): 9, (1, 8): 12, (1, 12): 6,
         (1, 16): 6, (1, 24): 2,
         (1, 32): 3, (1, 48): 1, (1, 64): 1, (2, 2): 4, (2, 4): 5, (2, 6): 2, (2, 8): 3, (3, 4): 2, (4, 4): 2,
         (2, 16): 1, (4, 8): 1}
# Tasks and MB on each node; seconds, and a limit in minutes.
Job = collections.namedtuple("Job", "name at run nodes tasks task_cpus memory gpus limit", defaults=[None, None, 1])


def make_trace(args):
    """Arrivals of a Poisson process that asks for `load` percent of the cores; run times of a log-normal law, of 1 s at
    least."""
    chance = random.Random(args.seed)
    sizes = chance.choices(list(SIZES), weights=SIZES.values(), k=args.jobs)
    runs = [max(1.0, round(chance.lognormvariate(0, 0.6) * args.run / 1.2, 1)) for _ in sizes]
    asked = sum(nodes * cores * run for (nodes, cores), run in zip(sizes, runs))
    rate = args.jobs * sum(m.cores for m in NODES.values()) * args.load / 100 / asked
    at, trace = 0.0, []
    for number, ((nodes, cores), run) in enumerate(zip(sizes, runs)):
        at += chance.expovariate(rate)
        one_task = chance.random() < 0.3
        trace.append(Job(f"j{number}", at, run, nodes, 1 if one_task else cores, cores if one_task else 1))
    return trace


# --- running it

class Traced(Cluster):
    """A cluster that a trace is submitted to."""

    def change_conf(self, *changes):
        conf = self.folder / "etc" / "slurm.conf"
        text = conf.read_text()
        for old, new in (("SlurmctldDebug=debug", "SlurmctldDebug=info"), ("bf_interval=5", "bf_interval=1"), *changes):
            text = text.replace(old, new)
        conf.write_text(text)

    def run(self, trace):
        """Submit each job at its time and wait for the last to end: when each was submitted."""
        script = self.folder / "work" / "sleep"
        script.write_text('#!/bin/sh\nexec sleep "$1"\n')
        began, submitted = time.time(), {}
        for job in trace:
            time.sleep(max(0, began + job.at - time.time()))
            submitted[job.name] = time.time()
            command = ["sbatch", "-Q", "-J", job.name, f"-t{job.limit}", "-D", "/", "-o", "/dev/null", f"-N{job.nodes}",
                       f"--ntasks-per-node={job.tasks}", "-c", str(job.task_cpus),
                       *([f"--mem={job.memory}"] if job.memory else []),
                       *([f"--gres=gpu:{job.gpus}"] if job.gpus else []), str(script), str(job.run)]
            subprocess.run(as_user(JOB_USER, command), env=self.env(), check=True, stdout=subprocess.DEVNULL)
        if not wait_until(lambda: not self.command(["squeue", "-h"]).stdout, 300, 1):
            raise RigError("trace", "jobs are left", self.folder / "log" / "slurmctld.log")
        return submitted


class Recorded(Traced):
    """Its slurmctld writes down who gets and gives back what."""

    def __init__(self, folder, block=False, settings="", xml=None, **how):
        super().__init__(folder, xml or {node: synthetic(machine.text) for node, machine in NODES.items()},
                         registry=False, **how)
        self.block, self.settings = block, settings

    def _configure(self):
        super()._configure()
        self.change_conf(*([("CR_Core_Memory", "CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK")] if self.block else []))
        with open(self.folder / "etc" / "topiary.conf", "a", encoding="utf-8") as ours:
            ours.write(self.settings)

    def start_slurmctld(self):
        env = self.env(LD_PRELOAD=str(self.build / "bench" / "select_record.so"),
                       RECORD_FILE=str(self.folder / "log" / "record"))
        self.run_daemon("slurmctld", ["slurmctld", "-D", "-f", f"{self.folder}/etc/slurm.conf"], env=env,
                        log=self.folder / "log" / "slurmctld.out")

    def recorded(self, trace):
        submitted = self.run(trace)
        return (self.folder / "log" / "record").read_text(), submitted


CLUSTERS = {"Slurm": {"stock": True}, "Slurm BLOCK": {"stock": True, "block": True}, "Topiary": {}}


def stories(kind, trace, args, which, **more):
    """{cluster: [what happened there in each repeat]}"""
    told = collections.defaultdict(list)
    for _ in range(args.repeat):
        makers = {name: functools.partial(Recorded, **how, **more) for name, how in which.items()}
        for name, record in side_by_side(makers, lambda cluster: cluster.recorded(trace)).items():
            told[name].append(kind(trace, *record))
    return told


def increase(sheet, name, ours, stock, goal="within 2 %"):
    more = [100 * (a / b - 1) for a, b in zip(ours, stock) if b]
    if more:
        sheet.add(f"{name}: increase over Slurm", statistics.median(more), "%", goal,
                  f"{len(more)} runs: {min(more):+.1f} to {max(more):+.1f}" if len(more) > 1 else "")


# --- judging it

class Story:
    """What happened to the trace on one cluster."""

    def __init__(self, trace, record, submitted):
        self.submitted, self.started, self.ended, self.placed, self.judged = submitted, {}, {}, {}, []
        judge = Judge(NODES)
        for line in record.splitlines():
            words = line.split()
            if words[0] == "end" and words[2] not in self.ended:
                self.ended[words[2]] = float(words[1])
                judge.end(words[2])
            elif words[0] == "start":
                cores = {node: set(map(int, text.split(","))) for node, text in (word.split(":") for word in words[4:])}
                self.started[words[2]], self.placed[words[2]] = float(words[1]), cores
                self.start(judge, words[2], words[3].removeprefix("offered=").split(","), cores)
        missing = [job.name for job in trace if job.name not in self.ended]
        if missing:
            raise RuntimeError(f"{len(missing)} of {len(trace)} jobs did not run to their end: {missing[:5]}")

    def start(self, judge, name, offered, cores):
        self.judged.append(judge.start(Placement(name, self.started[name], offered, cores)))

    def utilisation(self):
        """Percent of all cores held, from the first start to the last submission: the end of the trace is idle
        everywhere."""
        first, last = min(self.started.values()), max(self.submitted.values())
        held = sum(sum(map(len, cores.values())) * max(0, min(self.ended[name], last) - self.started[name])
                   for name, cores in self.placed.items())
        return 100 * held / (last - first) / sum(m.cores for m in NODES.values())

    def turnaround(self):
        return statistics.fmean(self.ended[name] - at for name, at in self.submitted.items())


def trace_run(sheet, args):
    told = stories(Story, make_trace(args), args, CLUSTERS)

    def add(what, figure, unit, goal=""):
        sheet.add(what, figure(told["Topiary"]), unit, goal,
                  ", ".join(f"{shown(figure(told[c]))} {c}" for c in CLUSTERS if c != "Topiary"))

    def count(is_so):
        return lambda some: sum(is_so(j) for story in some for j in story.judged)
    total = f"of {args.jobs * args.repeat}"
    add("dominated placements", count(lambda j: j.dominated), total, "0")
    add("exact fits missed", count(lambda j: j.exact_missed and not j.filled_rest), total, "0")
    for level, name in enumerate(LEVELS):
        avoidable = count(lambda j, at=level: j.avoidable[at])
        add(f"avoidable {name} splits", lambda some, of=avoidable: 100 * of(some) / args.jobs / args.repeat, "%")
    for name, figure, unit in (("utilisation", Story.utilisation, "%"),
                               ("turnaround time, mean", Story.turnaround, "s")):
        add(name, lambda some, of=figure: statistics.median(map(of, some)), unit)
        increase(sheet, name, *(list(map(figure, told[c])) for c in ("Topiary", "Slurm")))


# --- memory: whose NUMA nodes can hold it

MEMORY = 16000      # MB that Slurm may allocate on each node
SLACK = 1           # MB: the plugin counts in sixteenths
CORE_MEMORY = MEMORY * len(NODES) // sum(machine.cores for machine in NODES.values())  # MB for each core, on average
HEAVY = 0.3         # of the jobs: more memory than their share of the cores


def with_memory(trace, seed):
    chance = random.Random(seed)
    factors = [chance.uniform(1.2, 2.5) if chance.random() < HEAVY else chance.uniform(0.1, 0.6) for _ in trace]
    return [job._replace(memory=int(min(0.9 * MEMORY, factor * CORE_MEMORY * job.tasks * job.task_cpus)))
            for job, factor in zip(trace, factors)]


class Memory:
    """What the jobs of a node asked for, by NUMA node: each job's memory is divided among its cores."""

    def __init__(self, machine):
        self.domains = machine.domains(1)
        self.has = MEMORY / len(self.domains)
        self.free = set(range(machine.cores))
        self.jobs = {}

    def left(self):
        """MB that each NUMA node has left; what one has too much is in the others, as much as these have left."""
        used = [sum(memory / len(cores) * len(cores.intersection(domain)) for cores, memory in self.jobs.values())
                for domain in self.domains]
        left, excess = [max(0, self.has - n) for n in used], sum(max(0, n - self.has) for n in used)
        return [n * max(0, 1 - excess / sum(left)) if sum(left) else 0 for n in left]

    def total_left(self):
        return MEMORY - sum(memory for _, memory in self.jobs.values())

    def holds(self, cores, memory):
        return all(memory / len(cores) * len(cores.intersection(domain)) <= left + SLACK
                   for domain, left in zip(self.domains, self.left()))

    def could_hold(self, count, memory):
        if self.total_left() < memory:
            return False
        return sum(min(len(self.free.intersection(domain)), int(max(0, left - SLACK) * count / memory))
                   for domain, left in zip(self.domains, self.left())) >= count

    def start(self, job, cores, memory):
        self.free -= cores
        self.jobs[job] = cores, memory

    def end(self, job):
        self.free |= self.jobs.pop(job, (set(), 0))[0]


class MemoryStory(Story):
    """Which jobs have memory that is far, and which of these need not."""

    def __init__(self, trace, record, submitted):
        self.memory = {node: Memory(machine) for node, machine in NODES.items()}
        self.asked = {job.name: job for job in trace}
        self.far, self.needless = set(), set()
        super().__init__(trace, record, submitted)

    def start(self, judge, name, offered, cores):
        memory = self.asked[name].memory
        for node in self.memory.values():
            for other in [job for job in node.jobs if job in self.ended]:
                node.end(other)
        if not all(self.memory[node].holds(mine, memory) for node, mine in cores.items()):
            count = len(next(iter(cores.values())))
            self.far.add(name)
            if sum(self.memory[node].could_hold(count, memory) for node in offered) >= len(cores):
                self.needless.add(name)
        for node, mine in cores.items():
            self.memory[node].start(name, mine, memory)


def memory_run(sheet, args):
    told = stories(MemoryStory, with_memory(make_trace(args), args.seed), args,
                   {name: CLUSTERS[name] for name in ("Slurm", "Topiary")},
                   nodes=dict.fromkeys(NODES, f"RealMemory={MEMORY}"))
    ours, stock = told["Topiary"], told["Slurm"]
    for what, jobs, goal in (("jobs whose memory is far although other cores had it near", "needless", "0"),
                             ("jobs whose memory is far", "far", "")):
        sheet.add(what, sum(len(getattr(story, jobs)) for story in ours), f"of {args.jobs * args.repeat}", goal,
                  f"{sum(len(getattr(story, jobs)) for story in stock)} Slurm")
    increase(sheet, "utilisation", *([story.utilisation() for story in some] for some in (ours, stock)))


# --- GPUs: whose cores are near them

GPU_CLUSTERS = {"Slurm": {"stock": True}, "Topiary": {}, "ignore": {"settings": "TopoGpuCores = ignore\n"}}
SMALL = 8           # cores of a job that may have GPUs
WITH_GPUS = 0.6     # of these
# A GPU for each NUMA node: its cores.
GPUS = {node: [set(domain) for domain in machine.domains(1)] for node, machine in NODES.items()}


def with_gpus(trace, seed):
    chance = random.Random(seed)
    return [job._replace(gpus=chance.choices((1, 2), (3, 1))[0])
            if job.nodes == 1 and job.tasks * job.task_cpus <= SMALL and chance.random() < WITH_GPUS else job
            for job in trace]


def configured():
    """Since 24.11 Slurm refuses Cores= that are not whole sockets: there NUMA nodes are its sockets, as at sites."""
    lines = [f"NodeName={node} Name=gpu File={{folder}}/{node}gpu{i} Cores={min(near)}-{max(near)}\n"
             for node, all_near in GPUS.items() for i, near in enumerate(all_near)]
    conf, words = "GresTypes=gpu\n", {node: f"Gres=gpu:{len(near)}" for node, near in GPUS.items()}
    if SLURM_RELEASE >= (24, 11):
        conf += "SlurmdParameters=numa_node_as_socket\n"
        words = {node: f"{said} Sockets={len(GPUS[node])} CoresPerSocket={len(GPUS[node][0])}"
                 for node, said in words.items()}
    return {"conf": conf, "files": {"gres.conf": "".join(lines)}, "nodes": words}


class GpuStory(Story):
    """Which jobs have GPUs that are far from their cores, and which of these need not."""

    def __init__(self, trace, record, submitted):
        self.cores = {node: set(range(machine.cores)) for node, machine in NODES.items()}
        self.gpus = {node: set(range(len(near))) for node, near in GPUS.items()}
        self.held, self.far, self.needless, self.granted = {}, set(), set(), {}
        for line in record.splitlines():
            words = line.split()
            if words[0] == "gpus":
                self.granted[words[2]] = {node: set(map(int, text.split(",")))
                                          for node, text in (word.split(":") for word in words[3:])}
        super().__init__(trace, record, submitted)

    def could_be_near(self, node, count, gpus):
        """Whether free GPUs of a node have so many free cores near them."""
        return any(len(self.cores[node] & set().union(*(GPUS[node][i] for i in some))) >= count
                   for some in itertools.combinations(sorted(self.gpus[node]), gpus))

    def start(self, judge, name, offered, cores):
        for job in [job for job in self.held if job in self.ended]:
            for node, cores, gpus in self.held.pop(job):
                self.cores[node] |= cores
                self.gpus[node] |= gpus
        granted = self.granted.get(name, {})
        for node, mine in granted.items():
            if not cores[node] <= set().union(*(GPUS[node][i] for i in mine)):
                self.far.add(name)
                if any(self.could_be_near(n, len(cores[node]), len(mine)) for n in offered):
                    self.needless.add(name)
        self.held[name] = [(node, mine, granted.get(node, set())) for node, mine in cores.items()]
        for node, mine, gpus in self.held[name]:
            self.cores[node] -= mine
            self.gpus[node] -= gpus


def gpu_run(sheet, args):
    trace = with_gpus(make_trace(args), args.seed)
    told = stories(GpuStory, trace, args, GPU_CLUSTERS, **configured())
    total = args.repeat * sum(bool(job.gpus) for job in trace)
    for what, jobs, goal in (("jobs with GPUs, some cores far although others were near", "needless", "0"),
                             ("jobs with GPUs, some cores far", "far", "")):
        ours, stock, ignore = (sum(len(getattr(story, jobs)) for story in told[name])
                               for name in ("Topiary", "Slurm", "ignore"))
        sheet.add(what, ours, f"of {total}", goal, f"{stock} Slurm, {ignore} with TopoGpuCores=ignore")


# --- the whole controller: the time of a submission's RPC and slurmctld's CPU time

WHOLE = Machine(2, 4, 2, 4)
SLURMD_NODES = 4 * 10**5      # slurmds x nodes in slurm.conf: a slurmd needs 5 MB with 1,000 of them, 20 MB with 10,000
SUBMIT = r"REQUEST_SUBMIT_BATCH_JOB\s+\(\s*\d+\)\s+count:(\d+)\s+ave_time:(\d+)"
FIGURES = (("submission RPC, mean", "ms"), ("slurmctld's CPU time", "s"))


def slurmds_for(nodes):
    """As many of the nodes have a slurmd as one machine can run; the others are DOWN."""
    return min(nodes, SLURMD_NODES // nodes)


class Controlled(Traced):
    """Nodes of one kind."""

    def __init__(self, folder, nodes, machine_xml, does, **how):
        self.count, self.does = nodes, does
        names = [f"n{i}" for i in range(1, slurmds_for(nodes) + 1)]
        down = f"NodeName=n[{len(names) + 1}-{nodes}] {self.words_of(28000)} State=DOWN\n" if nodes > len(names) else ""
        super().__init__(folder, dict.fromkeys(names, machine_xml), registry=False,
                         conf=f"{down}SlurmdTimeout=3600\nTreeWidth=65533\n", **how)

    @staticmethod
    def words_of(port):
        return (f"NodeAddr=127.0.0.1 Port={port} Sockets=2 CoresPerSocket={WHOLE.cores // 2} ThreadsPerCore=1 "
                "RealMemory=64000")

    def node_line(self, node):
        return f"NodeName={node} NodeHostname={node} {self.words_of(self.ports[node])}"

    def _configure(self):
        super()._configure()
        self.change_conf(("SlurmdDebug=debug", "SlurmdDebug=info"))
        with open(self.folder / "etc" / "slurm.conf", "a", encoding="utf-8") as conf:
            conf.write("SlurmdParameters=config_overrides\n")
        with open(self.folder / "etc" / "topiary.conf", "a", encoding="utf-8") as ours:
            ours.write(f"TopoMode={self.does}\nObserveFile={self.folder}/observed\n")

    def write_offline(self):
        self.snapshot_file.write_text(f"topiary-snapshot 1\nshape E {WHOLE.text}\nnodes n[1-{self.count}] E\nend\n")

    def knows_hardware(self):
        return (self.stock or f"snapshot: {self.count} node{'s' * (self.count > 1)} of"
                in (self.folder / "log" / "slurmctld.log").read_text(errors="replace"))

    def run_daemon(self, name, command, **how):
        """slurmctld before all other processes: on a busy machine an RPC takes several times as long."""
        return super().run_daemon(name, ["nice", "-n", "-20" if name == "slurmctld" else "10", *command], **how)

    def start_slurm(self):
        for node in self.xml:
            self.start_slurmd(node)
        self.start_slurmctld()
        if not wait_until(lambda: self.idle() == len(self.xml) and self.knows_hardware(), 300, 1):
            raise RigError("slurmctld", f"{self.idle()} of {len(self.xml)} nodes are idle",
                           self.folder / "log" / "slurmctld.log")

    def save(self):
        """Nobody attaches to this cluster: with a thousand daemons its state would be written a thousand times."""

    def idle(self):
        return int(self.command(["sinfo", "-h", "-t", "idle", "-o", "%D"], check=False).stdout.split("\n")[0] or 0)

    def wait_quiet(self, seconds=5):
        """After its start slurmctld asks every node for a registration, those that are DOWN too: minutes with 10,000
        nodes."""
        def is_quiet():
            spent = self.spent()
            time.sleep(seconds)
            return self.spent() - spent < 0.01 * seconds
        if not wait_until(is_quiet, 300):
            raise RigError("slurmctld", "does not come to rest", self.folder / "log" / "slurmctld.log")

    def spent(self):
        return cpu_seconds(self.daemons["slurmctld"].pid)

    def counted(self, trace):
        """FIGURES of a trace, by sdiag and the kernel."""
        self.wait_quiet()
        self.command(["sdiag", "-r"])
        before = self.spent()
        self.run(trace)
        spent = self.spent() - before
        count, mean = map(int, re.search(SUBMIT, self.command(["sdiag"]).stdout).groups())
        if count != len(trace):
            raise RigError("trace", f"slurmctld counted {count} of {len(trace)} submissions",
                           self.folder / "log" / "slurmctld.log")
        return mean / 1e3, spent


def controller_run(sheet, args):
    """On larger clusters the trace's jobs have more nodes. In memory: slurmctld writes each job's script while it has
    the locks."""
    xml = synthetic(WHOLE.text)
    for nodes in args.nodes:
        wider = max(1, slurmds_for(nodes) // 12)
        trace = [job._replace(nodes=job.nodes * wider) for job in make_trace(args)]
        makers = {name: functools.partial(Controlled, nodes=nodes, machine_xml=xml, does=args.does, **CLUSTERS[name])
                  for name in ("Slurm", "Topiary")}
        repeats = [side_by_side(makers, lambda cluster, trace=trace: cluster.counted(trace), "/dev/shm")
                   for _ in range(args.repeat)]
        sheet.of = f"{nodes} nodes, {args.jobs} jobs{', TopoMode=observe' * (args.does == 'observe')}: "
        for i, (figure, unit) in enumerate(FIGURES):
            ours, stock = ([r[name][i] for r in repeats] for name in ("Topiary", "Slurm"))
            sheet.add(figure, statistics.median(ours), unit, beside=f"{statistics.median(stock):.2f} {unit} Slurm")
            ratios = [mine / theirs for mine, theirs in zip(ours, stock) if theirs]
            if ratios:
                sheet.add(f"{figure}, relative to Slurm's", statistics.median(ratios), "times", "at most 1.05",
                          f"{len(ratios)} runs: {min(ratios):.2f} to {max(ratios):.2f}")


TRACE = {"jobs": (600, "so many"), "load": (80, "percent of all cores that they ask for"),
         "run": (12.0, "seconds that a job runs, mean"), "repeat": (1, "the same jobs so many times"),
         "seed": (1, "of all that is drawn")}
PARTS = {
    "trace": Part(trace_run, "the same jobs with and without us, each placement judged", TRACE),
    "memory": Part(memory_run, "jobs with and without much memory: whose NUMA nodes can hold it", TRACE),
    "gpu": Part(gpu_run, "jobs with and without GPUs: whose cores are near them", TRACE),
    "controller": Part(controller_run, "a submission's RPC and slurmctld's CPU time",
                       {"nodes": ([1000, 10000], "clusters of so many nodes"),
                        "does": ("on", "TopoMode", ("on", "observe")), **TRACE}),
}
