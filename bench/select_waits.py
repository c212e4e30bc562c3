# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""How long jobs wait with and without Topiary, by replay, which repeats exactly, and on real slurmctlds: clusters of
equal and of mixed nodes, at several loads, each with traces of its own."""
import functools
import json
import math
import os
import random
import re
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import BUILD, Part, side_by_side, synthetic
from select_trace import CLUSTERS as SETTINGS
from select_trace import Job, Recorded
from traces import TRACES, fetch, samples, snapshot

JOB, QUEUE = "prefer:weight=job", "prefer:weight=queue"
# Nodes of so many PUs, and how many of them.
CLUSTERS = {
    "equal": [("Package:2 [NUMANode] L3Cache:4 Core:8 PU:1", 64, 12)],
    "mixed": [("Package:2 [NUMANode] L3Cache:1 Core:12 PU:2", 48, 4),
              ("Package:2 [NUMANode] L3Cache:8 Core:4 PU:2", 128, 4),
              ("Package:2 [NUMANode] L3Cache:12 Core:8 PU:1", 192, 4)],
    "few of four packages": [("Package:2 [NUMANode] L3Cache:1 Core:16 PU:1", 32, 6),
                             ("Package:2 [NUMANode] L3Cache:4 Core:8 PU:2", 128, 4),
                             ("Package:4 [NUMANode] L3Cache:1 Core:18 PU:1", 72, 2)],
    "large ones first": [("Package:2 [NUMANode] L3Cache:8 Core:8 PU:1", 128, 3),
                         ("Package:2 [NUMANode] L3Cache:1 Core:20 PU:1", 40, 9),
                         ("Package:2 [NUMANode] L3Cache:1 Core:26 PU:2", 104, 4)],
    "fat and thin memory": [("Package:2 [NUMANode(memory=64GiB)] L3Cache:4 Core:8 PU:1", 64, 9),
                            ("Package:2 [NUMANode(memory=512GiB)] L3Cache:4 Core:8 PU:1", 64, 3)],
    "GPUs on some": [("Package:2 [NUMANode] L3Cache:4 Core:8 PU:1 + GPU@0-31 GPU@0-31 GPU@32-63 GPU@32-63", 64, 4),
                     ("Package:2 [NUMANode] L3Cache:4 Core:8 PU:1", 64, 8)],
}


def trace(cluster, seed, load, jobs):
    """Three in four on one node with up to all of the largest node's PUs, others on whole nodes or shares of several;
    Poisson arrivals; limits of one to eight times the run time. Where nodes differ in memory, six in ten jobs want less
    than a thin node has for their cores, three in ten up to 2.5 times that, one in ten up to eight times. Where some
    have GPUs, half of the jobs of up to a quarter of a node have one, two or four."""
    chance, kinds = random.Random(f"{cluster}/{seed}/{load}"), CLUSTERS[cluster]
    most, rows = max(pus for _, pus, _ in kinds), []
    for _ in range(jobs):
        part, nodes, memory, gpus = chance.random(), 1, 0, 0
        if part < 0.75:
            pus = min(most, int(2 ** chance.uniform(0, math.log2(most))))
            pus = 1 << pus.bit_length() - 1 if chance.random() < 0.5 else pus
        elif part < 0.9:
            _, each, there = chance.choice(kinds)
            nodes = min(chance.choice([1, 2, 2, 3, 4]), there)
            pus = each * nodes
        else:
            nodes = chance.choice([2, 3, 4])
            pus = nodes * chance.choice([2, 4, 6, 8, 12, 16, 24])
        task = chance.choice([1, 1, 1, 1, 2, 4, 8])
        task = 1 if pus // nodes % task or pus < task else task
        if "memory" in cluster:
            low, high = chance.choices([(0.1, 1), (1.2, 2.5), (4, 8)], [6, 3, 1])[0]
            memory = min(1_000_000 if nodes < 4 else 125_000, int(2000 * pus / nodes * chance.uniform(low, high)))
        if "GPU" in cluster and pus * 4 <= most and chance.random() < 0.5:
            gpus = chance.choice([1, 1, 2, 4])
        run = 60 * 2 ** chance.uniform(0, 7)
        rows.append((nodes, pus // task, task, run, run * chance.choice([1, 1.2, 2, 4, 8]), memory, gpus))
    span = sum(tasks * cpus * run for _, tasks, cpus, run, *_ in rows) / sum(k[1] * k[2] for k in kinds) / load * 100
    starts = sorted(chance.uniform(0, span) for _ in rows)
    return "job submit start end nodes tasks cpus_per_task limit memory gpus\n" + "".join(
        f"{i} {at:.1f} {at:.1f} {at + run:.1f} {nodes} {tasks} {cpus} {limit:.0f} {memory or '-'} {gpus}\n"
        for i, (at, (nodes, tasks, cpus, run, limit, memory, gpus)) in enumerate(zip(starts, rows)))


POLICIES = ("stock", "block", "prefer", JOB, QUEUE)


def replayed(folder, cluster, load, nth, text):
    nodes, past = folder / f"{cluster}.snapshot", folder / f"{cluster}.{load}.{nth}"
    past.write_text(text)
    done = subprocess.run([BUILD / "topiary", "replay", "--json", "--snapshot", nodes, "--policies", ",".join(POLICIES),
                           past], check=True, capture_output=True, text=True)
    past.unlink()
    return {policy["policy"]: policy for policy in json.loads(done.stdout)["policies"]}


def standard_error(ours, theirs):
    """Of the ratio of two sums, by the jackknife (Tukey 1958)."""
    without = [(sum(ours) - mine) / max(1e-9, sum(theirs) - other) for mine, other in zip(ours, theirs)]
    return math.sqrt((len(without) - 1) * statistics.pvariance(without))


def waits_table(sheet, args, clusters, texts_of):
    """clusters: {name: kinds of nodes}; texts_of(cluster, load): traces. The rows."""
    head = ("", "wait of Slurm, s", "relative", "standard error", "of one trace, at most", "p90", "makespan",
            "dominated, %", "of Slurm BLOCK, %", *(f"TopoWeight={one}" for one in (
                "job: wait, relative", "job: dominated, %", "queue: wait, relative", "queue: dominated, %")))
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for cluster, kinds in clusters.items():
            (Path(folder) / f"{cluster}.snapshot").write_text(snapshot(kinds))
            for load in args.loads:
                found = list(pool.map(lambda numbered, c=cluster, at=load: replayed(Path(folder), c, at, *numbered),
                                      enumerate(texts_of(cluster, load), 1)))
                best = [min(of["stock"]["wait_mean_seconds"], of["block"]["wait_mean_seconds"]) for of in found]
                ours = [of["prefer"]["wait_mean_seconds"] for of in found]

                def mean(name, *policies, found=found):
                    return min(statistics.mean(of[policy][name] for of in found) for policy in policies)

                def beside(name, of_slurm=None, ours="prefer"):
                    return mean(name, ours) / max(1e-9, of_slurm or mean(name, "stock", "block"))
                rows.append((f"{cluster}, {load} %", statistics.mean(best),
                             beside("wait_mean_seconds", statistics.mean(best)), standard_error(ours, best),
                             max(mine / max(1, b) for mine, b in zip(ours, best)),
                             beside("wait_p90_seconds"), beside("makespan_seconds"),
                             mean("dominated_percent", "prefer"), mean("dominated_percent", "block"),
                             *(figure for one in (JOB, QUEUE) for figure in (
                                 beside("wait_mean_seconds", statistics.mean(best), one),
                                 mean("dominated_percent", one)))))
    sheet.table(head, rows)
    return rows


def waits_run(sheet, args):
    rows = waits_table(sheet, args, CLUSTERS, lambda cluster, load: (
        trace(cluster, seed, load, args.jobs) for seed in range(1, args.seeds + 1)))
    for what, column, goal in (("mean wait", 2, "<= 1.00"), ("p90 of the waits", 5, "<= 1.00"),
                               ("makespan", 6, "<= 1.01")):
        sheet.add(f"{what} relative to the better of Slurm and Slurm BLOCK, by replay, the worst of {len(rows)} sets",
                  max(row[column] for row in rows), "times", goal,
                  f"mean {statistics.mean(row[column] for row in rows):.3f}; "
                  f"above 1.01 in {sum(row[column] > 1.01 for row in rows)} sets")


def traces_run(sheet, args):
    """Of traces that are not here each is fetched; those that cannot be had are named."""
    there = {}
    for name in args.traces:
        try:
            fetch(name)
            there[name] = TRACES[name].kinds
        except RuntimeError as e:
            print(f"left out: {name}: {e}")
    for row in waits_table(sheet, args, there, lambda name, load: samples(name, args.jobs, load, args.copies)):
        name, _, mean, error, worst, p90, makespan, ours, block, *others = row
        sheet.add(f"{name}: mean wait relative to the better of Slurm and Slurm BLOCK", mean, "times", "<= 1.00",
                  f"standard error {error:.2f}, one part at most {worst:.2f}, p90 {p90:.2f}, makespan {makespan:.2f}; "
                  f"dominated {ours:.1f} %, {block:.1f} % Slurm BLOCK; TopoWeight=job: {others[0]:.2f}, dominated "
                  f"{others[1]:.1f} %; TopoWeight=queue: {others[2]:.2f}, dominated {others[3]:.1f} %")


# --- on real slurmctlds, side by side: a minute of the trace is a second there, and 64 MB are 1 MB

SETS = ("equal 90", "mixed 80", "mixed 90", "few of four packages 90", "large ones first 90", "fat and thin memory 90")
CLASSES = ("one node, a quarter of the largest at most", "one node, more", "several nodes")


def real_jobs(cluster, seed, load, jobs):
    for line in trace(cluster, seed, load, jobs).splitlines()[1:]:
        name, at, begin, end, nodes, tasks, cpus, limit, memory, _ = line.split()
        yield Job(f"j{name}", float(at) / 60, max(1, (float(end) - float(begin)) / 60), int(nodes),
                  int(tasks) // int(nodes), int(cpus), None if memory == "-" else max(1, int(memory) // 64),
                  limit=math.ceil(int(limit) / 3600))


def cluster_of(folder, name, **how):
    shapes = [shape for shape, _, nodes in CLUSTERS[name] for _ in range(nodes)]
    nodes = {f"cn{nth:03}": f"RealMemory={32 * int(re.search(r'memory=([0-9]+)', shape)[1])}"
             for nth, shape in enumerate(shapes, 1) if "memory" in shape}
    return Recorded(folder, xml={f"cn{nth:03}": synthetic(shape) for nth, shape in enumerate(shapes, 1)}, nodes=nodes,
                    conf="SlurmdParameters=config_overrides\n", **how)


def real_waits(which, args):
    """{class, or "all": (mean wait of Slurm BLOCK, ours)} in seconds of a set."""
    cluster, load = which.rsplit(" ", 1)
    jobs = list(real_jobs(cluster, args.seed, int(load), args.real_jobs))
    makers = {one: functools.partial(cluster_of, name=cluster, **SETTINGS[one]) for one in ("Slurm BLOCK", "Topiary")}
    most, waits = max(pus for _, pus, _ in CLUSTERS[cluster]), {}
    for name, (record, submitted) in side_by_side(makers, lambda made: made.recorded(jobs)).items():
        began = {words[2]: float(words[1]) for words in map(str.split, record.splitlines()) if words[0] == "start"}
        for job in jobs:
            for kind in ("all", CLASSES[2 if job.nodes > 1 else job.tasks * job.task_cpus * 4 > most]):
                waits.setdefault(kind, {}).setdefault(name, []).append(began[job.name] - submitted[job.name])
    return {kind: [statistics.fmean(of[name]) for name in makers] for kind, of in waits.items()}


def picture(rows, head):
    """Bars of the waits relative to Slurm's, from half to twice as long, by set and class; on the line: equal."""
    colours = ("#222", "#4c78a8", "#72b7b2", "#f58518")
    lines = [f'<text x="{(60, 120, 380, 500)[nth]}" y="300" fill="{colour}">{words}</text>'
             for nth, (colour, words) in enumerate(zip(colours, head[2:]))]
    for nth, (name, _, *ratios) in enumerate(rows):
        lines.append(f'<text x="{nth * 150 + 60}" y="270">{name}</text>')
        for x, (ratio, colour) in zip(range(nth * 150 + 60, 10**6, 26), zip(ratios, colours)):
            y = 140 - 100 * max(-1.0, min(1.0, math.log2(max(ratio, 0.01))))
            lines.append(f'<rect x="{x}" y="{min(y, 140):.0f}" width="22" height="{abs(y - 140):.0f}" '
                         f'fill="{colour}"/><text x="{x}" y="{y + (14 if y > 140 else -4):.0f}">{ratio:.2f}</text>')
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="980" height="312" font-family="sans-serif" font-size="10">'
            '<rect width="980" height="312" fill="white"/><path d="M40 140H960" stroke="#888"/>'
            f'{"".join(lines)}</svg>\n')


