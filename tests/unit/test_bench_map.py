# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The benchmark's judge of mappings: costs of small cases reckoned by hand, and what it must not let pass."""
import itertools
import math
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from map import Case, bed, best_known, guaranteed, keep_best  # noqa: E402
from map_judge import Broken, Machine, block, cost, cyclic, doubles, read_plain, shares  # noqa: E402
from map_problems import ALLOCATIONS, ARCHS, Problem, allocate, problems  # noqa: E402

# Figure 5 of the paper, but that only five leaves of n210 are free.
TORUS = """\
torus 3 4 1600 4 1600 4 1600 2 32 52
tree 1 4 800 1 0
node n129 tree 4 2 80 2 40 4 20 2 10 -1
tree 1 4 800 2 0 1
node n208 tree 4 2 80 2 40 4 20 2 10 -1
node n210 tree 4 2 80 2 40 4 20 2 10 5 0 1 2 8 31
"""
TREE = """\
tree 1 4 283 2 1 3
tree 1 22 100 2 0 5
node a tree 2 2 20 3 2 -1
node b tree 2 2 20 3 2 2 0 3
tree 1 22 100 1 7
node c tree 2 2 20 3 2 3 1 2 4
"""


@pytest.fixture(name="torus")
def torus_():
    return Machine(TORUS)


@pytest.fixture(name="tree")
def tree_():
    return Machine(TREE)


@pytest.mark.parametrize("a, b, distance", [
    (("n208", 0), ("n208", 0), 0),
    (("n208", 0), ("n208", 1), 10),         # one core's two threads
    (("n208", 1), ("n208", 2), 20),
    (("n208", 7), ("n208", 8), 40),
    (("n208", 15), ("n208", 16), 80),
    (("n208", 0), ("n210", 0), 800),
    # 32 is (0, 0, 2), 52 is (0, 1, 3): a hop each in two dimensions.
    (("n129", 3), ("n210", 31), 3200),
])
def test_distances_of_the_paper(torus, a, b, distance):
    assert torus.distance(a, b) == torus.distance(b, a) == distance


def test_the_way_round_a_torus_is_the_shorter_one():
    machine = Machine("torus 2 5 10 4 7 3 0 4 15\n" + "".join(f"node {n} tree 1 1 1 -1\n" for n in "abc"))
    assert machine.distance(("a", 0), ("b", 0)) == 10 and machine.distance(("a", 0), ("c", 0)) == 7
    assert machine.distance(("b", 0), ("c", 0)) == 17


def test_places_are_those_of_the_job(tree):
    assert tree.places() == [*(("a", i) for i in range(6)), ("b", 0), ("b", 3), ("c", 1), ("c", 2), ("c", 4)]


def test_cost_of_a_known_case(tree):
    seats = [("a", 0), ("a", 2), ("a", 3), ("b", 0), ("c", 1)]
    pairs = [(1, 0, 5), (2, 0, 7), (3, 0, 11), (4, 0, 13), (4, 3, 17)]
    assert cost(pairs, tree, seats) == 5 * 2 + 7 * 20 + 11 * 100 + 13 * 283 + 17 * 283
    assert cost(pairs, tree, [("a", 0)] * 5) == 0


def plain(seats):
    return "".join(f"{rank} {host} {leaf}\n" for rank, (host, leaf) in enumerate(seats))


def test_a_rank_file_is_read(tree):
    seats = random.Random(1).sample(tree.places(), 7)
    assert read_plain(plain(seats), tree, 7) == seats and doubles(seats) == 0


def test_two_ranks_on_a_place_are_seen(tree):
    seats = block(tree, 7)
    seats[6] = seats[2]
    assert doubles(read_plain(plain(seats), tree, 7)) == 1


@pytest.mark.parametrize("text, says", [
    ("0 a 0\n", "1 ranks of 2"),
    ("0 a 0\n0 a 1\n", "rank 0 is there twice"),
    ("0 a 0\n1 a 6\n", "rank 1: a 6 is not a place"),
    ("0 a 0\n1 b 1\n", "rank 1: b 1 is not a place"),       # there is such a leaf, but it is not the job's
    ("0 a 0\n1 d 0\n", "rank 1: d 0 is not a place"),
    ("0 a 0\n2 a 1\n", "2 ranks of 2"),
])
def test_broken_rank_files(tree, text, says):
    with pytest.raises(Broken, match=says):
        read_plain(text, tree, 2)


