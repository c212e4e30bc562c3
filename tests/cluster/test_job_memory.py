# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary memory and topiary move: of a running job, on all its nodes, as its user."""
import collections
import json

import pytest
from rig.ask import wait_running
from rig.cluster import JOB_USER
from rig.processes import wait_until


@pytest.fixture
def job(cluster):
    """Two ranks on each of two nodes, and a step on one of them."""
    steps = "srun -Q --overlap -n4 sleep 300 & srun -Q --overlap -N1 -n1 sleep 300 & wait"
    number = cluster.batch(steps, "-w", "cn1,cn3", "-N2", "--ntasks-per-node=2", "--output=/dev/null").stdout.strip()
    wait_running(cluster, number)
    yield number
    cluster.command(["scancel", number])


def topiary(cluster, *words, user=JOB_USER, check=True):
    return cluster.topiary(*words, user=user, check=check)


def ranks(cluster, job):
    rows = [json.loads(line) for line in topiary(cluster, "--json", "memory", job).stdout.splitlines()]
    return sorted((row["step"], row["rank"], row["node"]) for row in rows if row["local_kib"] + row["far_kib"])


def test_memory_of_a_job(cluster, job):
    assert wait_until(lambda: len(ranks(cluster, job)) == 5, 10)
    steps = collections.defaultdict(list)
    for step, rank, node in ranks(cluster, job):
        steps[step].append((rank, node))
    assert sorted(steps.values(), key=len)[1] == [(0, "cn1"), (1, "cn1"), (2, "cn3"), (3, "cn3")]
    one, = (step for step in steps if len(steps[step]) == 1)
    done = topiary(cluster, "memory", one)
    assert len(done.stdout.splitlines()) == 1 and done.stdout.startswith(f"{one} rank 0  node cn1  NUMA ")
    assert done.stderr.count(f"no process of yours of {one} is on this node") == 1
    moved = topiary(cluster, "move", job, "--to=0").stdout
    assert len(moved.splitlines()) == 5 and moved.count(" MiB on NUMA 0  0 MiB elsewhere") == 5, moved


def test_jobs_that_are_none(cluster, job):
    done = topiary(cluster, "memory", "4000000000", check=False)
    assert done.returncode == 1 and "job 4000000000: " in done.stderr
    assert topiary(cluster, "memory", job, user="daemon", check=False).returncode
