# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Figures as they come: printed at once, kept for JSON and for the tables of BENCHMARKS.md."""
import itertools
import json
import re
from pathlib import Path


class Sheet:
    """mark: the heading in BENCHMARKS.md under which this program's tables stand, all up to the next of the first
    order."""

    def __init__(self, program, mark, quiet=False):
        self.program, self.mark, self.quiet = program, mark, quiet
        self.rows, self.tables, self.of, self.command = [], {}, "", ""

    def begin(self, command):
        self.command, self.of = command, ""
        if not self.quiet:
            print(f"\n# python3 bench/{self.program} {command}", flush=True)

    def add(self, what, value, unit, goal="", than=None, beside=""):
        """A figure; than: how many times better it is than what was measured beside it, by name."""
        beside = ", ".join([*filter(None, [beside]),
                            *(f"{times:.1f} times {name}" for name, times in (than or {}).items())])
        what = self.of + what
        self.rows.append({"command": self.command, "figure": what, "value": value, "unit": unit, "beside": beside,
                          "goal": goal})
        if not self.quiet:
            more = "; ".join(filter(None, (goal and f"goal: {goal}", beside)))
            print(f"{what:62} {shown(value):>10} {unit:18} {more}".rstrip(), flush=True)

    def add_table(self, text):
        """More of this command than figures: Markdown that stands below them."""
        self.tables.setdefault(self.command, []).append(text)

    def markdown(self):
        """What has a goal or an alternative first, then all, command by command."""
        text = f"{self.mark}\n{table(row for row in self.rows if row['goal'] or row['beside'])}"
        for command, group in itertools.groupby(self.rows, key=lambda row: row["command"]):
            parts = [table(group), *self.tables.get(command, [])]
            text += f"\n## `python3 bench/{self.program} {command}`\n\n" + "\n".join(parts)
        return text

    def finish(self, args):
        """What --json, --markdown and --into ask for."""
        if args.json:
            print(json.dumps(self.rows, indent=1))
        if args.markdown:
            print(self.markdown(), end="")
        if args.into:
            write_into(args.into, self.mark, self.markdown())


def options(parser):
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--markdown", action="store_true", help="the figures as tables")
    parser.add_argument("--into", type=Path, metavar="FILE", help="put these tables in the place of FILE's")


def run(program, mark, parts, args):
    """The part that the command line names, or all of them."""
    sheet = Sheet(program, mark, quiet=args.json or args.markdown)
    for name in parts if args.command == "all" else [args.command]:
        sheet.begin(name)
        parts[name](sheet, args)
    sheet.finish(args)


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.{max(0, min(3, 3 - len(str(int(abs(value))))))}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(rows):
    told = ((row["figure"], f"{shown(row['value'])} {row['unit']}",
             "; ".join(filter(None, (row["goal"], row["beside"]))))
            for row in rows)
    return lines("Figure | Measured | Goal or comparison", "---|---:|---", told)


def lines(head, rule, rows):
    """A table of Markdown."""
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows), ""])


def write_into(path, mark, text):
    """The file's tables anew; what stands before them and in other parts stays."""
    head, found, rest = path.read_text(encoding="utf-8").partition(mark)
    after = re.search(r"^# ", rest, re.M) if found else None
    path.write_text(head + text + ("\n" + rest[after.start():] if after else ""), encoding="utf-8")
