# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""`topiary map` without a cluster: nodes by name, by a network's file, by distances alone."""
import functools
import json
import re

import pytest
from rig import command
from rig.limits import limits

SNAPSHOT = """\
topiary-snapshot 1
shape S Package:2 [NUMANode] L3Cache:1 Core:4 PU:2
nodes cn[1-4] S
end
"""
# The machine of figure 5 in the paper of Goglin, Bordage and Foyer: a torus of routers, four nodes to a router, of
# which a job has three.
TORUS = """\
torus 3 4 1600 4 1600 4 1600 2 32 52
tree 1 4 800 1 0
node n129 tree 4 2 80 2 40 4 20 2 10 -1
tree 1 4 800 2 0 1
node n208 tree 4 2 80 2 40 4 20 2 10 -1
node n210 tree 4 2 80 2 40 4 20 2 10 5 0 1 2 8 31
"""


def dense(n, weight):
    return "\n".join(" ".join(str(weight(a, b)) for b in range(n)) for a in range(n)) + "\n"


def topiary_map(folder, *words, memory=None):
    return command.topiary("map", *words, cwd=folder, preexec_fn=limits(memory))


def ring(n):
    return dense(n, lambda a, b: int((a - b) % n in (1, n - 1)))


@pytest.fixture
def topiary(tmp_path):
    (tmp_path / "snapshot").write_text(SNAPSHOT)
    (tmp_path / "torus").write_text(TORUS)
    (tmp_path / "ring4").write_text(ring(4))
    (tmp_path / "ring24").write_text(ring(24))

    return functools.partial(topiary_map, tmp_path)


def seats(told):
    assert told.returncode == 0, told.stderr
    rows = [line.split() for line in told.stdout.splitlines()]
    assert [int(rank) for rank, _, _ in rows] == list(range(len(rows)))
    seen = [(host, leaf) for _, host, leaves in rows for leaf in leaves.split(",")]
    assert len(set(seen)) == len(seen), "two ranks on one leaf"
    return [(host, tuple(int(leaf) for leaf in leaves.split(","))) for _, host, leaves in rows]


