# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Jobs with and without much memory, the same on two clusters side by side: Slurm and Topiary. A judge that shares
nothing with the plugin asks of each start whether the NUMA nodes of the job's cores could hold its memory, and whether
those of other free cores could.
"""
import collections
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

import sheet as sheets
from rig.paths import BUILD
from select_trace import CLUSTERS, MACHINES, NODES, Story, make_trace, run_all

MEMORY = 16000      # MB that Slurm may allocate on each node
SLACK = 1           # MB: the plugin counts in sixteenths
CORE = MEMORY * len(NODES) // sum(machine.cores for machine in NODES.values())      # MB for each core, on average
HEAVY = 0.3         # of the jobs: more memory than their share of the cores


def with_memory(trace, seed):
    chance = random.Random(seed)
    factors = [chance.uniform(1.2, 2.5) if chance.random() < HEAVY else chance.uniform(0.1, 0.6) for _ in trace]
    return [job._replace(memory=int(min(0.9 * MEMORY, factor * CORE * job.tasks * job.task_cpus)))
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

    def __init__(self, trace, record, submitted, cycles):
        self.memory = {node: Memory(machine) for node, machine in NODES.items()}
        self.asked = {job.name: job for job in trace}
        self.far, self.needless = set(), set()
        super().__init__(trace, record, submitted, cycles)

    def start(self, judge, words):
        name, offered = words[2], words[3].removeprefix("offered=").split(",")
        memory = self.asked[name].memory
        for node in self.memory.values():
            for other in [job for job in node.jobs if job in self.ended]:
                node.end(other)
        cores = {node: set(map(int, text.split(","))) for node, text in (word.split(":") for word in words[4:])}
        if not all(self.memory[node].holds(mine, memory) for node, mine in cores.items()):
            count = len(next(iter(cores.values())))
            self.far.add(name)
            if sum(self.memory[node].could_hold(count, memory) for node in offered) >= len(cores):
                self.needless.add(name)
        for node, mine in cores.items():
            self.memory[node].start(name, mine, memory)
        self.started[name], self.placed[name] = float(words[1]), cores


def replayed(trace):
    """{policy: what `topiary replay` tells of these jobs}"""
    snapshot = ["topiary-snapshot 1"]
    for kind, machine in MACHINES.items():
        text = machine.text.replace("memory=4GB", f"memory={MEMORY // len(machine.domains(1))}MiB")
        hosts = [node for node, its in NODES.items() if its is machine]
        snapshot += [f"shape {kind} {text}", f"nodes {','.join(hosts)} {kind}"]
    jobs = ["job submit start end nodes tasks cpus_per_task memory limit"]
    jobs += [f"{j.name} {j.at:.3f} {j.at:.3f} {j.at + j.run:.3f} {j.nodes} {j.nodes * j.tasks} {j.task_cpus} "
             f"{j.memory} 60" for j in trace]
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("snapshot", "jobs")}
        files["snapshot"].write_text("\n".join([*snapshot, "end\n"]))
        files["jobs"].write_text("\n".join(jobs) + "\n")
        done = subprocess.run([BUILD / "topiary", "replay", "--json", "--policies=stock,prefer", "--snapshot",
                               files["snapshot"], files["jobs"]], check=True, capture_output=True)
    return {policy["policy"]: policy for policy in json.loads(done.stdout)["policies"]}


def tell_replayed(sheet, trace):
    told = replayed(trace)
    for what, key, goal in (("memory is far although other cores had it near", "memory_needless_percent", "0"),
                            ("memory is far", "memory_far_percent", "")):
        sheet.add(f"jobs with memory, in topiary replay: {what}", told["prefer"][key], "% of jobs", goal=goal,
                  beside=f"{sheets.shown(told['stock'][key])} Slurm")
    sheet.add("jobs with memory, in topiary replay: utilisation", told["prefer"]["utilisation_percent"], "%",
              beside=f"{sheets.shown(told['stock']['utilisation_percent'])} Slurm")


def run(sheet, args):
    trace = with_memory(make_trace(args.jobs, args.load, args.run, args.seed), args.seed)
    which = {name: how for name, how in CLUSTERS.items() if name != "Slurm BLOCK"}
    told = collections.defaultdict(list)
    for _ in range(args.repeat):
        found = run_all(trace, None, which, nodes=dict.fromkeys(NODES, f"RealMemory={MEMORY}"))
        for name, record in found.items():
            told[name].append(MemoryStory(trace, *record))
    total = args.jobs * args.repeat
    for what, jobs in (("jobs whose memory is far although other cores had it near", "needless"),
                       ("jobs whose memory is far", "far")):
        ours, stock = (sum(len(getattr(story, jobs)) for story in told[name]) for name in ("Topiary", "Slurm"))
        sheet.add(what, ours, f"of {total}", goal="0" if jobs == "needless" else "", beside=f"{stock} Slurm")
    for what, figure in (("utilisation", Story.utilisation),
                         ("waiting time, mean", lambda story: statistics.fmean(story.waits()))):
        ours, stock = (statistics.median(map(figure, told[name])) for name in ("Topiary", "Slurm"))
        sheet.add(what, ours, "%" if what == "utilisation" else "s", beside=f"{sheets.shown(stock)} Slurm")
    more = [100 * (ours.utilisation() / stock.utilisation() - 1) for ours, stock in zip(told["Topiary"], told["Slurm"])]
    sheet.add("utilisation: increase over Slurm", statistics.median(more), "%", goal="within 2 %")
    tell_replayed(sheet, trace)
