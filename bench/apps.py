#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The run time of unmodified MPI programs, placed by round robin, by block, by Scotch as netloc calls it, and by
Topiary, on simulated machines (SimGrid's SMPI).

A program really runs, each rank with its own memory, and its messages take the time that the simulated network gives
them. Computation takes 1 ns for each basic block that a rank executes (apps_count.c), and is never measured: a figure
is the same, bit for bit, on every machine with the same compiler. What a communication matrix has is recorded in a run
of the same program by SimGrid's tracer, the messages inside collectives among it, as Open MPI's monitoring does.
"""
import collections
import hashlib
import itertools
import multiprocessing
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from common import Part, git_at, main
import map_judge as judge
from apps_programs import SOURCES, programs
from map import Bed
from map_problems import ALLOCATIONS, ARCHS, Arch, allocate, fabric_text
from rig.paths import CACHE

HERE = Path(__file__).resolve().parent
APPS, LIMIT = CACHE / "apps", 600
FLAGS = "-O1 -fsanitize-coverage=trace-pc"
WAYS = ("round robin", "block", "scotch", "ours")
ALIKE = 1e-4        # what the simulator's own precision is worth in a run of some 100 us


# --- machines: those that `topiary map` reads, and how fast their links are

@dataclass(frozen=True)
class Fabric:
    """links: (bytes a second, seconds) of one link of each level, outermost first, those within a node last. rails: the
    adapters of a node; a message comes in by that of its receiver."""
    arch: Arch
    links: tuple
    rails: int = 1


# Each way of a link; latencies are such that a message of 8 bytes takes 0.3 us within a NUMA node and 1.7 us through a
# switch, with InfiniBand QDR, HDR, Slingshot and NDR. A leaf switch of the first has 12 cables upwards (the paper's),
# of the second 8; a group of the dragonfly has 4 to each other group.
FABRICS = {
    "fat tree": Fabric(ARCHS["fattree"], ((12 * 4e9, 2e-7), (4e9, 5e-7), (1.92e10, 1e-7), (3e10, 5e-8), (8e9, 1.5e-7))),
    "EPYC": Fabric(ARCHS["epyc"], ((8 * 2.5e10, 2e-7), (2.5e10, 5e-7), (6e10, 1e-7), (4e10, 5e-8), (1.2e10, 1.5e-7))),
    "dragonfly": Fabric(Arch((("alltoall", (8,), 400), ("alltoall", (8,), 200), ("tree", (8,), 100)),
                             ((4, 12), (2, 8), (8, 2)), 8),
                        ((4 * 2.5e10, 5e-7), (2.5e10, 2e-7), (2.5e10, 5e-7), (6e10, 1e-7), (4e10, 5e-8),
                         (1.2e10, 1.5e-7))),
    "rails": Fabric(Arch((("tree", (4,), 200), ("tree", (16,), 100)), ((8, 10),), 2),
                    ((16 * 5e10, 3e-7), (5e10, 8e-7), (4e11, 5e-7)), 8),
}


class Ways:
    """The links between any two places of a job, from the text that `topiary map` reads."""

    def __init__(self, text, fabric):
        self.machine, self.fabric, self.links = judge.Machine(text), fabric, {}

    def link(self, level, name, way):
        self.links[name] = self.fabric.links[level]
        return name, way

    def inside(self, place, other, way):
        """The links of a node between a place and what it shares with another place, or the node's edge."""
        host, leaf = place
        sizes, below, found = self.fabric.arch.node, self.fabric.arch.cores, []
        for level, (size, _) in enumerate(sizes, len(self.machine.levels)):
            below //= size
            if other[0] != host or leaf // below != other[1] // below:
                found.append(self.link(level, f"{host}.{level}.{leaf // below}", way))
        return found[::-1]

    def outside(self, a, b, rail):
        """From the edge of a node to that of another: up to the level at which they differ, across it, and down."""
        up, down = self.machine.paths[a], self.machine.paths[b]
        first = next(level for level, (x, y) in enumerate(zip(up, down)) if x != y)

        def climb(path, way):
            return [self.link(level, f"{rail}.{level}.{path[:level + 1]}".replace(" ", ""), way)
                    for level in range(first + (self.machine.levels[first][0] == "alltoall"), len(path))]
        across = []
        if self.machine.levels[first][0] == "alltoall":
            pair = sorted((up[first], down[first]))
            across = [self.link(first, f"{rail}.{first}.{up[:first]}{pair}".replace(" ", ""),
                                "UP" if up[first] == pair[0] else "DOWN")]
        return climb(up, "UP")[::-1] + across + climb(down, "DOWN")

    def between(self, a, b):
        middle = self.outside(a[0], b[0], b[1] % self.fabric.rails) if a[0] != b[0] else []
        return self.inside(a, b, "UP") + middle + self.inside(b, a, "DOWN")[::-1]

    def platform(self, seats):
        """As SimGrid reads it, with the places that have a rank."""
        names = [f"{host}c{leaf}" for host, leaf in seats]
        routes = [f'<route src="{x}" dst="{y}" symmetrical="NO">' + "".join(
            f'<link_ctn id="{name}" direction="{way}"/>' for name, way in self.between(a, b)) + "</route>"
            for x, a in zip(names, seats) for y, b in zip(names, seats) if a != b]
        links = [f'<link id="{name}" bandwidth="{rate:.0f}Bps" latency="{delay:.3e}s" sharing_policy="SPLITDUPLEX"/>'
                 for name, (rate, delay) in self.links.items()]
        hosts = [f'<host id="{name}" speed="1Gf"/>' for name in names]
        return names, ("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                       '<platform version="4.1"><zone id="all" routing="Full">\n' + "\n".join(hosts + links + routes)
                       + "\n</zone></platform>\n")


# --- programs: fetched and built once

def sh(script, folder, **more):
    return subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, text=True, check=False,
                          env=os.environ | more)


