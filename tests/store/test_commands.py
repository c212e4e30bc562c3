# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What people see of a registry: the topiary command's tables, its JSON, its completion, and that the man page tells
all of it."""
import collections
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from registry_rig import BUILD, ROOT, SMALL, machine, run
from rig.cluster import as_user
from rig.command import topiary
from rig.processes import wait_until
from rig.terminal import Terminal

LESS = "Package:2 [NUMANode] L3Cache:2 L2Cache:3 Core:1 PU:2"
WIDE = "Package:4 [NUMANode] Core:16 PU:1"
OLD, NEW = "6.1.0-12", "6.1.0-13"
TOPIARY = BUILD / "topiary"


def document(host, serial, kernel=OLD, synthetic=SMALL):
    xml = machine(synthetic, host, serial).decode()
    return re.sub(r'(<info name="HostName"[^>]*>\n)', rf'\1    <info name="OSRelease" value="{kernel}"/>\n', xml,
                  count=1).encode()


class Cluster:
    """Ten nodes of one class: cn8 and cn9 booted another kernel since, cn10 lost cores; and two nodes of another
    kind."""

    def __init__(self, registry):
        self.registry = registry
        self.first, self.last = {}, {}
        for i in range(1, 11):
            self.put(f"cn{i}", document(f"cn{i}", i))
        for i in (1, 2):
            self.put(f"wide{i}", document(f"wide{i}", 50 + i, synthetic=WIDE))
        time.sleep(1.2)  # so that times of seconds tell the two boots apart
        for i in (8, 9):
            self.put(f"cn{i}", document(f"cn{i}", i, NEW))
        self.put("cn10", document("cn10", 10, synthetic=LESS))

    def put(self, node, xml):
        assert self.registry.put(node, xml).status == 200
        self.first.setdefault(node, xml)
        self.last[node] = xml

    def topiary(self, *words, status=0, **how):
        return self.registry.topiary(*words, status=status, **how)

    def table(self, *words, **how):
        return self.topiary(*words, **how).stdout.splitlines()

    def json(self, *words, **how):
        return json.loads(self.topiary(*words, "--json", **how).stdout)

    def names(self, *words, **how):
        return [n["node"] for n in self.json("nodes", *words, **how)["nodes"]]


@pytest.fixture(scope="module")
def cluster(registry):
    return Cluster(registry)


def at_terminal(command, columns, **env):
    """What a command writes to a terminal of that width."""
    terminal = Terminal(*map(str, command), columns=columns, **env)
    status, text = terminal.end()
    terminal.close()
    assert status == 0
    return text.replace("\r\n", "\n")


# --- nodes and shapes

def test_nodes_table(cluster):
    lines = cluster.table("nodes")
    assert lines[0].split() == ["NODE", "CLASS", "DRIFT", "SHAPE", "STORED", "BYTES", "XML", "LAST", "BOOT"]
    rows = {line.split()[0]: line.split() for line in lines[1:-1]}
    assert set(rows) == set(cluster.last)
    assert rows["cn1"][2] == "-" and rows["cn8"][2] == "cosmetic" and rows["cn10"][2] == "capacity"
    assert rows["cn2"][4:7] == ["fields", "of", "cn1"] and int(rows["cn2"][8]) == len(cluster.last["cn2"])
    assert lines[-1].startswith("12 nodes, 3 with drift; ")
    assert all(line == line.rstrip() for line in lines)


def test_nodes_are_filtered(cluster):
    assert cluster.names("--drift") == ["cn8", "cn9", "cn10"]
    assert cluster.names("--drift=cosmetic") == ["cn8", "cn9"]
    wide = cluster.json("nodes", "wide1")["nodes"][0]
    assert cluster.names("--shape", wide["shape"]) == ["wide1", "wide2"]
    assert cluster.names("--class", wide["class"]) == ["wide1", "wide2"]
    assert cluster.names("cn[8-10]", "--drift=capacity") == ["cn10"]


def test_nodes_by_name_alone(cluster):
    everything = [f"cn{i}" for i in range(1, 11)] + ["wide1", "wide2"]
    assert cluster.table("nodes", "--names") == everything
    assert cluster.table("nodes", "--names", "--drift") == ["cn8", "cn9", "cn10"]


@pytest.mark.parametrize("command, other", [
    (["nodes"], []), (["nodes", "--drift"], []), (["drift"], []), (["facts"], ["--fact", "OSRelease"]),
])
def test_unknown_hosts_are_reported_in_one_line(cluster, command, other):
    done = cluster.topiary(*command, "cn[8-12],nope", *other, status=1)
    assert done.stderr == "topiary: cn[11-12],nope: not in the registry\n"
    assert "cn10" in done.stdout or "cn[8-10]" in done.stdout
    done = cluster.topiary(*command, "nope[1-3]", *other, status=1)
    assert re.fullmatch(rf"topiary: {command[0]}: nope\[1-3\]: not in the registry\n", done.stderr) and not done.stdout


def test_host_lists_may_be_longer_than_a_request(cluster):
    scattered = "cn[" + ",".join(str(i) for i in range(3, 40000, 4)) + "]"
    done = cluster.topiary("nodes", scattered, "--names", status=1)
    assert done.stdout.split() == ["cn3", "cn7"] and done.stderr.startswith("topiary: cn[11,15,19,")
    assert cluster.table("facts", "--fact=OSRelease", scattered, status=1)[1:] == ["machine  6.1.0-12      2  cn[3,7]"]


def test_shapes_fold_their_hosts(cluster):
    rows = {line.split()[4]: line.split() for line in cluster.table("shapes")[1:]}
    assert set(rows) == {"cn[1-9]", "cn10", "wide[1-2]"}
    assert rows["cn[1-9]"][1:4] == ["9", "16", "32"]


def test_tables_fit_a_terminal(cluster):
    command = [TOPIARY, "shapes", "--config", cluster.registry.config]
    narrow = at_terminal(command, 60, NO_COLOR="1").splitlines()
    assert max(map(len, narrow)) <= 60 and narrow[1].endswith("...")
    assert not any(line.endswith("...") for line in at_terminal(command, 300, NO_COLOR="1").splitlines())


def test_colours_are_for_terminals(cluster):
    command = [TOPIARY, "nodes", "--config", cluster.registry.config]
    text = at_terminal(command, 200)
    assert "\033[31mcapacity\033[0m" in text and "\033[1mNODE" in text
    assert "\033" not in at_terminal(command, 200, NO_COLOR="1")
    assert "\033" not in cluster.topiary("nodes").stdout


# --- one node

def test_show_summary(cluster):
    told = dict(re.split(r"  +", line, maxsplit=1) for line in cluster.table("show", "cn10")
                if not line.startswith(" "))
    assert (told["node"] == "cn10" and told["drift"] == "capacity" and told["cores"] == "12, 24 PUs"
            and told["hierarchy"] == LESS)
    assert any("gone" in line for line in cluster.table("show", "cn10"))
    assert dict(line.split(maxsplit=1) for line in cluster.table("show", "cn1"))["drift"] == "none"


def test_show_xml_as_it_is_and_as_it_was(cluster, tmp_path):
    assert cluster.topiary("show", "cn10", "--xml").stdout.encode() == cluster.last["cn10"]
    cluster.topiary("show", "cn10", "--xml", "-o", tmp_path / "x.xml")
    assert (tmp_path / "x.xml").read_bytes() == cluster.last["cn10"]
    then = cluster.json("history", "cn10")["history"][1]["since"]
    assert cluster.topiary("show", f"cn10@{then}", "--xml").stdout.encode() == cluster.first["cn10"]
    assert cluster.json("show", f"cn10@{then}")["hierarchy"] == SMALL
    assert cluster.topiary("show", f"cn10@{then}", "--synthetic").stdout == SMALL + "\n"


def test_times_are_local(cluster):
    """What a table tells in local time can be given back, in the zone of whoever reads it."""
    zone = {"env": {**os.environ, "TZ": "Asia/Tokyo"}}
    row = cluster.table("history", "cn10", **zone)[-1].split()
    then = f"{row[0]} {row[1]}"
    known = datetime.fromisoformat(cluster.json("history", "cn10")["history"][-1]["since"])
    assert known.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%Y-%m-%d %H:%M:%S") == then
    assert cluster.topiary("show", f"cn10@{then}", "--xml", **zone).stdout.encode() == cluster.first["cn10"]
    in_tokyo = f"cn10@{then.replace(' ', 'T')}+09:00"
    assert cluster.topiary("show", in_tokyo, "--xml").stdout.encode() == cluster.first["cn10"]
    assert ("topiary: show: cn10: no topology stored at that time ("
            in cluster.topiary("show", "cn10@2020-01-01 12:30", status=1).stderr)
    assert cluster.json("show", in_tokyo)["at"] == known.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_show_canonical(cluster, tmp_path):
    (tmp_path / "c.xml").write_text(cluster.topiary("show", "cn1", "--canonical").stdout)
    cores = run(["hwloc-calc", "--input", tmp_path / "c.xml", "--number-of", "core", "machine:0"])
    assert cores.strip() == b"16"


def test_show_synthetic(cluster):
    node = cluster.json("show", "wide1")
    for precision, member in (("hierarchy", "hierarchy"), ("cores", "cores_only"), ("detail", "detail"),
                              ("allocation", "allocation")):
        assert cluster.topiary("show", "wide1", f"--synthetic={precision}").stdout == node[member] + "\n"
    assert node["hierarchy"] == WIDE
    assert cluster.json("show", "wide1", "--synthetic") == {"node": "wide1", "hierarchy": WIDE}


def test_show_drawing(cluster, tmp_path):
    cluster.topiary("show", "cn1", "--svg", "--cores", "0-3", "-o", tmp_path / "x.svg")
    svg = ElementTree.parse(tmp_path / "x.svg").getroot()
    boxes = [box.attrib for box in svg.iter("{http://www.w3.org/2000/svg}rect") if "class" in box.attrib]
    counts = collections.Counter(box["class"] for box in boxes)
    assert {"Core": 16, "PU": 32, "L3": 4, "L2": 16}.items() <= counts.items()
    assert len({box["width"] for box in boxes if box["class"] == "Core"}) == 1
    assert [box["class"] for box in boxes if box["fill"] == "rgb(11,110,79)"].count("Core") == 4
    words = "\n".join("".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text"))
    since = cluster.json("show", "cn1")["topology_since"][:10]
    assert (re.search(rf"^cn1,? unchanged since {since[:8]}", words, re.M) and "Dark green: cores 0-3" in words
            and "logical index" in words)
    cluster.topiary("show", "cn1", "--svg", "--cores", "7", "--job", "12", "-o", tmp_path / "y.svg")
    assert "Dark green: core 7 of job 12" in (tmp_path / "y.svg").read_text()


def test_show_facts_now_and_then(cluster):
    now = [line.split() for line in cluster.table("show", "cn8", "--facts")]
    assert ["machine", "OSRelease", NEW] in now and now == [line.split() for line in cluster.table("facts", "cn8")]
    then = cluster.json("history", "cn8")["history"][1]["since"]
    assert ["machine", "OSRelease", OLD] in [line.split() for line in cluster.table("show", f"cn8@{then}", "--facts")]


def test_history(cluster):
    lines = cluster.table("history", "cn8")
    assert re.fullmatch(r"\S+ \S+ +now .* machine: OSRelease 6.1.0-12 -> 6.1.0-13", lines[1])
    assert lines[2].endswith(" -") and len(lines) == 3
    assert [line.split() for line in cluster.table("history", "cn8", "--limit", "1")[1:]] == [lines[1].split()]
    assert len(cluster.json("history", "cn1")["history"]) == 1


# --- all nodes

def test_facts_are_grouped_by_value(cluster):
    rows = [line.split() for line in cluster.table("facts", "--fact", "OSRelease")]
    assert rows == [["OBJECT", "VALUE", "NODES", "HOSTS"], ["machine", OLD, "10", "cn[1-7,10],wide[1-2]"],
                    ["machine", NEW, "2", "cn[8-9]"]]
    assert [line.split() for line in cluster.table("facts", "--fact=OSRelease", "--value", NEW)][1:] == rows[2:]
    assert cluster.table("facts", "--fact=OSRelease", "cn[7-8]")[1].split() == ["machine", OLD, "1", "cn7"]
    assert cluster.table("facts", "--fact=osrelease", "cn[7-8]")[1].split() == ["machine", OLD, "1", "cn7"]
    assert cluster.table("facts", "--fact=DMIProductSerial", "cn3")[1].split() == ["machine", "C000003", "1", "cn3"]


@pytest.mark.parametrize("words, says", [
    (["OSRelaese"], "OSRelaese: no node has this fact; `topiary facts NODE` prints"),
    (["OSRelease", "--value=1"], "OSRelease: no node has this fact with this value; "),
    (["OSRelaese", "cn[7-8]"], "OSRelaese: none of these nodes has this fact; "),
])
def test_facts_that_no_node_has(cluster, words, says):
    done = cluster.topiary("facts", "--fact", *words)
    assert says in done.stderr and done.stdout.split() == ["OBJECT", "VALUE", "NODES", "HOSTS"]


def test_drift_folds_equal_changes(cluster):
    lines = cluster.table("drift")
    assert lines[0].split() == ["SEVERITY", "CLASS", "SINCE", "NODES", "CHANGE", "HOSTS"]
    assert re.match(r"capacity .* 1  .*gone +cn10$", lines[1])
    cosmetic = [line for line in lines if line.startswith("cosmetic")]
    assert len(cosmetic) == 1 and re.search(r" 2  machine: OSRelease 6.1.0-12 -> 6.1.0-13 +cn\[8-9\]$", cosmetic[0])
    assert lines[-1] == "3 nodes with drift: 1 capacity, 0 slow, 0 wiring, 2 cosmetic"


def test_drift_of_some(cluster):
    assert (cluster.table("drift", "--severity", "cosmetic")[-1]
            == "2 nodes with drift: 0 capacity, 0 slow, 0 wiring, 2 cosmetic")
    assert [d["node"] for d in cluster.json("drift", "cn[1-8]")["drift"]] == ["cn8"]
    assert cluster.table("drift", "cn[1-7]")[-1] == "0 nodes with drift: 0 capacity, 0 slow, 0 wiring, 0 cosmetic"


# --- accept

machines = itertools.count(1)


@pytest.fixture
def worn(cluster):
    """A node that lost cores since; its class is new in each test, for accepting teaches the registry."""
    n = next(machines)
    for twin in (f"worn{n}", f"twin{n}"):
        cluster.put(twin, document(twin, 70 + n, synthetic=f"Package:2 [NUMANode] Core:{8 * n} PU:4"))
    cluster.put(f"worn{n}", document(f"worn{n}", 70 + n, synthetic=f"Package:2 [NUMANode] Core:{8 * n - 2} PU:4"))
    assert cluster.names(f"worn{n},twin{n}", "--drift") == [f"worn{n}"]
    return f"worn{n}"


def test_accept(cluster, worn):
    told = cluster.topiary("accept", worn).stdout
    assert re.fullmatch(rf"{worn}: accepted as the baseline of class c\d+ \(\d+ nodes?\)\n", told)
    assert cluster.names(worn, "--drift") == []
    assert cluster.json("accept", worn)[0]["node"] == worn


def test_administrators_alone_change_nodes(cluster, worn):
    folder = cluster.registry.folder
    shutil.copy(TOPIARY, folder)
    for command in "accept", "forget":
        done = subprocess.run(as_user("nobody", [str(folder / "topiary"), command, worn, "--config",
                                                 str(cluster.registry.config)]),
                              capture_output=True, text=True, timeout=60, check=False, cwd="/")
        assert (done.returncode == 1
                and re.search(rf"^topiary: {command}: .*{worn}.*status 403\)$", done.stderr)), done.stderr
    assert cluster.names(worn, "--drift") == [worn]


def test_accept_reports_nodes_done_before_an_error(cluster, worn):
    done = cluster.topiary("accept", worn, "nope", status=1)
    assert (done.stdout.startswith(f"{worn}: accepted as the baseline of class ")
            and "nope: not in the registry" in done.stderr)


def test_accept_after_a_repair(cluster):
    """What the node says then is the baseline of the class that it came from."""
    whole, half = "Package:4 [NUMANode] L3:3 Core:3 PU:1", "Package:4 [NUMANode] L3:3 Core:2 PU:1"
    for node in "mended", "healthy":
        cluster.put(node, document(node, 90, synthetic=whole))
    cluster.put("mended", document("mended", 90, synthetic=half))
    assert "(1 node)" in cluster.topiary("accept", "mended").stdout
    cluster.put("mended", document("mended", 90, synthetic=whole))
    assert cluster.names("mended,healthy", "--drift") == ["mended"]
    assert "(2 nodes)" in cluster.topiary("accept", "mended").stdout
    assert cluster.names("mended,healthy", "--drift") == []
    assert cluster.topiary("verify", "mended").stdout == ""


# --- forget

def test_forget(cluster):
    """All that is stored of the nodes is removed, or nothing if a name is mistyped; one that exports again is new."""
    for i in (1, 2):
        cluster.put(f"gone{i}", document(f"gone{i}", 60 + i))
    cluster.put("gone2", document("gone2", 62, NEW))
    done = cluster.topiary("forget", "gone[1-3]", status=1)
    assert "gone3: not in the registry" in done.stderr and "no node was removed" in done.stderr and not done.stdout
    assert cluster.names("gone[1-2]") == ["gone1", "gone2"]
    assert wait_until(lambda: "gone[1-2]" in cluster.registry.snapshot_text(), 30)
    assert cluster.names("gone[1-2]", "--drift") == ["gone2"]
    told = cluster.topiary("forget", "gone1", "gone[1-2]").stdout
    assert told == "gone[1-2]: removed (2 nodes, 1 former export)\n"
    assert "gone2: removed by uid 0, with 1 former exports" in cluster.registry.log("topiaryd")
    for table, node in (("node", "name"), ("past", "node"), ("drift", "node"), ("node_fact", "node")):
        assert cluster.registry.sql(f"SELECT count(*) FROM {table} WHERE {node} LIKE 'gone%'") == "0", table
    assert wait_until(lambda: "gone" not in cluster.registry.snapshot_text(), 30)
    cluster.put("gone1", document("gone1", 61))
    assert len(cluster.json("history", "gone1")["history"]) == 1
    assert cluster.json("forget", "gone1") == [{"node": "gone1", "history": 0}]


# --- bad lines

@pytest.mark.parametrize("words, why", [
    (["history"], "a NODE is required"),
    (["history", "cn1", "--limit", "0"], "--limit=0: expected a number from 1 to 999999999"),
    (["history", "cn1", "--limit=-1"], "--limit"),
    (["show"], "a NODE is required"), (["show", "cn1", "cn2"], "Too many arguments"),
    (["show", "-cn/1"], "invalid option|not a node"),
    (["show", "c/n"], "not a node name"), (["show", "cn1@tomorrow"], "cn1: 'tomorrow': expected a time"),
    (["show", "cn1@2026-13-01"], "expected a time"), (["show", "cn1@2026-01-01 12:00x"], "expected a time"),
    (["show", "cn1@2026-01-01T12:00:00+9"], "expected a time"),
    (["show", "cn1", "--synthetic=some"], "invalid value, expected one of: hierarchy"),
    (["show", "cn1", "--cores", "1"], "--cores requires --svg"),
    (["show", "cn1", "--job", "1"], "--job requires --svg"),
    (["show", "cn1", "--svg", "--job=x"], "--job=x: expected a number"),
    (["show", "cn1", "-o", "/dev/null"], "--output requires"),
    (["show", "cn1", "--synthetic", "--xml"], "--synthetic excludes --xml, --canonical, --svg and --facts"),
    (["show", "cn1", "--svg", "--xml"], "--svg and --xml exclude each other"),
    (["show", "cn1@2130-01-01"], "is in the future"),
    (["snapshot", "--offline", "cn1"], "'cn1': expected NODES=FILE"),
    (["facts"], "a NODE or --fact=NAME is required"), (["facts", "cn1", "--value", "x"], "--value requires --fact"),
    (["drift", "--severity", "identity"], "invalid value, expected one of: cosmetic"),
    (["nodes", "--drift=grave"], "invalid value, expected one of: cosmetic"),
    (["accept"], "at least one node is required"), (["forget"], "at least one node is required"),
])
def test_wrong_usage(cluster, words, why):
    assert re.search(why, cluster.topiary(*words, status=64).stderr)


@pytest.mark.parametrize("words, why", [
    (["nodes", "cn[1-"], "invalid host list"), (["facts", "--fact=OSRelease", "cn]1"], "invalid host list"),
    (["drift", "cn[1-"], "invalid host list"),
    (["show", "nope"], "nope: not in the registry"), (["history", "nope"], "nope: not in the registry"),
    (["facts", "nope"], "nope: not in the registry"), (["accept", "nope"], "nope: not in the registry"),
    (["forget", "nope"], "nope: not in the registry"), (["forget", "cn[1-"], "invalid host list"),
])
def test_errors_are_one_line(cluster, words, why):
    done = cluster.topiary(*words, status=1)
    assert re.search(why, done.stderr) and done.stderr.count("\n") == 1 and not done.stdout
    assert done.stderr.count("nope") <= 1 and not re.match(r"topiary: \w+: http", done.stderr)


def test_common_options_stand_before_the_command_too(cluster):
    words = ["--config", str(cluster.registry.config), "--json", "nodes"]
    done = topiary(*words, status=0)
    assert json.loads(done.stdout)["nodes"], done.stderr


@pytest.mark.parametrize("words, why", [
    ([], "Usage: topiary COMMAND"), (["nodse"], "unknown command 'nodse'; see `topiary --help`"),
    (["--json"], "Usage: topiary COMMAND"),
    (["--jsno", "nodes"], "unrecognized option '--jsno'"), (["--config"], "option '--config' requires an argument"),
])
def test_missing_command_is_a_usage_error(words, why):
    done = topiary(*words, status=64)
    assert why in done.stderr and not done.stdout


# --- completion, and the man page

def complete(words, url=None):
    """COMPREPLY for the words of a line, of which the last is being written."""
    script = f"""
        . {ROOT}/packaging/completion/topiary.bash
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _topiary topiary
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    words = [words[0], words[1], *(["--url", url] if url else []), *words[2:]]
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=30,
                          check=True, cwd=ROOT, env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
    assert not done.stderr, done.stderr
    return [word for word in done.stdout.splitlines() if word]


