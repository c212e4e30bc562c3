#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Mapping's figures in BENCHMARKS.md: what mappings cost, and how long they take to compute. The cost is what map_judge
computes from the problem's files and the rank file."""
import csv
import itertools
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path

from common import Part, main, percentile, shown, timed
import map_judge as judge
from map_problems import Problem, chosen, problems
from rig.paths import BUILD

PEERS = {"scotch": "Scotch as netloc calls it", "treematch": "TreeMatch", "sharedmap-eco": "SharedMap eco",
         "sharedmap-strong": "SharedMap strong"}
NAMES = {"ours": "Topiary", **PEERS, "block": "block", "cyclic": "cyclic"}
PEER_LIMIT, OURS_LIMIT = 300, 1800
HERE = Path(__file__).resolve().parent
ROUNDING = 1e-9


# --- any method on a problem

@dataclass
class Found:
    """cost: None, if the method ended without a mapping."""
    seats: list = None
    cost: float = None
    doubles: int = 0
    seconds: float = 0.0
    told: dict = None       # what --explain=json says


class Bed:
    """A problem laid out in a folder."""

    def __init__(self, problem, folder):
        self.problem, self.folder = problem, folder
        self.machine = judge.Machine(problem.fabric)
        problem.write(folder)

    def judged(self, text, **more):
        seats = judge.read_plain(text, self.machine, self.problem.ranks)
        return Found(seats, self.cost(seats), judge.doubles(seats), **more)

    def cost(self, seats):
        return judge.cost(self.problem.pairs, self.machine, seats)

    def ours(self, effort="normal", seed=1, core=None, explain=True, matrix="matrix"):
        """`topiary map`, as a user calls it; seconds: of processor time, which with `explain` is also that of the
        comparisons."""
        words = [BUILD / "topiary", "map", f"--arch={self.folder}/fabric", f"--matrix={self.folder}/{matrix}",
                 f"--effort={effort}", f"--seed={seed}"] + ["--explain=json"] * explain
        done, seconds = timed(words, OURS_LIMIT, core)
        if done.returncode:
            raise judge.Broken(f"{self.problem.name}: {done.stderr.strip()}")
        return self.judged(done.stdout, seconds=seconds, told=json.loads(done.stderr) if explain else None)

    def peer(self, method):
        try:
            done, _ = timed([sys.executable, HERE / "map_peers.py", method, self.folder], PEER_LIMIT)
            return Found() if done.returncode else self.judged(done.stdout, seconds=float(done.stderr.split()[-1]))
        except (subprocess.TimeoutExpired, judge.Broken):
            return Found()


@contextmanager
def bed(problem):
    with tempfile.TemporaryDirectory(prefix="map") as folder:
        yield Bed(problem, Path(folder))


def best_known(path=HERE / "map_best.csv"):
    """{problem: the cheapest mapping that any method ever found}; another sha is another problem."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = {row["problem"]: row for row in csv.DictReader(file)}
    return {p: float(rows[p.name]["cost"]) for p in problems() if p.name in rows and rows[p.name]["sha"] == p.sha}


def keep_best(cases, path=HERE / "map_best.csv"):
    """The file with what was cheaper in these cases; problems that are no more go."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = {row["problem"]: row for row in csv.DictReader(file)}
    for case in cases:
        if case.record is None or case.best < case.record:
            method = min((m for m, cost in case.cost.items() if cost is not None), key=case.cost.get)
            rows[case.problem.name] = {"problem": case.problem.name, "sha": case.problem.sha,
                                       "cost": f"{case.best:.17g}", "method": NAMES[method]}
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, ("problem", "sha", "cost", "method"), lineterminator="\n")
        out.writeheader()
        out.writerows(rows[p.name] for p in problems() if p.name in rows)


# --- table: what mappings cost on all problems