def test_block_and_cyclic_are_slurms(tree):
    # a has 6 places, b 2, c 3: of 9 ranks b can take but 2, and a what is left.
    assert shares(tree, 9) == {"a": 4, "b": 2, "c": 3}
    assert block(tree, 5) == [("a", 0), ("a", 1), ("b", 0), ("b", 3), ("c", 1)]
    assert cyclic(tree, 9) == [("a", 0), ("b", 0), ("c", 1), ("a", 1), ("b", 3), ("c", 2), ("a", 2), ("c", 4), ("a", 3)]


def case_of(ours, **others):
    case = Case(Problem("torus", "stencil2d", 24, "spare"), {"ours": ours, "block": 100.0, "cyclic": 120.0},
                {"ours": 0})
    case.cost |= others
    return case


@pytest.mark.parametrize("ours, told, twice, says", [
    (90, {}, 0, []),
    (100, {}, 0, []),
    (101, {}, 0, ["costs 101, block 100"]),
    (130, {}, 0, ["costs 130, block 100", "costs 130, cyclic 120"]),
    (90, {"cost": 80}, 0, ["is said to cost 80"]),
    (90, {"block": 99}, 0, ["block is said to cost 99"]),
    (90, {}, 1, ["1 ranks on a place that another has"]),
])
def test_what_is_guaranteed(ours, told, twice, says):
    case = case_of(ours)
    case.doubles["ours"] = twice
    found = list(guaranteed(case, {"cost": ours, "block": 100, "cyclic": 120, **told}))
    assert len(found) == len(says) and all(part in text for part, text in zip(says, found)), found


def test_records_only_improve(tmp_path):
    path, case = tmp_path / "best.csv", case_of(80.0)
    case.problem = problems()[0]
    path.write_text("problem,sha,cost,method\n")
    assert best_known(path) == {}
    for cost_, record, kept in ((1e17 / 3, None, 1e17 / 3), (1e17, 1e17 / 3, 1e17 / 3), (5.0, 1e17 / 3, 5.0)):
        case.cost["ours"], case.best, case.record = cost_, min(cost_, record or cost_), record
        keep_best([case], path)
        assert best_known(path) == {case.problem: kept}
    path.write_text(path.read_text().replace(case.problem.sha, "another sha"))
    assert best_known(path) == {}


@pytest.mark.parametrize("arch, how", list(itertools.product(ARCHS, ALLOCATIONS)))
def test_an_allocation_suffices_and_is_had_again(arch, how):
    machine = ARCHS[arch]
    for ranks in (24, 96, 1024):
        found = allocate(machine, ranks, how, random.Random(ranks))
        assert found == allocate(machine, ranks, how, random.Random(ranks))
        assert sum(map(len, found.values())) >= ranks and len(found) <= machine.nodes
        assert all(len(set(cores)) == len(cores) > 0 and max(cores) < machine.cores for cores in found.values())


@pytest.mark.parametrize("pattern, pairs", [
    ("stencil2d", 4 * 5 + 3 * 6), ("stencil3d", 12 + 16 + 18), ("pencils", 4 * math.comb(6, 2) + 6 * math.comb(4, 2)),
])
def test_what_ranks_exchange(pattern, pairs):
    found = Problem("torus", pattern, 24, "spare").pairs
    assert len(found) == len({(a, b) for a, b, _ in found}) == pairs
    assert all(0 <= b < a < 24 and weight > 0 for a, b, weight in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["epyc-partial-geometric-192", "torus-spare-geometric-192"])
def test_mapping_is_near_the_best_that_is_known(name):
    """Without the stages after the starts it is 10 to 13 % more expensive here, with all of them at most 0.1 % (seed
    1). More for another Scotch or libm."""
    problem = next(p for p in problems() if p.name == name)
    with bed(problem) as laid:
        found = laid.ours(explain=False)
    assert found.doubles == 0 and found.cost <= best_known()[problem] * 1.03
