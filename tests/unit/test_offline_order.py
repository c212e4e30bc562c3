# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""`topiary map --order=fabric`: on 50 networks and jobs the ring and the trees cost no more than in Slurm's order, by
host name, and in the orders of two clouds' scripts. The judge knows the network from how it was made."""
import functools
import itertools
import random

import pytest
from rig import command

SHAPE = "Package:1 [NUMANode] L3Cache:1 Core:2 PU:1"


def ports(links, hosts):
    """As ibnetdiscover -p has links: a host's name is that of its adapters, one a link."""
    guids, used, adapters, lines = {}, {}, {}, []

    def end(name, key):
        used[key] = used.get(key, 0) + 1
        guid = guids.setdefault(key, 0xa000 + len(guids))
        return f"{'CA' if name in hosts else 'SW'} 1 {used[key]} 0x{guid:016x}"

    for a, b in links:
        adapter = adapters[a] = adapters.get(a, -1) + 1
        words, key = (f"{a} mlx5_{adapter}", (a, adapter)) if a in hosts else (a, a)
        lines.append(f"{end(a, key)} 4x EDR - {end(b, b)} ( '{words}' - '{b}' )\n")
    return "".join(lines)


def climbed(paths, prices):
    """The cost in a tree: what is climbed from the lowest switches, whose own is the last price."""
    def cost(a, b):
        level = next(i for i, (x, y) in enumerate(zip(paths[a], paths[b])) if x != y)
        return prices[level]
    return cost


