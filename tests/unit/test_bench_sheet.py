# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A benchmark writes its own tables into BENCHMARKS.md and touches nothing else of it."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from select_time import Axis  # noqa: E402
from sheet import Sheet, write_into  # noqa: E402

TEXT = ("# One\n\nWords.\n\n## Figures of one\n\nold\n\n## `one`\n\nold\n\n# Two\n\nMore words.\n\n## Figures of two\n"
        "\nold two\n")


def figures(mark):
    sheet = Sheet("some.py", mark, quiet=True)
    sheet.begin("quick")
    sheet.add("a figure", 12.5, "ms", goal="below 20")
    sheet.add("another", 3, "nodes")
    return sheet.markdown()


@pytest.mark.parametrize("mark, kept, gone", [
    ("## Figures of one\n", ["# One", "Words.", "# Two\n\nMore words.", "old two"], ["## `one`"]),
    ("## Figures of two\n", ["# One", "## `one`\n\nold\n", "More words."], ["old two"]),
])
def test_one_part_is_replaced(tmp_path, mark, kept, gone):
    path = tmp_path / "BENCHMARKS.md"
    path.write_text(TEXT)
    for _ in range(2):      # again changes nothing
        write_into(path, mark, figures(mark))
    text = path.read_text()
    assert all(part in text for part in kept) and not any(part in text for part in gone), text
    assert text.count("| a figure | 12.5 ms | below 20 |") == 2 and text.count("| another | 3 nodes |  |") == 1
    assert text.count(mark) == 1 and text.count("# Two") == 1


def test_a_part_that_is_not_there_is_added(tmp_path):
    path = tmp_path / "BENCHMARKS.md"
    path.write_text("# One\n")
    write_into(path, "## Figures\n", figures("## Figures\n"))
    assert path.read_text().startswith("# One\n## Figures\n")


@pytest.mark.parametrize("high, ticks", [
    (0.3, [0, 0.1, 0.2, 0.3]), (1.5, [0, 0.5, 1, 1.5]), (7, [0, 2, 4, 6, 8]), (30.52, [0, 10, 20, 30, 40]),
    (90298, [0, 20000, 40000, 60000, 80000, 100000]),
])
def test_ticks_are_round_numbers(high, ticks):
    assert Axis([0, high], False).marks == ticks
