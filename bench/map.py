#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Mapping's figures in BENCHMARKS.md, each one command."""
import argparse
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("bench", "tests")]

import map_ablate  # noqa: E402
import map_best  # noqa: E402
import map_sim  # noqa: E402
import map_table  # noqa: E402
import map_time  # noqa: E402
import sheet as sheets  # noqa: E402

MARK = "## Mapping, in short\n"


def parser():
    p = argparse.ArgumentParser(description=__doc__)
    commands = p.add_subparsers(dest="command", required=True)
    how = {"formatter_class": argparse.ArgumentDefaultsHelpFormatter}
    t = commands.add_parser("table", help="what mappings cost: ours, block, cyclic, other mappers, the best known",
                            **how)
    t.add_argument("--effort", choices=("fast", "normal", "high"), default="normal", help="ours")
    t.add_argument("--seed", type=int, default=1, help="ours")
    t.add_argument("--svg", type=Path, help="draw figure 4 of the paper anew into this file")
    t.add_argument("--all", action="store_true", help="a line for each problem, too")
    problems_of(t)
    t = commands.add_parser("time", help="how long a mapping takes, by the number of ranks, on one core", **how)
    t.add_argument("--ranks", type=int, nargs="+", default=[24, 48, 96, 192, 384, 768, 1024, 2048, 4096],
                   help="so many")
    t.add_argument("--repeat", type=int, default=3, help="times each, of which the least counts")
    t.add_argument("--svg", type=Path, help="draw the times into this file")
    t = commands.add_parser("sim", help="the run time that SimGrid tells of mappings, on the paper's fat tree", **how)
    t.add_argument("--lots", type=int, default=3, help="mappings by lot beside the others")
    problems_of(t)
    t.set_defaults(most=192)
    commands.add_parser("all", help="table, time and sim, as BENCHMARKS.md has them", **how)
    t = commands.add_parser("best", help="search long, and keep the best that was found in bench/map_best.csv", **how)
    t.add_argument("--seed", type=int, default=1, help="the first")
    t.add_argument("--seeds", type=int, default=2, help="so many")
    t.add_argument("--moves", type=int, default=100000, help="of the bench's own search, tried for each rank")
    problems_of(t)
    t = commands.add_parser("ablate", help="what mappings cost without each start and each stage of the engine", **how)
    t.add_argument("--seed", type=int, default=1, help="ours")
    t.add_argument("--every", type=int, default=5, metavar="N", help="one problem in N")
    t.add_argument("--pairs", action="store_true", help="without each two of them, too")
    problems_of(t)
    t.set_defaults(least=96, most=1024)
    for c in commands.choices.values():
        sheets.options(c)
    return p


def problems_of(p):
    p.add_argument("--only", default="", metavar="WORD", help="problems with this in their names")
    p.add_argument("--least", type=int, default=1, help="ranks that they have at least")
    p.add_argument("--most", type=int, default=4096, help="and at most")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at once")


PLANS = ("table --svg docs/mapping-gain.svg", "time --svg docs/mapping-time.svg", "sim")


def every(sheet, _):
    worst = 0
    for plan in PLANS:
        one = parser().parse_args(plan.split())
        if one.command == "sim" and not map_sim.is_here():
            continue
        sheet.begin(plan)
        worst = max(worst, COMMANDS[one.command](sheet, one) or 0)
    return worst


COMMANDS = {"table": map_table.run, "time": map_time.run, "sim": map_sim.run, "best": map_best.run,
            "ablate": map_ablate.run, "all": every}


def main():
    args = parser().parse_args()
    sheet = sheets.Sheet("map.py", MARK, quiet=args.json or args.markdown)
    if args.command != "all":
        sheet.begin(" ".join(sys.argv[1:]))
    failed = COMMANDS[args.command](sheet, args)
    sheet.finish(args)
    sys.exit(failed or 0)


if __name__ == "__main__":
    main()
