#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of traces in BENCHMARKS.md, each one command: size, time of a summary, cost of recording, and of
display."""
import argparse
import json
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("bench", "tests")]

import sheet as sheets  # noqa: E402
from rig.event_to_screen import delays  # noqa: E402
from rig.paths import BUILD, ROOT  # noqa: E402
from rig.terminal import Terminal  # noqa: E402

NODE = "[numa] Package:2 L3:16 Core:4 PU:2"
PUS, COUNTERS = 256, 6
FORMULAS = ("CPI {PU, cycles / instructions}\nL3_MISSES {L3Cache, l3_misses}\nFAR {NUMANode, far_fills / (near_fills + "
            "far_fills)}\n")


def make(path, ticks):
    subprocess.run([BUILD / "tests" / "trace_make", path, NODE, str(ticks)], check=True, stdout=subprocess.DEVNULL)


def size(sheet, args):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        make(path, args.ticks)
        each = path.stat().st_size / (args.ticks * PUS)
    sheet.add("size of a made trace of six counters per PU and tick", round(each, 2), "B", "<= 8",
              {"counters of 8 bytes": COUNTERS * 8 / each})
    recorded_size(sheet)


def recorded_size(sheet):
    """Of tools/lint, which starts hundreds of processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        subprocess.run([BUILD / "topiary", "record", "-r", "20", "-o", path, ROOT / "tools" / "lint"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = json.loads(subprocess.run([BUILD / "topiary", "trace", "summary", path, "--level=PU", "--json"],
                                          check=True, stdout=subprocess.PIPE).stdout)
        head = 40 + int.from_bytes(path.read_bytes()[16:20], "little")
        values = found["ticks"] * len(found["metrics"])
        each = COUNTERS * (path.stat().st_size - head) / values
    sheet.add("size of six values of a recorded trace, without its head", round(each, 2), "B", "<= 8",
              {"counters of 8 bytes": COUNTERS * 8 / each}, f"{found['ticks']} ticks at 20 Hz of tools/lint")


def timed(*command):
    begun = time.perf_counter()
    subprocess.run([BUILD / "topiary", "trace", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def summary(sheet, args):
    with tempfile.TemporaryDirectory() as folder:
        path, formulas = Path(folder) / "trace", Path(folder) / "formulas"
        make(path, args.ticks)
        formulas.write_text(FORMULAS)
        runs = [min(timed("summary", path, *how) for _ in range(args.runs)) for how in ([], ["--formulas", formulas])]
    of = f"summary of {args.ticks} ticks of 256 PUs and six counters"
    sheet.add(f"{of}, by machine", round(runs[0], 2), "s", "<= 5 for 86400")
    sheet.add(f"{of}, with three formulas by PU, L3 and NUMA node", round(runs[1], 2), "s")


def seconds_of(*command):
    begun = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(done.stdout or 0), time.perf_counter() - begun


def cpu_of(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))


def overhead(sheet, args):
    """Each recorder in turn beside the program alone, in pairs of alternating order: the program's own clock; and what
    a start costs."""
    triad = [BUILD / "bench" / "trace_triad", str(args.passes)]
    with tempfile.TemporaryDirectory() as folder:
        for name, goal, *recorder in RECORDERS:
            recorder = [str(word).format(folder=folder) for word in recorder]
            if not shutil.which(recorder[0]):
                print(f"{recorder[0]} is not installed: not measured")
                continue
            pairs = [[seconds_of(*how, *triad)[0]
                      for how in ((recorder, []) if turn % 2 else ([], recorder))][::-1 if turn % 2 else 1]
                     for turn in range(args.pairs)]
            ratios = [theirs / alone for alone, theirs in pairs]
            low, _, high = statistics.quantiles(ratios, n=4)
            start = statistics.median(seconds_of(*recorder, "true")[1] - seconds_of("true")[1]
                                      for _ in range(args.pairs))
            sheet.add(f"run time of a program that waits for memory, with {name}, relative to without",
                      round(statistics.median(ratios), 4), "times", goal,
                      beside=f"quartiles of {args.pairs} pairs {low:.3f}, {high:.3f}")
            share = statistics.median((cpu_of(*recorder, "sleep", "5") - cpu_of(*recorder, "true")) / 5
                                      for _ in range(3))
            sheet.add(f"CPU time of {name} beside a program that sleeps", round(100 * share, 3), "% of one PU")
            sheet.add(f"start of a program, with {name}, beyond without", round(1e3 * start, 1), "ms")


# On a line of its input: 50,000 page faults, and 300 times to sleep.
BUSY = """import mmap, time
print("ready", flush=True)
input()
pages = mmap.mmap(-1, 4096 * 50000)
pages.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(50000):
    pages[4096 * i] = 1
for _ in range(300):
    time.sleep(1e-3)
print("done", flush=True)
input()
"""


def totals(sheet, _):
    """What perf stat and topiary record count of one process at the same time."""
    if not shutil.which("perf"):
        print("perf is not installed: not measured")
        return
    names = {"task-clock": "busy", "minor-faults": "minor_faults", "context-switches": "context_switches"}
    with tempfile.TemporaryDirectory() as folder, \
            subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True) as process:
        process.stdout.readline()
        recorders = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in (
            ["perf", "stat", "-x,", "-o", f"{folder}/perf", "-e", ",".join(names), "-p", str(process.pid)],
            [BUILD / "topiary", "record", "-r", "10", "-o", f"{folder}/trace", "-p", str(process.pid)])]
        time.sleep(1)
        print("go", file=process.stdin, flush=True)
        process.stdout.readline()
        time.sleep(0.3)
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
        process.kill()
        rows = [line.split(",") for line in Path(folder, "perf").read_text().splitlines() if "," in line]
        perf = {names[row[2].partition(":")[0]]: float(row[0]) for row in rows if not row[0].startswith("<")}
        done = subprocess.run([BUILD / "topiary", "trace", "summary", f"{folder}/trace", "--json"], check=True,
                              stdout=subprocess.PIPE)
    ours = {m["metric"]: m["total"] for m in json.loads(done.stdout)["metrics"]}
    perf["busy"] *= 1e6     # milliseconds
    for name in names.values():
        sheet.add(f"{name} of a process by topiary record, relative to perf stat of the same time",
                  f"{100 * (ours[name] / perf[name] - 1):+.4f}", "%", "<= 0.1",
                  beside=f"{ours[name]:,} and {perf[name]:,.0f}")


def display(sheet, args):
    """The end of a trace as it is recorded: from an event to the screen, and what the screen costs; and a trace as a
    page."""
    for hz in (1, 10):
        times = delays(hz, args.events)
        sheet.add(f"from an event to the screen of `topiary top` at {hz} Hz, p95",
                  round(times[int(0.95 * (args.events - 1))], 2), "s", f"<= {1 / hz + 0.5:.1f}: the period and 0.5 s",
                  beside=f"of {args.events}, median {statistics.median(times):.2f}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    screen = Terminal(BUILD / "topiary", "top", "--hz=10", "sleep", "10")
    screen.end()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    sheet.add("CPU time of `topiary top` at 10 Hz, recorder and screen, beside a program that sleeps",
              round(10 * spent, 2), "% of one PU")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        make(path, args.ticks)
        seconds = min(timed("html", path) for _ in range(args.runs))
        page = subprocess.run([BUILD / "topiary", "trace", "html", path], check=True, stdout=subprocess.PIPE).stdout
    of = f"{args.ticks} ticks of 256 PUs and six counters"
    sheet.add(f"page of {of}, all metrics: time to write it", round(seconds, 2), "s")
    sheet.add(f"page of {of}, all metrics: size", round(len(page) / 1e6, 2), "MB", "<= 5")


RECORDERS = [
    ("`topiary record` at 10 Hz", "<= 1.001", BUILD / "topiary", "record", "--hz=10", "--output={folder}/trace"),
    ("`topiary record` at 100 Hz", "", BUILD / "topiary", "record", "--hz=100", "--output={folder}/trace"),
    ("`perf stat -I 100` of the same events", "", "perf", "stat", "-I", "100", "-o", "{folder}/perf", "-e",
     "task-clock,context-switches,migrations,minor-faults,major-faults"),
]
PARTS = {"size": size, "summary": summary, "overhead": overhead, "totals": totals, "display": display}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("command", choices=[*PARTS, "all"])
    p.add_argument("--ticks", type=int, default=86400, help="seconds of the made trace")
    p.add_argument("--runs", type=int, default=3, help="the best of so many")
    p.add_argument("--pairs", type=int, default=24, help="of runs with and without a recorder")
    p.add_argument("--events", type=int, default=40, help="that are to be seen on the screen")
    p.add_argument("--passes", type=int, default=80, help="over 96 MB in each run")
    sheets.options(p)
    sheets.run("trace.py", "## Traces, in short\n", PARTS, p.parse_args())


if __name__ == "__main__":
    main()
