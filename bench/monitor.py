#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of recording in BENCHMARKS.md: traces, what topiary-monitor takes of a node, and what a step's start
costs."""
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Part, main
from rig import Cluster
from rig.mpi import OPEN_MPI
from rig.paths import BUILD
from rig.processes import wait_until

USER = "nobody"
HOOKS = ("slurm_spank_init", "slurm_spank_init_post_opt", "slurm_spank_task_init")
NODE = "[numa] Package:2 L3:16 Core:4 PU:2"
PUS, COUNTERS = 256, 6


# --- traces

def size(sheet, args):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        subprocess.run([BUILD / "tests" / "trace_make", path, NODE, str(args.ticks)], check=True,
                       stdout=subprocess.DEVNULL)
        each = path.stat().st_size / (args.ticks * PUS)
    sheet.add("size of a made trace of six counters per PU and tick", round(each, 2), "B", "<= 8",
              f"{COUNTERS * 8 / each:.1f} times counters of 8 bytes")


# On a line of its input: 50,000 page faults, and 300 times to sleep.
BUSY = """import mmap, time
print("ready", flush=True)
input()
pages = mmap.mmap(-1, 4096 * 50000)
pages.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(50000):
    pages[4096 * i] = 1
for _ in range(300):
    time.sleep(1e-3)
print("done", flush=True)
input()
"""


def totals(sheet, _):
    """What perf stat and topiary record count of one process at the same time."""
    if not shutil.which("perf"):
        print("perf is not installed: not measured")
        return
    names = {"task-clock": "busy", "minor-faults": "minor_faults", "context-switches": "context_switches"}
    with tempfile.TemporaryDirectory() as folder, \
            subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True) as process:
        process.stdout.readline()
        recorders = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in (
            ["perf", "stat", "-x,", "-o", f"{folder}/perf", "-e", ",".join(names), "-p", str(process.pid)],
            [BUILD / "topiary", "record", "-r", "10", "-o", f"{folder}/trace", "-p", str(process.pid)])]
        time.sleep(1)
        print("go", file=process.stdin, flush=True)
        process.stdout.readline()
        time.sleep(0.3)
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
        process.kill()
        rows = [line.split(",") for line in Path(folder, "perf").read_text().splitlines() if "," in line]
        perf = {names[row[2].partition(":")[0]]: float(row[0]) for row in rows if not row[0].startswith("<")}
        done = subprocess.run([BUILD / "topiary", "trace", "summary", f"{folder}/trace", "--json"], check=True,
                              stdout=subprocess.PIPE)
    ours = {m["metric"]: m["total"] for m in json.loads(done.stdout)["metrics"]}
    perf["busy"] *= 1e6     # milliseconds
    for name in names.values():
        sheet.add(f"{name} of a process by topiary record, relative to perf stat of the same time",
                  f"{100 * (ours[name] / perf[name] - 1):+.4f}", "%", "<= 0.1",
                  beside=f"{ours[name]:,} and {perf[name]:,.0f}")


# --- recorded jobs

class Nodes:
    """So many nodes that all are this machine, each with a topiary-monitor of its own."""

    def __init__(self, n):
        self.names = [f"cn{i + 1}" for i in range(n)]
        self.folder = Path(tempfile.mkdtemp(prefix="topiary_bench_", dir="/tmp"))
        self.cluster = Cluster(self.folder / "c", dict.fromkeys(self.names), registry=False)

    def __enter__(self):
        self.folder.chmod(0o755)
        self.cluster.start()
        program = shutil.copy(BUILD / "topiary-monitor", self.cluster.folder / "bin")
        for node in self.names:
            self.cluster.run_daemon(f"monitor.{node}", self.cluster.on_node(node, [
                program, "--config", self.cluster.folder / "etc" / "topiary.conf"]))
        self.own = self.cluster.folder / "work" / "own"
        self.own.mkdir()
        self.own.chmod(0o777)
        return self

    def __exit__(self, *_):
        self.cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command):
        return self.cluster.command(command, user=USER, cwd=self.own).stdout.strip()

    def clock(self):
        """The file that a plugin around ours writes what its hooks take into, of all steps from now on."""
        etc, file = self.cluster.folder / "etc", self.own / "clock"
        shutil.copy(BUILD / "bench" / "topology_clock.so", self.cluster.folder / "bin")
        file.write_text("")
        file.chmod(0o666)
        (etc / "plugstack.conf").write_text(
            f"optional {self.cluster.folder}/bin/topology_clock.so {self.cluster.folder}/plugins/spank_topiary.so "
            f"{file} config={etc}/topiary.conf\n")
        return file

    def monitor(self):
        """The process of the first node's topiary-monitor."""
        return self.cluster.daemons[f"monitor.{self.names[0]}"].pid

    def pages(self, step):
        return sum((self.cluster.folder / "nodes" / node / "run" / step / "monitor.live").exists()
                   for node in self.names)


