# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What benchmarks write: a release's results and BENCHMARKS.md, whose figures are there, each with a command."""
import csv
import importlib
import re
import shlex
import sys

import pytest
from rig.paths import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from common import parser_of, percentile, shown, write_csv, write_into  # noqa: E402

RESULTS = sorted((ROOT / "bench/results").glob("*.csv"), key=lambda p: [int(n) for n in p.stem.split(".")])
ROWS = [[cell.strip() for cell in line.strip()[1:-1].split(" | ")]
        for line in (ROOT / "BENCHMARKS.md").read_text().splitlines() if re.match(r"\| .* \| `.*` \|$", line)]


def results(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {(row["figure"], row["command"]): row for row in csv.DictReader(file)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_figure_is_in_the_last_results_and_has_a_command(row):
    figure, measured, _, _, command = row
    found = results(RESULTS[-1])[figure, command.strip("`")]
    assert f"{found['value']} {found['unit']}".strip() == measured
    program, *words = shlex.split(command.strip("`"))
    if program.startswith("bench/"):
        module = importlib.import_module(program.removeprefix("bench/").removesuffix(".py"))
        rooms = vars(module).values()
        of = [module] if hasattr(module, "PARTS") else [part for part in rooms if hasattr(part, "PARTS")]
        parts = {name: part for one in of for name, part in one.PARTS.items()}
        parser_of("", parts).parse_args(words)
    elif program.startswith("build/tests/"):
        assert (ROOT / f"tests/unit/{program.removeprefix('build/tests/')}.c").exists()


def test_there_are_figures():
    assert len(ROWS) >= 40 and len({(row[0], row[4]) for row in ROWS}) == len(ROWS)


def test_results_are_replaced_command_by_command(tmp_path):
    path = tmp_path / "1.0.0.csv"
    write_csv(path, [("a", "one", "1", "s", "", ""), ("b", "two, three", "2,000", "", "", "")])
    write_csv(path, [("a", "four", "4", "s", "below 5", "")])
    assert path.read_text() == ("command,figure,value,unit,goal,comparison\n" "a,four,4,s,below 5,\n"
                                'b,"two, three","2,000",,,\n')


def test_the_tables_are_filled_in(tmp_path):
    path = tmp_path / "B.md"
    text = "# A\n\n| Figure | Measured | Goal | Comparison | Command |\n|---|---:|---|---|---|\n"
    path.write_text(f"{text}| one | 9 s | below 5 | 2 peer | `a` |\n| one | 9 s |  |  | `b` |\n\nWords.\n")
    for _ in range(2):      # again changes nothing
        write_into(path, [("a", "one", "4", "s", "below 5", "3 peer"), ("a", "new", "1", "", "", "")])
        assert path.read_text() == (f"{text}| one | 4 s | below 5 | 3 peer | `a` |\n| one | 9 s |  |  | `b` |\n"
                                    "\nWords.\n")


def test_numbers():
    assert [shown(n) for n in (None, 0.1234, 12.5, 1234.5, 1234, "x")] == ["-", "0.12", "12.5", "1,234", "1,234", "x"]
    assert percentile([3, 1, 2], 0.5) == 2 and percentile(range(100), 0.99) == 99
