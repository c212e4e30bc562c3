# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The problems of mapping that the bench makes: machines with what a job got of them, and what its ranks exchange.

A machine and an allocation are one text in the hierarchical format of Bordage, Foyer and Goglin, Euro-Par 2017
workshops, section 5.1, and a matrix is one in Matrix Market's: all that any method is told. The same name is the same
problem, always.
"""
import hashlib
import itertools
import math
import random
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Arch:
    """above: (kind, sizes, cost) of what is above a node, the ports of a switch last; node: its levels as (size, cost),
    cores last."""
    above: tuple
    node: tuple
    slice: int          # cores that belong together: what a partial allocation is cut in

    @property
    def cores(self):
        return math.prod(size for size, _ in self.node)

    @property
    def nodes(self):
        return math.prod(size for _, sizes, _ in self.above for size in sizes)


# The costs of the fat tree are what `topiary fabric` makes of the 12 cables that the paper's machine has upwards for 22
# hosts, with Topiary's own inside a node; those of the torus are the paper's (figure 5).
ARCHS = {
    "fattree": Arch((("tree", (4,), 283), ("tree", (22,), 100)), ((2, 20), (2, 12), (6, 2)), 6),
    "epyc": Arch((("tree", (8,), 200), ("tree", (16,), 100)), ((2, 20), (8, 8), (8, 2)), 8),
    "torus": Arch((("torus", (4, 4, 4), 1600), ("tree", (4,), 800)), ((2, 80), (2, 40), (4, 20), (2, 10)), 4),
}
ALLOCATIONS = ("scattered", "partial", "spare")


# --- what a job got

def allocate(arch, ranks, how, chance, large=32):
    """{node: its cores in the job}, the nodes anywhere on the machine: whole ones, some of them in part, or more than
    are needed. A node of more than `large` cores is for several jobs."""
    share = arch.cores
    if ranks < 4 * share and arch.cores > large:
        share = min(share, arch.slice * math.ceil(ranks / (4 * arch.slice)))
    count = math.ceil(ranks / share)
    if how == "spare":
        count = min(arch.nodes, count + math.ceil(count / 4))
    order = list(range(arch.nodes))
    chance.shuffle(order)
    found, places = {}, 0
    for node in order:
        if len(found) >= count and places >= ranks:
            break
        found[node] = cores_of(arch, share, how == "partial" and chance.random() < 0.4, chance)
        places += len(found[node])
    return dict(sorted(found.items()))


def cores_of(arch, share, in_part, chance):
    if in_part:
        slices = [s for s in range(arch.cores // arch.slice) if chance.random() < 0.5] or [0]
        cores = [core for s in slices for core in range(s * arch.slice, (s + 1) * arch.slice)]
        return cores[:max(1, min(share, len(cores) - chance.randrange(arch.slice // 2)))]
    first = arch.slice * chance.randrange((arch.cores - share) // arch.slice + 1)
    return list(range(first, first + share))


def numbers(values, most):
    return "-1" if len(values) == most else " ".join(map(str, (len(values), *values)))


def fabric_text(arch, allocation):
    inside = " ".join(f"{size} {cost}" for size, cost in arch.node)

    def lines(above, nodes):
        if not above:
            yield f"node n{nodes[0]:03} tree {len(arch.node)} {inside} {numbers(allocation[nodes[0]], arch.cores)}"
            return
        (kind, sizes, cost), *rest = above
        below = math.prod(size for _, some, _ in rest for size in some)
        groups = {at: list(some) for at, some in itertools.groupby(
            nodes, key=lambda node: node // below % math.prod(sizes))}
        sides = " ".join(f"{size} {cost}" for size in sizes)
        yield f"{kind} {len(sizes)} {sides} {numbers(list(groups), math.prod(sizes))}"
        for some in groups.values():
            yield from lines(rest, some)
    return "\n".join(lines(arch.above, list(allocation))) + "\n"


# --- what ranks exchange: (a, b, bytes both ways), each pair once

def grid(ranks, dims):
    """As near to a square or cube as it goes, the shortest side first."""
    sides = []
    for left in range(dims, 1, -1):
        side = next(s for s in range(round(ranks ** (1 / left)), 0, -1) if ranks % s == 0)
        sides.append(side)
        ranks //= side
    return (*sides, ranks)


def stencil(ranks, dims, corners):
    """Neighbours in a grid of boxes of 64 x 48 x 32 cells, of 8 bytes; ranks row by row."""
    sides, cells = grid(ranks, dims), (64, 48, 32)[:dims]
    for at in itertools.product(*map(range, sides)):
        for step in itertools.product((-1, 0, 1), repeat=dims):
            to = tuple(a + s for a, s in zip(at, step))
            if (step > (0,) * dims and (corners or sum(map(abs, step)) == 1)
                and all(0 <= t < side for t, side in zip(to, sides))):
                yield number(at, sides), number(to, sides), 16 * math.prod(c for c, s in zip(cells, step) if not s)


def number(at, sides):
    rank = 0
    for a, side in zip(at, sides):
        rank = rank * side + a
    return rank


def pencils(ranks):
    """A transposition within each row and within each column, of 1 MiB a rank."""
    rows, columns = grid(ranks, 2)
    for a, b in itertools.combinations(range(ranks), 2):
        if a // columns == b // columns:
            yield a, b, 2 ** 21 // columns
        elif a % columns == b % columns:
            yield a, b, 2 ** 21 // rows


def geometric(ranks, chance):
    """Points in a square, eight others within reach on an average; numbered from left to right, as a mesh that was cut
    in strips."""
    points = sorted((chance.random(), chance.random()) for _ in range(ranks))
    reach = math.sqrt(8 / (math.pi * ranks))
    for a, (x, y) in enumerate(points):
        for b in range(a + 1, ranks):
            if points[b][0] - x > reach:
                break
            away = math.hypot(points[b][0] - x, points[b][1] - y)
            if away < reach:
                yield a, b, round(65536 * (1.1 - away / reach))


def powerlaw(ranks, chance, partners=8):
    """Few ranks with many partners (Chung and Lu, 2002), of 1 to 1000 kB; numbered by lot."""
    weight = [(i + 1) ** -0.6 for i in range(ranks)]
    total = sum(weight)
    rank = list(range(ranks))
    chance.shuffle(rank)
    for a, b in itertools.combinations(range(ranks), 2):
        if chance.random() < partners * ranks * weight[a] * weight[b] / total ** 2:
            yield rank[a], rank[b], round(1000 * 10 ** (3 * chance.random()))


PATTERNS = {
    "stencil2d": lambda ranks, chance: stencil(ranks, 2, False),
    "stencil3d": lambda ranks, chance: stencil(ranks, 3, False),
    "stencil27": lambda ranks, chance: stencil(ranks, 3, True),
    "geometric": geometric,
    "powerlaw": powerlaw,
    "pencils": lambda ranks, chance: pencils(ranks),
    "dense": lambda ranks, chance: powerlaw(ranks, chance, 80),
}
STENCILS = ("stencil2d", "stencil3d", "stencil27")


@dataclass(frozen=True)
class Problem:
    arch: str
    pattern: str
    ranks: int
    how: str

    @property
    def name(self):
        return f"{self.arch}-{self.how}-{self.pattern}-{self.ranks}"

    @cached_property
    def fabric(self):
        chance = random.Random(f"{self.arch} {self.how} {self.ranks} {self.pattern} nodes")
        return fabric_text(ARCHS[self.arch], allocate(ARCHS[self.arch], self.ranks, self.how, chance))

    @cached_property
    def pairs(self):
        return sorted((max(a, b), min(a, b), w) for a, b, w in
                      PATTERNS[self.pattern](self.ranks, random.Random(f"{self.pattern} {self.ranks} pairs")))

    @cached_property
    def matrix(self):
        head = f"%%MatrixMarket matrix coordinate integer general\n{self.ranks} {self.ranks} {len(self.pairs)}\n"
        return head + "".join(f"{a + 1} {b + 1} {w}\n" for a, b, w in self.pairs)

    @cached_property
    def sha(self):
        return hashlib.sha256((self.fabric + self.matrix).encode()).hexdigest()[:12]

    def write(self, folder):
        (folder / "fabric").write_text(self.fabric)
        (folder / "matrix").write_text(self.matrix)


# So many allocations of each size on each machine with each pattern, in turn.
SIZES = {24: 1, 48: 1, 96: 2, 192: 2, 384: 1, 768: 1, 1024: 1}
COMMON = [pattern for pattern in PATTERNS if pattern != "dense"]


def chosen(args):
    """Those that --only, --least and --most leave."""
    return [p for p in problems() if args.only in p.name and args.least <= p.ranks <= args.most]


def problems():
    found = []
    for (i, arch), (j, ranks), (k, pattern) in itertools.product(*map(enumerate, (ARCHS, SIZES, COMMON))):
        found += [Problem(arch, pattern, ranks, ALLOCATIONS[(i + j + k + more) % len(ALLOCATIONS)])
                  for more in range(SIZES[ranks])]
    found += [Problem(arch, pattern, 2016, "scattered") for arch in ARCHS
              for pattern in ("stencil3d", "geometric", "powerlaw")]
    found += [Problem(arch, pattern, 4096, "scattered") for arch in ("epyc", "torus")
              for pattern in ("stencil2d", "stencil27", "powerlaw", "pencils")]
    return found
