# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Jobs give way to urgent ones as under stock Slurm, and only when there is no room; the urgent job is placed along
boundaries."""
import pytest
from rig.ask import fields, jobs, wait_running

from .pair import cores, cuts, fate, running, settled, submit

L3, L3_CORES = 8, 8     # L3 caches of a big machine, cores of each

GIVES_WAY = pytest.mark.parametrize("partition, state", [("requeued", "PENDING"), ("cancelled", "PREEMPTED")])


def urgent(cluster, lower, *words):
    """An urgent job beside a lower one: its record, the lower one's state, and its fate."""
    number = submit(cluster, "-p", "urgent", *words)
    wait_running(cluster, number)
    record = jobs(cluster, number)[0]
    return record, fields(jobs(cluster, lower)[0])["JobState"], fate(cluster, record)


def beside(pair, lower, words):
    """What becomes of a lower job and of an urgent one after it: the lower one's state; the urgent one is packed."""
    ours, stock = pair.both(lambda c: urgent(c, running(c, *lower.split())[0], *words.split()))
    assert ours[1:] == stock[1:]
    assert "AdminComment=topiary:1 placed " in ours[0], ours[0]
    assert not cuts(cores(pair.ours, ours[0]))
    return ours[1]


@GIVES_WAY
def test_lower_tier_job_is_preempted(rich, partition, state):
    assert beside(rich, f"-N1 -w big1 -n64 -p {partition}", "-N1 -w big1 -n8") == state


@GIVES_WAY
def test_lower_tier_job_is_preempted_for_its_gpus(rich, partition, state):
    assert beside(rich, f"-N1 -w big1 -n4 --gres=gpu:4 -p {partition}", "-N1 -w big1 -n8 --gres=gpu:1") == state


def test_no_job_is_preempted_for_a_better_shape(rich):
    assert beside(rich, "-N1 -w big1 -n60 -p requeued", "-N1 -w big1 -n4") == "RUNNING"


def test_job_of_the_same_tier_waits(rich):
    rich.fates(["-N1 -w big1 -n64 -p requeued", "-N1 -w big1 -n8 -p cancelled"])


def test_lower_tier_job_is_preempted_for_a_required_boundary(rich):
    """No L3 has two cores free: one of the jobs that hold the others gives way, and no more."""
    cluster = rich.ours
    lower = [submit(cluster, "-N1", "-w", "big1", f"-n{L3_CORES - 1}", "-p", "cancelled") for _ in range(L3)]
    settled(cluster, *lower)
    number = submit(cluster, "-N1", "-w", "big1", "-n2", "-p", "urgent", "--topo-fit=require", "--topo-level=l3")
    wait_running(cluster, number)
    assert len({core // L3_CORES for core in cores(cluster, jobs(cluster, number)[0])["big1"]}) == 1
    states = [fields(jobs(cluster, n)[0])["JobState"] for n in lower]
    assert states.count("RUNNING") == L3 - 1, states
