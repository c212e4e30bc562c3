# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The benchmark's judge of placements against all that there are, on machines small enough to try them all."""
import itertools
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from select_judge import Judge, Machine, Placement, minimal, reachable, reachable_together  # noqa: E402

SHAPES = [(2, 1, 1, 3), (2, 2, 2, 2), (1, 2, 2, 3), (2, 2, 1, 3), (3, 1, 1, 3), (2, 1, 2, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_counts_are_those_of_all_choices(shape, share):
    machine, chance = Machine(*shape), random.Random(repr((shape, share)))
    for _ in range(5):
        free = {core for core in range(machine.cores) if chance.random() < share}
        for cores in range(1, len(free) + 1):
            every = minimal(machine.touched(choice) for choice in itertools.combinations(sorted(free), cores))
            assert reachable(machine.free_caches(free), cores) == every, (free, cores)


def test_sums_are_those_of_all_choices_of_nodes():
    chance = random.Random(1)
    for _ in range(50):
        each = [minimal(tuple(chance.randrange(1, 5) for _ in range(3)) for _ in range(chance.randrange(1, 4)))
                for _ in range(5)]
        for count in range(1, 5):
            choices = (choice for nodes in itertools.combinations(each, count) for choice in itertools.product(*nodes))
            every = minimal(tuple(map(sum, zip(*choice))) for choice in choices)
            assert reachable_together(each)[count] == every


@pytest.fixture
def judge():
    return Judge({"big": Machine(2, 2, 2, 4), "small": Machine(2, 1, 1, 6)})


def start(judge, job, **cores):
    return judge.start(Placement(job, 0.0, list(judge.machines), {node: set(some) for node, some in cores.items()}))


def test_a_split_that_could_be_none_is_dominated(judge):
    found = start(judge, "a", big=[0, 1, 16, 17])
    assert found.dominated and found.touched == (2, 2, 2) and found.by == [(1, 1, 1)]
    assert found.avoidable == [True, True, True] and found.exact_missed


def test_the_only_place_left_is_not_dominated(judge):
    start(judge, "rest", big=set(range(32)) - {0, 1, 16, 17})
    start(judge, "other", small=range(12))
    found = start(judge, "a", big=[0, 1, 16, 17])
    assert not found.dominated and not any(found.avoidable) and not found.exact_missed


def test_exact_fits_by_node(judge):
    assert start(judge, "a", big=range(4), small=range(4)).exact_missed is False     # small has none of four
    assert start(judge, "b", big=[4, 5, 6, 8], small=[6, 7, 8, 9]).exact_missed is True


def test_cores_come_back(judge):
    start(judge, "a", small=range(12))
    with pytest.raises(ValueError, match="held by another job"):
        start(judge, "b", small=[0])
    judge.end("a")
    assert not start(judge, "c", small=range(6)).dominated


def test_the_rest_of_a_domain_is_told_apart(judge):
    start(judge, "a", small=[0, 1])
    found = start(judge, "b", small=[2, 3, 4, 5])
    assert found.exact_missed and found.filled_rest
    assert start(judge, "c", small=[6, 7, 8, 9]).filled_rest is False
