# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A suspended job lends its cores as under stock Slurm and has the same ones when it goes on."""
from rig.ask import fields, given_too_often, jobs, wait_running

from .pair import cores, cuts, fate, running, settled, submit


def test_suspended_job_lends_its_cores(plain):
    def run(cluster):
        first, _ = running(cluster, "-n64", "-w", "big1")
        second = submit(cluster, "-n8", "-w", "big1")
        before = fate(cluster, settled(cluster, second)[0])
        cluster.command(["scontrol", "suspend", first])
        wait_running(cluster, second)
        return second, (before, [fate(cluster, jobs(cluster, number)[0]) for number in (first, second)])

    (second, ours), (_, stock) = plain.both(run)
    assert ours == stock
    assert [job["JobState"] for job in ours[1]] == ["SUSPENDED", "RUNNING"]
    assert not cuts(cores(plain.ours, jobs(plain.ours, second)[0]))


def test_resumed_job_has_its_cores(plain_pair):
    """Stock Slurm lends all of them, and has two jobs on a core when the first goes on: ours has no more."""
    def run(cluster):
        first, had = running(cluster, "-n16", "-N1", "-w", "big1")
        cluster.command(["scontrol", "suspend", first])
        _, beside = running(cluster, "-n48", "-N1", "-w", "big1")
        cluster.command(["scontrol", "resume", first])
        record = settled(cluster, first)[0]
        return (len(given_too_often(cluster)),
                (fields(record)["JobState"], cores(cluster, record) == had, len(beside["big1"])))

    (twice, ours), (stock_twice, stock) = plain_pair.both(run)
    assert ours == stock == ("RUNNING", True, 48)
    assert twice <= stock_twice
    plain_pair.clean(times=2)
