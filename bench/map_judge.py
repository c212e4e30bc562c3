# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Judges a mapping by the problem's two texts and the rank file alone; shares no line with what made it."""
import itertools
import math


class Broken(Exception):
    """What must never be: two ranks on a place, a rank without one, a place that is not the job's."""


class Machine:
    """What the hierarchical format says: hosts in the order of the text, their paths, and the leaves that may be
    used."""

    def __init__(self, text):
        self.levels, self.inside, self.hosts, self.paths, self.leaves = [], {}, [], {}, {}
        self.lines = iter([line.split() for line in text.splitlines() if line.strip()])
        self.read(())
        self.apart = {}

    def read(self, path):
        words = next(self.lines)
        if words[0] == "node":
            sizes, costs, chosen = level_of(words[3:])
            self.hosts.append(words[1])
            self.paths[words[1]], self.leaves[words[1]] = path, chosen
            self.inside[words[1]] = sizes, costs
            return
        sizes, costs, chosen = level_of(words[1:])
        if len(self.levels) == len(path):
            self.levels.append((words[0], sizes, costs))
        for at in chosen:
            self.read((*path, at))

    def places(self):
        return [(host, leaf) for host in self.hosts for leaf in self.leaves[host]]

    def distance(self, a, b):
        """Of two places (host, leaf)."""
        key = (a[0], b[0]) if a[0] != b[0] else (a[0], a[1], b[1])
        if key not in self.apart:
            self.apart[key] = self.between_hosts(*key) if len(key) == 2 else self.within(*key)
        return self.apart[key]

    def between_hosts(self, a, b):
        for (kind, sizes, costs), x, y in zip(self.levels, self.paths[a], self.paths[b]):
            if x != y:
                return torus_cost(sizes, costs, x, y) if kind == "torus" else costs[0]
        raise Broken(f"{a} and {b} are one host")

    def within(self, host, a, b):
        sizes, costs = self.inside[host]
        below = math.prod(sizes)
        for size, cost in zip(sizes, costs):
            below //= size
            if a // below != b // below:
                return cost
        return 0


def level_of(words):
    """DIMENSIONS, then so many times SIZE COST, then COUNT INDEX... or -1."""
    dims, *rest = map(int, words)
    sizes, costs, chosen = rest[:2 * dims:2], rest[1:2 * dims:2], rest[2 * dims:]
    return sizes, costs, list(range(math.prod(sizes))) if chosen == [-1] else chosen[1:]


def torus_cost(sizes, costs, a, b):
    total = 0
    for size, cost in zip(sizes, costs):
        hops = abs(a % size - b % size)
        total += cost * min(hops, size - hops)
        a, b = a // size, b // size
    return total


def read_plain(text, machine, ranks):
    """[(host, leaf)] of the ranks, as `--format plain` has them. Broken, if it is not that."""
    found = {}
    for line in text.splitlines():
        rank, host, leaf = line.split()
        if int(rank) in found:
            raise Broken(f"rank {rank} is there twice")
        if host not in machine.leaves or int(leaf) not in machine.leaves[host]:
            raise Broken(f"rank {rank}: {host} {leaf} is not a place of the job")
        found[int(rank)] = host, int(leaf)
    if sorted(found) != list(range(ranks)):
        raise Broken(f"{len(found)} ranks of {ranks} have a place")
    return [found[rank] for rank in range(ranks)]


def doubles(seats):
    """Ranks that share a place with one before them."""
    return len(seats) - len(set(seats))


def cost(pairs, machine, seats):
    return math.fsum(weight * machine.distance(seats[a], seats[b]) for a, b, weight in pairs)


# --- what Slurm does on its own: equal shares of the nodes as far as their places go

def shares(machine, ranks):
    share = dict.fromkeys(machine.hosts, 0)
    for host in itertools.cycle(machine.hosts):
        if ranks == 0:
            return share
        if share[host] < len(machine.leaves[host]):
            share[host] += 1
            ranks -= 1


def block(machine, ranks):
    share = shares(machine, ranks)
    return [(host, leaf) for host in machine.hosts for leaf in machine.leaves[host][:share[host]]]


def cyclic(machine, ranks):
    share, deepest = shares(machine, ranks), max(map(len, machine.leaves.values()))
    return [(host, machine.leaves[host][turn]) for turn in range(deepest) for host in machine.hosts
            if turn < share[host]]
