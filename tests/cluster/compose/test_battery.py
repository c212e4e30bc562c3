# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Option sets beside stock Slurm, on an empty, a partly used and a full cluster, under each fit: no job that stock starts
waits or is refused unless what it requires is truly not free, by a judge who shares nothing with Topiary. A sample;
TOPIARY_BATTERY=whole is all of them.
"""
import os
import re

import pytest
from rig.ask import expand, fields, held, jobs, threads
from rig.cluster import JOB_USER, SLURM_RELEASE
from rig.processes import wait_until

from .battery import OPTION_SETS, SAMPLE, Node, Wish, domains
from .pair import end_jobs, settled, submit

SETS = OPTION_SETS if os.environ.get("TOPIARY_BATTERY") == "whole" else SAMPLE
STARTED, WAITS, REFUSED = "started", "waits", "refused"
LEVELS = {"package": "Package", "l3": "L3Cache"}
FITS = {"off": ["--topo-fit=off"], "prefer": ["--topo-fit=prefer"], "spread": ["--topo-fit=spread"],
        **{level: ["--topo-fit=require", f"--topo-level={level}"] for level in LEVELS}}

# From 25.05 on, stock Slurm starts this nowhere, either, where each node has the cores of one L3 alone (tried with
# CpuSpecList).
NOT_IN_A_DOMAIN = {("-n12 --gpus=12", "l3")} if SLURM_RELEASE >= (25, 5) else set()

# Jobs that hold what they get, with topo-fit=off: the same cores on both clusters.
LOADS = {
    "empty": [],
    "part": ["-N1 -w big1 -n40", "-N1 -w big2 -n20 --gres=gpu:2", "-N1 -w big3 -n28 --gres=gpu:1", "-N1 -w mid1 -n12"],
    "full": ["-N1 -w big1 -n60", "-N1 -w big2 -n64", "-N1 -w big3 -n62 --gres=gpu:3", "-N1 -w mid1 -n32",
             "-N1 -w mid2 -n28"],
}


def outcome(cluster, *words):
    """What becomes of a job that is to start at once: STARTED and what it got, or WAITS or REFUSED and nothing. It is
    gone afterwards."""
    said = cluster.command(["salloc", "--no-shell", "--immediate", *words], user=JOB_USER, check=False).stderr
    number = re.search(r"Granted job allocation (\d+)", said)
    if not number:
        return (WAITS if "Unable to allocate" in said else REFUSED), {}
    record = jobs(cluster, number[1])[0]
    cluster.command(["scancel", number[1]])
    assert wait_until(lambda: cluster.job_state(number[1]) not in ("RUNNING", "COMPLETING") and
                      "COMPLETING" not in cluster.command(["squeue", "-h", "-o", "%T"]).stdout, 60, 0.02)
    gpus = sum(int(count) * len(expand(hosts.partition("[")[2].rstrip("]") or "1"))
               for hosts, count in re.findall(r"Nodes=(\S+) CPU_IDs=\S+ Mem=\d+ GRES=gpu\D*:(\d+)\(", record))
    return STARTED, {"cores": held(cluster, record, cluster.threads_of), "gpus": gpus}


def nodes_of(cluster, level):
    """What is free now, as the judge sees it."""
    taken = {}
    for record in jobs(cluster):
        if fields(record)["JobState"] == "RUNNING":
            for node, cores in held(cluster, record, cluster.threads_of).items():
                taken.setdefault(node, set()).update(cores)
    told = dict(re.findall(r"(?m)^(NodeName=(\S+).*)$",
                           cluster.command(["scontrol", "-d", "-o", "show", "node"]).stdout))
    return [Node(name, line, taken.get(name, set()), domains(cluster.xml[name], LEVELS[level]))
            for line, name in told.items()]


def within(cluster, placed, level):
    """Whether the cores on each node lie in one domain."""
    return all(any(set(cores) <= set(domain) for domain in domains(cluster.xml[name], LEVELS[level]))
               for name, cores in placed.items())


def faults_of(words, stock, ours, nodes, empty):
    """What went wrong with one option set: [(fit, what)]. nodes, empty: those of each level as they are, and with
    nothing taken."""
    wish, found = Wish(words), []
    whole = "exclusive" in wish.told and not wish.told["exclusive"]
    for fit, (what, placed) in ours.items():
        if what == STARTED != stock[0]:
            found.append((fit, f"started, stock {stock[0]}"))
        elif what == STARTED and not whole and placed["gpus"] != (wish.gpus or wish.node_gpus * len(placed["cores"])):
            found.append((fit, f"has other GPUs than it asked for: {placed}"))
        elif fit not in LEVELS and what != stock[0]:
            found.append((fit, f"{what}, stock {stock[0]}"))
        elif fit in LEVELS and what == STARTED and not whole and not placed["within"]:
            found.append((fit, f"started beyond its domain: {placed}"))
        elif fit in LEVELS and stock[0] == STARTED != what and wish.may_be(nodes[fit]):
            found.append((fit, f"{what}, though there is a domain"))
        elif fit in LEVELS and stock[0] != REFUSED == what and wish.may_be(empty[fit]):
            found.append((fit, "refused, though there is a domain on the empty cluster"))
    return found


@pytest.fixture(scope="module")
def battery(battery_pair):
    for cluster in (battery_pair.ours, battery_pair.stock):
        cluster.threads_of = threads(cluster)
    battery_pair.empty = {level: nodes_of(battery_pair.ours, level) for level in LEVELS}
    return battery_pair


@pytest.fixture(params=LOADS)
def loaded(request, battery):
    def load(cluster):
        numbers = [submit(cluster, *words.split(), *([] if cluster.stock else FITS["off"]))
                   for words in LOADS[request.param]]
        return [held(cluster, record, cluster.threads_of) for record in settled(cluster, *numbers)]

    battery.agree(load)
    yield battery
    battery.both(end_jobs)
    battery.clean()


def test_jobs_that_stock_slurm_starts_do_not_wait(loaded):
    def run(cluster):
        if cluster.stock:
            return {words: outcome(cluster, *words.split()) for words in SETS}
        told = {}
        for words in SETS:
            told[words] = {fit: outcome(cluster, *words.split(), *options) for fit, options in FITS.items()}
            for fit in LEVELS:
                told[words][fit][1]["within"] = within(cluster, told[words][fit][1].get("cores", {}), fit)
        return told

    nodes = {level: nodes_of(loaded.ours, level) for level in LEVELS}
    ours, stock = loaded.both(run)
    faults = [f"{words} ({fit}): {what}" for words in SETS
              for fit, what in faults_of(words, stock[words], ours[words], nodes, loaded.empty)
              if (words, fit) not in NOT_IN_A_DOMAIN]
    assert not faults, "\n".join(faults)
    assert sum(what == STARTED for what, _ in stock.values()), "stock starts nothing: this shows nothing"
