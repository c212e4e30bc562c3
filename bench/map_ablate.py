# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What each start and each stage of the mapping engine is good for: mappings without it, with the same work for the
others."""
import itertools
import multiprocessing
import os
import statistics
import sys
from dataclasses import astuple

import map_judge as judge
import sheet as sheets
from map_best import Records
from map_problems import Problem, chosen
from map_run import bed
from map_table import high
from rig.paths import BUILD

STARTS = ("scotch", "split", "split-halved", "split-packed", "bisection", "bisection-packed", "bisection-unbiased",
          "bisection-unbiased-packed")
STAGES = ("layout", "nodes", "neighbourhood", "ranks", "polish")
HEAD = ("Left out | Cost above the best: mean | median | p90 | Mean, more than with all, points | Cheaper | "
        "More expensive | More expensive than block or cyclic | CPU time")
RULE = "---|---:|---:|---:|---:|---:|---:|---:|---:"


def measure(task):
    which, without, seed = task
    problem = Problem(*which)
    os.environ["TOPIARY_WITHOUT"] = ",".join(without)
    with bed(problem) as laid:
        guard = min(laid.cost(deal(laid.machine, problem.ranks)) for deal in (judge.block, judge.cyclic))
        found = laid.ours(seed=seed, explain=False, program=BUILD / "bench/topiary_ablate")
    return problem.name, without, found.cost, found.seconds, guard


def row(without, costs, seconds, best, guards):
    def gaps(of):
        return [100 * (of[name] / best[name] - 1) if best[name] else 0.0 for name in best]
    mine, all_of = costs[without], costs[()]
    mean = statistics.mean(gaps(mine))
    return (" and ".join(without) or "nothing", f"{mean:.3f} %", f"{statistics.median(gaps(mine)):.3f} %",
            f"{high(gaps(mine)):.2f} %", f"{mean - statistics.mean(gaps(all_of)):+.3f}",
            str(sum(mine[name] < all_of[name] for name in best)), str(sum(mine[name] > all_of[name] for name in best)),
            str(sum(mine[name] > guards[name] * (1 + 1e-9) for name in best)), f"{sum(seconds[without]):.1f} s")


def run(sheet, args):
    some, records = chosen(args)[::args.every], Records()
    known = {p.name: records.cost(p) for p in some}
    plans = [(), *itertools.chain.from_iterable(itertools.combinations(STARTS + STAGES, n)
                                                for n in range(1, 3 if args.pairs else 2))]
    costs, seconds, guards = {plan: {} for plan in plans}, {plan: [] for plan in plans}, {}
    tasks = [(astuple(p), plan, args.seed) for p in some for plan in plans]
    with multiprocessing.Pool(args.jobs) as pool:
        for done, (name, plan, cost, time, guard) in enumerate(pool.imap_unordered(measure, tasks), 1):
            costs[plan][name], guards[name] = cost, guard
            seconds[plan].append(time)
            if not sheet.quiet:
                print(f"\r{done} of {len(tasks)} mappings", end="", file=sys.stderr, flush=True)
    if not sheet.quiet:
        print(file=sys.stderr)
    best = {name: min(cost for cost in (known[name], *(of[name] for of in costs.values())) if cost is not None)
            for name in known}
    sheet.add("problems mapped without each start and stage", len(some), "problems")
    text = sheets.lines(HEAD, RULE, (row(plan, costs, seconds, best, guards) for plan in plans))
    sheet.add_table(text)
    if not sheet.quiet:
        print(text)
