# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A job that wants its switches or blocks alone (--exclusive=topo) gets those of stock Slurm and is packed in them."""
import pytest
from rig.ask import fields, jobs, wait_running
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until

from .pair import cores, cuts, running, settled, submit
from .test_daemons import restart
from .test_network import LEAVES, REQUIRED

ALONE = "--exclusive=topo"
HALF = "--ntasks-per-core=1 --ntasks-per-node=8"     # of a node
CORES = "--ntasks-per-core=1"

if SLURM_RELEASE >= (25, 5):
    from .test_network import block_of, number

    # Below one leaf are mid1 and mid2, below the other mid3, mid4 and mid5.
    ON_LEAVES = {
        "one node": [f"{ALONE} -N1 -n8 {HALF}"],
        "one on each leaf, and one that waits": [f"{ALONE} -N1 -n8 {HALF}"] * 3,
        "the larger leaf first": [f"{ALONE} -N3 -n24 {HALF}", f"{ALONE} -N1 -n8 {HALF}", "-N1 -n1"],
        "both leaves": [f"{ALONE} -N4 -n32 {HALF}", "-N1 -n8"],
        "uneven shares": [f"{ALONE} -N2 -n15 {CORES}", f"{ALONE} -N2 -n17 {CORES}"],
        "others stay outside": [f"{ALONE} -w mid1 -N1 -n8 {HALF}", "-N1 -n8 -w mid2",
                                "-N1 -n8", f"-N3 -n24 {CORES}", "-N4 -n4"],
        "beside others": ["-N1 -n8 -w mid4", f"{ALONE} -N1 -n8 {HALF}", f"{ALONE} -N1 -n8 {HALF}"],
        "on a node beside others": ["-N1 -n8 -w mid4", f"{ALONE} -N1 -n8 -w mid3"],
        "others on each leaf": ["-N1 -n8 -w mid1", "-N1 -n8 -w mid3", f"{ALONE} -N1 -n8", "-N2 -n16"],
        "a required package": [f"{ALONE} -N1 -n8 {HALF} {REQUIRED}", f"-N2 -n16 {HALF} {REQUIRED}",
                               f"{ALONE} -N1 -n4 {REQUIRED}", f"-N1 -n4 {REQUIRED}"],
    }

    # Four blocks of two nodes; the partition has them alone. A job of one node that shares its block need not be where
    # stock Slurm has it: such jobs come last, or name their nodes.
    ON_BLOCKS = {
        "jobs": [f"{ALONE} -N1 -n8 {HALF}", f"{ALONE} -N2 -n15 {CORES}", f"{ALONE} -N2 -n2", "-N1 -n8",
                 f"-N2 -n15 {CORES}"],
        "all blocks": [f"{ALONE} -N1 -n8 {HALF}"] * 4 + ["-N1 -n1"],
        "several blocks": [f"{ALONE} -N4 -n32 {HALF}", f"{ALONE} -N2 -n15 {CORES}", "-N2 -n16"],
        "partition": ["-p unshared -N1 -n8", f"-p unshared -N2 -n15 {CORES}", f"{ALONE} -N1 -n8 {HALF}", "-N1 -n8",
                      "-N2 -n2"],
        "partition, beside others": ["-N1 -n8 -w mid1", "-N1 -n8 -w mid2", "-p unshared -N1 -n8",
                                     "-p unshared -N4 -n4"],
    }

    # Two rings of four nodes, which are the blocks of other jobs as well.
    ON_RINGS = {
        "jobs": [f"-p rings {ALONE} -N2 -n16 {HALF}", f"-p rings {ALONE} -N1 -n8 {HALF}", "-p rings -N1 -n1"],
        "beside others": ["-p rings -N1 -n8 -w mid2", f"-p rings {ALONE} -N3 -n23 {CORES}",
                          f"-p rings {ALONE} -N1 -n1"],
    }

    def is_alone(words):
        return ALONE in words or "-p unshared" in words

    def compare(pair, submissions, unit_of):
        """
        The jobs start or wait as on the stock cluster; those that are to be alone have the same units of the network.
        Returns {node: cores} and the units of each job on ours.
        """
        records = pair.fates(submissions)
        placed = [[cores(cluster, record) for record in of] for cluster, of in zip((pair.ours, pair.stock), records)]
        ours, stock = ([{unit_of(node) for node in nodes} for nodes in of] for of in placed)
        for words, *units in zip(submissions, ours, stock):
            assert not is_alone(words) or units[0] == units[1], words
        return placed[0], ours

    def assert_alone(submissions, units):
        for i, words in enumerate(submissions):
            if is_alone(words):
                assert not [j for j, other in enumerate(units) if j != i and other & units[i]], units

    def rows(table):
        return pytest.mark.parametrize("submissions", table.values(), ids=table)

    @rows(ON_LEAVES)
    def test_leaves(network, submissions):
        """
        A tree's leaves are shared all the same (supports_exclusive_topo of topology/tree is false), but not by jobs of
        one round of backfill: there, only the first job that is to be alone is compared.
        """
        blocks = "topology/block" in network.ours.conf
        first = next(i for i, words in enumerate(submissions) if is_alone(words))
        submissions = submissions if blocks else submissions[:first + 1]
        placed, units = compare(network, submissions, LEAVES.get)
        assert not [found for nodes in placed if (found := cuts(nodes))]
        if blocks:
            assert_alone(submissions, units)

    @rows(ON_BLOCKS)
    def test_blocks(shaped, submissions):
        assert_alone(submissions, compare(shaped, submissions, block_of)[1])

    def neighbours(placed):
        """All nodes of the blocks of some."""
        return sorted(f"mid{i}" for i in range(1, 9) if block_of(f"mid{i}") in {block_of(node) for node in placed})

    def state(cluster, job):
        return fields(settled(cluster, job)[0])["JobState"]

    @pytest.mark.parametrize("nodes", [1, 2])
    def test_waiting_job_is_planned_and_follows(shaped, nodes):
        """For the end of the job that has its block alone, on a node that this uses (2) or only keeps (1)."""
        def run(cluster):
            first, had = running(cluster, ALONE, f"-N{nodes}", f"-n{8 * nodes}", *HALF.split(), "-t10")
            node = next(n for n in neighbours(had) if n not in had or nodes == 2)
            waits = submit(cluster, "-N1", "-n8", "-w", node, REQUIRED)
            alone = submit(cluster, ALONE, "-N2", "-n15", "-w", ",".join(neighbours(had)))
            before = [state(cluster, waits), fields(jobs(cluster, alone)[0])["JobState"]]
            assert wait_until(lambda: fields(jobs(cluster, waits)[0])["StartTime"] != "Unknown", 3, 0.2)
            start, end = fields(jobs(cluster, waits)[0])["StartTime"], fields(jobs(cluster, first)[0])["EndTime"]
            for number in (first, waits):
                cluster.command(["scancel", number])
                wait_running(cluster, waits if number == first else alone)
            return before, start >= end, cores(cluster, jobs(cluster, alone)[0]).keys() == set(neighbours(had))

        assert shaped.agree(run) == (["PENDING"] * 2, True, True)

    @pytest.mark.parametrize("words", [f"{ALONE} -N1 -n8 {HALF}", "-p unshared -N1 -n8"])
    def test_block_is_kept_over_a_restart(shaped, words):
        def run(cluster):
            _, had = running(cluster, *words.split())
            restart(cluster)
            beside = submit(cluster, "-N1", "-n8", "-w", min(set(neighbours(had)) - had.keys()))
            return state(cluster, beside)

        assert shaped.agree(run) == "PENDING"

if SLURM_RELEASE >= (26, 5):
    @rows(ON_RINGS)
    def test_rings(shaped, submissions):
        assert_alone(submissions, compare(shaped, submissions, lambda node: number(node) % 2)[1])