@pytest.mark.parametrize("options, packages", [
    # Four that talk in a ring: within one package of one node, unless they are to be spread.
    (["--nodes=cn[1-4]"], [4]),
    (["--nodes=cn[1-4]", "--fill=compact"], [4]),
    (["--nodes=cn[1-4]", "--fill=spread"], [1, 0, 1, 0, 1, 0, 1, 0]),
    (["--nodes=cn[1-2]", "--fill=spread"], [1, 1, 1, 1]),
    (["--nodes=cn[1-2]", "--tasks-per-node=2(x2)"], [2, 0, 2, 0]),
    # Two cores each: a package holds two of them.
    (["--nodes=cn[1-4]", "--cpus-per-task=4"], [2, 2]),
    (["--nodes=cn[1-4]", "--cpus-per-task=4", "--fill=spread"], [1, 0, 1, 0, 1, 0, 1, 0]),
])
def test_where_ranks_go(topiary, options, packages):
    found = [0] * 8
    for host, leaves in seats(topiary("--snapshot=snapshot", "--matrix=ring4", *options)):
        assert len({leaf // 4 for leaf in leaves}) == 1
        found[2 * int(host[2:]) - 2 + leaves[0] // 4] += 1
    assert found[:len(packages)] == packages


def test_network_of_the_paper(topiary):
    told = topiary("--arch=torus", "--matrix=ring24", "--explain=json")
    found = seats(told)
    assert {host for host, _ in found} <= {"n129", "n208", "n210"}
    assert all(leaf in (0, 1, 2, 8, 31) for host, (leaf,) in found if host == "n210")
    costs = json.loads(told.stderr)
    assert costs["cost"] <= min(costs["block"], costs["cyclic"]) and costs["busiest_nic"] == 0
    assert len({host for host, _ in found}) == 1


def test_distances_alone(topiary, tmp_path):
    # Places 0 4 8 ... are next to each other, and so on: four groups.
    (tmp_path / "distances").write_text(dense(16, lambda a, b: 0 if a == b else 1 if a % 4 == b % 4 else 9))
    told = topiary("--distances=distances", "--matrix=ring4", "--explain=json")
    found = seats(told)
    assert {host for host, _ in found} == {"-"}
    assert len({leaf % 4 for _, (leaf,) in found}) == 1
    assert json.loads(told.stderr)["cost"] == 8


FOUR = "topiary-snapshot 1\nshape A Package:2 NUMANode:2 Core:2 PU:1\nnodes cn[1-3] A\nend\n"
NEAR = "node=100,package=20,numa=12,core=2"


def test_costs_of_a_file(topiary, tmp_path):
    """By node; what the others have is said, too."""
    (tmp_path / "four").write_text(FOUR)
    (tmp_path / "costs").write_text(f"# measured\n\ncn[1,7] {NEAR},0-1=12,0-2=20,0-3=20,1-2=20,1-3=20,2-3=12\n")

    def explained(nodes, costs, *options):
        told = topiary("--snapshot=four", "--matrix=ring4", f"--nodes={nodes}", f"--costs={costs}", "--explain=json",
                       *options)
        assert told.returncode == 0, told.stderr
        return json.loads(told.stderr.split("\n")[-2])
    assert explained("cn1=0,2,4,6", "./costs")["costs"] == "within nodes: of 1 node from ./costs"
    assert (explained("cn[1-2]=0-1", "./costs")["costs"]
            == "within nodes: of 1 node from ./costs, default for 1 node")
    (tmp_path / "costs").write_text("cn1 core=7\n* core=9,node=50\n")
    one, two = explained("cn2=0-1", "./costs", "--ranks=2"), explained("cn1=0-1", "./costs", "--ranks=2")
    assert (one["cost"], two["cost"]) == (18, 14)
    assert explained("cn1=0-1", "default", "--ranks=2")["costs"] == "within nodes: default for 1 node"


@pytest.mark.parametrize("words, capitals", [
    ("map --arch=torus --matrix=ring24", "--explain=json --format=openmpi5 --effort=fast --fill=compact"),
    ("map --snapshot=snapshot --matrix=ring4 --nodes=cn1=0-3", "--explain=json --costs=default --format=plain"),
    ("matrix", "--generate=ring:4 --format=dense"), ("fabric export torus", "--format=json"),
    (f"move --pid={2**31 - 1}", "--to=local"), ("nodes --url=http://127.0.0.1:1", "--drift=any"),
    ("show --url=http://127.0.0.1:1 cn1", "--synthetic=cores"),
    ("verify --url=http://127.0.0.1:1 cn1", "--mode=strict --severity=slow"),
], ids=lambda words: words.partition(" ")[0])
def test_keywords_may_be_capitals(topiary, tmp_path, words, capitals):
    """Like those of Slurm's options."""
    written = [words.split() + capitals.split(),
               words.split() + [re.sub("=.*", lambda value: value[0].upper(), word) for word in capitals.split()]]
    done = [command.topiary(*one, cwd=tmp_path) for one in written]
    small, large = ((one.returncode, one.stdout, re.sub('"seconds":.*', "", one.stderr)) for one in done)
    assert small[0] in (0, 1, 4) and large == small


def test_ranks_follow_the_nearer_numa_nodes(topiary, tmp_path):
    """By default two NUMA nodes of a package are nearest; as measured it is those of different packages."""
    (tmp_path / "four").write_text(FOUR)
    (tmp_path / "pairs").write_text("0 0 9 0\n0 0 0 9\n9 0 0 0\n0 9 0 0\n")
    odd = f"{NEAR},0-1=90,0-2=12,0-3=90,1-2=90,1-3=12,2-3=90"

    def costs(*options):
        told = topiary("--snapshot=four", "--matrix=pairs", "--nodes=cn1=0,2,4,6", "--explain=json", *options)
        return [leaves[0] for _, leaves in seats(told)], json.loads(told.stderr)
    for apart, options in ((1, ()), (2, (f"--costs={odd}",))):
        found, told = costs(*options)
        assert told["cost"] == 2 * 18 * 12
        assert [abs(found[a] - found[b]) for a, b in ((0, 2), (1, 3))] == [apart, apart]


@pytest.mark.parametrize("text, words", [
    ("cn1", "costs:1: expected a host list and costs"), ("cn1 core=x", "costs:1: costs: core=x"),
    ("cn1 core=1\n\ncn[1-2] core=2", "costs:3: cn1: node given twice"),
    ("* core=1\n* core=2", "costs:2: *: given twice"),
    ("cn[1 core=1", "costs:1: "), ("cn1 core=1\0", "not a text file"),
    ("cn1 0-1=3", "cn1: costs between 2 NUMA nodes, but cores of the node are in 4"), ("cn1 0-1=3,0-2=4", "missing"),
])
def test_bad_files_of_costs(topiary, tmp_path, text, words):
    (tmp_path / "four").write_text(FOUR)
    (tmp_path / "costs").write_text(text)
    told = topiary("--snapshot=four", "--matrix=ring4", "--nodes=cn1=0,2,4,6", "--costs=./costs")
    assert told.returncode == 1 and words in told.stderr and not told.stdout


def test_costs_are_what_is_asked_for(topiary):
    told = topiary("--snapshot=snapshot", "--matrix=ring4", "--nodes=cn1=0-3", "--costs=core=7", "--explain=json")
    assert json.loads(told.stderr)["cost"] == 2 * 4 * 7


@pytest.mark.parametrize("weights, cost", [
    (lambda a, b: 0, 0),
    (lambda a, b: 2 ** 40 if abs(a - b) == 2 else 0, 2 ** 41 * 2 * 2),
    (lambda a, b: 2 ** 60 if abs(a - b) == 2 else 0, 2 ** 61 * 2 * 2),
    (lambda a, b: 1e200 if abs(a - b) == 2 else 1e-200, pytest.approx(8e200)),
    # A row for a column: what one sends and the other does not count together.
    (lambda a, b: 3 if (a, b) == (0, 3) else 0, 3 * 2),
])
def test_weights_of_any_size(topiary, tmp_path, weights, cost):
    (tmp_path / "matrix").write_text(dense(4, weights))
    told = topiary("--snapshot=snapshot", "--matrix=matrix", "--nodes=cn[1-2]=0,4", "--costs=package=50,core=2",
                   "--explain=json")
    spread = json.loads(told.stderr)
    told = topiary("--snapshot=snapshot", "--matrix=matrix", "--nodes=cn[1-2]=0-1", "--explain=json")
    seats(told)
    assert json.loads(told.stderr)["cost"] == cost and spread["cost"] >= json.loads(told.stderr)["cost"]


@pytest.mark.parametrize("words, says", [
    (["--nodes=cn1"], "one of --matrix, --learned and --order is required"),
    *((["--order=fabric", word], "--order excludes --block, --distances, --effort and --seed")
      for word in ("--effort=high", "--seed=2", "--block")),
    (["--matrix=ring4"], "one of --job, --nodes, --arch or --distances is required"),
    (["--matrix=ring4", "--nodes=cn9"], "cn9: this node is not in the snapshot"),
    (["--matrix=ring4", "--nodes=cn1;cn1"], "cn1: node given twice"),
    (["--matrix=ring24", "--nodes=cn1"], "24 ranks, but the job has only 16 places"),
    (["--matrix=ring24", "--nodes=cn1", "--cpus-per-task=2"],
     "24 ranks of 2 CPUs, but the job's cores have only 8 such places"),
    (["--matrix=ring4", "--nodes=cn1=0-2", "--cpus-per-task=9"],
     "cn1: the job's cores on this node have fewer than the 9 CPUs of a task"),
    (["--matrix=ring4", "--nodes=cn1", "--ranks=5"], "ring4: the matrix has 4 ranks, but the job has 5 tasks"),
    (["--matrix=ring4", "--nodes=cn1", "--fill=some"],
     "--fill=some: invalid value, expected one of: compact, spread, auto"),
    (["--matrix=ring4", "--nodes=cn1", "--effort=9"], "--effort=9: invalid value, expected one of: fast, normal, high"),
    (["--matrix=ring4", "--nodes=cn1", "--costs=numa"], "--costs: numa: No such file"),
    (["--matrix=ring4", "--nodes=cn1", "--arch=torus"], "cn1: this node is not in the network"),
    (["--matrix=ring4", "--nodes=cn1", "--arch=none"], "none: "),
    (["--matrix=ring4", "--nodes=cn1", "--plane=0"], "--plane requires --arch"),
    (["--matrix=ring4", "--nodes=cn1", "--format=mpich", "--topology=cn[=x"], "'cn[': invalid host list"),
    (["--matrix=ring4", "--nodes=cn1", "--format=mpich", "--topology=cn[7-8,x]=x"], "'cn[7-8,x]': invalid host list"),
    (["--matrix=ring4", "--nodes=cn1", "--format=mpich", "--url=http://127.0.0.1:1"],
     "cn1: no topology with its OS CPU numbers: no answer from http"),
    (["--matrix=ring4", "--nodes=cn1", "--format=mpich", "--topology=cn1"], "'cn1': expected HOSTS=FILE"),
    (["--matrix=ring4", "--nodes=cn1", "--format=mpich", "--topology=cn[1-2]=gone"], "gone: No such file or directory"),
    (["--matrix=ring4", "--nodes=cn1", "--distances=ring4"],
     "ring4: the matrix of distances has 4 places, but the job has 8"),
    (["--matrix=ring24", "--distances=ring4"], "24 ranks, but the job has only 4 places"),
    (["--matrix=ring4", "--distances=ring4", "--format=openmpi"], "--distances has no host names"),
    (["--matrix=ring4", "--nodes=cn1", "--tasks-per-node=2,2"], "--tasks-per-node='2,2' does not fit"),
    (["--matrix=ring4", "--nodes=cn1=0-3;cn9=0"], "cn9: this node is not in the snapshot"),
    (["--matrix=ring4", "--nodes=cn1=99"], "cn1: core list '99': invalid at '99' (the node has 8 cores)"),
    (["--matrix=ring4", "--nodes=cn1="], "cn1: core list ''"),
    (["--matrix=ring4", "--nodes="], "'': no node"),
    (["--matrix=ring24", "--nodes=cn1=0-3"], "24 ranks, but the job has only 8 places"),
    (["--matrix=ring4", "--nodes=cn1", "--ranks=0"], "--ranks=0: expected a number from 1 to 4294967295"),
    (["--matrix=/dev/null", "--nodes=cn1"], "/dev/null: not a regular file"),
    (["--matrix=.", "--nodes=cn1"], ".: not a regular file"),
    (["--matrix=gone", "--nodes=cn1"], "gone: No such file or directory"),
])
def test_bad_input(topiary, words, says):
    told = topiary("--snapshot=snapshot", *words)
    assert told.returncode != 0 and says in told.stderr and not told.stdout, told.stderr


MARKET = "%%MatrixMarket matrix coordinate real "


@pytest.mark.parametrize("text, says", [
    (b"", "bad: empty"),
    (b"0 -1\n1 0\n", "bad:1: negative weight"),
    (b"0 1\0 2\n1 0 0\n", "bad:1: not a number"),
    ((MARKET + "general\n65536 65536 0\n").encode(), "65536 ranks, but the job has only 16 places"),
    (b"0\n65536 4294967295\n0 010\n4294967295 1 2\n", "bad:"),
])
@pytest.mark.parametrize("option", ["--matrix", "--distances"])
def test_bad_matrix(topiary, tmp_path, option, text, says):
    """One line that names the file, whether it holds what ranks exchange or what places cost; within 1 GiB, whatever a
    header claims."""
    if option == "--distances" and "places" in says:
        says = "the matrix of distances has 65536 places, but the job has 8"
    (tmp_path / "bad").write_bytes(text)
    told = topiary("--snapshot=snapshot", "--nodes=cn1", "--matrix=ring4", f"{option}=bad", memory=1 << 30)
    assert told.returncode == 1 and says in told.stderr and not told.stdout, told.stderr
    assert told.stderr.count("\n") == 1


PLANES = "SwitchName=a Nodes=cn[1-2],x[1-2]\nSwitchName=b Nodes=cn[3-4]\n"


@pytest.mark.parametrize("words, says", [
    # What is not connected cannot be compared: the node and its plane are named.
    (["--nodes=cn[1,3]=0-1"], "cn3: this node is in plane 1 of the network, not in the selected one"),
    (["--nodes=cn[1,3]=0-1", "--plane=1"], "cn1: this node is in plane 0 of the network, not in the selected one"),
    (["--nodes=cn1", "--plane=2"], "planes: no plane 2 with hosts"),
    # Where the network alone says which nodes, none is left out in silence.
    ([], "planes: only 4 of 6 hosts are in one plane; select a plane with --plane=N"),
    (["--plane=1"], "4 ranks, but the job has only 2 places"),
])
def test_network_of_two_planes_is_refused(topiary, tmp_path, words, says):
    (tmp_path / "planes").write_text(PLANES)
    told = topiary("--snapshot=snapshot", "--matrix=ring4", "--arch=planes", *words)
    assert told.returncode == 1 and says in told.stderr and told.stderr.count("\n") == 1 and not told.stdout


def test_node_without_a_link(topiary, tmp_path):
    link = "CA {0} 1 0x1{0} 4x QDR - SW 1 1 0xa1 ( 'cn{0} mlx5_0' - 'leaf' )\n"
    (tmp_path / "ports").write_text("CA 1 1 0x11 4x QDR 'cn1 mlx5_0'\n" + link.format(2) + link.format(3))
    told = topiary("--snapshot=snapshot", "--matrix=ring4", "--arch=ports", "--nodes=cn[1-2]")
    assert (told.returncode == 1 and "cn1: this node has no link to a switch of the network" in told.stderr
            and told.stderr.count("\n") == 1)
    assert {host for host, _ in seats(topiary("--matrix=ring4", "--ranks=2", "--arch=ports"))} == {"cn2", "cn3"}


def test_longer_matrix_is_cut(topiary):
    """Of a ring of four the first three: two pairs are left."""
    told = topiary("--snapshot=snapshot", "--nodes=cn1=0-3", "--matrix=ring4", "--ranks=3", "--costs=core=5",
                   "--explain=json")
    cut, explained = told.stderr.split("\n", 1)
    assert len(seats(told)) == 3 and json.loads(explained)["cost"] == 2 * 2 * 5 and "4 ranks" in cut, cut


@pytest.mark.parametrize("words, hosts", [
    (["--plane=0"], {"cn1", "cn2", "x1", "x2"}), (["--nodes=cn[1-2]=0-1"], {"cn1", "cn2"}),
    (["--nodes=cn[3-4]=0-1", "--plane=1"], {"cn3", "cn4"}),
])
def test_one_plane_of_two(topiary, tmp_path, words, hosts):
    (tmp_path / "planes").write_text(PLANES)
    assert ({host for host, _ in seats(topiary("--snapshot=snapshot", "--matrix=ring4", "--arch=planes", *words))}
            == hosts)


def test_two_planes_of_the_same_hosts(topiary, tmp_path):
    """Rails: whichever is taken, no host is left out."""
    lines = ["SwitchName=top Switches=a", "SwitchName=a Nodes=cn[1-2]", "SwitchName=b Nodes=cn[1-2]"]
    (tmp_path / "rails").write_text("\n".join(lines) + "\n")
    (tmp_path / "pair").write_text("0 1\n1 0\n")
    assert (seats(topiary("--matrix=pair", "--arch=rails"))
            == seats(topiary("--matrix=pair", "--arch=rails", "--plane=1")) == [("cn1", (0,)), ("cn2", (0,))])


@pytest.mark.parametrize("options, first", [([], 8), (["--tasks-per-node=8,4", "--ranks=12"], 8),
                                            (["--tasks-per-node=4,8", "--ranks=12"], 4)])
@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_block_chooses_places_on_each_node_only(topiary, tmp_path, options, first, effort):
    """Ranks of one parity exchange most, wherever they are: on each node they belong together, and the pairs across
    nodes change nothing."""
    (tmp_path / "parity").write_text(dense(16, lambda a, b: 0 if a == b else 10 if (a - b) % 2 == 0 else 1))
    found = seats(topiary("--snapshot=snapshot", "--nodes=cn1;cn2", "--matrix=parity", "--block",
                          f"--effort={effort}", *options))
    assert [host for host, _ in found] == first * ["cn1"] + (len(found) - first) * ["cn2"]
    for ranks in (range(first), range(first, len(found))):
        packages = {(rank % 2, found[rank][1][0] // 4) for rank in ranks}
        assert len(packages) == 2, "ranks of one parity are on both packages"


def test_block_has_nothing_to_explain(topiary):
    told = topiary("--snapshot=snapshot", "--nodes=cn1;cn2", "--matrix=ring4", "--block", "--explain")
    assert told.returncode and "--block" in told.stderr
