# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""From exec to a topology: by every way, in one run, each beside an empty process of the same round."""
import collections
import statistics
import subprocess
import tempfile
from pathlib import Path

import sheet as sheets
from rig.paths import BUILD
from topology_machines import MACHINES, TELL, snapshot

TOPOLOGY_START = BUILD / "bench" / "topology_start"
PLAIN, OURS = BUILD / "bench" / "topology_probe", BUILD / "bench" / "topology_probe_ours"
SHARES = {"whole": 1, "quarter": 4}
Way = collections.namedtuple("Way", "name env command")
# What is told of a way, beside which, and the most that it may take.
GOALS = {"libtopiary": ("linked", 1.1), "environment": ("empty", 2.0)}
WORDS = {"empty": "an empty process", "linked": "an empty process that is linked with libtopiary",
         "native": "native discovery, of the snapshot", "xml": "XML of the node, unmodified hwloc",
         "shmem": "hwloc's shmem of the node, unmodified hwloc", "environment": "HWLOC_XMLFILE of the step",
         "libtopiary": "libtopiary"}


def cores(xml):
    told = subprocess.run(["hwloc-calc", "-i", xml, "-N", "core", "machine:0"], capture_output=True,
                          text=True, check=True)
    return int(told.stdout)


def ways(folder, name):
    """The machine's, of a step with all of its cores and of one with a quarter."""
    root, xml = snapshot(folder, name)
    yield Way("empty", [], [PLAIN, "empty"])
    # As lstopo does for a snapshot: this machine's own CPUs are not asked.
    yield Way("native", [f"HWLOC_FSROOT={root}", "HWLOC_COMPONENTS=linux,stop"], [PLAIN, "load"])
    yield Way("xml", [f"HWLOC_XMLFILE={xml}", "HWLOC_THISSYSTEM=1"], [PLAIN, "load"])
    for share, part in SHARES.items():
        step = Path(folder) / f"{name}.{share}"
        step.mkdir()
        made = subprocess.run([BUILD / "bench" / "topology_make", xml, f"0-{cores(xml) // part - 1}", step],
                              capture_output=True, text=True, check=True)
        env = [f"HWLOC_XMLFILE={step}/topology.xml", "HWLOC_THISSYSTEM=1", "HWLOC_LIBXML_IMPORT=0",
               "HWLOC_PLUGINS_PATH="]
        if share == "whole":
            yield Way("shmem", [], [PLAIN, "adopt", step / "whole.shm", *made.stdout.split()])
            yield Way("linked", env, [OURS, "empty"])
        yield Way(f"environment/{share}", env, [PLAIN, "load"])
        yield Way(f"libtopiary/{share}", env, [OURS, "ours"])


def measure(all_ways, processes, rounds):
    """{way: (microseconds, of the processors' time) of each round}"""
    lines = "".join(" ".join(map(str, [w.name, *w.env, "--", *w.command])) + "\n" for w in all_ways)
    told = subprocess.run([TOPOLOGY_START, str(processes), str(rounds)], input=lines, capture_output=True, text=True,
                          check=False)
    if told.returncode:
        raise SystemExit(f"topology.py: {told.stderr.strip().rsplit(chr(10), 1)[-1]}")
    times = collections.defaultdict(list)
    for line in told.stdout.split("\n")[:-1]:
        name, wall, cpu = line.split()
        times[name].append((float(wall), float(cpu)))
    return times


WALL, CPU = 0, 1


def ratio(times, name, beside, which=WALL):
    """The median of the rounds' own: what else the machine does in a round, both have."""
    return statistics.median(a[which] / b[which] for a, b in zip(times[name], times[beside]))


def tell(sheet, machine, processes, times):
    rows = []
    for name in sorted(times, key=lambda name: (list(WORDS).index(name.partition("/")[0]), name.endswith("quarter"))):
        way, _, share = name.partition("/")
        beside, goal = GOALS.get(way, ("empty", None))
        times_as_long = ratio(times, name, beside)
        if goal:
            by = "HWLOC_XMLFILE" if way == "environment" else way
            sheet.add(f"start-up with topology, {machine}, {processes} processes: by {by}, {share} node", times_as_long,
                      "times an empty process", f"at most {goal}",
                      beside=f"{ratio(times, name, beside, CPU):.2f} times its CPU time")
        rows.append((WORDS[way] + (f", {share} node" if share else ""),
                     f"{statistics.median(wall for wall, _ in times[name]) / 1000:.2f}",
                     f"{ratio(times, name, 'empty'):.2f}", f"{ratio(times, name, 'empty', CPU):.2f}"))
    count = f"{processes} process" + ("es at once" if processes > 1 else "")
    sheet.add_table(f"{machine} ({TELL[machine]}), {count}:\n\n"
                    + sheets.lines("From exec to a topology, by | ms | times an empty process | times its CPU time",
                                   "---|---:|---:|---:", rows))


def run(sheet, args):
    with tempfile.TemporaryDirectory(prefix="topiary_bench_", dir="/tmp") as folder:
        for machine in args.machines:
            all_ways = list(ways(folder, machine))
            for processes in args.processes:
                tell(sheet, machine, processes, measure(all_ways, processes, max(args.least, args.rounds // processes)))


def options(parser):
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES), help="which")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 64], help="so many at once")
    parser.add_argument("--rounds", type=int, default=600, help="divided by the processes")
    parser.add_argument("--least", type=int, default=15, help="but so many rounds at least")
