# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Every job starts, waits and counts as it does under stock Slurm, and is placed along boundaries where its shape is
its own to choose."""
import json
import re

import pytest
from rig.ask import fields
from rig.processes import wait_until

from .pair import cores, cuts, running, settled, submit

PACKED = {
    "tasks": ["-n8 -w big1"],
    "tasks of several cpus": ["-n3 -w big1", "-n4 -c4 -w big1"],
    "two nodes": ["-N2 -n16 --ntasks-per-node=8 -C wide"],
    "minimum of cpus": ["-n1 --mincpus=8 -w big1"],
    "node left out": ["-n8 -x big1 -C wide"],
    "smt, tasks that share a core": ["-n2 -w mid1", "-n5 -c3 -N1 -w mid1"],
    "smt, tasks of whole cores": ["-n2 -w mid1", "-n4 -c3 -N1 -w mid1 --ntasks-per-core=1"],
    "smt, a required node": ["-n10 -c3 -N1 -w mid1 --comment=topo-fit=require"],
    "memory of one NUMA node": ["-n8 --mem=2000 -w big1"],
    "memory of several NUMA nodes": ["-n8 --mem=8000 --comment=topo-mem=off"],
    "memory of the partition": ["-n8 -p hungry --comment=topo-mem=off"],
    "all memory": ["-n8 --mem=0 -w big1"],
    "array": ["-n8 --array=0-5 -w big1"],
    "heterogeneous": ["-n8 -w big1 : -n4 -w big2 : -n2 -w mid1"],
}

FATE = {
    "memory that no node has": ["-n1 --mem=30000 -C smt"],
    "memory is gone, cores are free": ["-n2 --mem=2000 -w mid1", "-n2 --mem=100 -w mid1"],
    "memory is gone on one of two": ["-n2 --mem=4000 -w big2", "-n8 -C wide"],
    "cores are gone": ["-n60 -w big1", "-n8 -w big1", "-n4 -w big1"],
    "whole node": ["--exclusive -n8 -w big1", "-n1 -w big1"],
    "whole node that is in use": ["-n1 -w big1", "--exclusive -n8 -w big1"],
    "whole nodes": ["--exclusive -N2 -C wide"],
    "whole node of the partition": ["-n8 -p whole -w big1"],
    "whole node of a user": ["-n4 -p own", "-n4 -p own"],
    "more than the node has": ["-n17 -N1 -w mid1 --ntasks-per-core=1"],
    "too many nodes": ["-N3 -C wide"],
    "too many nodes now": ["--exclusive -w big1", "-N2 -C wide"],
    "later": ["-n8 -w big1 --begin=now+1hour"],
    "several partitions": ["-n64 -w big2", "-n8 -p weighed,hungry -w big2"],
    "spread over nodes": ["-n8 --spread-job"],
    "least nodes": ["-n70 --use-min-nodes -C wide"],
}

LEFT_TO_SLURM = {
    "geometry": ["-n8 -B 4:4:1 -w big1"],
    "cyclic": ["-n8 --distribution=block:cyclic -w big1"],
}


def rows(table):
    return pytest.mark.parametrize("submissions", table.values(), ids=table)


@rows(PACKED)
def test_placed_along_boundaries(plain, submissions):
    ours, _ = plain.fates(submissions)
    assert not [found for record in ours if (found := cuts(cores(plain.ours, record)))]


@rows(FATE)
def test_same_outcome_as_stock_slurm(plain, submissions):
    plain.fates(submissions)


@rows(LEFT_TO_SLURM)
def test_left_to_slurm(plain, submissions):
    ours, stock = plain.fates(submissions)
    assert [cores(plain.ours, r) for r in ours] == [cores(plain.stock, r) for r in stock]


def test_the_lighter_node_comes_first_whatever_its_shape(plain):
    ours, stock = plain.fates(["-n16 -p weighed"])
    assert [fields(record)["NodeList"] for record in ours + stock] == ["big2", "big2"]
    assert not cuts(cores(plain.ours, ours[0]))


def test_heavier_node_is_used_when_the_lighter_is_full(plain):
    ours, stock = plain.fates(["-n64 -w big2", "-n8 -p weighed"])
    assert [fields(records[1])["NodeList"] for records in (ours, stock)] == ["mid2", "mid2"]
    assert not cuts(cores(plain.ours, ours[1]))


@pytest.mark.parametrize("submissions, nodes", [
    (["-n16 -C wide"], ["big1", "big2"]), (["-n8 -c2 -C wide"], ["big1", "big2"]),
    (["-n6 -w big1", "-N1 -n8"], ["big2"]), (["-n6 -w big1", "-n10 -x mid1,mid2"], ["big1", "big2"]),
], ids=str)
def test_what_a_partition_may_have_of_a_node_is_kept(plain, submissions, nodes):
    """MaxCPUsPerNode: of all jobs of the partition."""
    ours, _ = plain.fates([f"-p capped {words}" for words in submissions])
    placed = cores(plain.ours, ours[-1])
    assert sorted(placed) == nodes and not cuts(placed)
    assert "placed by Topiary" in plain.ours.topiary("why", "-v", fields(ours[-1])["JobId"]).stdout


def test_job_that_waits_for_the_limit_of_its_partition(plain):
    running(plain.ours, "-n5", "-p", "capped", "-w", "big1")
    number = submit(plain.ours, *"-N1 -n8 -p capped -w big1 --comment=topo-fit=require,topo-level=l3".split())
    settled(plain.ours, number)
    assert wait_until(lambda: not plain.ours.topiary("why", "-v", number, check=False).returncode, 30)
    told = plain.ours.topiary("why", "-v", number).stdout
    assert ("it requires 1 node with 8 cores in one L3 cache; jobs of partition capped have 5 CPUs of node"
            " big1, with MaxCPUsPerNode=8\n" in told), told


def test_node_with_a_job_is_none_for_all_of_its_memory(plain):
    running(plain.ours, "-n5", "-w", "big1")
    told = [plain.ours.topiary("why", "-v", running(plain.ours, "--mem=0", *words.split())[0]).stdout
            for words in ("-N1 -n6", "-N2 -n9")]
    assert "3 of 4 nodes offered by Slurm had room" in told[0] and "beside   mid1" in told[0]
    assert "placed by Topiary" in told[1]


@pytest.mark.parametrize("partition, share", [("forced", ""), ("shared", "-s")])
def test_oversubscription_follows_the_partition(plain_pair, partition, share):
    plain_pair.fates([f"-n64 -p {partition} {share}"] * 3)
    plain_pair.clean(times=2)


@pytest.mark.parametrize("partition, why", [("forced", "jobs may share cores in the partition (OverSubscribe)"),
                                            ("whole", "the partition allocates whole nodes (OverSubscribe=EXCLUSIVE)")])
def test_requirement_that_the_partition_cannot_meet_is_refused(plain, partition, why):
    required = ("-n4", "--comment=topo-fit=require,topo-level=l3")
    refused = plain.ours.batch("true", "-p", partition, *required, check=False)
    assert refused.returncode and f"--topo-fit=require cannot be met: {why}" in refused.stderr, refused
    plain.ours.batch("true", "-p", f"{partition},weighed", "--output=/dev/null", *required)


@pytest.mark.parametrize("required, why", [
    (["-n16", "--topo-fit=require", "--topo-level=package"], "in one package, but the largest has 7"),
    (["-n16", "--topo-request=/package=1/core=8"], "/package=1/core=8"),
])
def test_cores_that_are_reserved_for_the_system_are_not_counted(rich, required, why):
    """mid2 keeps a core of each package (CoreSpecCount=2)."""
    refused = rich.ours.batch("true", "-N1", "-w", "mid2", *required, check=False)
    assert refused.returncode and why in refused.stderr and "topo-" in refused.stderr, refused


def test_users_may_share_no_node_of_an_exclusive_user(plain):
    def run(cluster):
        first = running(cluster, "-n4", "-p", "own", user="nobody")[1]
        other = fields(settled(cluster, submit(cluster, "-n4", "-p", "own", user="daemon"))[0])
        return set(first), (other["JobState"], other["Reason"])

    assert plain.agree(run) == ({"mid1"}, ("PENDING", "Resources"))


def test_why_tells_of_the_cores_that_slurm_gave(plain):
    """Three tasks on each node were planned, on mid2 in two packages; Slurm shares them as four and two: mid2's share a
    core."""
    for _ in range(2):
        running(plain.ours, "-N1", "-w", "mid2", "-n14", "--topo-fit=require", "--topo-level=package")
    number, placed = running(plain.ours, "-N2", "-w", "mid1,mid2", "-n6")
    told = plain.ours.topiary("why", "-v", number).stdout
    most = max(len({core // 8 for core in mine}) for mine in placed.values())
    assert f"touches  {most} package{'s' * (most > 1)}, " in told, told
    even = len({len(mine) for mine in placed.values()}) == 1
    assert ("3 on each" if even else "6 tasks on 2 nodes\n") in told, told


# The rig's hardware is the task's: lstopo itself is Debian's.
LSTOPO = """\
#!/bin/sh
HWLOC_XMLFILE={folder}/nodes/$SLURMD_NODENAME/machine.xml exec /usr/bin/lstopo-no-graphics "$@"
"""


def test_audit_collects_what_a_stock_cluster_has(plain):
    """As a user, from one node of each kind where jobs can begin."""
    cluster = plain.stock
    home, program = cluster.folder / "work" / "collected", cluster.folder / "bin" / "lstopo-no-graphics"
    home.mkdir()
    home.chmod(0o777)
    program.write_text(LSTOPO.format(folder=cluster.folder))
    program.chmod(0o755)
    running(cluster, "-N1", "-n3", "-w", "big2")
    running(cluster, "-N1", "-n32", "-w", "mid1")

    def told(*words):
        done = cluster.command([cluster.build / "topiary", "audit", "--json", *words], user="nobody", cwd=home)
        return json.loads(done.stdout), re.findall(r"wrote (\S+)", done.stderr)
    cluster.command(["scontrol", "update", "NodeName=big1", "State=DRAIN", "Reason=test"])
    try:
        found, wrote = told("--collect")
    finally:
        cluster.command(["scontrol", "update", "NodeName=big1", "State=RESUME"])
    assert sorted(wrote) == ["big2.xml", "mid2.xml"] and found["audited"] == 2, (found, wrote)
    assert found == told(*(word for node in ("big1", "mid1") for word in (
        "--topology", f"{node}={cluster.folder}/nodes/{node}/machine.xml")))[0]