def trimmed(values, part=0.1):
    cut = int(len(values) * part)
    return statistics.mean(sorted(values)[cut:len(values) - cut])


def beside(sheet, args):
    """Many short pairs: the wall's clock and the CPU time of one pair vary by some percent where others share the
    hardware. What the recording takes itself is no estimate."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([BUILD / "bench" / "monitor_beside", folder, "10", str(args.slices), "500"], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ratios, own = zip(*(map(float, line.split()) for line in done.stdout.splitlines()))
    ratios = [math.log(x) for x in ratios if math.isfinite(x) and x > 0]
    again = sorted(trimmed(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    low, high = (math.exp(again[int(len(again) * x)]) for x in (0.025, 0.975))
    sheet.add("CPU time of a program that waits for memory, for the same work, recorded at 10 Hz relative to without",
              f"{math.exp(trimmed(ratios)):.4f}", "times", "<= 1.001", beside=f"95 % interval {low:.4f} to {high:.4f}; "
              f"trimmed mean of {len(ratios)} pairs of 0.5 s, one process on each PU")
    sheet.add("CPU time that the recording takes meanwhile, of the program's PUs",
              f"{100 * statistics.mean(own):.3f}", "%", "<= 0.1: the run time if it is all taken from the program",
              beside=f"of {os.cpu_count()} PUs, standard error {100 * statistics.stdev(own) / len(own) ** 0.5:.4f}")


def cpu_of(pid, seconds):
    """CPU seconds of a recorder in so many seconds, without its first one; None if it ends."""
    spent = []
    for wait in (1, seconds):
        time.sleep(wait)
        try:
            spent.append(sum(int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
                             for task in os.listdir(f"/proc/{pid}/task")) / 1e9)
        except OSError:
            return None
    return spent[1] - spent[0]


def collector_files(folder, hz):
    """cc-metric-collector's, for what the set sw has."""
    files = {"sinks": {"out": {"type": "stdout"}}, "receivers": {}, "router": {},
             "collectors": {name: {} for name in ("cpustat", "memstat", "numastats", "diskstat", "netstat")}}
    config = {f"{name}-file": str(folder / f"{name}.json") for name in files}
    config["main"] = {"interval": f"{1000 // hz}ms", "duration": f"{1000 // hz}ms"}
    for name, value in (*files.items(), ("config", config)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder / "config.json"


def peers(sheet, args):
    """Recorders of all PUs of this machine, one after the other. The sets of values are alike, not the same."""
    with Nodes(1) as nodes:
        for hz in (1, 10):
            def tell(what, pid, hz=hz, why="it ended"):
                spent = pid and cpu_of(pid, args.seconds)
                sheet.add(f"CPU time of {what}", spent and f"{100 * spent / args.seconds:.3f}", "% of one PU",
                          beside="" if spent else f"not measured: {why}")
            job = nodes.run("sbatch", "--parsable", "--output=/dev/null", "--exclusive",
                            f"--wrap=srun --topo-monitor=sw,hz={hz} sleep 1d")
            assert wait_until(lambda job=job: nodes.pages(f"{job}.0") == 1, 60)
            tell(f"topiary-monitor at {hz} Hz, the {os.cpu_count()} PUs of this machine, set sw", nodes.monitor())
            nodes.cluster.command(["scancel", job])
            for what, *command in (
                    ("perf stat -a -A -I, the same four events", "perf", "stat", "-a", "-A", "-I", 1000 // hz,
                     "-o", nodes.folder / "perf", "-e", "context-switches,migrations,minor-faults,major-faults"),
                    ("cc-metric-collector, cpustat, memstat, numastats, diskstat, netstat", "cc-metric-collector",
                     "-config", collector_files(nodes.folder, hz))):
                what += f", at {hz} Hz"
                if not shutil.which(command[0]):
                    tell(what, None, why="it is not installed")
                    continue
                with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as recorder:
                    tell(what, recorder.pid)
                    recorder.terminate()


def start(sheet, args):
    """In pairs of alternating order, after one of each for the caches."""
    with Nodes(1) as nodes:
        clock = nodes.clock()
        how = [f"srun -Q --overlap -n1 --topo-monitor={which} true" for which in ("sw", "off")]
        pairs = [line for turn in range(args.pairs + 1) for line in how[::-1 if turn % 2 else 1]]
        nodes.run("salloc", "-Q", "-n1", "sh", "-ec", "\n".join(pairs))
        starts = hook_times(clock.read_text())
    assert len(starts) == len(pairs), clock
    with_, without = ([one for line, one in zip(pairs[2:], starts[2:]) if line == which] for which in how)
    wall, cpu = (statistics.median(a) - statistics.median(b) for a, b in zip(zip(*with_), zip(*without)))
    sheet.add("CPU time of the plugin at the start of `srun true` with --topo-monitor=sw, beyond without",
              f"{cpu:.2f}", "ms", "<= 1", beside=f"{wall:.2f} ms on the wall's clock; medians of {args.pairs} steps "
              f"each, {statistics.median(cpu for _, cpu in without):.2f} without: all hooks until the program begins")


def hook_times(text):
    """Milliseconds of the hooks until the program begins, and of CPU time, of each step in turn (topology_clock.c)."""
    steps = []
    for hook, context, *took in map(str.split, text.splitlines()):
        if hook in HOOKS and context == "2":    # in slurmstepd, S_CTX_REMOTE
            if hook == HOOKS[0]:
                steps.append((0, 0))
            steps[-1] = tuple(sum(two) for two in zip(steps[-1], (float(us) / 1e3 for us in took)))
    return steps


# --- the recorder of messages (lib/capture)

MELT = """units lj
lattice fcc 0.8442
region box block 0 {side} 0 {side} 0 {side}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
run {steps}
"""


def recorded(folder, *command):
    """The output of a command, recorded; how many messages its ranks sent; the CPU time that it took."""
    env = {**os.environ, **OPEN_MPI, "TOPIARY_CAPTURE": f"{folder}/rank"}
    before = os.times()
    said = subprocess.run(command, env={**env, "LD_PRELOAD": str(BUILD / "libtopiary-capture.so")}, check=True,
                          stdout=subprocess.PIPE, text=True, cwd=folder).stdout
    after = os.times()
    sent = 0
    for file in Path(folder).glob("rank.*.prof"):
        sent += sum(int(line.split("\t")[4].split()[0]) for line in file.read_text().splitlines() if line[0] in "EI")
        file.unlink()
    return said, sent, sum(after[2:4]) - sum(before[2:4])


def messages(sheet, args):
    """Pairs of batches in one process, since other programs share the cores. What LAMMPS pays is computed: its messages
    at this price; a hundredth of its run time cannot be seen in pairs of runs here."""
    with tempfile.TemporaryDirectory() as folder:
        said = recorded(folder, BUILD / "bench/message", str(args.pairs))[0]
        pairs = [tuple(map(float, line.split())) for line in said.splitlines()]
        low, each, high = statistics.quantiles((after - before for before, after in pairs), n=4)
        sheet.add("CPU time of recording a message of 8 bytes to oneself, Open MPI", round(each), "ns", "<= 50",
                  f"{statistics.median(before for before, _ in pairs):.0f} without; median of {len(pairs)} pairs of "
                  f"2,000 messages in turn, quartiles {low:.0f} and {high:.0f}")
        if not shutil.which("lmp"):
            return print("LAMMPS (Debian's lammps) is not installed")
        Path(folder, "in").write_text(MELT.format(side=args.side, steps=args.steps))
        _, sent, seconds = recorded(folder, "mpirun", "-n", "2", "lmp", "-log", "none", "-in", "in")
        sheet.add("CPU time of recording LAMMPS at this price, of its own", f"{100 * sent * each * 1e-9 / seconds:.4f}",
                  "%", "<= 1", f"{sent} messages in {seconds:.1f} s, 2 ranks, {4 * args.side ** 3} atoms of its melt")


PARTS = {
    "size": Part(size, "bytes of a trace", {"ticks": (86400, "seconds of the made trace")}),
    "totals": Part(totals, "what perf stat and topiary record count of one process", {}),
    "beside": Part(beside, "what recording costs a program that waits for memory",
                   {"slices": (900, "pairs of 0.5 s with and without a recording")}),
    "peers": Part(peers, "what topiary-monitor and other recorders take",
                  {"seconds": (10, "that each records")}),
    "start": Part(start, "what --topo-monitor adds to a step", {"pairs": (100, "of steps with and without")}),
    "messages": Part(messages, "what recording a communication matrix costs an MPI program",
                     {"pairs": (801, "of 2,000 messages with and without the recorder"),
                      "side": (10, "of LAMMPS' box, in cells of 4 atoms"), "steps": (1000, "of LAMMPS")}),
}

if __name__ == "__main__":
    main(__doc__, PARTS, ("size", "totals", "beside", "peers", "start --pairs 60", "messages"),
         needs=("monitor_beside", "message", "topology_clock.so"))
