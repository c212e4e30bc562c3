# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What the plugin costs a step and a task: real slurmstepds, with it and without, and its own hooks by the clock."""
import collections
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from rig.cluster import Cluster
from rig.paths import BUILD
from topology_machines import MACHINES, snapshot

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


def pairs(bench, count):
    """Milliseconds that the plugin adds to srun, of each pair."""
    added = []
    for i in range(count):
        took = {}
        for which in ("with", "without") if i % 2 else ("without", "with"):
            bench.use(which)
            took[which] = bench.step()
        added.append(took["with"] - took["without"])
    return added


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


def p99(values):
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


def tell(sheet, what, values, goal):
    walls, cpus = zip(*values)
    sheet.add(f"{what}: median", statistics.median(walls), "ms", f"at most {goal}",
              beside=f"{statistics.median(cpus):.3f} ms CPU time")
    sheet.add(f"{what}: p99", p99(walls), "ms", f"at most {goal}",
              beside=f"of {len(walls)}; {p99(cpus):.3f} ms CPU time")


def measure(sheet, args, machine, bench):
    bench.prepare_lines()
    bench.allocate()
    bench.step()
    tell(sheet, f"{machine}: plugin time of a step, cores not in the cache", hooks(bench, args.steps, True)[0],
         STEP_GOAL)
    tell(sheet, f"{machine}: plugin time of a step, cores in the cache", hooks(bench, args.steps, False)[0], STEP_GOAL)
    for what, asked in (("without options", ()), ("with all options", ASKED)):
        tell(sheet, f"{machine}: plugin time of a task {what}", hooks(bench, args.steps // 4, False, "-n2", *asked)[1],
             TASK_GOAL)
    added = pairs(bench, args.pairs)
    sheet.add(f"{machine}: added time of `srun true` with the plugin: median", statistics.median(added), "ms",
              f"at most {STEP_GOAL}", beside=f"of {len(added)} pairs")


def run(sheet, args):
    for machine in args.machines:
        folder = Path(tempfile.mkdtemp(prefix="topiary_bench_", dir="/tmp"))
        folder.chmod(0o755)
        try:
            with Bench(folder, None if machine == HOST else snapshot(folder, machine)[1].read_text()) as bench:
                measure(sheet, args, machine, bench)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def options(parser):
    parser.add_argument("--machines", nargs="+", choices=[HOST, *MACHINES], default=[HOST, "epyc"], help="the node's")
    parser.add_argument("--steps", type=int, default=100, help="so many of each kind")
    parser.add_argument("--pairs", type=int, default=100, help="of srun with the plugin and without")
