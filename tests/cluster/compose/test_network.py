# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where Slurm knows the network, a job of several nodes stays as near together as under stock Slurm, and is packed in
each node."""
import json
import re
from datetime import datetime

import pytest
from rig.ask import fields, jobs, threads, wait_running
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until
from whole.judge import least

from .pair import cores, cuts, settled, submit

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
    assert_warned(network.ours, fields(ours[-1])["JobId"], ["net"] if own_network(network) else [])


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


# --- what `topiary why` says of the network, against what scontrol says

def hosts(cluster, names):
    return set(cluster.command(["scontrol", "show", "hostnames", names]).stdout.split())


def parts(cluster, topology, unit):
    """{leaf switch or block: its nodes}: without a unit the switches, else the smallest blocks of so many nodes."""
    told = cluster.command(["scontrol", "-o", "show", "topology", *topology]).stdout
    found = {}
    for line in told.split("\n"):
        of = fields(line)
        name = of.get("SwitchName") if not unit else of.get("BlockName") or of.get("AggregatedBlock")
        if name and "Switches" not in of and int(of.get("BlockSize", 0)) >= unit:
            found.setdefault(int(of.get("BlockSize", 0)), {})[name] = hosts(cluster, of["Nodes"])
    return found[min(found)] if found else {}


def on(nodes, parts_of):
    return ", ".join(f"{name}: {len(nodes & all_of)}" for name, all_of in parts_of.items() if nodes & all_of)


def warnings(cluster, record, topology):
    """What is true, in the words of topiary-why."""
    job = fields(record)
    nodes = hosts(cluster, job["NodeList"])
    said, leaves_of = [], parts(cluster, topology, 0)
    if "Switches" in job:
        at_most = job["Switches"].partition("@")[0]
        used = sum(bool(nodes & leaf) for leaf in leaves_of.values())
        if not leaves_of:
            said += [f"--switches={at_most} had no effect: the topology of its partition has no switches"]
        elif used > int(at_most):
            said += [f"--switches={at_most} was not kept: its nodes are on {used} leaf switches "
                     f"({on(nodes, leaves_of)});"]
    segment = int(job.get("SegmentSize", 0))
    kept = segment if segment <= len(nodes) else 0
    blocks = parts(cluster, topology, kept or len(nodes))
    broken = blocks and sum(len(nodes & block) // (kept or len(nodes)) for block in blocks.values()) < (
        len(nodes) // (kept or len(nodes)))
    if segment and topology not in (["torus"], ["rings"]) and not parts(cluster, topology, 1):
        said += [f"--segment={segment} had no effect: the topology of its partition has no blocks"]
    elif broken and kept:
        said += [f"--segment={segment} was not kept: its {len(nodes)} nodes are in blocks of {on(nodes, blocks)}"]
    elif broken:
        said += [f"its {len(nodes)} nodes are in {sum(bool(nodes & b) for b in blocks.values())} blocks "
                 f"({on(nodes, blocks)}), and would fit into one"]
    return said


def assert_warned(cluster, number, topology=()):
    more = json.loads(cluster.topiary("why", "--json", number).stdout)["jobs"][0]["more"]
    said = more["Slurm"].split("\n") if "Slurm" in more else []
    true = warnings(cluster, jobs(cluster, number)[0], list(topology))
    assert len(said) == len(true) and all(map(str.startswith, said, true)), (said, true)
    return true


def begin(cluster, words):
    number = submit(cluster, *words.split())
    wait_running(cluster, number)
    return number


def own_network(network):
    return "Topology=net" in network.ours.conf


LIMITS = [50, 20, 35, 30, 60, 25, 45, 40]     # minutes, of a job on each node


def told_of(cluster, number):
    """What `why` says beside the verdict."""
    done = cluster.topiary("why", "--json", number, check=False)
    return json.loads(done.stdout)["jobs"][0]["more"] if done.stdout else {}


def assert_waits(cluster, words, each, parts_of, unit):
    """
    Each node has a job; of one that waits for several, `why` has the nodes and the time that Slurm's records have, and
    it starts when the jobs that `why` names have ended. parts_of: of which nodes whole units must be, or for the ends
    by node: when each unit could begin.
    """
    nodes = sorted(threads(cluster))
    holders = {node: begin(cluster, f"-N1 -w {node} {each} -t{limit}") for node, limit in zip(nodes, LIMITS)}
    ends = {node: datetime.fromisoformat(cluster.job_record(number)["EndTime"]) for node, number in holders.items()}
    number, want = submit(cluster, *words.split()), int(words[2])
    sets = list(parts_of.values()) or [set(nodes)] if isinstance(parts_of, dict) else None
    at = next(t for t in sorted(ends.values())
              if sum(len([n for n in part if ends[n] <= t]) // unit for part in sets) >= want // unit) if sets else \
        parts_of(ends)[want // unit - 1]
    assert wait_until(lambda: "waits for" in told_of(cluster, number), 30), cluster.topiary("why", number, check=False)
    more = told_of(cluster, number)
    where, clock = re.fullmatch(r"(\S+) (?:are free|have them) at (?:\S+T)?(\S+) at the latest", more["first"]).groups()
    where = hosts(cluster, where)
    assert clock == f"{at:%H:%M:%S}" and len(where) == want and max(map(ends.get, where)) == at, (more, ends)
    assert not sets or sum(len(where & part) // unit for part in sets) == want // unit, more
    held = re.findall(r"job (\d+) of", more["held by"])
    assert held == [holders[node] for node in sorted(where, key=ends.get)], (more, ends)
    row, = (row for row in json.loads(cluster.topiary("why", "--pending", "--json").stdout)["pending"]
            if row["job"] == number)
    assert row["first"] == more["first"] and row["held by"] == more["held by"]
    cluster.command(["scancel", *held])
    wait_running(cluster, number)
    assert hosts(cluster, cluster.job_record(number)["NodeList"]) == where
    return more["waits for"]


@pytest.mark.parametrize("words, each, waits", [
    ("-N2 --exclusive --switches=1@9:00", "-n1", "2 nodes without other jobs{}"),
    ("-N3 --exclusive --switches=1@9:00", "--exclusive", "3 nodes without other jobs{}"),
    (f"-N2 -n16 --ntasks-per-node=8 --ntasks-per-core=1 {REQUIRED} --switches=1@9:00", "-n14 -c2",
     "2 nodes, each with one package with 8 free cores{}")])
def test_why_says_what_several_nodes_wait_for(network, words, each, waits):
    cluster = network.ours
    topology = ["net"] if own_network(network) else []
    block, unit = bool(parts(cluster, topology, 1)), int(words[2])
    parts_of = parts(cluster, topology, unit if block else 0)
    where = ", on one leaf switch" if not block else ", within one block" if parts_of else ""
    assert assert_waits(cluster, words, each, parts_of, unit if parts_of else 1) == waits.format(where)


if SLURM_RELEASE >= (25, 5):
    @pytest.mark.parametrize("words, topology, ours", [
        ("-N2 -n2 -w mid1,mid4 --switches=1", "crossed", 0), ("-N2 -n2 -w mid1,mid2 --switches=1@0:01", "crossed", 1),
        ("-N2 -n2 --switches=1", "plain", 1), ("-N4 -n4 --switches=1@0:01 --segment=2", "crossed", 2),
        ("-N2 -n2 -w mid1,mid4 --switches=1@0:01", "", 1)])
    def test_why_knows_the_partitions_own_network(topologies, words, topology, ours):
        number = begin(topologies.ours, f"{words} {f'-p {topology}' if topology else ''}")
        assert len(assert_warned(topologies.ours, number, [topology] if topology else [])) == ours

    def test_audit_counts_the_switches_of_the_partition(topologies):
        cluster, true = topologies.ours, {}
        for words in ("-w mid1,mid4", "-p crossed -w mid1,mid4", "-w mid1,mid2", "-p crossed -w mid1,mid2",
                      "-p plain -w mid1,mid4", "-p crossed -N4"):
            number = begin(cluster, f"-N2 -n2 {words}" if "-w" in words else f"-n4 {words}")
            topology = re.findall("-p (\\w+)", words)
            nodes = hosts(cluster, cluster.job_record(number)["NodeList"])
            leaves_of = parts(cluster, topology, 0).values()
            if leaves_of:
                true[number] = (sum(bool(leaf & nodes) for leaf in leaves_of),
                                least(list(leaves_of), frozenset().union(*leaves_of), len(nodes)))
        told = json.loads(cluster.topiary("audit", "--json").stdout)
        assert {job["job"]: (job["switch"]["on"], job["switch"]["needs"]) for job in told["jobs"]
                if "switch" in job} == true
        assert {on - needs for on, needs in true.values()} == {0, 1}

    @pytest.mark.parametrize("words, kept, ours", [
        ("-N4 -n4 --segment=2", "mid1,mid2", 1), ("-N4 -n4 --segment=2", "", 0), ("-N4 -n4", "mid1,mid2", 1),
        ("-N4 -n4 --segment=2", "mid1,mid2,mid5", 0), ("-N2 -n2 --segment=2 --switches=1", "", 1),
        ("-N6 -n6 --segment=2", "mid1,mid2,mid6,mid3", 1), ("-N8 -n8", "mid1,mid2,mid3,mid4", 1)])
    def test_why_warns_of_nodes_in_several_blocks(shaped, words, kept, ours):
        """A job that gives nodes back has no longer what it had been given."""
        whole = {"-N4": "-w mid[1-2,5-6]", "-N6": "-w mid[1-3,5-7]"}
        number = begin(shaped.ours, f"{words} {whole.get(words[:3], '')}")
        if kept:
            shaped.ours.command(["scontrol", "update", f"JobId={number}", f"NodeList={kept}"])
        assert len(assert_warned(shaped.ours, number)) == ours

    @pytest.mark.parametrize("words, unit, where", [
        ("-N4 --exclusive --segment=2", 2, ", in segments of 2 within one block"),
        ("-N4 --exclusive", 4, ", within one block"), ("-N2 --exclusive", 2, ", within one block")])
    def test_why_says_which_blocks_are_waited_for(shaped, words, unit, where):
        assert assert_waits(shaped.ours, words, "-n1", parts(shaped.ours, [], unit), unit) == (
            f"{words[2]} nodes without other jobs{where}")

if SLURM_RELEASE >= (25, 11):
    @pytest.mark.parametrize("words", ["-N4 -n4 --segment=4", "-N2 -n2 --segment=8"])
    def test_segments_of_several_blocks_are_no_fault(shaped, words):
        assert not assert_warned(shaped.ours, begin(shaped.ours, words))

if SLURM_RELEASE >= (26, 5):
    @pytest.mark.parametrize("words, topology", [("-N2 -n2", "torus"), ("-N4 -n4 --segment=2", "torus"),
                                                 ("-N2 -n2", "rings"), ("-N4 -n4 --segment=2", "rings")])
    def test_rings_and_tori_have_no_blocks(shaped, words, topology):
        assert not assert_warned(shaped.ours, begin(shaped.ours, f"-p {topology} {words}"), [topology])

    def rows(cluster, size):
        """{ring and where a row of so many nodes beside each other begins: these}"""
        told = cluster.command(["scontrol", "-o", "show", "topology", "rings"]).stdout
        rings = {of["RingName"]: cluster.command(["scontrol", "show", "hostnames", of["Nodes"]]).stdout.split()
                 for of in map(fields, told.strip().split("\n"))}
        return {(name, at): {(ring + ring)[at + i] for i in range(size)} for name, ring in rings.items()
                for at in range(len(ring))}

    @pytest.mark.parametrize("words, size, where", [
        ("-N2 --exclusive", 2, ", beside each other on one ring"),
        ("-N3 --exclusive", 3, ", beside each other on one ring"),
        ("-N4 --exclusive --segment=2", 2, ", 2 beside each other on each of 2 rings")])
    def test_why_says_which_nodes_of_rings_are_waited_for(shaped, words, size, where):
        """Slurm 26.05 takes one segment of a ring."""
        cluster = shaped.ours
        of_ring = {}
        for (ring, _), row in rows(cluster, size).items():
            of_ring.setdefault(ring, []).append(row)

        def begins(ends):
            return sorted(min(max(map(ends.get, row)) for row in some) for some in of_ring.values())
        assert assert_waits(cluster, f"{words} -p rings", "-n1 -p rings", begins, size) == (
            f"{words[2]} nodes without other jobs{where}")

    def test_why_of_a_torus_knows_the_box_and_not_when(shaped):
        cluster = shaped.ours
        for node in sorted(threads(cluster)):
            begin(cluster, f"-N1 -w {node} -n1 -t9 -p torus")
        number = submit(cluster, "-N4", "--exclusive", "-p", "torus")
        assert wait_until(lambda: told_of(cluster, number).get("waits for") == (
            "4 nodes without other jobs, in one box of a torus"), 30), told_of(cluster, number)
        assert "first" not in told_of(cluster, number)
