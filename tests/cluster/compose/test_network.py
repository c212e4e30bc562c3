# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where Slurm knows the network, a job of several nodes stays as near together as under stock Slurm, and is packed in each node."""
import pytest

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
