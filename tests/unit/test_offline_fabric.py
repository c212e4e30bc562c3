# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary fabric over the discovered fabrics of hwloc's collection, and live from a simulated one."""
import functools
import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest
from rig import command
from rig.command import run
from rig.paths import BUILD, CACHE

DATA = next(iter(sorted(CACHE.glob("src/hwloc-*/tests/netloc/data"))), None)
IBSIM, IBNETDISCOVER = shutil.which("ibsim"), shutil.which("ibnetdiscover", path="/usr/sbin:/usr/bin")
LLDPD, LLDPCLI = (shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("lldpd", "lldpcli"))
UMAD = next(iter(__import__("pathlib").Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")), None)

needs_data = pytest.mark.skipif(DATA is None, reason="no hwloc source: run packaging/setup")
needs_ibsim = pytest.mark.skipif(not (IBSIM and IBNETDISCOVER and UMAD), reason="no ibsim-utils and infiniband-diags")

# Bordage, Foyer and Goglin, Euro-Par 2017: PlaFRIM 2 has 88 nodes (miriel076 was away), 22 a leaf switch on the
# average; two spines.
FABRICS = {
    "plafrim2": {"kind": "fat tree", "switches": 7, "hosts": 96, "links": 106, "cables": 155, "levels": [5, 24],
                 "leaves": [9, 19, 20, 24, 24]},
    "avakas": {"kind": "fat tree", "switches": 25, "hosts": 281, "links": 425, "cables": 569, "levels": [16, 18],
               "leaves": [16] + 5 * [17] + 10 * [18]},
    "plafrim": {"kind": "graph", "switches": 9, "hosts": 125, "links": 137, "cables": 201, "levels": [7, 27],
                "leaves": [6, 15, 16, 17, 18, 26, 27]},
}


topiary = functools.partial(command.topiary, "fabric")


def output(*args):
    done = topiary(*args)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(*files):
    return json.loads(output("export", "--format=json", *files))


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """The files of each fabric, one a subnet."""
    folder = tmp_path_factory.mktemp("fabrics")
    found = {}
    for name in FABRICS:
        subprocess.run(["tar", "-xJf", DATA / f"{name}.txz", "-C", folder], check=True, timeout=60)
        found[name] = sorted((folder / name / "ib-raw").glob("ib-subnet-*.txt"))
    return found


def leaves(plane):
    count = {}
    for place in plane["places"]:
        count[place["path"][-1]] = count.get(place["path"][-1], 0) + 1
    return sorted(count.values())


@needs_data
@pytest.mark.parametrize("name", FABRICS)
def test_discovered_fabrics_are_understood(raw, name):
    plane, expected = as_json(raw[name][0])["planes"][0], FABRICS[name]
    assert {key: plane[key] for key in ("kind", "switches", "hosts", "links", "cables")} == \
        {key: expected[key] for key in ("kind", "switches", "hosts", "links", "cables")}
    assert [level["size"] for level in plane["levels"]] == expected["levels"]
    assert leaves(plane) == expected["leaves"]


@needs_data
def test_the_papers_nodes_are_on_four_leaf_switches(raw):
    places = as_json(raw["plafrim2"][0])["planes"][0]["places"]
    miriel = [place for place in places if place["host"].startswith("miriel")]
    assert {place["host"] for place in miriel} == {f"miriel{i:03}" for i in range(1, 89)} - {"miriel076"}
    assert len({place["path"][-1] for place in miriel}) == 4
    assert len({place["path"][0] for place in miriel}) == 1


@needs_data
def test_two_subnets_are_two_planes(raw):
    fabric = as_json(*raw["plafrim2"])
    assert [(plane["kind"], plane["hosts"]) for plane in fabric["planes"]] == [("fat tree", 96), ("one switch", 23)]
    assert sum(not host["known"] for host in fabric["hosts"]) == 21
    assert any(line.startswith("hosts in several planes: bright") for line in fabric["odd"])
    assert any(line.startswith("adapters of unknown hosts: ") and line.endswith(" and 13 more")
               for line in fabric["odd"])


@needs_data
def test_hops_of_a_graph_are_those_of_its_links(raw):
    fabric = as_json(raw["plafrim"][0])
    plane = fabric["planes"][0]
    switches = {switch["name"] for switch in fabric["switches"]}
    beside = {name: set() for name in switches}
    for link in fabric["links"]:
        if link["b"] in switches:
            beside[link["a"]].add(link["b"])
            beside[link["b"]].add(link["a"])
    of = {place["at"][0]: place["path"][-1] for place in plane["places"]}
    level = plane["levels"][0]
    for a, name in of.items():
        hops, front = {name: 0}, [name]
        while front:
            front = [t for s in front for t in beside[s] if t not in hops and not hops.update({t: hops[s] + 1})]
        assert level["hops"][a * level["size"]:(a + 1) * level["size"]] == [hops[of[b]] for b in range(level["size"])]


@needs_data
@pytest.mark.parametrize("name", FABRICS)
def test_a_picture_has_all_hosts_and_trunks(raw, name):
    """As Graphviz draws it: leaf switches in a row, by name, their hosts below, the chosen ones coloured."""
    dot = output("export", "--format=dot", "--nodes", "miriel[001-030],node[001-010]", *raw[name])
    done = run("dot", "-Tsvg", input=dot, status=0)
    fabric = as_json(*raw[name])
    space = "{http://www.w3.org/2000/svg}"
    groups = [group for group in ElementTree.fromstring(done.stdout).iter(f"{space}g") if group.get("class") == "node"]
    texts = {group.find(f"{space}title").text: [text.text for text in group.iter(f"{space}text")] for group in groups}
    beside = {switch["name"]: [] for switch in fabric["switches"]}
    for link in fabric["links"]:
        if link["b"] not in beside:
            beside[link["a"]].append(link["b"])
    assert {switch: texts[switch][1:] for switch in beside} == beside
    assert len(re.findall('class="edge"', done.stdout)) == sum(link["b"] in beside for link in fabric["links"])
    hosts = {host["name"] for host in fabric["hosts"]}
    assert set(re.findall('"#f6a04d">(.*?)<', dot)) == \
        {host for host in hosts if re.fullmatch("miriel0([012].|30)|node0(0.|10)", host)}
    if fabric["planes"][0]["kind"] == "graph":
        return
    left = {group.find(f"{space}title").text: float(group.find(f"{space}text").get("x")) for group in groups}
    leaves = [switch["name"] for switch in fabric["switches"] if switch["rank"] == 0 and switch["plane"] == 0]
    assert sorted(leaves, key=left.get) == leaves


@needs_data
@pytest.mark.parametrize("name", FABRICS)
def test_slurm_and_text_tell_the_same_tree(raw, name, tmp_path):
    conf = tmp_path / "topology.conf"
    output("export", "--format=slurm", "-o", conf, raw[name][0])
    named = {host["name"] for host in as_json(raw[name][0])["hosts"] if host["known"]}
    read = as_json(conf)
    assert {place["host"] for place in read["planes"][0]["places"]} == named
    assert leaves(read["planes"][0]) == FABRICS[name]["leaves"]
    assert output("export", "--format=slurm", conf) == conf.read_text()
    text = tmp_path / "levels.txt"
    output("export", "--format=paper", "-o", text, raw[name][0])
    read, found = (as_json(path)["planes"][0] for path in (text, raw[name][0]))
    assert read["kind"] == FABRICS[name]["kind"]
    for level in (*read["levels"], *found["levels"]):
        level.pop("pruned")  # of which costs are made
    assert read["levels"] == found["levels"]
    assert ({place["host"]: place["at"] for place in read["places"]}
            == {place["host"]: place["at"] for place in found["places"]})


def test_a_nodes_export_tells_its_guids(tmp_path):
    machine = CACHE / "machines" / "intel-2x8.xml"
    if not machine.exists():
        pytest.skip("no machines: run packaging/setup")
    text = machine.read_text()
    host = re.search(r'name="HostName" value="([^"]*)"', text).group(1)
    guid = re.search(r'name="Port1GID0" value="([^"]*)"', text).group(1).replace(":", "")[-16:]
    found = tmp_path / "discovered"
    found.write_text(f"CA 2 1 0x{guid} 4x EDR - SW 1 1 0x00000000000000a1 ( 'MT4115 ConnectX4 Mellanox Technologies' - "
                     "'leaf' )\n")
    assert [entry["name"] for entry in as_json(found)["hosts"]] == [f"H-{guid}"]
    assert [entry["name"] for entry in as_json("--xml", machine, found)["hosts"]] == [host]


# --- between two hosts

RAILS = """\
CA 1 1 0x11 4x EDR - SW 1 1 0xa1 ( 'cn1 mlx5_0' - 'rail0' )
CA 2 1 0x12 4x EDR - SW 1 1 0xa2 ( 'cn1 mlx5_1' - 'rail1' )
CA 3 1 0x21 4x EDR - SW 1 2 0xa1 ( 'cn2 mlx5_0' - 'rail0' )
CA 4 1 0x22 4x EDR - SW 1 2 0xa2 ( 'cn2 mlx5_1' - 'rail1' )
CA 5 1 0x31 4x HDR - SW 1 1 0xa3 ( 'cn3 mlx5_0' - 'leaf3' )
SW 1 5 0xa1 4x HDR - SW 1 1 0xb1 ( 'rail0' - 'spine1' )
SW 1 6 0xa1 4x HDR - SW 1 1 0xb2 ( 'rail0' - 'spine2' )
SW 1 5 0xa2 4x HDR - SW 1 2 0xb1 ( 'rail1' - 'spine1' )
SW 1 5 0xa3 4x HDR - SW 1 3 0xb1 ( 'leaf3' - 'spine1' )
SW 1 6 0xa3 4x HDR - SW 1 4 0xb1 ( 'leaf3' - 'spine1' )
SW 1 7 0xa3 4x HDR - SW 1 4 0xb2 ( 'leaf3' - 'spine2' )
CA 6 1 0x41 4x EDR - SW 1 1 0xc1 ( 'alone mlx5_0' - 'other' )
"""
# A dragonfly: two groups that are all joined, of rings of four routers.
COMPOSED = """\
alltoall 1 2 400 -1
ring 1 4 200 1 0
node a tree 1 1 1 -1
ring 1 4 200 2 0 3
node b tree 1 1 1 -1
node c tree 1 1 1 -1
"""


@pytest.mark.parametrize("hosts, said", [
    ("cn1 cn2", ["0 2 1 100 cn1 > rail0 > cn2", "0 2 1 100 cn1 > rail1 > cn2"]),
    ("cn1 cn3", ["0 4 3 100 cn1 > rail0 > spine1 > leaf3 > cn3", "0 4 2 100 cn1 > rail1 > spine1 > leaf3 > cn3"]),
    ("cn3 cn1", ["0 4 5 100 cn3 > leaf3 > spine1 > rail0 > cn1"]),
    ("a b", ["plane 0: cost 400"]),
    ("c b", ["plane 0: cost 200"]),
    ("cn1 cn1", "cn1: a route is between two hosts"),
    ("cn1 alone", "cn1 and alone: no plane of the network has both"),
    ("cn1 cn9", "cn9: this host is not in the network"),
])
def test_a_route_between_two_hosts(tmp_path, hosts, said):
    (tmp_path / "net").write_text(COMPOSED if hosts in ("a b", "c b") else RAILS)
    done = topiary("route", *hosts.split(), tmp_path / "net")
    if isinstance(said, str):
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"topiary: fabric: {said}\n")
        return
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[1:len(said) + 1] == said if lines[0].startswith("PLANE") else lines == said
    rows = json.loads(output("route", "--json", *hosts.split(), tmp_path / "net"))["routes"]
    assert [f"{r['plane']} {r['cables']} {r['paths']}" for r in rows] == \
        [" ".join(row.split()[:3]) for row in said if ">" in row]


def test_elements_of_a_composed_network(tmp_path):
    """An alltoall is a tree of one level, a ring a torus of one dimension."""
    (tmp_path / "net").write_text(COMPOSED)
    assert output("export", "--format=paper", tmp_path / "net") == \
        COMPOSED.replace("alltoall", "tree").replace("ring", "torus")


# --- what hosts see by LLDP

# Of lldpd 1.0.16, on a veth pair.
NEIGHBOURS = """\
local-chassis.chassis.mac=7e:52:85:f6:bf:67
local-chassis.chassis.name=cn1
local-chassis.chassis.descr=Compute
local-chassis.chassis.mgmt-ip=fe80::7c52:85ff:fef6:bf67
local-chassis.chassis.mgmt-iface=2
local-chassis.chassis.Bridge.enabled=off
local-chassis.chassis.Router.enabled=off
local-chassis.chassis.Wlan.enabled=off
local-chassis.chassis.Station.enabled=on
lldp.v0.via=LLDP
lldp.v0.rid=1
lldp.v0.age=0 day, 00:00:03
lldp.v0.chassis.mac=e2:3c:3f:36:e1:88
lldp.v0.chassis.name=leaf1
lldp.v0.chassis.descr=Debian GNU/Linux 12 (bookworm) Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0 x86_64
lldp.v0.chassis.mgmt-ip=fe80::e03c:3fff:fe36:e188
lldp.v0.chassis.mgmt-iface=2
lldp.v0.chassis.Bridge.enabled=on
lldp.v0.chassis.Router.enabled=on
lldp.v0.chassis.Wlan.enabled=off
lldp.v0.chassis.Station.enabled=off
lldp.v0.port.mac=e2:3c:3f:36:e1:88
lldp.v0.port.descr=swp1
lldp.v0.port.ttl=120
lldp.v0.port.auto-negotiation.supported=no
lldp.v0.port.auto-negotiation.enabled=no
lldp.v0.port.auto-negotiation.current=10GbaseT - Four-pair Category 6A or better, full duplex mode only
"""


def test_neighbours_of_all_hosts_are_a_fabric(tmp_path):
    """Of each host a file; a second port is a trunk, and a neighbour that forwards nothing is no switch."""
    files = []
    for host, switch in (("cn1", "leaf1"), ("cn2.cluster.example", "leaf1"), ("cn3", "Leaf  2.dc")):
        text = NEIGHBOURS.replace("=cn1", f"={host}").replace("=leaf1", f"={switch}")
        seen = text[text.index("lldp."):]
        if host == "cn3":
            text += seen.replace(".v0.", ".eth1.100.").replace("swp1", "swp9")
            text += seen.replace(".v0.", ".eth2.").replace("Leaf  2.dc", "cn4").replace("enabled=on", "enabled=off")
        files.append(tmp_path / host)
        files[-1].write_text(text)
    fabric = as_json(*files)
    assert sorted((link["a"], link["b"], link["cables"], link["mbps"]) for link in fabric["links"]) == [
        ("Leaf-2", "cn3", 2, 20000), ("Leaf-2", "lldp-top", 1, 0),
        ("leaf1", "cn1", 1, 10000), ("leaf1", "cn2", 1, 10000), ("leaf1", "lldp-top", 1, 0)]
    assert fabric["planes"][0]["kind"] == "fat tree"


NEXT = "lldp.eth1.via=LLDP\nlldp.eth1.chassis.name=phone\nlldp.eth1.chassis.Bridge.enabled=off\n"


@pytest.mark.parametrize("text, links", [
    (NEIGHBOURS.replace("descr=Debian", "descr=Cumulus Linux\n\nCopyright = all\nname=x\nDebian"), 1),
    (NEIGHBOURS.replace("name=leaf1", "name=?") + NEXT, 0),
    (NEIGHBOURS + NEXT.replace("off", "on") + NEXT, 2),
    (NEIGHBOURS + NEIGHBOURS.replace("local-chassis.chassis.name=cn1\n", ""), "neighbours of an unknown host"),
    (NEIGHBOURS + "lldp.eth1.vi", "expected KEY=value"),
], ids=["lines of a description", "no usable name", "two switches", "host without a name", "cut off"])
def test_odd_output_of_lldpcli(tmp_path, text, links):
    (tmp_path / "seen").write_text(text)
    if isinstance(links, str):
        assert links in topiary("show", tmp_path / "seen", status=1).stderr
    else:
        assert sum(link["b"] == "cn1" for link in as_json(tmp_path / "seen")["links"]) == links


@needs_data
def test_what_the_hosts_tool_prints_is_discovered(raw, tmp_path):
    """The tool's recorded output, by its name; a tool that finds nothing, or no tool, is one line."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "ibnetdiscover"
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    none = command.topiary("fabric", "discover", env={"PATH": str(folder)})
    assert none.stderr == "topiary: fabric: none of ibnetdiscover, opareport and lldpcli is installed\n"
    tool.write_text("#!/bin/sh\nexit 255\n")
    tool.chmod(0o755)
    failed = command.topiary("fabric", "discover", env={"PATH": str(folder)})
    assert failed.stderr.endswith("topiary: ibnetdiscover: exit status 255\n"
                                  "topiary: fabric: no tool of this host has found a network\n"), failed.stderr
    tool.write_text(f"#!/bin/sh\nexec cat {raw['plafrim2'][0]}\n")
    command.topiary("fabric", "discover", "-o", tmp_path / "found", env=path, status=0)
    assert (tmp_path / "found").read_text() == raw["plafrim2"][0].read_text()
    tool.unlink()
    (folder / "lldpcli").write_text(f"#!/bin/sh\n[ $4 = neighbors ] || exec cat {tmp_path}/seen\n")
    (tmp_path / "seen").write_text(NEIGHBOURS)
    (folder / "lldpcli").chmod(0o755)
    alone = command.topiary("fabric", "discover", "--import", env={"PATH": f"{folder}:/bin"})
    assert alone.returncode == 1 and "lldpcli knows the links of this host alone: " in alone.stderr, alone.stderr


@pytest.mark.parametrize("args, error", [
    (["show", "{folder}/none"], "{folder}/none: No such file or directory"),
    (["show", "{folder}/bad"], "{folder}/bad:2: expected SW, CA or RT"),
    (["show", "{folder}/good", "{folder}/tree"],
     "{folder}/tree:0: a file of this format cannot be combined with others"),
    (["export", "--format=paper", "--plane=1", "{folder}/good"], "paper: plane 1: no such plane with hosts"),
    (["export", "--format=slurm", "--nodes=x[1-2]", "{folder}/good"], "slurm: no switch has a host with a known name"),
    (["export", "--format=dot", "--nodes=x[1-", "{folder}/good"], "invalid host list"),
    (["show", "--xml={folder}/good", "{folder}/good"], "{folder}/good"),
])
def test_bad_input_is_one_clear_error(tmp_path, args, error):
    (tmp_path / "good").write_text("CA 2 1 0x11 4x EDR - SW 1 1 0xa1 ( 'cn1 mlx5_0' - 'leaf' )\n")
    (tmp_path / "bad").write_text("CA 2 1 0x11 4x EDR - SW 1 1 0xa1 ( 'cn1 mlx5_0' - 'leaf' )\nbad\n")
    (tmp_path / "tree").write_text("tree 1 1 1 -1\nnode a tree 1 1 1 -1\n")
    done = topiary(*(arg.format(folder=tmp_path) for arg in args))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert error.format(folder=tmp_path) in done.stderr


@pytest.mark.parametrize("args, error", [
    (["paint"], "'paint': invalid command, expected one of: show, route, discover, export, import or history"),
    (["discover", "--import", "--xml=x"], "--xml applies to files only"),
    (["show", "--xml=x", "@2026-11-20"], "--xml applies to files only"),
    (["export", "--format=svg"], "unknown format 'svg': expected slurm, slurm-yaml, paper, scotch, dot or json"),
])
def test_wrong_usage(args, error):
    """Found before the registry is asked."""
    done = topiary(*args)
    assert (done.returncode, done.stdout) == (64, "") and error in done.stderr


SIMULATED = """\
Switch 8 "leaf1"
[1] "spine"[1]
[2] "spine"[2]
[3] "cn1"[1]
[4] "cn2"[1]

Switch 8 "leaf2"
[1] "spine"[3]
[2] "spine"[4]
[3] "cn3"[1]

Switch 8 "spine"
[1] "leaf1"[1]
[2] "leaf1"[2]
[3] "leaf2"[1]
[4] "leaf2"[2]

Hca 1 "cn1"
[1] "leaf1"[3]

Hca 1 "cn2"
[1] "leaf1"[4]

Hca 1 "cn3"
[1] "leaf2"[3]
"""


@needs_ibsim
def test_a_live_fabric_is_what_was_simulated(tmp_path):
    net = tmp_path / "net"
    net.write_text(SIMULATED)
    with subprocess.Popen([IBSIM, "-s", net], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as ibsim:
        try:
            found = {}
            for form in ("", "-p"):
                for _ in range(20):
                    done = run(IBNETDISCOVER, *form.split(),
                               env={"LD_PRELOAD": str(UMAD), "PATH": "/usr/sbin:/usr/bin", "SIM_HOST": "cn1"})
                    if done.returncode == 0 and "cn3" in done.stdout:
                        break
                    time.sleep(0.25)
                found[form] = tmp_path / f"found{form}"
                found[form].write_text(done.stdout)
        finally:
            ibsim.kill()
    written = "SwitchName=leaf1 Nodes=cn[1-2]\nSwitchName=leaf2 Nodes=cn3\nSwitchName=spine Switches=leaf[1-2]\n"
    for path in found.values():
        assert output("export", "--format=slurm", path) == written, path.read_text()
        piped = command.topiary("fabric", "export", "--format=slurm", "-", status=0, input=path.read_text())
        assert piped.stdout == written


# A host and a switch, each a network namespace with an lldpd, on the ends of a veth pair.
LIVE = """\
mount -t tmpfs none /run && mkdir -p /run/lldpd /run/etc
printf '127.0.0.1 localhost\\n127.0.0.2 leaf1\\n127.0.0.3 cn1\\n' > /run/etc/hosts
for file in passwd group; do cp /etc/$file /run/etc/; done
grep -q ^_lldpd: /etc/passwd || echo '_lldpd:x:999:999::/run/lldpd:/bin/false' >> /run/etc/passwd
grep -q ^_lldpd: /etc/group || echo '_lldpd:x:999:' >> /run/etc/group
for file in hosts passwd group; do mount --bind /run/etc/$file /etc/$file; done
hostname cn1
ip netns add leaf && ip link add v0 type veth peer name swp1 netns leaf
ip link set v0 up && ip -n leaf link set swp1 up
{lldpd} -d -L {lldpcli} 2>/dev/null &
ip netns exec leaf unshare --uts --mount sh -c '
    mount -t tmpfs none /run && mkdir /run/lldpd && hostname leaf1
    exec {lldpd} -d -L {lldpcli} -u {folder}/leaf' 2>/dev/null &
until [ -S {folder}/leaf ] && lldpcli -u {folder}/leaf configure system capabilities enabled bridge,router >/dev/null
do sleep 0.1; done
until lldpcli -f keyvalue show neighbors 2>/dev/null | grep -q Bridge.enabled=on
do lldpcli update >/dev/null 2>&1; lldpcli -u {folder}/leaf update >/dev/null 2>&1; sleep 0.3; done
{topiary} fabric discover -o {folder}/found
"""


@pytest.mark.skipif(not (LLDPD and LLDPCLI) or os.geteuid(), reason="no lldpd, or no root to make network namespaces")
def test_lldpd_is_discovered(tmp_path):
    run("timeout", "-s", "KILL", "300", "unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--mount-proc",
        "--kill-child", "sh", "-c",
        LIVE.format(lldpd=LLDPD, lldpcli=LLDPCLI, folder=tmp_path, topiary=BUILD / "topiary"), status=0)
    assert sorted((link["a"], link["b"]) for link in as_json(tmp_path / "found")["links"]) == \
        [("leaf1", "cn1"), ("leaf1", "lldp-top")]
