# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""How long `topiary map` takes on one core, all of it: reading the files, too."""
import itertools
import math
import os

import map_draw
import sheet as sheets
from map_problems import Problem
from map_run import bed

EFFORTS, PATTERNS = ("normal", "fast"), ("stencil3d", "dense")
GOALS = [(96, 0.1), (1024, 1.0), (4096, 8.0)]       # ranks, seconds of `normal`
FASTER = 10
FIRST_GROWN = 384       # below it, starting the program is part of what is seen


def measure(sheet, args):
    """{(effort, pattern): [(ranks, seconds)]}"""
    core, found = min(os.sched_getaffinity(0)), {}
    for ranks, pattern in itertools.product(args.ranks, PATTERNS):
        with bed(Problem("epyc", pattern, ranks, "scattered")) as laid:
            for effort in EFFORTS:
                seconds = min(laid.ours(effort, core=core, explain=False).seconds for _ in range(args.repeat))
                found.setdefault((effort, pattern), []).append((ranks, seconds))
                what = f"time to map {ranks} ranks, {pattern} of {len(laid.problem.pairs):,} pairs, --effort={effort}"
                sheet.add(what, seconds, "s", goal=goal_of(ranks, effort))
    return found


def goal_of(ranks, effort):
    seconds = dict(GOALS).get(ranks)
    return f"at most {seconds:g}" if seconds and effort == "normal" else ""


def growth(points):
    """The exponent of ranks that seconds grow with: least squares of the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x >= FIRST_GROWN]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def run(sheet, args):
    found = measure(sheet, args)
    for (effort, pattern), points in found.items():
        sheet.add(f"{pattern}, {effort}: exponent by which the time grows with ranks", growth(points),
                  f"from {FIRST_GROWN} ranks on")
    for pattern in PATTERNS:
        both = zip(found["normal", pattern], found["fast", pattern])
        times = [slow / fast for (ranks, slow), (_, fast) in both if ranks >= FIRST_GROWN]
        if times:
            sheet.add(f"{pattern}: minimum speed-up of --effort=fast, from {FIRST_GROWN} ranks on", min(times), "times",
                      goal=f"{FASTER}")
    rows = [(f"{ranks:,}", *(f"{sheets.shown(dict(points)[ranks])} s" for points in found.values()))
            for ranks in args.ranks]
    sheet.add_table(sheets.lines(" | ".join(("Ranks", *(f"{p}, {e}" for e, p in found))),
                                 "---:" + "|---:" * len(found), rows))
    if args.svg:
        map_draw.times(args.svg, found, GOALS)
        sheet.add_table(f"![How the time grows with ranks]({args.svg})\n")
