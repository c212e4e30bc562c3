# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What mappings cost on all problems: ours, block, cyclic, other mappers, and the best that is known. Judged by the
bench itself."""
import math
import multiprocessing
import statistics
from dataclasses import astuple, dataclass, field

import map_draw
import map_judge as judge
import sheet as sheets
from map_best import Records
from map_problems import STENCILS, Problem, chosen
from map_run import PEERS, bed

NAMES = {"ours": "Topiary", **PEERS, "block": "block", "cyclic": "cyclic"}
MEDIAN, P90, GAIN = 0.1, 2.5, 30.0      # goals, in percent
ROUNDING = 1e-9


@dataclass
class Case:
    """One problem: what each method cost, None where it gave no mapping, and what of ours must never be."""
    problem: Problem
    cost: dict = field(default_factory=dict)
    doubles: dict = field(default_factory=dict)
    seconds: float = 0.0
    broken: list = field(default_factory=list)
    best: float = math.inf

    def gap(self, method):
        """Percent above the best known."""
        return 100 * (self.cost[method] / self.best - 1) if self.best else 0.0

    def gain(self, method, over):
        """Percent of its cost that are saved."""
        return 100 * (1 - self.cost[method] / self.cost[over]) if self.cost[over] else 0.0


def measure(task):
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
            case.cost[name], case.doubles[name] = peer.cost, peer.doubles
    case.cost["ours"], case.doubles["ours"], case.seconds = found.cost, found.doubles, found.seconds
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


def measure_all(sheet, args):
    some = chosen(args)
    tasks = sorted(((astuple(p), args.effort, args.seed) for p in some), key=lambda task: -task[0][2])
    records, cases = Records(), []
    with multiprocessing.Pool(args.jobs) as pool:
        for case in pool.imap_unordered(measure, tasks):
            case.record = records.cost(case.problem)
            case.best = min(cost for cost in (case.record, *case.cost.values()) if cost is not None)
            cases.append(case)
            if not sheet.quiet and case.broken:
                print(f"{case.problem.name}: {'; '.join(case.broken)}", flush=True)
    return sorted(cases, key=lambda case: some.index(case.problem))


# --- telling

def middle(values):
    return statistics.median(values) if values else None


def high(values, share=0.9):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def percent(value):
    return "-" if value is None else f"{value:.2f} %"


HEAD = ("Method | Mappings | Cost above the best: median | p90 | most | More expensive than block or cyclic | "
        "Two ranks on a place | Gain over block, median")


def row(method, cases):
    done = [case for case in cases if case.cost.get(method) is not None]
    gaps = [case.gap(method) for case in done]
    worse = sum(case.cost[method] > min(case.cost["block"], case.cost["cyclic"]) * (1 + ROUNDING) for case in done)
    return (NAMES[method], f"{len(done)} of {len(cases)}", percent(middle(gaps)), percent(high(gaps)),
            percent(max(gaps, default=None)), "-" if method in ("block", "cyclic") else str(worse),
            str(sum(case.doubles.get(method, 0) > 0 for case in done)),
            percent(middle([case.gain(method, "block") for case in done])))


def methods_table(sheet, cases):
    sheet.add_table(show(sheet, sheets.lines(HEAD, "---|---:|---:|---:|---:|---:|---:|---:",
                                             (row(m, cases) for m in NAMES))))


FAMILIES = {
    "machine": lambda p: {"fattree": "the paper's fat tree, 88 nodes of 24 cores",
                          "epyc": "dual EPYC, 128 nodes of 128 cores",
                          "torus": "the paper's torus, 64 routers of 4 nodes of 32 places"}[p.arch],
    "allocation": lambda p: {"scattered": "whole nodes, scattered", "partial": "some nodes in part",
                             "spare": "a quarter more nodes than needed"}[p.how],
    "pattern": lambda p: p.pattern,
    "ranks": lambda p: f"{p.ranks:,}",
}
FAMILY_HEAD = ("By | Problems | Topiary above the best: median | p90 | most | Gain over block | over cyclic | "
               "Scotch above Topiary | TreeMatch above Topiary")


def family_row(name, cases):
    gaps = [case.gap("ours") for case in cases]
    over = [middle([100 * (case.cost[m] / case.cost["ours"] - 1) for case in cases if case.cost[m] is not None])
            for m in PEERS]
    return (name, str(len(cases)), percent(middle(gaps)), percent(high(gaps)), percent(max(gaps)),
            *(percent(middle([case.gain("ours", m) for case in cases])) for m in ("block", "cyclic")),
            *map(percent, over))


def families_table(sheet, cases):
    rows = []
    for name_of in FAMILIES.values():
        groups = {}
        for case in cases:
            groups.setdefault(name_of(case.problem), []).append(case)
        rows += [family_row(name, some) for name, some in groups.items()]
    sheet.add_table(show(sheet, sheets.lines(FAMILY_HEAD, "---|---:|---:|---:|---:|---:|---:|---:|---:", rows)))


def problems_table(sheet, cases):
    rows = [(c.problem.name, c.problem.sha, f"{c.best:.0f}",
             *(percent(c.gap(m)) if c.cost.get(m) is not None else "-" for m in NAMES), f"{c.seconds:.2f} s")
            for c in cases]
    head = " | ".join(("Problem", "Sha", "Best", *NAMES.values(), "Seconds"))
    sheet.add_table(show(sheet, sheets.lines(head, "---|---|---:" + "|---:" * (len(NAMES) + 1), rows)))


def show(sheet, text):
    if not sheet.quiet:
        print(text)
    return text


def tell(sheet, cases):
    done = [case for case in cases if "ours" in case.cost]
    gaps, gains = [case.gap("ours") for case in done], [case.gain("ours", "block") for case in done]
    worse = sum(case.cost["ours"] > min(case.cost["block"], case.cost["cyclic"]) * (1 + ROUNDING) for case in done)
    sheet.add("problems mapped", len(done), f"of {len(cases)}", goal="all, at least 150")
    sheet.add("mappings that cost more than block or cyclic", worse, f"of {len(done)}", goal="0",
              beside=beside(cases, worse_than_dealt))
    sheet.add("mappings with two ranks on one place", sum(case.doubles["ours"] > 0 for case in done),
              f"of {len(done)}", goal="0",
              beside=beside(cases, lambda m, some: sum(case.doubles[m] > 0 for case in some)))
    sheet.add("mappings whose reported cost differs from the bench's own",
              sum("said" in text for case in done for text in case.broken), "costs", goal="0")
    sheet.add("cost above the best known mapping, median", middle(gaps), "%", goal=f"at most {MEDIAN}",
              beside=beside(cases, gap_middle))
    sheet.add("cost above the best known mapping, p90", high(gaps), "%", goal=f"at most {P90}",
              beside=beside(cases, gap_high))
    sheet.add("cost above the best known mapping, maximum", max(gaps), "%")
    sheet.add("cost reduction compared with block, median", middle(gains), "%", goal=f"at least {GAIN:.0f}",
              beside=beside(cases, lambda m, some: f"{middle([case.gain(m, 'block') for case in some]):.1f}"))
    sheet.add("cost reduction compared with cyclic, median", middle([case.gain("ours", "cyclic") for case in done]),
              "%")
    for method in PEERS:
        both = [case for case in done if case.cost[method] is not None]
        sheet.add(f"mappings that cost more than {PEERS[method]}",
                  sum(case.cost["ours"] > case.cost[method] * (1 + ROUNDING) for case in both), f"of {len(both)}",
                  beside=f"at most {max((case.gain(method, 'ours') for case in both), default=0):.1f} %")
    sheet.add("problems whose best known mapping this run improved",
              sum(case.record is not None and case.best < case.record for case in cases), f"of {len(cases)}",
              beside=f"{sum(case.record is None for case in cases)} without a record: make bench-map-best")
    sheet.add("CPU time of all mappings", math.fsum(case.seconds for case in done), "s")


def beside(cases, tell_of):
    return "; ".join(f"{tell_of(m, [case for case in cases if case.cost.get(m) is not None])} {name}"
                     for m, name in PEERS.items())


def worse_than_dealt(method, cases):
    return sum(case.cost[method] > min(case.cost["block"], case.cost["cyclic"]) * (1 + ROUNDING) for case in cases)


def gap_middle(method, cases):
    return f"{middle([case.gap(method) for case in cases]):.1f}"


def gap_high(method, cases):
    return f"{high([case.gap(method) for case in cases]):.1f}"


def run(sheet, args):
    """1, if what is guaranteed does not hold."""
    cases = measure_all(sheet, args)
    tell(sheet, cases)
    methods_table(sheet, cases)
    families_table(sheet, cases)
    if args.all:
        problems_table(sheet, cases)
    if args.svg:
        done = [case for case in cases if "ours" in case.cost]
        map_draw.gains(args.svg, [case for case in done if case.problem.pattern in STENCILS
                                  and case.problem.arch == "fattree"], done)
        sheet.add_table(f"![Share of the problems that gain at least so much]({args.svg})\n")
    return int(any(case.broken for case in cases))
