# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What bench/apps.py makes of a machine for the simulator, and of run times."""
import sys

import pytest

from rig.paths import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from apps import BEST, FABRICS, RR, Ways, gain, summary  # noqa: E402
from apps_programs import SOURCES, programs  # noqa: E402
from map_problems import fabric_text  # noqa: E402


def links(name, a, b):
    """Those between two places, each by its level and way; the machine's nodes are all the job's."""
    fabric = FABRICS[name]
    ways = Ways(fabric_text(fabric.arch, dict.fromkeys(range(fabric.arch.nodes), range(fabric.arch.cores))), fabric)
    return ways, [(found.split(".")[1], way) for found, way in ways.between(a, b)]


@pytest.mark.parametrize("name, a, b, levels, turn", [
    ("fat tree", ("n000", 0), ("n000", 1), "44", 1),         # a NUMA node
    ("fat tree", ("n000", 0), ("n000", 6), "4334", 2),       # a package
    ("fat tree", ("n000", 0), ("n000", 12), "432234", 3),
    ("fat tree", ("n000", 0), ("n001", 0), "43211234", 4),   # a leaf switch
    ("fat tree", ("n000", 0), ("n022", 0), "4321001234", 5),
    ("dragonfly", ("n000", 0), ("n001", 0), "54322345", 4),  # a router
    ("dragonfly", ("n000", 0), ("n008", 0), "543212345", None),     # a group: one link between two routers
    ("dragonfly", ("n000", 0), ("n064", 0), "54321012345", None),   # between groups, and from the router to it
    ("rails", ("n000", 3), ("n001", 3), "2112", 2),
])
def test_a_message_passes_the_links_of_each_level_that_it_climbs(name, a, b, levels, turn):
    _, found = links(name, a, b)
    assert "".join(level for level, _ in found) == levels
    if turn:
        assert [way for _, way in found] == ["UP"] * turn + ["DOWN"] * turn


def test_the_way_back_is_the_same_the_other_way():
    for name in ("fat tree", "EPYC", "dragonfly"):
        ways, _ = links(name, ("n000", 0), ("n000", 1))
        a, b = ("n003", 5), ("n070", 1)
        other = {"UP": "DOWN", "DOWN": "UP"}
        assert ways.between(b, a) == [(link, other[way]) for link, way in reversed(ways.between(a, b))]


def test_a_message_comes_in_by_the_rail_of_its_receiver():
    ways, _ = links("rails", ("n000", 0), ("n001", 0))
    names = [name for name, _ in ways.between(("n000", 0), ("n001", 5))]
    assert names == ["n000.2.0", "5.1.(0,0)", "5.1.(0,1)", "n001.2.5"]


def test_gains_are_over_the_better_of_what_is_compared():
    found = [{"round robin": 2.0, "block": 1.0, "ours": 0.9}, {"round robin": 1.0, "block": 4.0, "ours": 1.02}]
    assert gain(found[0], "ours", RR) == pytest.approx(55) and gain(found[0], "ours", BEST) == pytest.approx(10)
    assert summary(found, "ours", BEST) == [2, 50, pytest.approx(4), pytest.approx(2)]
    assert summary(found, "scotch", BEST) == [0, None, None, None]      # a way that gave no mapping


def test_every_set_is_one_of_its_own_and_has_a_source():
    every = list(programs())
    assert len({p.name for p in every}) == len(every) and 4 * len(every) >= 300
    assert {p.source for p in every} == set(SOURCES)