@dataclass
class Case:
    """One problem: what each method cost, None where it gave no mapping, and what of ours must never be."""
    problem: Problem
    cost: dict = field(default_factory=dict)
    doubles: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)
    broken: list = field(default_factory=list)
    best: float = math.inf
    record: float = None        # the best that was known before

    def gap(self, method):
        """Percent above the best known."""
        return 100 * (self.cost[method] / self.best - 1) if self.best else 0.0

    def gain(self, method, over):
        """Percent of its cost that are saved."""
        return 100 * (1 - self.cost[method] / self.cost[over]) if self.cost[over] else 0.0


def measure_case(task):
    which, effort, seed = task
    case = Case(Problem(*which))
    with bed(case.problem) as laid:
        for name, deal in (("block", judge.block), ("cyclic", judge.cyclic)):
            case.cost[name] = laid.cost(deal(laid.machine, case.problem.ranks))
        try:
            found = laid.ours(effort, seed)
        except judge.Broken as e:
            case.broken.append(str(e))
            return case
        for name in PEERS:
            peer = laid.peer(name)
            case.cost[name], case.doubles[name], case.seconds[name] = peer.cost, peer.doubles, peer.seconds
    case.cost["ours"], case.doubles["ours"], case.seconds["ours"] = found.cost, found.doubles, found.seconds
    case.broken += guaranteed(case, found.told)
    case.problem = Problem(*which)      # without its texts
    return case


def guaranteed(case, told):
    """What is promised and does not hold."""
    cost = case.cost["ours"]
    for name in ("block", "cyclic"):
        if cost > case.cost[name] * (1 + ROUNDING):
            yield f"costs {cost:.0f}, {name} {case.cost[name]:.0f}"
        if not math.isclose(told[name], case.cost[name], rel_tol=ROUNDING):
            yield f"{name} is said to cost {told[name]:.0f}, and costs {case.cost[name]:.0f}"
    if not math.isclose(told["cost"], cost, rel_tol=ROUNDING):
        yield f"is said to cost {told['cost']:.0f}, and costs {cost:.0f}"
    if case.doubles["ours"]:
        yield f"{case.doubles['ours']} ranks on a place that another has"


def measure_all(args):
    some, known = chosen(args), best_known()
    tasks = sorted(((astuple(p), args.effort, args.seed) for p in some), key=lambda task: -task[0][2])
    cases = []
    with multiprocessing.Pool(args.jobs) as pool:
        for case in pool.imap_unordered(measure_case, tasks):
            case.record = known.get(case.problem)
            case.best = min(cost for cost in (case.record, *case.cost.values()) if cost is not None)
            cases.append(case)
            if case.broken:
                print(f"{case.problem.name}: {'; '.join(case.broken)}", flush=True)
    return sorted(cases, key=lambda case: some.index(case.problem))


def middle(values):
    return statistics.median(values) if values else None


def high(values, share=0.9):
    return percentile(values, share) if values else None


def done_by(method, cases):
    return [case for case in cases if case.cost.get(method) is not None]


def worse(method, cases):
    return sum(case.cost[method] > min(case.cost["block"], case.cost["cyclic"]) * (1 + ROUNDING)
               for case in done_by(method, cases))


def gaps(method, cases):
    return [case.gap(method) for case in done_by(method, cases)]


def gains(method, cases, over="block"):
    return [case.gain(method, over) for case in done_by(method, cases)]


def doubled(method, cases):
    return sum(case.doubles.get(method, 0) > 0 for case in done_by(method, cases))


