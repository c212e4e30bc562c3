#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Other mappers on a problem, each called as its own users call it: map_peers.py METHOD FOLDER writes `rank host leaf`
lines, and to standard error the seconds of processor time that it took.

They run as programs of their own: a library that does not bear what it is given ends the program, not the bench.
"""
import collections
import ctypes
import itertools
import math
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from map_judge import Machine, cost
from map_problems import number

try:
    from chszlablib import Decomposition, Graph
except ImportError:
    Decomposition = Graph = None

FULL = 2 ** 31 - 1


def read_pairs(path):
    lines = iter(path.read_text().splitlines()[1:])
    ranks = int(next(lines).split()[0])
    return ranks, [(int(a) - 1, int(b) - 1, int(w)) for a, b, w in map(str.split, lines)]


class Tree:
    """The whole machine as a tree of one form, all that these mappers know, and the leaves of it that are the job's.
    The routers of a torus are side by side, as far apart as they are on an average."""

    def __init__(self, machine):
        sizes, costs = machine.inside[machine.hosts[0]]
        above = [math.prod(sides) for _, sides, _ in machine.levels]
        self.arity = above + sizes
        self.cost = [sum(cost * side // 4 for side, cost in zip(sides, costs)) if kind == "torus" else costs[0]
                     for kind, sides, costs in machine.levels] + costs
        self.place = {number((*machine.paths[host], leaf), (*above, math.prod(sizes))): (host, leaf)
                      for host, leaf in machine.places()}


def array(kind, values):
    values = list(values)
    return (kind * len(values))(*values)


# --- TreeMatch (Jeannot, Mercier and Tessier, IEEE TPDS 25, 2014) as Open MPI brings it

def treematch_library():
    told = subprocess.run(["ompi_info", "--path", "pkglibdir", "--parsable"], capture_output=True, text=True,
                          check=True).stdout
    lib = ctypes.CDLL(f"{told.strip().rpartition(':')[2]}/mca_topo_treematch.so")
    for name in ("tm_build_synthetic_topology", "tm_build_affinity_mat", "tm_build_tree_from_topology",
                 "tm_compute_mapping"):
        getattr(lib, name).restype = ctypes.c_void_p
    lib.tm_set_verbose_level(0)
    lib.tm_set_max_nb_threads(1)
    return lib


def treematch_once(lib, tree, leaves, ranks, pairs, optimize):
    """sigma[rank], a leaf of the tree; leaves: those that may be used."""
    arity, count = [*tree[0], 0], math.prod(tree[0])
    topology = ctypes.c_void_p(lib.tm_build_synthetic_topology(
        array(ctypes.c_int, arity), array(ctypes.c_double, [*tree[1], 0]), len(arity),
        array(ctypes.c_int, range(count)), count))
    if len(leaves) < count:
        lib.tm_topology_set_binding_constraints(array(ctypes.c_int, leaves), len(leaves), topology)
    if optimize:
        lib.tm_optimize_topology(ctypes.byref(topology))
    rows = [(ctypes.c_double * ranks)() for _ in range(ranks)]
    for a, b, weight in pairs:
        rows[a][b] = rows[b][a] = weight
    table = array(ctypes.c_void_p, map(ctypes.addressof, rows))      # it is not copied
    matrix = ctypes.c_void_p(lib.tm_build_affinity_mat(table, ranks))
    found = ctypes.c_void_p(lib.tm_build_tree_from_topology(topology, matrix, None, None))
    solution = ctypes.cast(lib.tm_compute_mapping(topology, found), ctypes.POINTER(ctypes.POINTER(ctypes.c_int)))
    return solution[0][:ranks]


def treematch(machine, ranks, pairs):
    """The cheapest of all that it can be told: the machine with the job's leaves, or, where all nodes are the job's
    alike, those."""
    lib, tree, tries = treematch_library(), Tree(machine), []
    leaves = sorted(tree.place)
    trees = [((tree.arity, tree.cost), leaves, tree.place)]
    alike = {tuple(machine.leaves[host]) for host in machine.hosts}
    inside = machine.inside[machine.hosts[0]]
    if len(alike) == 1 and len(next(iter(alike))) == math.prod(inside[0]):
        own = ([len(machine.hosts), *inside[0]], [tree.cost[len(machine.levels) - 1], *inside[1]])
        trees.append((own, range(len(leaves)), machine.places()))
    for (shape, some, place), optimize in itertools.product(trees, (False, True)):
        sigma = treematch_once(lib, shape, some, ranks, pairs, optimize)
        tries.append([place[leaf] for leaf in sigma])
    return min(tries, key=lambda seats: cost(pairs, machine, seats))


# --- Scotch as netloc calls it (hwloc, netloc/scotch.c): for quality, 1 % of imbalance, on the job's leaves of a tree

def scotch(machine, ranks, pairs):
    os.environ["SCOTCH_PTHREAD_NUMBER"] = "1"      # with more, no two calls are alike
    lib, tree = ctypes.CDLL("libscotch-7.0.so"), Tree(machine)
    num = ctypes.c_int64 if lib.SCOTCH_numSizeof() == 8 else ctypes.c_int32
    arch, sub, graph, strategy = (pointer(lib, f"SCOTCH_{name}Alloc") for name in ("arch", "arch", "graph", "strat"))
    leaves, part = array(num, sorted(tree.place)), (num * ranks)()
    steps = [a - b for a, b in zip(tree.cost, [*tree.cost[1:], 0])]      # its own are for a way up and down
    arcs = graph_arcs(ranks, pairs, num)
    for name, handle in (("arch", arch), ("arch", sub), ("graph", graph), ("strat", strategy)):
        getattr(lib, f"SCOTCH_{name}Init")(handle)
    lib.SCOTCH_randomSeed(num(1))
    lib.SCOTCH_randomReset()
    if (lib.SCOTCH_archTleaf(arch, num(len(steps)), array(num, tree.arity), array(num, steps))
            or lib.SCOTCH_archSub(sub, arch, num(len(leaves)), leaves)
            or lib.SCOTCH_graphBuild(graph, num(0), num(ranks), arcs[0], None, None, None, num(len(arcs[1])), *arcs[1:])
            or lib.SCOTCH_stratGraphMapBuild(strategy, num(1), num(ranks), ctypes.c_double(0.01))
            or lib.SCOTCH_graphMap(graph, sub, strategy, part)):
        sys.exit("scotch: failed")
    return [tree.place[leaves[at]] for at in part]


def pointer(lib, name):
    call = getattr(lib, name)
    call.restype = ctypes.c_void_p
    return ctypes.c_void_p(call())


def graph_arcs(ranks, pairs, num):
    """Rows, ends and loads; loads are scaled so that what Scotch sums up does not overflow."""
    scale = max(1, 4096 * sum(w for _, _, w in pairs) / FULL) if ctypes.sizeof(num) == 4 else 1
    ends = [[] for _ in range(ranks)]
    for a, b, weight in pairs:
        load = max(1, round(weight / scale))
        ends[a].append((b, load))
        ends[b].append((a, load))
    flat = [end for row in ends for end in row]
    rows = array(num, [0, *itertools.accumulate(map(len, ends))])
    return rows, array(num, [b for b, _ in flat]), array(num, [load for _, load in flat])


# --- SharedMap (Schulz and Woydt, ACDA 2025) of the Python package chszlablib, on one thread

def sharedmap(machine, ranks, pairs, mode):
    """Its trees have nodes of one form with as many of them below each: the job's places, if they are such a tree, or
    the job's hosts side by side. Places without a rank are vertices without edges. Of the last level, whose places are
    alike, each gets its ranks in turn: told of it, too, SharedMap puts up to half of all ranks on another's place."""
    if not Graph:
        sys.exit("sharedmap: the Python package chszlablib is not installed")
    tree, levels = Tree(machine), len(machine.levels)
    digits = {seat: digits_of(at, tree.arity) for at, seat in tree.place.items()}
    flat = {seat: (machine.hosts.index(seat[0]), *path[levels:]) for seat, path in digits.items()}
    found = [(paths, sides_of(list(paths.values())), costs)
             for paths, costs in ((digits, tree.cost), (flat, tree.cost[levels - 1:]))]
    if not any(sides for _, sides, _ in found):
        sys.exit("sharedmap: the job's places are no tree of one form")
    paths, sides, costs = next(one for one in found if one[1])
    seats, graph = sorted(paths, key=paths.get), Graph(num_nodes=len(paths))
    scale = max(1, 4 * sum(w for _, _, w in pairs) / FULL)       # its sums are of 32 bits
    for a, b, weight in pairs:
        graph.add_edge(a, b, max(1, round(weight / scale)))
    result = Decomposition.process_map(graph, sides[-2::-1], costs[-2::-1], mode=mode, imbalance=0.0, threads=1, seed=1)
    turn = [itertools.cycle(seats[at:at + sides[-1]]) for at in range(0, len(seats), sides[-1])]
    return [next(turn[at]) for at in result.assignment[:ranks]]


def digits_of(at, sides):
    found = []
    for side in reversed(sides):
        found.append(at % side)
        at //= side
    return tuple(reversed(found))


def sides_of(paths):
    """How many there are below each at each level, or None, if not as many below all."""
    counts = [collections.Counter(path[:level] for path in {path[:level + 1] for path in paths})
              for level in range(len(paths[0]))]
    return [max(count.values()) for count in counts] if all(len({*c.values()}) == 1 for c in counts) else None


METHODS = {"treematch": treematch, "scotch": scotch, "sharedmap-eco": partial(sharedmap, mode="eco"),
           "sharedmap-strong": partial(sharedmap, mode="strong")}


def main():
    method, folder = sys.argv[1], Path(sys.argv[2])
    ranks, pairs = read_pairs(folder / "matrix")
    machine, start = Machine((folder / "fabric").read_text()), time.process_time()
    seats = METHODS[method](machine, ranks, pairs)
    print("".join(f"{rank} {host} {leaf}\n" for rank, (host, leaf) in enumerate(seats)), end="")
    print(time.process_time() - start, file=sys.stderr)


if __name__ == "__main__":
    main()
