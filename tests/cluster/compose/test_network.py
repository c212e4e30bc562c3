# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where Slurm knows the network, a job of several nodes stays as near together as under stock Slurm, and is packed in each node."""
import pytest
from rig.cluster import SLURM_RELEASE

from .pair import cores, cuts

LEAVES = {"mid1": 1, "mid2": 1, "mid3": 2, "mid4": 2, "mid5": 2}


def leaves(placed):
    return {LEAVES[node] for node in placed}


def last_of(pair, submissions):
    """{node: cores} of the last of some jobs, which all start, on ours and on the stock cluster."""
    ours, stock = pair.fates(submissions, start=True)
    return cores(pair.ours, ours[-1]), cores(pair.stock, stock[-1])


@pytest.mark.parametrize("nodes, switches", [(2, ""), (2, "--switches=1"), (3, ""), (3, "--switches=1")])
def test_one_switch_holds_the_job(network, nodes, switches):
    ours, stock = last_of(network, [f"-N{nodes} -n{8 * nodes} --ntasks-per-core=1 --ntasks-per-node=8 {switches}"])
    assert leaves(ours) == leaves(stock) and len(leaves(ours)) == 1
    assert not cuts(ours)


def test_the_network_comes_before_the_shape(network):
    halves = [f"-N1 -w {node} -n8 -c2" for node in ("mid1", "mid3")]
    ours, stock = last_of(network, [*halves, "-N2 -n16 --ntasks-per-core=1 --ntasks-per-node=8"])
    assert len(leaves(ours)) == len(leaves(stock)) == 1
    assert not cuts(ours)


def test_more_nodes_than_any_switch_has(network):
    ours, stock = last_of(network, ["-N4 -n32 --ntasks-per-core=1 --ntasks-per-node=8"])
    assert len(ours) == len(stock) == 4
    assert not cuts(ours)


def test_too_many_for_a_switch_waits_as_under_stock(network):
    network.fates(["-N5 -n5 --exclusive", "-N1 -n1"])


# --- a topology for each partition, on a cluster that has a tree

if SLURM_RELEASE >= (25, 5):
    ROWS = {"mid1": 1, "mid4": 1, "mid2": 2, "mid3": 2, "mid5": 2}
    # Two nodes that are in use, in the way that a job which takes half of each fits them best: under one switch of neither tree.
    HALVES = [f"-N1 -w {node} -n8 -c2" for node in ("mid1", "mid3")]
    TWO_HALVES = "-N2 -n16 --ntasks-per-core=1 --ntasks-per-node=8"

    def test_a_partitions_own_network_holds_the_job(topologies):
        placed = last_of(topologies, [*HALVES, f"-p crossed {TWO_HALVES}"])
        assert [len({ROWS[node] for node in nodes}) for nodes in placed] == [1, 1]
        assert not cuts(placed[0])

    def test_a_flat_partition_leaves_the_nodes_to_the_shape(topologies):
        ours, _ = last_of(topologies, [*HALVES, f"-p plain {TWO_HALVES}"])
        assert set(ours) == {"mid1", "mid3"}
        assert not cuts(ours)