def built(name):
    """The folder of a source with its programs, or None, with a line that says why."""
    source, word = SOURCES[name], hash_of(SOURCES[name])
    folder = APPS / f"{name}-{source.commit[:12]}"
    if not folder.exists():
        try:
            git_at(folder, source.repository, source.commit, "checkout", "-q", "FETCH_HEAD")
        except RuntimeError as e:
            shutil.rmtree(folder)
            return skipped(name, "cannot be fetched", str(e))
    if not (folder / word).exists():
        counter = folder / "apps_count.o"
        compilers = {v: f"{smpi} {counter}" for v, smpi in
                     (("CC", "smpicc"), ("CXX", "smpicxx"), ("F77", "smpiff"))}
        done = sh(f"gcc -O2 -fPIC -c -o {counter} {HERE / 'apps_count.c'}\ncd {source.inside}\n{source.build}", folder,
                  FLAGS=FLAGS, **compilers)
        if done.returncode:
            return skipped(name, "cannot be built", done.stderr)
        (folder / word).touch()
    return folder


def hash_of(source):
    text = source.build + FLAGS + (HERE / "apps_count.c").read_text()
    return f"built-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def skipped(name, why, said):
    print(f"apps.py: {name} is left out: {SOURCES[name].repository} {why}: {' '.join(said.split()[-20:])}",
          file=sys.stderr)


# --- runs

# SMPI's default algorithms of collectives, but recursive doubling for MPI_Allreduce. Factors of 1: its defaults
# are those of an Ethernet cluster.
CONFIG = shlex.split("--cfg=smpi/simulate-computation:no --cfg=smpi/host-speed:1Gf --cfg=smpi/display-timing:yes "
                     "--cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 --cfg=network/crosstraffic:0 "
                     "--cfg=smpi/allreduce:rdb --cfg=smpi/test:1e-7 --cfg=smpi/iprobe:1e-7 "
                     "--log=root.thres:critical --log=smpi_utils.thres:info --log=smpi_pmpi.thres:warning")
