#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Ranks mapped by the default costs of the levels and by those of the machine, both judged by the machine's."""
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from rig.paths import BUILD  # noqa: E402

CORES = 8  # of a NUMA node
OWN = 2  # two cores of a NUMA node


def quadrants(a, b):
    """Two packages of four NUMA nodes, which are neighbours, or opposite on the package."""
    return 34 if a // 4 != b // 4 else 8 if a // 2 == b // 2 else 16


def ring(a, b):
    """Four packages that are linked to two others each."""
    return {1: 20, 2: 40, 3: 20}[abs(a - b)]


def boards(a, b):
    """Eight packages on two boards."""
    return 60 if a // 4 != b // 4 else 20


def crossed(a, b):
    """Two packages of two NUMA nodes, of which that of the other package is the nearer: a link each."""
    return 10 if a % 2 == b % 2 else 30


MACHINES = {
    "2 packages of 4 NUMA nodes": ("Package:2 NUMANode:4 Core:8 PU:1", 8, quadrants),
    "4 packages in a ring": ("Package:4 NUMANode:1 Core:8 PU:1", 4, ring),
    "8 packages on 2 boards": ("Package:8 NUMANode:1 Core:8 PU:1", 8, boards),
    "2 packages, linked NUMA node by NUMA node": ("Package:2 NUMANode:2 Core:8 PU:1", 4, crossed),
}
RULES = ("stencil2d:{x}x8:9", "stencil3d:{z}x4x4:7", "powerlaw:{n}", "pencils:{x}x8")


def topiary(*words, cwd):
    done = subprocess.run([BUILD / "topiary", *words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def pairs_of(path):
    """Of the coordinate format, without its lines of comments and sizes."""
    rows = [line.split() for line in path.read_text(encoding="ascii").splitlines() if not line.startswith("%")][1:]
    return [(int(a) - 1, int(b) - 1, float(w)) for a, b, w in rows]


def judged(mapping, pairs, between):
    numa = [int(line.split()[2]) // CORES for line in mapping.splitlines()]
    return sum(w * (OWN if numa[a] == numa[b] else between(numa[a], numa[b])) for a, b, w in pairs if a != b)


def main():
    rows, total = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for machine, (shape, numas, between) in MACHINES.items():
            n = numas * CORES
            (folder / "snapshot").write_text(f"topiary-snapshot 1\nshape A {shape}\nnodes n1 A\nend\n")
            words = ",".join([f"core={OWN}", *(f"{a}-{b}={between(a, b)}" for a in range(numas)
                                               for b in range(a + 1, numas))])
            for rule in RULES:
                rule = rule.format(n=n, x=n // 8, z=n // 16)
                (folder / "matrix").write_text(topiary("matrix", f"--generate={rule}", cwd=folder))
                command = ["map", "--matrix=matrix", "--snapshot=snapshot", "--nodes=n1"]
                costs = [judged(topiary(*command, f"--costs={c}", cwd=folder), pairs_of(folder / "matrix"), between)
                         for c in ("default", words)]
                total.append(100 * (costs[0] - costs[1]) / costs[0])
                rows.append(f"| {machine} | {rule} | {costs[0]:.6g} | {costs[1]:.6g} | {total[-1]:.1f} |")
    print("| machine, costs made | matrix | cost, mapped by default costs | cost, mapped by the machine's | less, % |")
    print("|---|---|---:|---:|---:|\n" + "\n".join(rows))
    mean = sum(total) / len(total)
    print(f"\nOn average {mean:.1f} % less, at worst {min(total):.1f} %, at best {max(total):.1f} %.")
    return min(total) < 0


if __name__ == "__main__":
    sys.exit(main())