def table(sheet, args):
    """1 if what is guaranteed does not hold."""
    cases = measure_all(args)
    done = done_by("ours", cases)

    def add(what, value, unit, goal, of):
        """of(method, cases): the same of each peer."""
        peers = PEERS if of else {}
        sheet.add(what, value, unit, goal, "; ".join(f"{of(m, cases)} {name}" for m, name in peers.items()))

    def of_percent(which, values):
        return lambda m, some: f"{which(values(m, some)):.1f}" if done_by(m, some) else "-"
    add("problems mapped", len(done), f"of {len(cases)}", "all, at least 150", None)
    add("mappings that cost more than block or cyclic", worse("ours", cases), f"of {len(done)}", "0", worse)
    add("mappings with two ranks on one place", doubled("ours", cases), f"of {len(done)}", "0", doubled)
    add("mappings whose reported cost differs from the bench's own",
        sum("said" in text for case in done for text in case.broken), "costs", "0", None)
    add("cost above the best known mapping, median", middle(gaps("ours", cases)), "%", "at most 0.1",
        of_percent(middle, gaps))
    add("cost above the best known mapping, p90", high(gaps("ours", cases)), "%", "at most 2.5", of_percent(high, gaps))
    add("cost reduction compared with block, median", middle(gains("ours", cases)), "%", "at least 30",
        of_percent(middle, gains))
    for method in PEERS:
        both = done_by(method, done)
        sheet.add(f"mappings that cost more than {PEERS[method]}",
                  sum(case.cost["ours"] > case.cost[method] * (1 + ROUNDING) for case in both), f"of {len(both)}",
                  beside=f"at most {max((case.gain(method, 'ours') for case in both), default=0):.1f} %")
        for what, some in (("all that it maps", both), ("those that it maps at the same cost", [
                case for case in both if math.isclose(case.cost["ours"], case.cost[method], rel_tol=ROUNDING)])):
            ours, its = (math.fsum(case.seconds[name] for case in some) for name in ("ours", method))
            sheet.add(f"CPU time compared with {PEERS[method]}, {what}", ours / its if its else None, "times",
                      beside=f"{shown(ours)} s and {shown(its)} s, {len(some)} problems")
    sheet.add("problems whose best known mapping this run improved",
              sum(case.record is not None and case.best < case.record for case in cases), f"of {len(cases)}")
    sheet.add("CPU time of all mappings", math.fsum(case.seconds["ours"] for case in done), "s")
    if args.keep:
        keep_best(cases)
    return int(any(case.broken for case in cases))


# --- time: on one core, all of it: reading the files, too

EFFORTS, PATTERNS = ("normal", "fast"), ("stencil3d", "dense")
GOALS = {96: 0.1, 1024: 1.0, 4096: 8.0}     # ranks, seconds of `normal`
FIRST_GROWN = 384       # below it, starting the program is part of what is seen


def time(sheet, args):
    core, found = min(os.sched_getaffinity(0)), {}
    for ranks, pattern in itertools.product(args.ranks, PATTERNS):
        with bed(Problem("epyc", pattern, ranks, "scattered")) as laid:
            for effort in EFFORTS:
                seconds = min(laid.ours(effort, core=core, explain=False).seconds for _ in range(args.repeat))
                found[pattern, effort, ranks] = seconds
                sheet.add(f"time to map {ranks} ranks, {pattern} of {len(laid.problem.pairs):,} pairs, "
                          f"--effort={effort}", seconds, "s",
                          f"at most {GOALS[ranks]:g}" if ranks in GOALS and effort == "normal" else "")
    for pattern in PATTERNS:
        times = [found[pattern, "normal", ranks] / found[pattern, "fast", ranks] for ranks in args.ranks
                 if ranks >= FIRST_GROWN]
        if times:
            sheet.add(f"{pattern}: minimum speed-up of --effort=fast, from {FIRST_GROWN} ranks on", min(times), "times",
                      "10")


def problem_options(most):
    return {"only": ("", "problems with this in their names"), "least": (1, "ranks that they have at least"),
            "most": (most, "and at most"), "jobs": (os.cpu_count(), "so many at once")}


PARTS = {
    "table": Part(table, "what mappings cost: ours, block, cyclic, other mappers, the best known", {
        "effort": ("normal", "ours", ("fast", "normal", "high")), "seed": (1, "ours"),
        "keep": (False, "keep what is cheaper than the best known, in bench/map_best.csv"), **problem_options(4096)}),
    "time": Part(time, "how long a mapping takes, by the number of ranks, on one core", {
        "ranks": ([24, 48, 96, 192, 384, 768, 1024, 2048, 4096], "so many"),
        "repeat": (3, "times each, of which the least counts")}),
}

if __name__ == "__main__":
    main(__doc__, PARTS, ("table", "time"), root=False)
