#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The select plugin's figures in BENCHMARKS.md: real slurmctld, and for jobs that run real slurmd."""
from common import main
import select_time
import select_trace
import select_waits

PLANS = ("time", "time --topology tree --nodes 10000 --loads 80 --asked 2x16 4x32",
         "time --gpus --nodes 1000 10000 --loads 50 80 95 --ms 800", "hostile", "waits", "traces", "trace --repeat 3",
         "memory --repeat 2",
         "gpu --jobs 200 --run 5 --load 120 --repeat 3",
         "controller --nodes 1000 10000 --jobs 200 --run 8 --repeat 3",
         "time --does observe --nodes 10000 --loads 80",
         "controller --does observe --nodes 10000 --jobs 200 --run 8 --repeat 3")

if __name__ == "__main__":
    main(__doc__, {**select_time.PARTS, **select_trace.PARTS, **select_waits.PARTS}, PLANS,
         needs=("select_probe.so", "select_record.so"))