TRACE = ("-trace", "-trace-file", "trace", "--cfg=tracing/smpi/internals:yes", "--cfg=tracing/smpi/display-sizes:yes")


def simulated(program, ways, seats, *more):
    """Seconds of the program's run with its ranks in these places, in a folder of its own."""
    names, text = ways.platform(seats)
    with tempfile.TemporaryDirectory(prefix="apps") as folder:
        files = {"platform.xml": text, "hosts": "\n".join(names) + "\n", **program.files}
        for name, content in files.items():
            Path(folder, name).write_text(content)
        done = subprocess.run(["smpirun", "-np", str(program.ranks), "-platform", "platform.xml", "-hostfile", "hosts",
                               *CONFIG, *more, APPS / program.path, *program.words], cwd=folder, capture_output=True,
                              text=True, errors="replace", timeout=LIMIT, check=False)
        found = re.search(r"Simulated time: ([\d.e-]+) seconds", done.stderr + done.stdout)
        if not found or not float(found[1]) or done.returncode or "MPI_Abort was called" in done.stderr + done.stdout:
            raise judge.Broken(f"{program.name}: {done.stdout[-300:]} {done.stderr[-300:]}")
        return float(found[1]), Path(folder, "trace").read_text() if more else None


def recorded(program):
    """((from, to, bytes, messages), ...) of a run."""
    ways = Ways(fabric_text(ARCHS["fattree"], dict.fromkeys(range(88), range(24))), FABRICS["fat tree"])
    _, trace = simulated(program, ways, judge.block(ways.machine, program.ranks), *TRACE)
    # Each start of a message: its key begins with sender and receiver, from 1, and the tag, negative in collectives.
    sent = [(*map(int, words[6].split("_")[:3]), int(words[7])) for words in map(str.split, trace.splitlines())
            if words[0] == "15"]
    if b"MPI_Sendrecv" in (APPS / program.path).read_bytes():   # SimGrid 3.32 traces it twice, first to the rank before
        sent = [one for one, after in itertools.pairwise([*sent, None])
                if one[2] < 0 or after != (one[0], one[1] + 1, *one[2:])]
    sizes, counts = collections.Counter(), collections.Counter()
    for sender, receiver, _, size in sent:
        if sender != receiver:
            sizes[sender - 1, receiver - 1] += size
            counts[sender - 1, receiver - 1] += 1
    return tuple((*pair, size, counts[pair]) for pair, size in sorted(sizes.items()))


@dataclass(frozen=True)
class Job:
    """A program on an allocation of a machine: what Bed and the mappers need of a problem."""
    program: object
    machine: str
    how: str
    sent: tuple

    @property
    def name(self):
        return f"{self.program.name} on {self.machine}, {self.how}"

    @property
    def ranks(self):
        return self.program.ranks

    @cached_property
    def pairs(self):
        """((a, b, bytes both ways), ...), each pair once."""
        sizes = collections.Counter()
        for sender, receiver, size, _ in self.sent:
            sizes[max(sender, receiver), min(sender, receiver)] += size
        return tuple((*pair, size) for pair, size in sorted(sizes.items()))

    @cached_property
    def fabric(self):
        arch = FABRICS[self.machine].arch
        return fabric_text(arch, allocate(arch, self.ranks, self.how, random.Random(self.name), 0))

    def write(self, folder):
        (folder / "fabric").write_text(self.fabric)
        (folder / "matrix").write_text(f"%%MatrixMarket matrix coordinate integer general\n{self.ranks} {self.ranks} "
                                       f"{len(self.pairs)}\n" + "".join(
                                           f"{a + 1} {b + 1} {size}\n" for a, b, size in self.pairs))
        (folder / "counted").write_text("".join(f"E {a} {b} {size} bytes {count} msgs sent\n"
                                                for a, b, size, count in self.sent)
                                        + f"D MPI_COMM_WORLD procs: {','.join(map(str, range(self.ranks)))}\n")


