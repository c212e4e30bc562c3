# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Jobs with and without GPUs, the same on three clusters side by side: Slurm with gres.conf's Cores=, Topiary, and Topiary
that takes the cores near free GPUs for other jobs, too. A judge that shares nothing with the plugin asks of each job
with GPUs whether all its cores are near these, and whether others were that could have been.
"""
import collections
import itertools
import random
import statistics
import sys

import sheet as sheets
from rig.cluster import SLURM_RELEASE
from select_trace import NODES, Story, make_trace, run_all

CLUSTERS = {"Slurm": {"stock": True}, "Topiary": {}, "ignore": {"settings": "TopoGpuCores = ignore\n"}}
SMALL = 8           # cores of a job that may have GPUs
WITH_GPUS = 0.6     # of these
# A GPU for each NUMA node: its cores.
GPUS = {node: [set(domain) for domain in machine.domains(1)] for node, machine in NODES.items()}


def with_gpus(trace, seed, kept):
    """Without jobs that no node has enough cores for beside those kept for GPUs."""
    chance = random.Random(seed)
    most = max(machine.cores - kept * len(GPUS[node]) for node, machine in NODES.items())
    trace = [job for job in trace if job.tasks * job.task_cpus <= most]
    return [job._replace(gpus=chance.choices((1, 2), (3, 1))[0])
            if job.nodes == 1 and job.tasks * job.task_cpus <= SMALL and chance.random() < WITH_GPUS else job
            for job in trace]


def configured(kept):
    """Since 24.11 Slurm refuses Cores= that are not whole sockets: there NUMA nodes are its sockets, as at sites."""
    restricted = f" RestrictedCoresPerGPU={kept}" if kept else ""
    lines = [f"NodeName={node} Name=gpu File={{folder}}/{node}gpu{i} Cores={min(near)}-{max(near)}\n"
             for node, all_near in GPUS.items() for i, near in enumerate(all_near)]
    conf, words = "GresTypes=gpu\n", {node: f"Gres=gpu:{len(near)}" for node, near in GPUS.items()}
    if SLURM_RELEASE >= (24, 11):
        conf += "SlurmdParameters=numa_node_as_socket\n"
        words = {node: f"{said} Sockets={len(GPUS[node])} CoresPerSocket={len(GPUS[node][0])}{restricted}"
                 for node, said in words.items()}
    return {"conf": conf, "files": {"gres.conf": "".join(lines)}, "nodes": words}


class GpuStory(Story):
    """Which jobs have GPUs that are far from their cores, and which of these need not; and which without GPUs leave one
    fewer cores than are kept for it."""

    def __init__(self, trace, kept, record, submitted, cycles):
        self.kept, self.intruders = kept, set()
        self.asked = {job.name: job for job in trace}
        self.cores = {node: set(range(machine.cores)) for node, machine in NODES.items()}
        self.gpus = {node: set(range(len(near))) for node, near in GPUS.items()}
        self.held, self.far, self.needless, self.bare, self.needless_bare = {}, set(), set(), set(), set()
        self.granted = {}
        for line in record.splitlines():
            words = line.split()
            if words[0] == "gpus":
                self.granted[words[2]] = {node: set(map(int, text.split(",")))
                                          for node, text in (word.split(":") for word in words[3:])}
        super().__init__(trace, record, submitted, cycles)

    def could_be_near(self, node, count, gpus, each=False):
        """Whether free GPUs of a node have so many free cores near them. each: and each of them has one."""
        return any(len(self.cores[node] & set().union(*(GPUS[node][i] for i in some))) >= count
                   and not (each and any(not self.cores[node] & GPUS[node][i] for i in some))
                   for some in itertools.combinations(sorted(self.gpus[node]), gpus))

    def start(self, judge, words):
        name, offered = words[2], words[3].removeprefix("offered=").split(",")
        for job in [job for job in self.held if job in self.ended]:
            for node, cores, gpus in self.held.pop(job):
                self.cores[node] |= cores
                self.gpus[node] |= gpus
        cores = {node: set(map(int, text.split(","))) for node, text in (word.split(":") for word in words[4:])}
        granted = self.granted.get(name, {})
        for node, mine in granted.items():
            if self.asked[name].tasks >= len(mine) > 1 and any(not cores[node] & GPUS[node][i] for i in mine):
                self.bare.add(name)
                if any(self.could_be_near(n, len(cores[node]), len(mine), True) for n in offered):
                    self.needless_bare.add(name)
            if not cores[node] <= set().union(*(GPUS[node][i] for i in mine)):
                self.far.add(name)
                if any(self.could_be_near(n, len(cores[node]), len(mine)) for n in offered):
                    self.needless.add(name)
        self.held[name] = [(node, mine, granted.get(node, set())) for node, mine in cores.items()]
        for node, mine, gpus in self.held[name]:
            self.cores[node] -= mine
            self.gpus[node] -= gpus
            if not granted and any(len(near & self.without_gpus(node)) > len(near) - self.kept for near in GPUS[node]):
                self.intruders.add(name)
        self.started[name], self.placed[name] = float(words[1]), cores

    def without_gpus(self, node):
        """The cores there of jobs without GPUs."""
        return {core for held in self.held.values() if not any(gpus for *_, gpus in held)
                for at, mine, _ in held if at == node for core in mine}

    def wait(self, with_gpus_only):
        return statistics.fmean(self.started[name] - at for name, at in self.submitted.items()
                                if bool(self.asked[name].gpus) == with_gpus_only)


FIGURES = {
    "utilisation": ("%", Story.utilisation),
    "waiting time of jobs with GPUs, mean": ("s", lambda story: story.wait(True)),
    "waiting time of jobs without GPUs, mean": ("s", lambda story: story.wait(False)),
}


def run(sheet, args):
    kept = args.restricted
    if kept and SLURM_RELEASE < (24, 11):
        sys.exit("select_plugin.py: --restricted needs Slurm 24.11 or later: make bench-select-gpu SLURM=26.05")
    trace = with_gpus(make_trace(args.jobs, args.load, args.run, args.seed), args.seed, kept)
    told = collections.defaultdict(list)
    for _ in range(args.repeat):
        for name, record in run_all(trace, None, CLUSTERS, **configured(kept)).items():
            told[name].append(GpuStory(trace, kept, *record))
    total = args.repeat * sum(bool(job.gpus) for job in trace)

    def beside(value):
        return f"{sheets.shown(value('Slurm'))} Slurm, {sheets.shown(value('ignore'))} with TopoGpuCores=ignore"

    def count(jobs):
        return lambda name: sum(len(getattr(story, jobs)) for story in told[name])

    for what, jobs in (("jobs with GPUs, all cores near these", None),
                       ("jobs with GPUs, some cores far although others were near", "needless"),
                       ("jobs of several GPUs and as many tasks, one of the GPUs without a core near it", "bare"),
                       ("of these, jobs where each GPU could have had one, all cores near", "needless_bare")):
        value = count(jobs) if jobs else lambda name: total - count("far")(name)
        sheet.add(what, value("Topiary"), f"of {total}", goal="0" if "needless" in (jobs or "") else "",
                  beside=beside(value))
    if kept:
        value = count("intruders")
        sheet.add(f"jobs without GPUs that left a GPU fewer than {kept} cores", value("Topiary"), "", goal="0",
                  beside=beside(value))
    for what, (unit, figure) in FIGURES.items():
        def median(name, figure=figure):
            return statistics.median(map(figure, told[name]))
        sheet.add(what, median("Topiary"), unit, beside=beside(median))