def real_run(sheet, args):
    """Some sets at once: jobs sleep, and both clusters of a set have the same machine."""
    head, rows = ("", "wait of Slurm BLOCK, s", "relative", *CLASSES), []
    with ThreadPoolExecutor(args.at_once) as pool:
        for which, found in zip(args.sets, pool.map(lambda one: real_waits(one, args), args.sets)):
            rows.append((which, found["all"][0], *(ours / max(slurm, 0.5) for slurm, ours in
                                                   (found.get(kind, (1, 1)) for kind in ("all", *CLASSES)))))
    sheet.table(head, rows)
    if args.picture:
        Path(args.picture).write_text(picture(rows, head), encoding="utf-8")
    ratios = [row[2] for row in rows]
    sheet.add("mean wait relative to Slurm BLOCK, real slurmctlds", statistics.mean(ratios), "times", "<= 1.00",
              f"{len(ratios)} sets: {min(ratios):.2f} to {max(ratios):.2f}")


PARTS = {"waits": Part(waits_run, "how long jobs wait, by replay", {
    "loads": ([70, 80, 90, 95], "percent of all PUs that the jobs ask for"), "seeds": (24, "traces of each set"),
    "jobs": (3000, "of a trace")}),
    "traces": Part(traces_run, "how long the jobs of real clusters wait, by replay", {
        "traces": (list(TRACES), "which"),
        "loads": ([90], "percent of all PUs, or of all GPUs, that the jobs ask for"),
        "copies": (3, "replays of each part of a trace, with submissions up to ten minutes earlier or later in all but "
                   "the first"),
        "jobs": (3000, "of a part")}),
    "real": Part(real_run, "how long jobs wait on real slurmctlds, by class of job", {
        "sets": (list(SETS), "a cluster and its load"), "real_jobs": (150, "of a trace"), "seed": (1, "of the traces"),
        "at_once": (3, "sets"), "picture": ("", "write the figures to an SVG file")})}
