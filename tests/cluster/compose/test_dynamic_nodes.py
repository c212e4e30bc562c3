# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Nodes that come and go while slurmctld runs: jobs run on them as under stock Slurm, packed once the snapshot tells
their hardware."""
import pytest
from rig.ask import fields, given_too_often, jobs
from rig.processes import wait_until

from .pair import cores, cuts, end_jobs, running


@pytest.fixture
def grown(rich):
    """The clusters with one node more."""
    rich.both(lambda cluster: cluster.add_node("mid9", "intel-2x8", "RealMemory=2000 Feature=late"))
    rich.both(lambda cluster: wait_until(cluster.nodes_idle, 20))
    assert wait_until(lambda: "snapshot: 5 nodes" in (rich.ours.folder / "log" / "slurmctld.log").read_text(), 20)
    yield rich
    rich.both(end_jobs)
    rich.both(lambda cluster: wait_until(cluster.nodes_idle, 20))
    rich.both(lambda cluster: cluster.remove_node("mid9"))


def test_jobs_run_on_a_new_node(grown):
    ours, _ = grown.fates(["-n8 --ntasks-per-core=1 -C late", "-n8 --ntasks-per-core=1 -w mid9", "-n1 -w mid9"])
    assert not [record for record in ours if cuts(cores(grown.ours, record))]


def test_removed_node(rich):
    def run(cluster):
        number, had = running(cluster, "-n8", "-N1", "-w", "mid1")
        cluster.add_node("mid9", "intel-2x8", "RealMemory=2000 Feature=late")
        assert wait_until(lambda: "mid9 idle" in cluster.command(["sinfo", "-h", "-N", "-o", "%N %T"]).stdout, 20)
        cluster.remove_node("mid9")
        record = jobs(cluster, number)[0]
        _, beside = running(cluster, "-n8", "-N1", "-w", "mid1")
        return fields(record)["JobState"], cores(cluster, record) == had, len(beside["mid1"])

    assert rich.agree(run) == ("RUNNING", True, 4)
    assert not given_too_often(rich.ours)


def test_future_node(rich):
    def run(cluster):
        cluster.command(["scontrol", "create", "NodeName=mid8", "CPUs=16", "State=FUTURE"])
        _, placed = running(cluster, "-n8", "-N1", "-w", "mid1")
        cluster.command(["scontrol", "delete", "NodeName=mid8"])
        return placed

    assert not cuts(rich.both(run)[0])
