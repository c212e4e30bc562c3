#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of traces in BENCHMARKS.md, each one command: how large one is, and how soon it is summarized."""
import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("bench", "tests")]

import sheet as sheets  # noqa: E402
from rig.paths import BUILD  # noqa: E402

NODE = "[numa] Package:2 L3:16 Core:4 PU:2"
PUS, COUNTERS = 256, 6
FORMULAS = "CPI {PU, cycles / instructions}\nL3_MISSES {L3Cache, l3_misses}\nFAR {NUMANode, far_fills / (near_fills + far_fills)}\n"


def make(path, ticks):
    subprocess.run([BUILD / "tests" / "trace_make", path, NODE, str(ticks)], check=True, stdout=subprocess.DEVNULL)


def size(sheet, args):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        make(path, args.ticks)
        each = path.stat().st_size / (args.ticks * PUS)
    sheet.add("size of a made trace of six counters per PU and tick", round(each, 2), "B", "<= 8", {"counters of 8 bytes": COUNTERS * 8 / each})


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
    of = f"{args.ticks} ticks of 256 PUs and six counters"
    sheet.add(f"summary of {of}, by machine", round(runs[0], 2), "s", "<= 5 for 86400")
    sheet.add("the same and three formulas, by PU, L3 and NUMA node", round(runs[1], 2), "s")


PARTS = {"size": size, "summary": summary}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("command", choices=[*PARTS, "all"])
    p.add_argument("--ticks", type=int, default=86400, help="seconds of the made trace")
    p.add_argument("--runs", type=int, default=3, help="the best of so many")
    sheets.options(p)
    args = p.parse_args()
    sheet = sheets.Sheet("trace.py", "## Traces, in short\n", quiet=args.json or args.markdown)
    for name in PARTS if args.command == "all" else [args.command]:
        sheet.begin(name)
        PARTS[name](sheet, args)
    sheet.finish(args)


if __name__ == "__main__":
    main()
