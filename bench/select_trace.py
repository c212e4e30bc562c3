# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The same jobs on three clusters side by side: Slurm, Slurm that fills sockets, Topiary; and a judge of every
placement."""
import collections
import json
import random
import re
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack

import sheet as sheets
from rig.cluster import JOB_USER, Cluster, as_user
from rig.processes import wait_until
from select_judge import LEVELS, Judge, Machine, Placement

MACHINES = {"a": Machine(2, 1, 1, 6), "b": Machine(4, 1, 1, 4), "c": Machine(2, 4, 2, 4)}
NODES = {f"{kind}{number}": machine for kind, machine in MACHINES.items() for number in range(1, 5)}
CLUSTERS = {"Slurm": {"stock": True}, "Slurm BLOCK": {"stock": True, "block": True}, "Topiary": {}}
# Nodes x cores on each, and how often.
SIZES = {(1, 1): 14, (1, 2): 14, (1, 3): 6, (1, 4): 16, (1, 5): 3, (1, 6): 9, (1, 8): 12, (1, 12): 6,
         (1, 16): 6, (1, 24): 2,
         (1, 32): 3, (1, 48): 1, (1, 64): 1, (2, 2): 4, (2, 4): 5, (2, 6): 2, (2, 8): 3, (3, 4): 2, (4, 4): 2,
         (2, 16): 1, (4, 8): 1}
# Tasks and MB on each node; seconds.
Job = collections.namedtuple("Job", "name at run nodes tasks task_cpus memory gpus", defaults=[None, None])


def make_trace(jobs, load, mean_run, seed):
    """Arrivals of a Poisson process that asks for `load` percent of the cores; run times of a log-normal law, of 1 s at
    least."""
    chance = random.Random(seed)
    sizes = chance.choices(list(SIZES), weights=SIZES.values(), k=jobs)
    runs = [max(1.0, round(chance.lognormvariate(0, 0.6) * mean_run / 1.2, 1)) for _ in sizes]
    asked = sum(nodes * cores * run for (nodes, cores), run in zip(sizes, runs))
    rate = jobs * sum(m.cores for m in NODES.values()) * load / 100 / asked
    at, trace = 0.0, []
    for number, ((nodes, cores), run) in enumerate(zip(sizes, runs)):
        at += chance.expovariate(rate)
        one_task = chance.random() < 0.3
        trace.append(Job(f"j{number}", at, run, nodes, 1 if one_task else cores, cores if one_task else 1))
    return trace


# --- running it

class Recorded(Cluster):
    """A cluster whose slurmctld writes down who gets and gives back what."""

    def __init__(self, folder, block=False, settings="", **how):
        machines = {node: synthetic(machine) for node, machine in NODES.items()}
        super().__init__(folder, machines, registry=False, **how)
        self.block, self.settings = block, settings

    def _configure(self):
        super()._configure()
        conf = self.folder / "etc" / "slurm.conf"
        text = conf.read_text().replace("SlurmctldDebug=debug", "SlurmctldDebug=info")
        text = text.replace("bf_interval=5", "bf_interval=1")
        if self.block:
            text = text.replace("CR_Core_Memory", "CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK")
        conf.write_text(text)
        with open(self.folder / "etc" / "topiary.conf", "a", encoding="utf-8") as ours:
            ours.write(self.settings)

    def start_slurmctld(self):
        env = self.env(LD_PRELOAD=str(self.build / "bench" / "select_record.so"), RECORD_FILE=str(self.record))
        self.run_daemon("slurmctld", ["slurmctld", "-D", "-f", f"{self.folder}/etc/slurm.conf"], env=env,
                        log=self.folder / "log" / "slurmctld.out")

    @property
    def record(self):
        return self.folder / "log" / "record"

    def run(self, trace):
        """Submit each job at its time; when each was submitted."""
        script = self.folder / "work" / "sleep"
        script.write_text('#!/bin/sh\nexec sleep "$1"\n')
        began, submitted = time.time(), {}
        for job in trace:
            time.sleep(max(0, began + job.at - time.time()))
            submitted[job.name] = time.time()
            command = ["sbatch", "-Q", "-J", job.name, "-t", "1", "-D", "/", "-o", "/dev/null", "-N", str(job.nodes),
                       f"--ntasks-per-node={job.tasks}", "-c", str(job.task_cpus),
                       *([f"--mem={job.memory}"] if job.memory else []),
                       *([f"--gres=gpu:{job.gpus}"] if job.gpus else []), str(script), str(job.run)]
            subprocess.run(as_user(JOB_USER, command), env=self.env(), check=True, stdout=subprocess.DEVNULL)
        if not wait_until(lambda: not self.command(["squeue", "-h"]).stdout, 300, 1):
            raise RuntimeError(f"jobs are left: {self.command(['squeue', '-h']).stdout}")
        return submitted

    def cycles(self):
        """What sdiag tells: microseconds of the scheduler's and of backfill's cycles, mean."""
        told = self.command(["sdiag"]).stdout
        return [int(n) for n in re.findall(r"Mean cycle:\s+(\d+)", told)]


def synthetic(machine):
    return subprocess.run(["lstopo-no-graphics", "--input", machine.text, "--of", "xml", "-"], check=True,
                          capture_output=True, text=True).stdout


def run_all(trace, keep, which=CLUSTERS, **more):
    """{cluster: (record, when each was submitted, cycles)}, of clusters that run at the same time and so disturb each
    other alike."""
    found, failures = {}, []

    def one(name, cluster):
        try:
            submitted = cluster.run(trace)
            found[name] = (cluster.record.read_text(), submitted, cluster.cycles())
        except Exception as e:      # told by the thread that waits
            failures.append(e)
    with ExitStack() as stack:
        clusters = {}
        for name, how in which.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tpt", dir="/tmp"))
            clusters[name] = stack.enter_context(Recorded(folder, **how, **more))
        threads = [threading.Thread(target=one, args=item) for item in clusters.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if keep:
            (keep / "snapshot").write_text(clusters["Topiary"].snapshot_file.read_text())
    if failures:
        raise failures[0]
    return {name: found[name] for name in which}


# --- judging it

class Story:
    """What happened to the trace on one cluster."""

    def __init__(self, trace, record, submitted, cycles):
        self.cycles, self.submitted = cycles, submitted
        self.started, self.ended, self.placed, self.tests = {}, {}, {}, []
        self.judged = []
        judge = Judge(NODES)
        for line in record.splitlines():
            words = line.split()
            if words[0] == "test":
                self.tests.append(int(words[2]) / 1e6)
            elif words[0] == "end" and words[2] not in self.ended:
                self.ended[words[2]] = float(words[1])
                judge.end(words[2])
            elif words[0] == "start":
                self.start(judge, words)
        missing = [job.name for job in trace if job.name not in self.ended]
        if missing:
            raise RuntimeError(f"{len(missing)} of {len(trace)} jobs did not run to their end: {missing[:5]}")

    def start(self, judge, words):
        name, offered = words[2], words[3].removeprefix("offered=").split(",")
        cores = {node: set(map(int, text.split(","))) for node, text in (word.split(":") for word in words[4:])}
        self.started[name], self.placed[name] = float(words[1]), cores
        self.judged.append(judge.start(Placement(name, float(words[1]), offered, cores)))

    def waits(self):
        return [self.started[name] - at for name, at in self.submitted.items()]

    def makespan(self):
        return max(self.ended.values()) - min(self.submitted.values())

    def utilisation(self):
        """Percent of all cores held, from the first start to the last submission: the end of the trace is idle
        everywhere."""
        first, last = min(self.started.values()), max(self.submitted.values())
        held = sum(sum(map(len, cores.values())) * max(0, min(self.ended[name], last) - self.started[name])
                   for name, cores in self.placed.items())
        return 100 * held / (last - first) / sum(m.cores for m in NODES.values())

    def share(self, true):
        return 100 * sum(map(true, self.judged)) / len(self.judged)


def figures(story):
    """{name: (value, unit)}, the same for each cluster."""
    count, waits = len(story.judged), story.waits()
    out = {
        "dominated placements": (sum(j.dominated for j in story.judged), f"of {count}"),
        "exact fits missed": (sum(j.exact_missed and not j.filled_rest for j in story.judged), f"of {count}"),
        "exact fits declined to fill the rest of a larger domain":
            (sum(j.filled_rest for j in story.judged), f"of {count}"),
        "intact packages broken": (sum(j.broken for j in story.judged) / count, "/job"),
    }
    for level, name in enumerate(LEVELS):
        out[f"avoidable {name} splits"] = (story.share(lambda j, at=level: j.avoidable[at]), "%")
        there = story.share(lambda j, at=level: j.avoidable_there[at])
        out[f"avoidable {name} splits on the allocated nodes"] = (there, "%")
        touched, least = (sum(getattr(j, counts)[level] for j in story.judged) for counts in ("touched", "least"))
        out[f"{name}s touched, relative to the minimum"] = (touched / least, "times")
    out["utilisation"] = (story.utilisation(), "%")
    out["waiting time, mean"] = (statistics.fmean(waits), "s")
    out["turnaround time, mean"] = (statistics.fmean(story.ended[name] - at for name, at in story.submitted.items()),
                                    "s")
    out["waiting time, p90"] = (sorted(waits)[int(0.9 * len(waits))], "s")
    out["makespan"] = (story.makespan(), "s")
    out["decision time, p50"] = (statistics.median(story.tests), "ms")
    out["decision time, p99"] = (sorted(story.tests)[int(0.99 * len(story.tests))], "ms")
    for name, cycle in zip(("scheduler", "backfill"), story.cycles):
        out[f"sdiag: {name} cycle, mean"] = (cycle / 1e3, "ms")
    return out


GOALS = {"dominated placements": "0", "exact fits missed": "0", "intact packages broken": "fewer than Slurm",
         "utilisation": "within 2 %", "waiting time, mean": "within 2 %", "turnaround time, mean": "within 2 %",
         "makespan": "within 2 %"}


def middle(repeats):
    """The middle of several runs; counts are added up."""
    out = {}
    for name, (value, unit) in repeats[0].items():
        values = [r[name][0] for r in repeats]
        counted = unit.startswith("of ")
        total = sum(int(r[name][1].split()[1]) for r in repeats) if counted else 0
        out[name] = (sum(values), f"of {total}") if counted else (statistics.median(values), unit)
    return out


def tell(sheet, told):
    """told: {cluster: the figures of each run}."""
    all_told = {name: middle(repeats) for name, repeats in told.items()}
    for name, (value, unit) in all_told["Topiary"].items():
        others = ", ".join(f"{sheets.shown(figures_[name][0])} {c}" for c, figures_ in all_told.items()
                           if c != "Topiary")
        within = GOALS.get(name, "").startswith("within")
        sheet.add(name, value, unit, goal="" if within else GOALS.get(name, ""), beside=others)
        if within:
            more = [100 * (ours[name][0] / stock[name][0] - 1) for ours, stock in zip(told["Topiary"], told["Slurm"])
                    if stock[name][0]]
            spread = f"{len(more)} runs: {min(more):+.1f} to {max(more):+.1f}" if len(more) > 1 else ""
            sheet.add(f"{name}: increase over Slurm", statistics.median(more), "%", goal=GOALS[name], beside=spread)


def tell_dominated(stories, trace):
    """What was had and what could have been, the most frequent first."""
    asked = {job.name: job for job in trace}
    for cluster, story in stories.items():
        worst = collections.Counter()
        for j in story.judged:
            if j.dominated or (j.exact_missed and not j.filled_rest):
                job = asked[j.job]
                could = j.by[0] if j.by else "be exact"
                worst[f"{job.nodes}x{job.tasks * job.task_cpus}: got {j.touched} could {could}"] += 1
        for what, times in worst.most_common(8):
            print(f"{cluster}: {times} times {what} (packages, NUMA nodes, L3s)", flush=True)


def job_log(trace, story):
    """The jobs as `topiary replay` reads them."""
    first = min(story.submitted.values())
    lines = ["job submit start end nodes tasks cpus_per_task"]
    lines += [f"{j.name} {story.submitted[j.name] - first:.3f} {story.started[j.name] - first:.3f} "
              f"{story.ended[j.name] - first:.3f} {j.nodes} {j.nodes * j.tasks} {j.task_cpus}" for j in trace]
    return "\n".join(lines) + "\n"


def records(trace, args):
    """{cluster: what happened there} of each repeat: run now, or kept by an earlier run."""
    for number in range(args.repeat):
        files = {name: args.keep and args.keep / f"{number}-{name.split()[-1]}.json" for name in CLUSTERS}
        if args.again:
            yield {name: Story(trace, *json.loads(file.read_text())) for name, file in files.items()}
            continue
        found = run_all(trace, args.keep)
        if args.keep:
            for name, file in files.items():
                file.write_text(json.dumps(found[name]))
        yield {name: Story(trace, *found[name]) for name in CLUSTERS}


def run(sheet, args):
    trace = make_trace(args.jobs, args.load, args.run, args.seed)
    told = collections.defaultdict(list)
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    for stories in records(trace, args):
        for name, story in stories.items():
            told[name].append(figures(story))
        if not sheet.quiet:
            tell_dominated(stories, trace)
        if args.keep:
            (args.keep / "jobs").write_text(job_log(trace, stories["Slurm"]))
    tell(sheet, told)
