#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The select plugin's figures in BENCHMARKS.md, each one command: real slurmctld, and for the trace real slurmd."""
import argparse
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("bench", "tests")]

import select_controller  # noqa: E402
import select_gpu  # noqa: E402
import select_hostile  # noqa: E402
import select_memory  # noqa: E402
import select_time  # noqa: E402
import select_trace  # noqa: E402
import sheet as sheets  # noqa: E402
from rig.cluster import SLURM_RELEASE  # noqa: E402
from rig.paths import BUILD  # noqa: E402


def parser():
    p = argparse.ArgumentParser(description=__doc__)
    commands = p.add_subparsers(dest="command", required=True)
    how = {"formatter_class": argparse.ArgumentDefaultsHelpFormatter}
    t = commands.add_parser("time", help="how long a decision takes, ours and Slurm's own side by side", **how)
    t.add_argument("--nodes", type=int, nargs="+", default=[100, 1000, 10000], help="clusters of so many nodes")
    t.add_argument("--loads", type=int, nargs="+", default=[0, 50, 80, 95], help="percent of the cores that jobs hold")
    t.add_argument("--ms", type=int, default=3000,
                   help="milliseconds for each mode and job, at most but for ten decisions")
    t.add_argument("--count", type=int, default=1000, help="at most so many decisions about each")
    t.add_argument("--modes", nargs="+", choices=select_time.MODES, default=list(select_time.MODES),
                   help="which decisions")
    t.add_argument("--asked", nargs="+", choices={**select_time.ALL, **select_time.GPU_ASKED},
                   help="about which jobs; without this, about all that fit the nodes")
    t.add_argument("--topology", choices=select_time.TOPOLOGIES, default="flat",
                   help="how Slurm knows the network: not, by topology/tree, topology/block (23.11) or topology.yaml"
                        " (25.05)")
    t.add_argument("--gpus", action="store_true",
                   help="nodes have GPUs, jobs that run have some, and other jobs are asked about")
    t.add_argument("--placed-by", choices=("ours", "stock"), default="ours", help="who places the jobs that hold them")
    t.add_argument("--svg", type=Path, help="draw the times into this file")
    t = commands.add_parser("hostile", help="how long decisions about hostile requests take, "
                            "ours and Slurm's own side by side", **how)
    t.add_argument("--nodes", type=int, nargs="+", default=[1000, 10000], help="clusters of so many nodes")
    t.add_argument("--load", type=int, default=80, help="percent of the cores that jobs hold")
    t.add_argument("--count", type=int, default=3, help="so many decisions about each, of which the median counts")
    t.add_argument("--requests", type=int, default=select_hostile.REQUESTS, help="only the first so many of the table")
    t.add_argument("--modes", nargs="+", choices=select_time.MODES, default=list(select_time.MODES),
                   help="which decisions")
    t.add_argument("--tell", type=int, default=5, help="name so many of the worst")
    t = commands.add_parser("trace", help="the same jobs with and without us, each placement judged", **how)
    t.add_argument("--jobs", type=int, default=600, help="so many")
    t.add_argument("--load", type=int, default=80, help="percent of all cores that they ask for")
    t.add_argument("--run", type=float, default=12, help="seconds that a job runs, mean")
    t.add_argument("--repeat", type=int, default=1, help="the same jobs so many times")
    t.add_argument("--again", action="store_true", help="judge what --keep kept, and run nothing")
    t.add_argument("--keep", type=Path, metavar="FOLDER",
                   help="keep the records, the snapshot and the jobs as `topiary replay` reads them")
    t = commands.add_parser("memory", help="jobs with and without much memory: whose NUMA nodes can hold it", **how)
    t.add_argument("--jobs", type=int, default=600, help="so many")
    t.add_argument("--load", type=int, default=80, help="percent of all cores that they ask for")
    t.add_argument("--run", type=float, default=12, help="seconds that a job runs, mean")
    t.add_argument("--repeat", type=int, default=1, help="the same jobs so many times")
    t = commands.add_parser("gpu", help="jobs with and without GPUs: whose cores are near them", **how)
    t.add_argument("--jobs", type=int, default=600, help="so many")
    t.add_argument("--load", type=int, default=80, help="percent of all cores that they ask for")
    t.add_argument("--run", type=float, default=12, help="seconds that a job runs, mean")
    t.add_argument("--repeat", type=int, default=1, help="the same jobs so many times")
    t.add_argument("--restricted", type=int, default=0, metavar="CORES",
                   help="so many cores of each GPU are kept for jobs with GPUs (RestrictedCoresPerGPU; Slurm 24.11)")
    t = commands.add_parser("controller",
                            help="the same jobs with and without us: a submission's RPC and slurmctld's CPU time",
                            **how)
    t.add_argument("--nodes", type=int, nargs="+", default=[12, 1000, 10000], help="clusters of so many nodes")
    t.add_argument("--jobs", type=int, default=600, help="so many")
    t.add_argument("--load", type=int, default=80, help="percent of all cores that they ask for")
    t.add_argument("--run", type=float, default=12, help="seconds that a job runs, mean")
    t.add_argument("--repeat", type=int, default=1, help="the same jobs so many times")
    commands.add_parser("all", help="all of them, as BENCHMARKS.md has them", **how)
    for c in commands.choices.values():
        c.add_argument("--seed", type=int, default=1, help="of all that is drawn by lot")
        sheets.options(c)
    return p


PLANS = ("time --svg docs/decision-time.svg", "time --topology tree --nodes 10000 --loads 80 --asked 2x16 4x32",
         "time --gpus --nodes 1000 10000 --loads 50 80 95 --ms 800",
         "hostile", "trace --repeat 3", "memory --repeat 2", "gpu --jobs 200 --run 5 --load 120 --repeat 3",
         *(["gpu --jobs 200 --run 5 --load 120 --restricted 2"] if SLURM_RELEASE >= (24, 11) else []),
         "controller --nodes 12 --repeat 3", "controller --nodes 1000 10000 --jobs 200 --run 8 --repeat 3")


def every(sheet, args):
    for plan in PLANS:
        one = parser().parse_args([*plan.split(), "--seed", str(args.seed)])
        sheet.begin(plan)
        COMMANDS[one.command](sheet, one)


COMMANDS = {"time": select_time.run, "hostile": select_hostile.run, "trace": select_trace.run,
            "memory": select_memory.run, "gpu": select_gpu.run, "controller": select_controller.run, "all": every}


def main():
    args = parser().parse_args()
    if os.geteuid():
        sys.exit("select_plugin.py: needs root: daemons run as several users")
    for name in ("select_probe.so", "select_record.so") if args.command != "controller" else ():
        if not (BUILD / "bench" / name).exists():
            sys.exit(f"select_plugin.py: {BUILD}/bench/{name} is missing: run make bench-select-needs")
    sheet = sheets.Sheet("select_plugin.py", "## The select plugin, in short\n", quiet=args.json or args.markdown)
    if args.command != "all":
        sheet.begin(" ".join(sys.argv[1:]))
    COMMANDS[args.command](sheet, args)
    sheet.finish(args)


if __name__ == "__main__":
    main()
