# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The cheapest mapping of each problem that any method found, in long runs: bench/map_best.csv. A record is only ever
improved."""
import array
import csv
import itertools
import multiprocessing
import os
import random
from dataclasses import astuple
from pathlib import Path

import map_judge as judge
from map_problems import Problem, chosen, problems
from map_run import PEERS, bed, timed
from rig.paths import BUILD

FILE = Path(__file__).resolve().parent / "map_best.csv"
HEAD = ("problem", "sha", "cost", "method")
SEARCHED = 1100         # places at most, of the bench's own search: it has a table of all distances
SEARCH_LIMIT = 3600
WARMTHS = (1.0, 0.4, 0.2, 0.05)     # the first on a mapping by lot, the others on the best so far


class Records:
    """sha, cost and method of each problem, by its name; another sha is another problem."""

    def __init__(self, path=FILE):
        self.path, self.rows = path, {}
        if path.exists():
            with open(path, encoding="utf-8", newline="") as file:
                self.rows = {row["problem"]: (row["sha"], float(row["cost"]), row["method"])
                             for row in csv.DictReader(file)}

    def cost(self, problem):
        sha, cost, _ = self.rows.get(problem.name, ("", None, ""))
        return cost if sha == problem.sha else None

    def improve(self, problem, cost, method):
        """Is that cheaper than what was known?"""
        known = self.cost(problem)
        if known is not None and cost >= known:
            return False
        self.rows[problem.name] = problem.sha, cost, method
        return True

    def write(self):
        """Those of problems that are no more go."""
        with open(self.path, "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(HEAD)
            for name in (p.name for p in problems() if p.name in self.rows):
                sha, cost, method = self.rows[name]
                out.writerow((name, sha, f"{cost:.17g}", method))


# --- the bench's own search, which shares nothing with Topiary's

def search(bed_, start, warmth, seed, moves):
    """From a mapping; a better one, or the same."""
    places, problem = bed_.machine.places(), bed_.problem
    at = {place: i for i, place in enumerate(places)}
    table = bed_.folder / "table"
    if not table.exists():
        with open(table, "wb") as file:
            array.array("d", (bed_.machine.distance(a, b) for a in places for b in places)).tofile(file)
        (bed_.folder / "pairs").write_text("".join(f"{a} {b} {w}\n" for a, b, w in problem.pairs))
    (bed_.folder / "start").write_text("".join(f"{at[seat]}\n" for seat in start))
    words = [BUILD / "bench" / "map_search", bed_.folder, problem.ranks, len(places), len(problem.pairs), warmth, seed,
             moves * problem.ranks]
    done, _ = timed(list(map(str, words)), SEARCH_LIMIT)
    if done.returncode:
        raise judge.Broken(f"{problem.name}: {done.stderr.strip()}")
    return [places[int(line)] for line in done.stdout.split()]


def tries(bed_, args):
    """(method, mapping), each better than those before or not."""
    best, ranks = None, bed_.problem.ranks
    for method in PEERS:
        found = bed_.peer(method)
        if found.cost is not None and not found.doubles:
            yield method, found.seats
    for effort, seed in itertools.product(("normal", "high"), range(args.seed, args.seed + args.seeds)):
        found = bed_.ours(effort, seed)
        best = min(filter(None, (best, found)), key=lambda f: f.cost)
        yield f"topiary {effort} {seed}", found.seats
    if len(bed_.machine.places()) > SEARCHED:
        return
    best = best.seats
    for seed in range(args.seed, args.seed + args.seeds):
        lot = judge.by_lot(bed_.machine, ranks, random.Random(seed))
        for warmth in WARMTHS:
            found = search(bed_, lot if warmth == WARMTHS[0] else best, warmth, seed, args.moves)
            best = min(best, found, key=bed_.cost)
            yield f"search {warmth} {seed}", found


def work(task):
    which, args = task
    os.setpriority(os.PRIO_PROCESS, 0, 10)
    with bed(Problem(*which)) as laid:
        found = [(laid.cost(seats), method) for method, seats in tries(laid, args) if not judge.doubles(seats)]
    return which, min(found, key=lambda one: one[0])


def run(sheet, args):
    records, better, gains = Records(), 0, []
    some = sorted(chosen(args), key=lambda p: p.ranks)
    with multiprocessing.Pool(args.jobs) as pool:
        for i, (which, (cost, method)) in enumerate(pool.imap_unordered(work, [(astuple(p), args) for p in some]), 1):
            problem = Problem(*which)
            known = records.cost(problem)
            if records.improve(problem, cost, method):
                better += 1
                gains.append(0 if known is None else 100 * (1 - cost / known))
                records.write()
            if not sheet.quiet:
                print(f"{i:4} of {len(some)} {problem.name:36} {cost:20.0f} {method:20}"
                      f"{'' if known is None else f' {100 * (cost / known - 1):+.3f} %'}", flush=True)
    sheet.add("records improved", better, f"of {len(some)}")
    sheet.add("by at most", max(gains, default=0.0), "%")
