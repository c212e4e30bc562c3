# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The log of a node, whose daemons write into each other's lines."""
import pytest
from rig.node import whole_lines

BEFORE = "[2026-11-22T12:07:33.614] debug:  before"
OURS = "[2026-11-22T12:07:33.620] [90.batch] done with job"
OTHER = "[2026-11-22T12:07:33.620] debug:  another daemon"


@pytest.mark.parametrize("cut", range(1, len(OURS) + 1))
@pytest.mark.parametrize("others", [1, 3])
def test_torn_line_is_whole_again(cut, others):
    torn = "\n".join([BEFORE, OURS[:cut] + OTHER, *[OTHER] * (others - 1), OURS[cut:], BEFORE, ""])
    assert whole_lines(torn) == [BEFORE, OURS, *[OTHER] * others, BEFORE, ""]


def test_line_without_a_stamp_stays_when_none_was_torn():
    assert whole_lines(f"{BEFORE}\nforged\n\n{OTHER}\nunfinished") == [BEFORE, "forged", "", OTHER, "unfinished"]
