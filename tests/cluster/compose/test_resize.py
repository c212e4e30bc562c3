# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A job that gives nodes back keeps its other cores, and what it gave back is free; growing is as refused as under stock Slurm."""
from rig.ask import fields, jobs, wait_running

from .pair import cores, cuts, fate, running, settled, submit


def test_job_gives_a_node_back(plain):
    def run(cluster):
        number, had = running(cluster, "-N2", "-n128", "-C", "wide", "--ntasks-per-node=64")
        waiting = submit(cluster, "-n8", "-C", "wide")
        before = fate(cluster, settled(cluster, waiting)[0])
        cluster.command(["scontrol", "update", f"JobId={number}", f"NodeList={min(had)}"])
        wait_running(cluster, waiting)
        left = cores(cluster, jobs(cluster, number)[0])
        assert all(had[node] == taken for node, taken in left.items())
        return waiting, (before, [fate(cluster, jobs(cluster, n)[0]) for n in (number, waiting)], list(left))

    (waiting, ours), (_, stock) = plain.both(run)
    assert ours == stock
    assert not cuts(cores(plain.ours, jobs(plain.ours, waiting)[0]))


def test_growing_is_refused_by_default(plain):
    def run(cluster):
        number, _ = running(cluster, "-n8", "-w", "big1")
        return settled(cluster, submit(cluster, "-n8", "-w", "big2", f"--dependency=expand:{number}"))[0]

    refusal = plain.agree(run)
    assert "JobState" not in fields(refusal), refusal
