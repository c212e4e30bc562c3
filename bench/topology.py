#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of what a job gets in BENCHMARKS.md, each one command: how soon a program has its topology, and what that
costs a step."""
import argparse
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("bench", "tests")]

import sheet as sheets  # noqa: E402
import topology_start  # noqa: E402
import topology_step  # noqa: E402
from rig.paths import BUILD  # noqa: E402

PARTS = {"start": (topology_start, "from exec to a topology, by every way"),
         "step": (topology_step, "what the plugin adds to a step and a task")}


def parser():
    p = argparse.ArgumentParser(description=__doc__)
    commands = p.add_subparsers(dest="command", required=True)
    how = {"formatter_class": argparse.ArgumentDefaultsHelpFormatter}
    for name, (part, help_text) in PARTS.items():
        part.options(commands.add_parser(name, help=help_text, **how))
    commands.add_parser("all", help="both, as BENCHMARKS.md has them", **how)
    for c in commands.choices.values():
        sheets.options(c)
    return p


def main():
    args = parser().parse_args()
    if os.geteuid():
        sys.exit("topology.py: needs root: daemons run as several users")
    for name in ("topology_start", "topology_clock.so"):
        if not (BUILD / "bench" / name).exists():
            sys.exit(f"topology.py: {BUILD}/bench/{name} is missing: run make bench-topology-needs")
    sheet = sheets.Sheet("topology.py", "## What a job gets, in short\n", quiet=args.json or args.markdown)
    for name in PARTS if args.command == "all" else [args.command]:
        sheet.begin(name if args.command == "all" else " ".join(sys.argv[1:]))
        PARTS[name][0].run(sheet, parser().parse_args([name]) if args.command == "all" else args)
    sheet.finish(args)


if __name__ == "__main__":
    main()
