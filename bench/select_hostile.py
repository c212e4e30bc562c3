# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What hostile requests cost, submitted and decided: a table of them, each by Topiary and by Slurm's own plugin."""
import random
import statistics
import time

import sheet as sheets
from select_time import CORES, MODES, controller, percentile

REQUESTS = 500
GOAL = 2.0
WORDS = ("", "topo-fit=prefer", "topo-fit=prefer topo-level=l3", "topo-fit=require topo-level=l3",
         "topo-fit=require topo-level=numa", "topo-fit=require topo-level=package", "topo-fit=spread",
         "topo-fit=spread topo-level=package", "topo-request=/core=1", "topo-request=/l3=2/core=1",
         "topo-request=/package=2/l3=1/core=4", "topo-request=/package=1/core=64")
OTHER = ("", "", "", "", "", "--contiguous", "--overcommit", "--exclusive", "--mem=0", "--spread-job", "-w n1",
         "-x n[1-9]", "--mincpus=17", "--ntasks-per-node=1", "--ntasks-per-core=1", "--switches=1")


def options(nodes, seed):
    """So many command lines and comments, the same for a seed: numbers at the edges of what there is, and beyond."""
    chance = random.Random(seed)
    for i in range(REQUESTS):
        least = chance.choice((1, 1, 1, 2, nodes // 2, nodes - 1, nodes))
        most = chance.choice((least, nodes, nodes, 500000))
        tasks = chance.choice((1, 7, nodes + 1, 40 * nodes + 1, 40 * nodes + 1, CORES * nodes - 1, CORES * nodes,
                               2 ** 31 - 1))
        cpus = chance.choice((1, 1, 1, 2, 3, 17, 64, 65533))
        yield (f"-N{least}-{max(least, most)}", f"-n{max(tasks, least)}", f"-c{cpus}",
               *chance.choice(OTHER).split()), WORDS[i % len(WORDS)]


class Cost:
    """Of one request in one mode, or of its submission: medians of processor time, in ms."""

    def __init__(self, request, comment, mode, answers):
        self.request, self.mode = " ".join((*request, f'--comment="{comment}"')), MODES.get(mode, mode)
        self.now = answers[0].now_ours, answers[0].now_stock
        self.ours = statistics.median(a.cpu_ours for a in answers) / 1e6
        self.stock = statistics.median(a.cpu_stock for a in answers) / 1e6
        self.ratio = self.ours / self.stock


def submit(c, name, *words):
    return not c.command(["sbatch", "-H", "-J", f"ask-{name}", "-t", "60", "-o", "/dev/null", *words, "--wrap=true"],
                         check=False).returncode


def measure(nodes, args, tell):
    """What Slurm refuses whatever the comment says is nobody's cost; what only the comment makes impossible is still a
    submission."""
    asked = list(options(nodes, args.seed))[:args.requests]
    with controller(nodes) as c:
        c.submit_all()
        known = [i for i, (request, _) in enumerate(asked) if submit(c, f"p{i}", *request)]
        taken = [i for i in known if submit(c, f"h{i}", *asked[i][0], f"--comment={asked[i][1]}")]
        c.order(f"begin {args.seed}")
        time.sleep(2)       # the plugin has read its snapshot
        c.order(f"fill {args.load} ours")
        tell(f"{nodes} nodes: {len(known)} of {len(asked)} hostile requests are possible, "
             f"{len(taken)} with their comment; {args.load} % of the cores are held")
        submitted = [Cost(*asked[i], "submission", list(c.submitted(f"p{i}", args.count, asked[i][1]))) for i in known]
        return submitted, [Cost(*asked[i], mode, list(c.timed(mode, f"h{i}", args.count, 0))) for i in taken
                           for mode in args.modes]


HEAD = ("Nodes | What | Times | Slurm p50 | Slurm's longest | Topiary p50 | Topiary p99 | Topiary's longest | "
        "Ratio p50 | Ratio p99 | Highest ratio")


def report(sheet, nodes, what, costs, args):
    """The goal is a ratio to Slurm's time for the same request, or to its median one where that is longer. A row, of
    the plain ratios."""
    usual, ours = statistics.median(c.stock for c in costs), [c.ours for c in costs]
    ratio = {c: c.ours / max(c.stock, usual) for c in costs}
    worst = sorted(costs, key=ratio.get, reverse=True)
    sheet.add(f"{nodes} nodes: a {what} of a hostile request, the highest ratio", ratio[worst[0]], "times Slurm's",
              goal=f"at most {GOAL:.2f}",
              beside=f"of the same, or of its median one ({sheets.shown(usual)} ms) where that is longer; "
              f"{worst[0].mode}, "
                     f"{sheets.shown(worst[0].ours)} ms: {worst[0].request}")
    sheet.add(f"{nodes} nodes: {what}s of hostile requests above {GOAL:.2f} times Slurm's",
              sum(r > GOAL for r in ratio.values()), f"of {len(costs)}", goal="0",
              beside=f"{sum(ratio[c] > GOAL and c.now == (0, 1) for c in costs)} of them of what Slurm would start at "
              "once, and what "
                     "is required is not free")
    for c in worst[:args.tell] if not sheet.quiet else ():
        print(f"  {ratio[c]:.2f}: {c.mode} {sheets.shown(c.ours)} ms, Slurm {sheets.shown(c.stock)} ms: {c.request}")
    return (str(nodes), what, str(len(costs)), *(f"{sheets.shown(t)} ms" for t in (
        usual, max(c.stock for c in costs), percentile(ours, 0.5), percentile(ours, 0.99), max(ours))),
        *(f"{percentile([c.ours / c.stock for c in costs], share):.2f}" for share in (0.5, 0.99, 1)))


def run(sheet, args):
    rows = []
    for nodes in args.nodes:
        submitted, decided = measure(nodes, args, lambda line: sheet.quiet or print(line, flush=True))
        rows += [report(sheet, nodes, "submission", submitted, args), report(sheet, nodes, "decision", decided, args)]
    text = sheets.lines(HEAD, "---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:", rows)
    sheet.add_table(text)
    if not sheet.quiet:
        print(text)