def commands():
    return re.findall(r"^  ([a-z]+) ", run([TOPIARY, "--help"]).decode(), re.M)


def options(command):
    return set(re.findall(r"^ +(?:-., )?--([a-z-]+)", run([TOPIARY, command, "--help"]).decode(), re.M))


@pytest.mark.parametrize("words, expected", [
    (["topiary", "sh"], ["shapes", "show", "shape"]), (["topiary", "nodes", "--dr"], ["--drift"]),
    (["topiary", "nodes", "--drift", "=", "c"], ["cosmetic", "capacity"]),
    (["topiary", "drift", "--severity", "w"], ["wiring"]),
    (["topiary", "show", "--synthetic", "="], ["hierarchy", "cores", "detail", "allocation"]),
    (["topiary", "map", "--format", ""],
     ["plain", "openmpi", "openmpi-seq", "openmpi5", "mpich", "intelmpi", "mvapich2", "cray", "srun"]),
    (["topiary", "shape", "README"], ["README.md"]),
    (["topiary", "show", "-o", "README"], ["README.md"]), (["topiary", "facts", "--fact", ""], []),
    (["topiary", "nosuch", "--"], []),
])
def test_completion(words, expected):
    assert complete(words) == expected


def test_completion_knows_every_command_and_option():
    assert set(commands()) < set(complete(["topiary", ""]))
    for command in commands():
        offered = set(complete(["topiary", command, "--"]))
        assert offered and offered == {"--" + o for o in options(command)}


def test_completion_of_nodes(cluster):
    url = f"http://127.0.0.1:{cluster.registry.port}"
    assert complete(["topiary", "show", "wi"], url) == ["wide1", "wide2"]
    assert complete(["topiary", "history", "cn1"], url) == ["cn1", "cn10"]


def test_completion_does_not_wait_for_a_silent_registry():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert complete(["topiary", "show", "cn"], f"http://127.0.0.1:{silent.getsockname()[1]}") == []
        assert time.monotonic() - began < 40


def test_man_page_has_every_command_and_option():
    page = (ROOT / "docs/topiary.1").read_text()
    for command in commands():
        assert f"\n.Ss {command}\n" in page
        section = page[:page.index(".Sh DESCRIPTION")] + page.split(f"\n.Ss {command}\n")[1].split("\n.S")[0]
        for option in options(command) - {"help", "usage", "config", "url", "json"}:
            assert (re.search(rf"Fl -{option}\b|, Fl -{option}\b", section)
                    or f"Fl {option[0]} Ar" in section), (command, option)
