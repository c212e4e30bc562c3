# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Was there a better place? An exact judge of placements that shares nothing with the plugin: for every number of
packages, NUMA nodes and L3 caches it reckons how many free cores they can hold at most, and so which counts a job could
have had.
"""
import collections
import functools
import itertools

LEVELS = ("package", "NUMA node", "L3")


class Machine:
    """A regular one: packages of NUMA nodes of L3 caches of so many cores; what is the same counts at each level."""

    def __init__(self, packages, numas, caches, cores):
        self.sizes = (numas * caches * cores, caches * cores, cores)     # of a package, a NUMA node, an L3
        self.cores, self.numas, self.caches = packages * self.sizes[0], numas, caches
        self.text = f"Package:{packages} Group:{numas} [NUMANode(memory=4GB)] L3Cache:{caches} Core:{cores} PU:1"

    def domains(self, level):
        size = self.sizes[level]
        return [range(first, first + size) for first in range(0, self.cores, size)]

    def touched(self, cores):
        return tuple(len({core // size for core in cores}) for size in self.sizes)

    def free_caches(self, free):
        """Free cores of each L3, as they lie: ((L3, ...) of each NUMA node) of each package."""
        counts = [sum(core in free for core in cache) for cache in self.domains(2)]
        numas = list(grouped(counts, self.caches))
        return tuple(tuple(sorted(package))
                     for package in grouped([tuple(sorted(n, reverse=True)) for n in numas], self.numas))


def grouped(items, size):
    return [tuple(items[i:i + size]) for i in range(0, len(items), size)]


# --- how many cores so many domains can hold: {(packages, NUMA nodes, caches): at most}

def joined(tables):
    """Some of each, all together."""
    best = {(0, 0, 0): 0}
    for table in tables:
        more = {}
        for (a, x), (b, y) in itertools.product(best.items(), table.items()):
            key = tuple(map(sum, zip(a, b)))
            more[key] = max(more.get(key, 0), x + y)
        best = more
    return best


@functools.lru_cache(maxsize=None)
def of_package(numas):
    tables = []
    for caches in numas:
        table = {(0, 0, 0): 0}
        for count in range(1, sum(1 for free in caches if free) + 1):
            table[(0, 1, count)] = sum(caches[:count])
        tables.append(table)
    return {(1 if key[1] else 0, *key[1:]): most for key, most in joined(tables).items()}


@functools.lru_cache(maxsize=None)
def of_node(packages):
    return joined([of_package(numas) for numas in packages])


def minimal(vectors):
    """Those that no other is at least as good as in all."""
    vectors = set(vectors)
    return {v for v in vectors if not any(better(w, v) for w in vectors)}


def better(a, b):
    return a != b and all(x <= y for x, y in zip(a, b))


@functools.lru_cache(maxsize=None)
def reachable(packages, cores):
    """The minimal counts with which so many cores of a node can be had."""
    return frozenset(minimal(key for key, most in of_node(packages).items() if most >= cores))


def reachable_together(each):
    """[counts that a node can give, for each node], one of each of `count` different nodes: minimal sums by number of
    nodes."""
    best = collections.defaultdict(set, {0: {(0, 0, 0)}})
    for vectors in each:
        for count in sorted(best, reverse=True):
            best[count + 1] = minimal(best[count + 1] | {tuple(map(sum, zip(a, b))) for a in best[count]
                                                         for b in vectors})
    return best


# --- the judgement

Placement = collections.namedtuple("Placement", "job time offered cores")       # cores: {node: set of its cores}
Judgement = collections.namedtuple("Judgement", "job dominated touched by avoidable exact_missed filled_rest")


class Judge:
    """Follows a cluster through what its recorder wrote."""

    def __init__(self, machines):
        self.machines = machines        # {node: Machine}
        self.free = {node: set(range(m.cores)) for node, m in machines.items()}
        self.held = {}

    def end(self, job):
        for node, cores in self.held.pop(job, {}).items():
            self.free[node] |= cores

    def start(self, placement):
        for node, cores in placement.cores.items():
            if not cores <= self.free[node]:
                raise ValueError(f"{placement.job}: {node} cores {sorted(cores - self.free[node])} are held by "
                                 "another job")
        found = self.judge(placement)
        for node, cores in placement.cores.items():
            self.free[node] -= cores
        self.held[placement.job] = placement.cores
        return found

    def could_have(self, nodes, share, count):
        """The minimal counts of a job that gets so many cores of each of `count` of these nodes."""
        each = [reachable(self.machines[node].free_caches(self.free[node]), share) for node in nodes]
        return reachable_together([vectors for vectors in each if vectors])[count]

    def judge(self, p):
        shares = {len(cores) for cores in p.cores.values()}
        touched = tuple(map(sum, zip(*(self.machines[node].touched(cores) for node, cores in p.cores.items()))))
        if len(shares) != 1:
            raise ValueError(f"{p.job}: {shares} cores on its nodes: only equal shares are judged")
        share, count = shares.pop(), len(p.cores)
        anywhere = self.could_have(p.offered, share, count)
        dominating = sorted(v for v in anywhere if better(v, touched))
        least = [min(v[level] for v in anywhere) for level in range(len(LEVELS))]
        missed = self.exact_missed(p, share)
        return Judgement(p.job, bool(dominating), touched, dominating[:1], [t > b for t, b in zip(touched, least)],
                         missed, missed and self.filled_rest(p))

    def whole(self, node, cores):
        """Wholly free domains of just so many cores."""
        m = self.machines[node]
        levels = [level for level in range(len(LEVELS)) if m.sizes[level] == cores]
        return [set(d) for level in levels for d in m.domains(level) if self.free[node].issuperset(d)]

    def exact_missed(self, p, share):
        given = sum(cores in self.whole(node, share) for node, cores in p.cores.items())
        return given < min(len(p.cores), sum(bool(self.whole(node, share)) for node in p.offered))

    def filled_rest(self, p):
        """Each part lies in one L3 and takes all that was left there: nothing is cut but what was cut before."""
        return all(any(cores == self.free[node].intersection(cache) for cache in self.machines[node].domains(2))
                   or cores in self.whole(node, len(cores)) for node, cores in p.cores.items())
