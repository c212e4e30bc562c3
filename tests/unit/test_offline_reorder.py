# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What libtopiary-reorder asks of `topiary reorder`: 100 generated communicators, whose costs are computed here."""
import math
import os
import random
import socket
from itertools import product
from statistics import median

import pytest
from rig.command import topiary

CASES = 100
NODE, LEVELS = 100, {"package": 20, "die": 14, "numa": 12, "l3": 8, "l2": 4, "core": 2}


def ask(text, **how):
    return topiary("reorder", "-", input=text, env={**os.environ, "TOPIARY_CONF": "/dev/null"}, **how)


def cores_of(rng):
    """The cores of a node as paths: package, die, NUMA node, L3, L2, core."""
    sizes = (rng.choice((1, 2, 2)), 1, rng.choice((1, 2, 4)), rng.choice((1, 1, 2)), rng.choice((1, 2)),
             rng.choice((2, 4)))
    cores = []
    for path in product(*(range(size) for size in sizes)):
        number, domains = 0, []
        for size, digit in zip(sizes, path):
            number = number * size + digit
            domains.append(number)
        cores.append(tuple(domains))
    return cores


def allocation(rng):
    """[(node, path)] by rank: one core each, as Slurm distributes tasks over nodes and packages."""
    cores, nodes = cores_of(rng), rng.randint(1, 8)
    most = min(len(cores), 64)
    each = rng.choice([n for n in (most, most // 2, most * 3 // 4) if n])
    used = cores[:each]
    if rng.random() < 0.5:          # block:cyclic, Slurm's default: package by package in turn
        turn = {core: sum(c[0] == core[0] for c in used[:n]) for n, core in enumerate(used)}
        used.sort(key=lambda core: (turn[core], core[0]))
    if rng.random() < 0.25:         # cyclic
        return [(node, core) for core in used for node in range(nodes)]
    return [(node, core) for node in range(nodes) for core in used]


def factors(n, dims, rng):
    """n as the product of so many sizes, near each other as MPI_Dims_create has them, in any order."""
    sizes = []
    for left in range(dims, 0, -1):
        near = [d for d in range(1, n + 1) if n % d == 0]
        sizes.append(min(near, key=lambda d, left=left, n=n: abs(d - n ** (1 / left))))
        n //= sizes[-1]
    rng.shuffle(sizes)
    return sizes


def grid(n, rng):
    sizes = factors(n, rng.randint(2, 4), rng)
    periods = [rng.random() < 0.5 for _ in sizes]
    edges = []
    for cell in product(*(range(size) for size in sizes)):
        for d, size in enumerate(sizes):
            if cell[d] + 1 < size or (periods[d] and size > 1):
                other = [*cell[:d], (cell[d] + 1) % size, *cell[d + 1:]]
                edges.append((rank(cell, sizes), rank(other, sizes), 1))
    return edges


def rank(cell, sizes):
    number = 0
    for digit, size in zip(cell, sizes):
        number = number * size + digit
    return number


def random_graph(n, rng):
    return [(a, rng.randrange(n), rng.randint(1, 100)) for a in range(n) for _ in range(rng.randint(1, 4))]


def mesh(n, rng):
    """Points in a square, numbered as a partitioner might, with their nearest neighbours."""
    points = sorted(((rng.random(), rng.random()) for _ in range(n)), key=lambda p: (int(p[0] * 4), p[1]))
    near = [sorted(range(n), key=lambda b, p=p: math.dist(p, points[b]))[1:6] for p in points]
    return [(a, b, rng.randint(1, 9)) for a in range(n) for b in near[a]]


def cost(edges, places):
    total = 0
    for a, b, weight in edges:
        (node, path), (other_node, other) = places[a], places[b]
        total += weight * (NODE if node != other_node else
                           next((c for c, x, y in zip(LEVELS.values(), path, other) if x != y), 0))
    return total


def question(places, ranks, edges):
    lines = [f"{len(places)} {ranks}"]
    lines += [f"host{node} n{node} {' '.join(map(str, path))}" for node, path in places]
    return "".join(f"{line}\n" for line in [*lines, *(f"{a} {b} {w}" for a, b, w in edges)])


def read(text):
    first, *order = text.splitlines()
    return [float(word) for word in first.split()], [int(line) for line in order]


def test_costs_fall_and_never_rise():
    gains = []
    for number in range(CASES):
        rng = random.Random(number)
        places = allocation(rng)
        ranks = len(places) - (rng.randint(0, len(places) // 8) if rng.random() < 0.2 else 0)
        edges = (grid, grid, random_graph, mesh)[number % 4](ranks, rng)
        done = ask(question(places, ranks, edges), status=0)
        (told_before, told_after), order = read(done.stdout)
        assert len(set(order)) == ranks and set(order) <= set(range(len(places))), number
        before, after = cost(edges, places), cost(edges, [places[process] for process in order])
        assert (told_before, told_after) == (before, after), number
        assert after <= before, number
        if after == before:
            assert order == list(range(ranks)), number
        gains.append(1 - after / before if before else 0)
    assert median(gains) >= 0.3, gains


def test_the_network_that_is_published_counts(tmp_path):
    """Two leaf switches, with the hosts of two ranks each that do not communicate."""
    fabric, config = tmp_path / "fabric", tmp_path / "topiary.conf"
    fabric.write_text("tree 2 2 300 2 100 -1\n" + "".join(f"node n{n} tree 1 1 1 -1\n" for n in range(4)))
    config.write_text(f"FabricFile={fabric}\nSnapshotFile=/nowhere\n")
    for names, before, after in (("n0 n1 n2 n3", 600, 200), ("n0 n1 n2 other", 200, 200)):
        lines = ["4 4", *(f"vm {name} - - - - - *" for name in names.split()), "0 2 1", "1 3 1"]
        done = topiary("reorder", "-", input="\n".join(lines) + "\n", env={**os.environ, "TOPIARY_CONF": str(config)},
                       status=0)
        assert done.stdout.splitlines()[0] == f"{before} {after}"


def test_the_registry_is_not_asked(tmp_path):
    """A running program waits for the answer; the registry here accepts, and says nothing."""
    config = tmp_path / "topiary.conf"
    with socket.create_server(("127.0.0.1", 0)) as registry:
        config.write_text(f"RegistryURL=http://127.0.0.1:{registry.getsockname()[1]}\n" +
                          "".join(f"{name}=/nowhere\n" for name in ("FabricFile", "CostsFile", "SnapshotFile")))
        topiary("reorder", "-", input="1 1\nh n 0 0 0 0 0 0\n", status=0,
                env={**os.environ, "TOPIARY_CONF": str(config)})
        registry.setblocking(False)
        with pytest.raises(BlockingIOError):
            registry.accept()


def test_bad_questions_are_refused():
    for text in ("", "4\n", "4 5\n", "0 0\n", "1 1\n", "1 1\nh n 0 0 0 0 0\n", "1 1\nh n 0 0 0 0 0 x\n",
                 "1 1\nh n 0 0 0 0 0 0 0\n", "2 2\nh n * * * * * *\nh n * * * * * *\n0 2 1\n",
                 "2 2\nh n * * * * * *\nh n * * * * * *\n0 1\n", "70000 1\n", "1 1\n" + "h" * 300 + " n 0 0 0 0 0 0\n"):
        done = ask(text, status=1)
        assert "not as libtopiary-reorder writes it" in done.stderr and not done.stdout, text
