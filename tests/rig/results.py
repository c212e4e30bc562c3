# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Results of topiary bench node for machines that are not here."""
import random


def result(cores, package_of, seed=0, noise=0.0, between=None):
    """A machine whose NUMA node i is in package package_of[i]; between(a, b): seconds that a cache line takes."""
    draw = random.Random(seed)
    numas = range(len(package_of))

    def about(value):
        return value * (1 + draw.uniform(-noise, noise))

    def far(a, b):
        return 0 if a == b else 1 if package_of[a] == package_of[b] else 2

    def line(a, b):
        return between(a, b) if between else (60e-9, 90e-9, 210e-9)[far(a, b)]
    each = cores // len(package_of)
    used = [k for k in (1, 2, 4, 8, 16, 32, 64) if k < each] + [each]
    levels = {"numa": 1, "package": 2}
    pairs = [(a, b) for a in numas for b in numas]
    return {
        "cores": cores, "numa_nodes": len(package_of),
        "cache_line": [{"level": "l2", "pairs": 5, "seconds": about(30e-9)}] + [
            {"level": level, "pairs": 5, "seconds": about((0, 90e-9, 210e-9)[distance])}
            for level, distance in levels.items() if any(far(a, b) == distance for a, b in pairs)],
        "numa_cache_line": [{"from": a, "to": b, "seconds": about(line(a, b))} for a, b in pairs if a < b],
        "memory": [{"from": a, "to": b, "latency_seconds": about((90e-9, 110e-9, 180e-9)[far(a, b)]),
                    "bytes_per_second": about((2e11, 1.2e11, 6e10)[far(a, b)])} for a, b in pairs],
        "domains": [{"level": "numa", "cores": each, "used": n, "bytes_per_second": about(min(2e11, n * 2e10))}
                    for n in used]}


def slowed(made, numa, part):
    """The memory of a NUMA node has this part of its bandwidth, as with channels that are gone."""
    for row in made["memory"]:
        if row["to"] == numa:
            row["bytes_per_second"] *= part
    return made