def measure(job):
    """{way: seconds}; of a way that gave no mapping, none."""
    with tempfile.TemporaryDirectory(prefix="apps") as folder:
        bed, ways = Bed(job, Path(folder)), Ways(job.fabric, FABRICS[job.machine])
        seats = {"round robin": judge.cyclic(ways.machine, job.ranks), "block": judge.block(ways.machine, job.ranks),
                 "scotch": bed.peer("scotch").seats, "ours": bed.ours(explain=False, matrix="counted").seats}
        runs = {}
        for some in filter(None, seats.values()):
            if len(set(some)) == len(some) and tuple(some) not in runs:
                runs[tuple(some)] = simulated(job.program, ways, some)[0]
        return {way: runs[tuple(some)] for way, some in seats.items() if some and tuple(some) in runs}


# --- what was found

def gain(seconds, way, over):
    """Percent of the better of the run times `over` that are saved."""
    best = min(seconds[one] for one in over)
    return 100 * (1 - seconds[way] / best)


def summary(found, way, over):
    """Sets, percent of them that are no worse, median gain, greatest loss."""
    gains = [gain(seconds, way, over) for seconds in found if way in seconds]
    if not gains:
        return [0, None, None, None]
    return [len(gains), 100 * sum(g >= -100 * ALIKE for g in gains) / len(gains), statistics.median(gains),
            max(0.0, -min(gains))]


def tried(task):
    """A step of a set and its result: None where a program fails, which is said."""
    step, what = task
    try:
        return what, step(what)
    except (judge.Broken, subprocess.TimeoutExpired) as e:
        print(f"apps.py: {what.name} is left out: {e}", file=sys.stderr)
        return what, None


BEST, RR = ("round robin", "block"), ("round robin",)


def run(sheet, args):
    if not shutil.which("smpirun"):
        print("apps.py: not measured: SimGrid is missing (apt-get install libsimgrid-dev gfortran)", file=sys.stderr)
        return
    sources = {name: built(name) for name in SOURCES}
    some = [p for p in programs() if sources[p.source] and args.only in p.name]
    sets = [(program, machine, ALLOCATIONS[(i + j) % len(ALLOCATIONS)])
            for i, program in enumerate(some) for j, machine in enumerate(FABRICS)]
    if args.sample:     # a larger sample has the smaller ones in it
        sets = random.Random(args.seed).sample(sets, len(sets))[:args.sample]
    with multiprocessing.Pool(args.jobs) as pool:
        matrices = dict(pool.imap_unordered(tried, {(recorded, program): None for program, *_ in sets}))
        jobs = [Job(*one, matrices[one[0]]) for one in sets if matrices[one[0]]]
        found = dict(pool.imap_unordered(tried, [(measure, job) for job in jobs]))
    found = [(job, found[job]) for job in jobs if found[job]]
    if not found:
        print("apps.py: no program could be run", file=sys.stderr)
        return
    groups = collections.defaultdict(list)
    for job, seconds in found:
        for key in (job.program.kind, job.machine):
            groups[key].append(seconds)
    head = ("Sets of", "number", *(f"{who}: {what}, %" for who in ("ours", "Scotch", "ours over RR")
                                   for what in ("no slower", "median gain", "greatest loss")))
    sheet.table(head, [[key, *summary(some, "ours", BEST), *summary(some, "scotch", BEST)[1:],
                        *summary(some, "ours", RR)[1:]] for key, some in sorted(groups.items())])
    for name, over, goals in (("the better of round robin and block", BEST, ("97.5", "10", "1")),
                              ("round robin", RR, ("", "15", ""))):
        ours, peer = summary([s for _, s in found], "ours", over), summary([s for _, s in found], "scotch", over)
        for i, (what, word) in enumerate((("runs no slower than by", "at least"), ("median gain over", "at least"),
                                          ("greatest loss against", "at most")), 1):
            sheet.add(f"{what} {name}", ours[i], "%", goals[i - 1] and f"{word} {goals[i - 1]}",
                      f"{peer[i]:.2f} Scotch as netloc calls it")
    sheet.add("sets of parameters", len(found), "", "at least 300")
    moved = [seconds for _, seconds in found if "ours" in seconds and seconds["ours"] != seconds["block"]]
    sheet.add("run times that differ from block's", len(moved), f"of {len(found)}")
    sheet.add("of these: median gain over the better of round robin and block", summary(moved, "ours", BEST)[2], "%")
    sheet.table(("Gain in each set, %", "over the better", "over round robin", "Scotch over the better"), sorted(
        [[job.name, *(gain(seconds, way, over) if way in seconds else None
                      for way, over in (("ours", BEST), ("ours", RR), ("scotch", BEST)))] for job, seconds in found],
        key=lambda row: row[1]))
    if args.picture:
        Path(args.picture).write_text(picture([seconds for _, seconds in found]))


