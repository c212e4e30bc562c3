# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where Slurm knows the network, a job of several nodes stays as near together as under stock Slurm, and is packed in
each node."""
import pytest
from rig.ask import fields
from rig.cluster import SLURM_RELEASE

from .pair import cores, cuts

REQUIRED = "--comment=topo-fit=require,topo-level=package"
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


def test_the_best_nodes_of_a_switch(network, request):
    """Slurm does not tell which switches a partition's own network has: there it chooses the nodes."""
    halves = [f"-N1 -w {node} -n8 -c2" for node in ("mid4", "mid5")]
    ours, _ = last_of(network, ["-N1 -w mid1 -n16 -c2", *halves, "-N2 -n16 --ntasks-per-core=1 --ntasks-per-node=8"])
    assert leaves(ours) == {2} and not cuts(ours)
    if request.node.callspec.params["network_pair"] != "partition's own":
        assert set(ours) == {"mid4", "mid5"}, "mid3, whose packages are all free, is left for others"


# The halves that are in use leave packages free that fit best, but lie on both leaves.
@pytest.mark.parametrize("words", ["-N2 -n15", "-N3 -n19", f"-N2 -n15 {REQUIRED}"],
                         ids=["two nodes", "three nodes", "required"])
def test_uneven_shares_stay_on_one_switch(network, words):
    halves = [f"-N1 -w {node} -n8 -c2" for node in ("mid1", "mid3")]
    ours, stock = last_of(network, [*halves, f"{words} --ntasks-per-core=1"])
    assert len(leaves(ours)) == len(leaves(stock)) == 1
    assert len({len(taken) for taken in ours.values()}) > 1, "the shares are even: this proves nothing"
    assert not cuts(ours)


def test_more_nodes_than_any_switch_has(network):
    ours, stock = last_of(network, ["-N4 -n32 --ntasks-per-core=1 --ntasks-per-node=8"])
    assert len(ours) == len(stock) == 4
    assert not cuts(ours)


def test_why_warns_where_the_wait_for_a_switch_ended(network):
    """No switch has four nodes."""
    ours, _ = network.fates(["-N4 -n4 --switches=1@0:01"], start=True)
    placed = leaves(cores(network.ours, ours[-1]))
    told = network.ours.topiary("why", fields(ours[-1])["JobId"]).stdout
    if len(placed) == 1:
        assert "Slurm " not in told
    else:
        assert "Slurm    --switches=1 was not kept: its nodes are on 2 leaf switches" in told, told


def test_too_many_for_a_switch_waits_as_under_stock(network):
    network.fates(["-N5 -n5 --exclusive", "-N1 -n1"])


# --- a topology for each partition, on a cluster that has a tree

if SLURM_RELEASE >= (25, 5):
    ROWS = {"mid1": 1, "mid4": 1, "mid2": 2, "mid3": 2, "mid5": 2}
    # Two nodes that are in use, in the way that a job which takes half of each fits them best: under one switch of
    # neither tree.
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


# --- networks that ask more of a job than few switches

if SLURM_RELEASE >= (25, 5):
    def number(node):
        return int(node.removeprefix("mid")) - 1

    def block_of(node):
        return number(node) % 4

    def segments(placed, size):
        """By block: no block has a part of a segment."""
        blocks = [block_of(node) for node in placed]
        return all(blocks.count(b) % size == 0 for b in blocks)

    def spread(placed):
        """Every segment in a block of its own."""
        return len({block_of(node) for node in placed}) * 2 == len(placed)

    def one_aggregate(placed):
        return len({block_of(node) // 2 for node in placed}) == 1

    # Half of some nodes in use, which a job that takes half of a node fits best: they lie in no one block, ring or row.
    IN_USE = [f"-N1 -w mid{i} -n8 -c2" for i in (1, 2, 3, 7)]
    OF_HALVES = "-n{} --ntasks-per-core=1 --ntasks-per-node=8"

    def halves_of(shaped, nodes, words):
        placed = last_of(shaped, [*IN_USE, f"-N{nodes} {OF_HALVES.format(8 * nodes)} {words}"])
        assert [len(p) for p in placed] == [nodes] * 2
        assert not cuts(placed[0])
        return placed

    # (since which release, nodes, words, what holds of their nodes)
    SEGMENTS = [
        ((25, 5), 2, "", lambda p: segments(p, 2)),
        ((25, 5), 4, "", one_aggregate),
        ((25, 5), 4, "--segment=2", lambda p: segments(p, 2)),
        ((25, 5), 6, "--segment=2", lambda p: segments(p, 2)),
        ((25, 5), 4, "--segment=1", lambda p: True),
        ((25, 11), 4, "--segment=2 --consolidate-segments", lambda p: segments(p, 2) and one_aggregate(p)),
        ((25, 11), 4, "--segment=2 --spread-segments", lambda p: segments(p, 2) and spread(p)),
    ]

    @pytest.mark.parametrize("nodes, words, holds", [row for since, *row in SEGMENTS if SLURM_RELEASE >= since],
                             ids=lambda value: value if isinstance(value, str) else None)
    def test_segments_are_kept(shaped, nodes, words, holds):
        assert [holds(p) for p in halves_of(shaped, nodes, words)] == [True, True]

    def test_a_block_that_is_not_shared_is_not_shared(shaped):
        shaped.fates(["-p unshared -N1 -n1", "-p unshared -N3 -n3", "-N2 -n2", "-p unshared -N5 -n5"])

if SLURM_RELEASE >= (26, 5):
    def is_arc(placed):
        """Beside each other in one ring of four."""
        at = sorted(number(node) // 2 for node in placed)
        gaps = sum((b - a) % 4 != 1 for a, b in zip(at, at[1:] + at[:1]))
        return len({number(node) % 2 for node in placed}) == 1 and gaps <= 1

    def is_box(placed):
        """As many nodes of the torus as the box around them has."""
        size = 1
        for axis in (1, 2, 4):
            size *= len({number(node) // axis % 2 for node in placed})
        return size == len(placed)

    @pytest.mark.parametrize("partition, nodes, holds",
                             [("rings", 2, is_arc), ("rings", 3, is_arc), ("rings", 4, is_arc),
                              ("torus", 2, is_box), ("torus", 4, is_box)])
    def test_rings_and_tori_are_kept(shaped, partition, nodes, holds):
        assert [holds(p) for p in halves_of(shaped, nodes, f"-p {partition}")] == [True, True]

    def test_what_a_torus_has_no_box_for_waits_as_under_stock(shaped):
        shaped.fates(["-p torus -N3 -n3", "-p rings -N5 -n5", "-p torus -N2 -n2"])