def tree(draw, names, pods, leaves, width, rails=1, pruned=1):
    """Switches of three tiers, or two with one pod: the file, each host's path and the cost of a pair."""
    paths, links = {}, []
    names = iter(names)
    for pod, leaf in itertools.product(range(pods), range(leaves)):
        for _ in range(width):
            host = next(names)
            paths[host] = (f"p{pod}", f"l{pod}-{leaf}", host) if pods > 1 else (f"l{pod}-{leaf}", host)
            links += [(host, f"l{pod}-{leaf}-{rail}" if rails > 1 else f"l{pod}-{leaf}") for rail in range(rails)]
        ups = [f"l{pod}-{leaf}-{rail}" if rails > 1 else f"l{pod}-{leaf}" for rail in range(rails)]
        links += [(up, f"s{pod}-{i % 2}") for up in ups for i in range(width // pruned)]
    if pods > 1:
        links += [(f"s{pod}-{i % 2}", f"core{i % 2}") for pod in range(pods) for i in range(leaves * width)]
    draw.shuffle(links)
    hosts = set(paths)
    # 100 below a switch, 100 more for each tier that is climbed, times its pruning.
    prices = ([300, 200, 100] if pods > 1 else [100 + 100 * pruned, 100])
    return ports(links, hosts), paths, climbed(paths, prices)


def dragonfly(draw, names, groups, switches, width):
    """Groups whose switches are all joined, and one cable between any two groups."""
    names, paths, links, near = iter(names), {}, [], {}
    every = [(g, s) for g in range(groups) for s in range(switches)]
    for g, s in every:
        for _ in range(width):
            host = next(names)
            paths[host] = (f"g{g}", f"g{g}s{s}", host)
            links.append((host, f"g{g}s{s}"))
    trunks = [((g, a), (g, b)) for g in range(groups) for a, b in itertools.combinations(range(switches), 2)]
    trunks += [((a, b % switches), (b, a % switches)) for a, b in itertools.combinations(range(groups), 2)]
    for a, b in trunks:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
        links.append((f"g{a[0]}s{a[1]}", f"g{b[0]}s{b[1]}"))
    hops = {}
    for start in every:
        found, edge = {start: 0}, [start]
        while edge:
            edge = [b for a in edge for b in near[a] if b not in found and not found.update({b: found[a] + 1})]
        hops.update({(f"g{start[0]}s{start[1]}", f"g{to[0]}s{to[1]}"): n for to, n in found.items()})
    draw.shuffle(links)
    return ports(links, set(paths)), paths, lambda a, b: 200 * hops[paths[a][1], paths[b][1]] or 100


def torus(draw, names, size, width):
    names, paths, lines = iter(names), {}, [f"torus 3 {size} 200 {size} 200 {size} 200 -1"]
    for z, y, x in itertools.product(range(size), repeat=3):
        lines.append(f"tree 1 {width} 100 -1")
        for _ in range(width):
            host = next(names)
            paths[host] = (x, y, z, host)
            lines.append(f"node {host} tree 1 2 1 -1")

    def cost(a, b):
        around = (abs(p - q) for p, q in zip(paths[a][:3], paths[b][:3]))
        return 200 * sum(min(n, size - n) for n in around) or 100
    return "\n".join(lines) + "\n", {host: tuple(map(str, path)) for host, path in paths.items()}, cost


def blocks(draw, names, count, width):
    """NVLink domains, as topology/block has them."""
    names, paths, lines = iter(names), {}, []
    for block in range(count):
        own = [next(names) for _ in range(width)]
        paths.update({host: (f"b{block}", host) for host in own})
        lines.append(f"BlockName=b{block} Nodes={','.join(own)}\n")
    return "".join(lines) + f"BlockSizes={width}\n", paths, climbed(paths, [200, 100])


NETWORKS = {
    "leaves": functools.partial(tree, pods=1, leaves=8, width=12),
    "many leaves": functools.partial(tree, pods=1, leaves=24, width=10),
    "pruned": functools.partial(tree, pods=1, leaves=10, width=12, pruned=2),
    "pods": functools.partial(tree, pods=4, leaves=4, width=8),
    "rails": functools.partial(tree, pods=1, leaves=6, width=8, rails=4),
    "dragonfly": functools.partial(dragonfly, groups=6, switches=4, width=4),
    "torus": functools.partial(torus, size=4, width=2),
    "nvlink": functools.partial(blocks, count=8, width=18),
}
CASES = [(name, seed) for seed in range(7) for name in NETWORKS][:50]


def ring(cost, order):
    return sum(cost(a, order[(i + 1) % len(order)]) for i, a in enumerate(order))


def trees(cost, order):
    """Both binary trees, made as a range whose odd members are leaves: each node joins the one halfway further up."""
    n, edges = len(order), []
    step = 1
    while step < n:
        for rank in range(step, n, 2 * step):
            above = rank // (4 * step) * (4 * step) + 2 * step
            edges.append((rank, above if above < n else rank - step))
        step *= 2
    assert len(edges) == n - 1
    second = (lambda r: (r + 1) % n) if n % 2 else (lambda r: n - 1 - r)
    return sum(cost(order[a], order[b]) + cost(order[second(a)], order[second(b)]) for a, b in edges)


def walked_up(paths, nodes):
    """From the first node on: those below its switch by name, those below the next one up, and so on."""
    first, order, left = nodes[0], [nodes[0]], set(nodes[1:])
    for depth in reversed(range(len(paths[first]))):
        near = sorted((host for host in left if paths[host][:depth] == paths[first][:depth]), key=paths.get)
        order += near
        left -= set(near)
    return order


def number(host):
    return int(host[2:])


@pytest.mark.parametrize("network, seed", CASES)
def test_no_order_of_the_scripts_costs_less(tmp_path, network, seed):
    draw = random.Random(f"{network} {seed}")
    names = [f"cn{i}" for i in range(1, 400)]
    if seed % 3 == 1:
        draw.shuffle(names)
    elif seed % 3 == 2:
        # By the racks' rows: neighbours by name are on different switches.
        names = [name for first in range(7) for name in names[first::7]]
    text, paths, between = NETWORKS[network](draw, names)
    cost = lambda a, b: a != b and between(a, b)  # noqa: E731
    nodes = sorted(draw.sample(sorted(paths), draw.randint(3, min(len(paths), 90))), key=number)
    (tmp_path / "net").write_text(text)
    (tmp_path / "snapshot").write_text(f"topiary-snapshot 1\nshape S {SHAPE}\nnodes cn[1-400] S\nend\n")
    done = command.topiary("map", "--order=fabric", "--arch=net", "--snapshot=snapshot", "--format=srun",
                           f"--nodes={','.join(nodes)}", f"--ranks={len(nodes)}", cwd=tmp_path, status=0)
    order = done.stdout.split()
    assert sorted(order, key=number) == nodes and order[0] == nodes[0]
    orders = {"Slurm": nodes, "name": sorted(nodes), "path": sorted(nodes, key=paths.get),
              "walk": walked_up(paths, nodes)}
    ours = ring(cost, order), trees(cost, order)
    for kind, other in orders.items():
        theirs = ring(cost, other), trees(cost, other)
        assert ours[0] <= theirs[0] and ours[1] <= theirs[1], (kind, ours, theirs, done.stderr)
    before = ring(cost, nodes), trees(cost, nodes)
    said = ("ranks stay in Slurm's order of {} nodes: none is found by which rings and trees cost less in the network "
            "(ring {:.6g}, trees {:.6g})".format(len(nodes), *before) if ours == before else
            "ranks are in the order of the network: costs between neighbours of the ring {:.6g}, in Slurm's order "
            "{:.6g}, of the trees {:.6g}, in Slurm's order {:.6g}".format(ours[0], before[0], ours[1], before[1]))
    assert done.stderr == f"topiary: {said}\n"