# --- the picture: figure 4 of the paper, and ours

PAPER = ((-3.6, 100), (0, 92.5), (10.1, 50), (20, 24.9), (30, 5.7), (33.6, 0))     # what its text says
LINES = (("the paper, over round robin", None, None, "#888"), ("Scotch as netloc calls it, over the better of both",
         "scotch", BEST, "#d80"), ("Topiary, over round robin", "ours", RR, "#07a"),
         ("Topiary, over the better of round robin and block", "ours", BEST, "#a0a"))


def picture(found):
    """Of how many sets the gain is at least x."""
    left, top, wide, high, least, most = 60, 20, 600, 300, -40, 80

    def at(x, y):
        across = (max(least, min(most, x)) - least) / (most - least)
        return f"{left + wide * across:.1f},{top + high * (1 - y / 100):.1f}"
    parts = ["<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 700 460' font-family='sans-serif' font-size='12'>",
             "<rect width='700' height='460' fill='white'/>"]
    for x in range(least, most + 1, 20):
        (px, low), (_, up) = (at(x, y).split(",") for y in (0, 100))
        parts.append(f"<path d='M{px} {low}V{up}' stroke='#ddd'/><text x='{px}' y='{float(low) + 16}' "
                     f"text-anchor='middle'>{x} %</text>")
    for y in range(0, 101, 25):
        px, py = at(least, y).split(",")
        parts.append(f"<path d='M{px} {py}h{wide}' stroke='#ddd'/><text x='{left - 6}' y='{float(py) + 4}' "
                     f"text-anchor='end'>{y} %</text>")
    parts.append(f"<text x='{left + wide / 2}' y='{top + high + 36}' text-anchor='middle'>sets of parameters whose run "
                 "time is shorter by at least so much</text>")
    for i, (name, way, over, colour) in enumerate(LINES):
        points = PAPER
        if way:
            gains = sorted(gain(seconds, way, over) for seconds in found if way in seconds)
            points = [(g, 100 * (len(gains) - at_least) / len(gains)) for at_least, g in enumerate(gains)]
        parts.append(f"<polyline fill='none' stroke='{colour}' stroke-width='2' points='"
                     + " ".join(at(*point) for point in points) + "'/>")
        parts.append(f"<text x='{left + 20}' y='{top + high + 60 + 16 * i}' fill='{colour}'>{name}</text>")
    return "\n".join(parts) + "\n</svg>\n"


PARTS = {"run": Part(run, "programs by each placement on each machine", {
    "sample": (0, "so many sets, by lot; 0: all"), "seed": (1, "of the lot"),
    "only": ("", "programs with this in their names"), "jobs": (os.cpu_count(), "so many at once"),
    "picture": ("", "write the distribution of gains to this file, as SVG")})}

if __name__ == "__main__":
    main(__doc__, PARTS, ("run --picture docs/apps.svg",), root=False)
