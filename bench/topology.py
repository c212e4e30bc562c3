#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of what a job gets in BENCHMARKS.md: how soon a program has its topology, and what that costs a step."""
import collections
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from common import Part, main, percentile, synthetic
from rig.cluster import Cluster
from rig.paths import BUILD
from rig.processes import wait_until

# Two EPYC 7763 with NPS4 and SMT, PUs numbered as Linux does.
EPYC = ("Package:2 Group:4 [NUMANode(memory=64GiB)] L3Cache:2(size=32MiB) L2Cache:8(size=512KiB) "
        "L1dCache:1(size=32KiB) L1iCache:1(size=32KiB) Core:1 PU:2(indexes=2*128:128*1)")
HOST = "host"               # this very hardware, whose kernel answers
MACHINES = {HOST: None, "epyc": EPYC}


class Bench(Cluster):
    """One node of the machine, and a job that has all of it, whose steps are measured."""

    def __init__(self, folder, machine):
        super().__init__(folder, {"cn1": MACHINES[machine] and synthetic(MACHINES[machine])}, registry=False)
        self.plugstack = self.folder / "etc" / "plugstack.conf"
        self.clock = self.folder / "work" / "clock"
        self.run_folder = self.folder / "nodes" / "cn1" / "run"

    def start(self):
        super().start()
        told = self.command(["salloc", "--no-shell", "-w", "cn1", "-N1", "--exclusive", "--mem=0"])
        self.job_number = told.stderr.split("job allocation ")[1].split()[0]
        return self

    def srun(self, *words):
        return ["srun", f"--jobid={self.job_number}", "--overlap", "-N1", *words]

    def use_clock(self):
        shutil.copy(BUILD / "bench" / "topology_clock.so", self.folder / "bin")
        new = self.plugstack.with_suffix(".new")
        new.write_text(f"optional {self.folder}/bin/topology_clock.so {self.folder}/plugins/spank_topiary.so "
                       f"{self.clock} config={self.folder}/etc/topiary.conf\n")
        new.rename(self.plugstack)

    def clocked(self, *options):
        """{hook: (microseconds, of the processor's time) of each call} of a step, in slurmstepd and its tasks."""
        self.clock.write_text("")
        self.clock.chmod(0o666)
        self.command(self.srun(*options, "true"))
        assert wait_until(lambda: f"{STEP[-1]} {REMOTE} " in self.clock.read_text(), 5)
        calls = collections.defaultdict(list)
        for hook, context, wall, cpu in map(str.split, self.clock.read_text().split("\n")[:-1]):
            if context == REMOTE:
                calls[hook].append((float(wall), float(cpu)))
        return calls


@contextmanager
def bench(machine):
    with tempfile.TemporaryDirectory(prefix="topiary_bench_", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with Bench(Path(folder) / "c", machine) as made:
            yield made


# --- start: from exec to a topology, by every way, in one run, each beside an empty process of the same round

PROBE, OURS = BUILD / "bench" / "topology_probe", BUILD / "bench" / "topology_probe_ours"
# What is told of a way, beside which, and the most that it may take.
GOALS = {"libtopiary": ("linked", 1.1), "HWLOC_XMLFILE": ("empty", 2.0)}


def started(command, env, processes):
    """Seconds from the first exec until all of so many processes that are started at once have ended, and of the
    processors' time."""
    began, spent = time.perf_counter(), 0.0
    for _ in range(processes):
        os.posix_spawn(command[0], command, env)
    for _ in range(processes):
        _, status, used = os.wait4(-1, 0)
        if status:
            raise SystemExit(f"topology.py: {' '.join(command)}: status {status:x}")
        spent += used.ru_utime + used.ru_stime
    return time.perf_counter() - began, spent


def start(sheet, args):
    with bench(args.machine) as made:
        step = subprocess.Popen(made.srun("-n1", "sleep", "1d"), env=made.env())
        assert wait_until(lambda: list(made.run_folder.glob("*.*/topology.shm")), 60)
        folder, = made.run_folder.glob("*.*/")
        env = {"HWLOC_XMLFILE": f"{folder}/topology.xml", "HWLOC_THISSYSTEM": "1", "HWLOC_LIBXML_IMPORT": "0",
               "HWLOC_PLUGINS_PATH": ""}
        ways = {"empty": ([str(PROBE), "empty"], {}), "linked": ([str(OURS), "empty"], env),
                "HWLOC_XMLFILE": ([str(PROBE), "load"], env), "libtopiary": ([str(OURS), "ours"], env)}
        for way in ways.values():
            started(*way, 1)        # once for the caches
        chance, times = random.Random(1), collections.defaultdict(list)
        for _ in range(args.rounds):
            for name in chance.sample(list(ways), len(ways)):
                times[name].append(started(*ways[name], args.processes))
        made.command(["scancel", made.job_number])
        step.wait()
    for name, (beside, goal) in GOALS.items():
        wall, cpu = (statistics.median(a[which] / b[which] for a, b in zip(times[name], times[beside]))
                     for which in (0, 1))
        sheet.add(f"start-up with topology, {args.machine}, {args.processes} processes: by {name}, whole node", wall,
                  "times an empty process", f"at most {goal}", f"{cpu:.2f} times its CPU time")


# --- step: what the plugin costs a step and a task of real slurmstepds, its hooks by the clock

REMOTE = "2"                # S_CTX_REMOTE as the clock tells contexts: in slurmstepd
STEP = ("slurm_spank_init", "slurm_spank_init_post_opt", "slurm_spank_exit")
TASK = ("slurm_spank_task_init", "slurm_spank_task_exit")
ASKED = ("--topo-place=compact", "--topo-membind=local", "--topo-omp=auto")


def total(calls):
    """Milliseconds of several calls, and of the processor's time."""
    return tuple(sum(column) / 1000 for column in zip(*calls))


def step(sheet, args):
    def tell(machine, what, values, goal):
        for name, of in (("median", statistics.median), ("p99", lambda some: percentile(some, 0.99))):
            wall, cpu = map(of, zip(*values))
            sheet.add(f"{machine}: plugin time of {what}: {name}", wall, "ms", f"at most {goal}",
                      f"of {len(values)}; {cpu:.3f} ms CPU time")
    for machine in args.machines:
        steps, tasks = [], []
        with bench(machine) as made:
            made.use_clock()
            made.clocked("-n1")
            for _ in range(args.steps):
                shutil.rmtree(made.run_folder / "cache", ignore_errors=True)
                calls = made.clocked("-n1")
                steps.append(total(call for hook in STEP for call in calls[hook]))
            for _ in range(args.steps // 4):
                calls = made.clocked("-n2", *ASKED)
                tasks += [total(call) for call in zip(*(calls[hook] for hook in TASK))]
        tell(machine, "a step, cores not in the cache", steps, 20)
        tell(machine, "a task with all options", tasks, 1)


PARTS = {
    "start": Part(start, "from exec to a topology, by every way", {
        "machine": ("epyc", "the node's", MACHINES), "processes": (64, "so many at once"), "rounds": (15, "so many")}),
    "step": Part(step, "what the plugin adds to a step and a task", {
        "machines": (list(MACHINES), "the node's", MACHINES), "steps": (100, "so many")}),
}

if __name__ == "__main__":
    main(__doc__, PARTS, ("start", "step"), needs=("topology_probe_ours", "topology_clock.so"))
