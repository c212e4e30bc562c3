# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The time that SimGrid tells of one exchange, on the paper's fat tree, by the mapping: what the cost is worth as a
yardstick."""
import math
import multiprocessing
import random
import statistics
import sys
from dataclasses import astuple

import map_judge as judge
import sheet as sheets
from map_problems import Problem, chosen
from map_run import PEERS, bed, timed
from rig.paths import BUILD

# Bytes a second and seconds of what is above each, per direction. A core's share of its cache, a NUMA node's ring stop,
# QPI: two Intel Xeon E5-2680 v3; InfiniBand QDR, and the 12 cables of it from a leaf switch upwards.
LINKS = {"core": (8e9, 5e-8), "numa": (3e10, 5e-8), "package": (1.92e10, 1e-7), "node": (4e9, 7e-7),
         "leaf": (12 * 4e9, 2e-7)}
NUMA_CORES, PACKAGE_CORES = 6, 12
# Flows share links max-min fairly and have no windows: an InfiniBand network is no TCP.
CONFIG = ("--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0",
          "--log=root.thres:error")
LIMIT = 600


def climbs(machine):
    """(kind, element, what is above it) of all that a job's ranks can use."""
    for host in machine.hosts:
        leaf = f"leaf{machine.paths[host][0]}"
        yield "node", host, leaf
        for package in range(2):
            yield "package", f"{host}p{package}", host
        for core in machine.leaves[host]:
            yield "core", core_name(host, core), f"{host}m{core // NUMA_CORES}"
        for numa in range(24 // NUMA_CORES):
            yield "numa", f"{host}m{numa}", f"{host}p{numa * NUMA_CORES // PACKAGE_CORES}"
    for leaf in sorted({machine.paths[host][0] for host in machine.hosts}):
        yield "leaf", f"leaf{leaf}", "spine"


def core_name(host, core):
    return f"{host}c{core}"


def platform(machine):
    """All of it as SimGrid reads it: cores are hosts, what is above them routers."""
    elements, links, routes = ['<router id="spine"/>'], [], []
    for kind, name, above in climbs(machine):
        rate, delay = LINKS[kind]
        elements.append(f'<host id="{name}" speed="1Gf"/>' if kind == "core" else f'<router id="{name}"/>')
        links.append(f'<link id="{name}-up" bandwidth="{rate:.0f}Bps" latency="{delay:.2e}s" '
                     'sharing_policy="SPLITDUPLEX"/>')
        routes += [f'<route src="{a}" dst="{b}" symmetrical="NO"><link_ctn id="{name}-up" direction="{way}"/></route>'
                   for a, b, way in ((name, above, "UP"), (above, name, "DOWN"))]
    return ("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            '<platform version="4.1"><zone id="all" routing="DijkstraCache">\n' + "\n".join(elements + links + routes)
            + "\n</zone></platform>\n")


def job(problem, seats):
    places = "".join(f"{core_name(*seat)}\n" for seat in seats)
    return f"{problem.ranks} {len(problem.pairs)}\n{places}" + "".join(f"{a} {b} {w}\n" for a, b, w in problem.pairs)


def simulated(laid, seats):
    """Seconds."""
    where, what = laid.folder / "platform.xml", laid.folder / "job"
    if not where.exists():
        where.write_text(platform(laid.machine))
    what.write_text(job(laid.problem, seats))
    done, _ = timed([BUILD / "bench" / "map_sim", where, what, *CONFIG], LIMIT)
    if done.returncode:
        raise judge.Broken(f"{laid.problem.name}: map_sim: {done.stderr.strip()}")
    return float(done.stdout)


def measure(task):
    """{method: (cost, seconds)}"""
    which, lots = task
    with bed(Problem(*which)) as laid:
        ranks = laid.problem.ranks
        seats = {"block": judge.block(laid.machine, ranks), "cyclic": judge.cyclic(laid.machine, ranks),
                 "ours": laid.ours().seats}
        seats |= {peer: laid.peer(peer).seats for peer in PEERS}
        seats |= {f"lot {i}": judge.by_lot(laid.machine, ranks, random.Random(i)) for i in range(lots)}
        return which, {method: (laid.cost(some), simulated(laid, some)) for method, some in seats.items() if some}


# --- telling

def pearson(points):
    return (statistics.correlation(*zip(*points)) if len({x for x, _ in points}) > 1
            and len({y for _, y in points}) > 1 else 1.0)


def spearman(points):
    return pearson(list(zip(*(ranking(values) for values in zip(*points)))))


def ranking(values):
    """Places in order, equal ones the mean of theirs."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def relative(found):
    """Cost and time as shares of those of block."""
    cost, seconds = found["block"]
    return [(c / cost, s / seconds) for c, s in found.values()]


def gain(found, method):
    return 100 * (1 - found[method][1] / found["block"][1])


HEAD = ("Problem | Block | Cyclic | Scotch as netloc calls it | TreeMatch | Topiary | Gain in time over block | "
        "in cost | Pearson | Spearman")


def row(problem, found):
    cost, seconds = found["block"]
    times = [f"{1000 * found[m][1]:.3f} ms" if m in found else "-" for m in ("block", "cyclic", *PEERS, "ours")]
    points = list(found.values())
    return (problem.name, *times, f"{100 * (1 - found['ours'][1] / seconds):.1f} %",
            f"{100 * (1 - found['ours'][0] / cost):.1f} %", f"{pearson(points):.3f}", f"{spearman(points):.3f}")


def is_here():
    found = (BUILD / "bench" / "map_sim").exists()
    if not found:
        print("map.py sim: SimGrid is not here: apt-get install libsimgrid-dev, and again", file=sys.stderr)
    return found


def run(sheet, args):
    if not is_here():
        return 1
    some = [p for p in chosen(args) if p.arch == "fattree"]
    tasks = sorted(((astuple(p), args.lots) for p in some), key=lambda task: -task[0][2])
    with multiprocessing.Pool(args.jobs) as pool:
        found = dict(pool.imap_unordered(measure, tasks))
    every = [found[astuple(p)] for p in some]
    gains = [gain(one, "ours") for one in every]
    sheet.add("problems on the paper's fat tree", len(every), f"of at most {args.most} ranks")
    for what, of in (("median", statistics.median), ("minimum", min)):
        peers = "; ".join(f"{of(gain(one, peer) for one in every if peer in one):.1f} {name}"
                          for peer, name in PEERS.items())
        sheet.add(f"reduction of simulated communication time compared with block, {what}", of(gains), "%",
                  beside=peers)
    sheet.add("problems simulated slower than block", sum(g < -0.01 for g in gains), f"of {len(gains)}")
    points = [point for one in every for point in relative(one)]
    mappings = f"of {len(points)} mappings, both as shares of block's"
    sheet.add("correlation of cost and simulated time: Pearson", pearson(points), mappings)
    sheet.add("correlation of cost and simulated time: Spearman", spearman(points), mappings)
    for name, kind in (("Pearson", pearson), ("Spearman", spearman)):
        alone = statistics.median(kind(list(one.values())) for one in every)
        sheet.add(f"correlation of cost and simulated time, problem by problem: {name}, median", alone, "")
    mean = math.exp(statistics.fmean(math.log(1 - g / 100) for g in gains))
    sheet.add("simulated communication time, geometric mean", mean, "times block's")
    sheet.add_table(sheets.lines(HEAD, "---" + "|---:" * 9, (row(p, one) for p, one in zip(some, every))))
    return 0
