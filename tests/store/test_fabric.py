# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The fabric in the registry: imported, kept as versions, read back the same, matched with the nodes' GUIDs,
published."""
import difflib
import hashlib
import json
import re
import shutil
import subprocess
import time

import pytest
from registry_rig import BUILD, ROOT, zstd
from rig.cluster import as_user
from rig.command import topiary
from rig.machines import individual, machine
from rig.processes import wait_until
from upkeep_rig import upkept

GUIDS = {"leaf1": 0xa1, "leaf2": 0xa2, "spine": 0xa3, "other": 0xa4}
# cn1 has a second adapter in another plane; the last one tells nobody's name.
CABLES = [("cn1 mlx5_0", 0x11, "leaf1"), ("cn2 mlx5_0", 0x21, "leaf1"), ("cn3 mlx5_0", 0x31, "leaf2"),
          ("leaf1", 0, "spine"),
          ("leaf1", 0, "spine"), ("leaf2", 0, "spine"), ("leaf2", 0, "spine"), ("cn1 mlx5_1", 0x12, "other")]
STRANGER = "MT4115 ConnectX4 Mellanox Technologies"
PAPER = ("torus 2 4 7 3 5 2 0 5\ntree 1 2 9 -1\nnode a tree 2 2 5 4 2 -1\nnode b tree 2 2 5 4 2 -1\ntree 1 2 9 1 1\n"
         "node c tree 2 2 5 4 2 3 0 1 5\n")
# A graph: no tree.
GRAPH = [(f"g{i} mlx5_0", 0x100 + i, f"s{i % 5}") for i in range(10)] + \
    [("s0", 0, "s1"), ("s1", 0, "s2"), ("s2", 0, "s3"), ("s3", 0, "s4"), ("s1", 0, "s4")]


def discovered(cables):
    """As ibnetdiscover -p has it."""
    ports, lines = {}, []

    def end(name, guid):
        ports[name] = ports.get(name, 0) + 1
        known = guid or GUIDS.get(name) or 0xb0 + int(name[1:])
        return f"{'CA' if guid else 'SW'} 1 {1 if guid else ports[name]} 0x{known:016x}"

    for a, guid, b in cables:
        lines.append(f"{end(a, guid)} 4x EDR - {end(b, 0)} ( '{a}' - '{b}' )\n")
    return "".join(lines)


class Fabric:
    """The registry's, and files to import."""

    def __init__(self, registry, folder):
        self.registry, self.folder = registry, folder

    def file(self, text):
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.txt"
        path.write_text(text)
        return path

    def run(self, *words, status=0, registry=True):
        config = ["--config", self.registry.config] if registry else []
        return topiary("fabric", *words, *config, status=status)

    def imported(self, cables):
        text = cables if isinstance(cables, str) else discovered(cables)
        return json.loads(self.run("import", "--json", self.file(text)).stdout)

    def export(self, *words, form="json", **how):
        text = self.run("export", f"--format={form}", *words, **how).stdout
        return json.loads(text) if form == "json" else text

    def put(self, body, claim=None, user=None, encoding="zstd", **other):
        cred = self.registry.sign(claim or self.registry.claim("fabric", body, **{"purpose": "fabric", **other}), user)
        return self.registry.request("PUT", "/v1/fabric", zstd(body), Authorization=f"Munge {cred}",
                                     Content_Encoding=encoding)


@pytest.fixture(scope="module")
def fabric(registry, tmp_path_factory):
    return Fabric(registry, tmp_path_factory.mktemp("fabric"))


def test_no_fabric_before_the_first_import(fabric):
    assert fabric.registry.get("/v1/fabric").status == 404
    assert fabric.registry.get("/v1/fabric/levels").status == 404
    assert fabric.registry.get("/v1/fabric/history").json() == {"history": [], "truncated": False}
    assert "no fabric was imported" in fabric.run("show", status=1).stderr
    assert not fabric.registry.fabric.exists()


@pytest.mark.parametrize("text", [discovered(CABLES), discovered(GRAPH), PAPER,
                                  "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-5]\nSwitchName=top Switches=a,b\n",
                                  discovered([*CABLES, (STRANGER, 0x99, "leaf2")])],
                         ids=["two planes and trunks", "graph", "levels as text", "topology.conf", "unknown adapter"])
def test_imported_fabric_reads_back_the_same(fabric, text):
    """Whatever form it had: levels, places, names, GUIDs, links; and again, which is no new version."""
    path = fabric.file(text)
    first = fabric.imported(text)
    assert first["changed"] is True
    assert fabric.export() == fabric.export(path, registry=False)
    assert fabric.imported(text) == {**first, "changed": False}
    assert fabric.export(form="dot") == fabric.export(path, form="dot", registry=False)


def test_a_version_costs_what_changed(fabric):
    fabric.imported(CABLES)
    before = int(fabric.registry.sql("SELECT count(*) FROM fabric_part"))
    version = fabric.imported([*CABLES, ("cn4 mlx5_0", 0x41, "leaf2")])["version"]
    rows = fabric.registry.sql(f"SELECT kind, name FROM fabric_part WHERE came = {version} ORDER BY 1, 2").split("\n")
    assert rows == ["host|cn4", "link|leaf2 cn4", "plane|0"]
    assert int(fabric.registry.sql("SELECT count(*) FROM fabric_part")) == before + 3
    fabric.imported(CABLES)


@pytest.fixture(scope="module")
def history(fabric):
    """Four versions, with a time between any two."""
    steps = [CABLES, CABLES[:6] + CABLES[7:], [*CABLES[:6], *CABLES[7:], ("cn5 HCA-1", 0x51, "leaf1")], CABLES]
    fabric.imported(GRAPH)
    times, versions = [], []
    for cables in steps:
        versions.append(fabric.imported(cables)["version"])
        time.sleep(0.02)
        times.append(fabric.registry.sql("SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', "
                                         "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"))
        time.sleep(0.02)
    return steps, times, versions


def test_earlier_versions_are_kept(fabric, history):
    steps, times, versions = history
    for cables, when in zip(steps, times):
        assert fabric.export(f"@{when}") == fabric.export(fabric.file(discovered(cables)), registry=False), when
    told = fabric.registry.get("/v1/fabric/history").json()["history"]
    assert [entry["version"] for entry in told][:4] == versions[::-1]
    assert told[0]["until"] is None and all(older["until"] == newer["since"] for newer, older in zip(told, told[1:]))
    # A trunk that has a cable less is a link that came and one that went; a host is one, with its link.
    assert [(entry["came"], entry["went"]) for entry in told][:3] == [(1, 3), (2, 0), (1, 1)]
    assert fabric.registry.get("/v1/fabric/history?limit=2").json()["truncated"] is True
    assert len(fabric.run("history").stdout.splitlines()) == len(told) + 1
    assert fabric.registry.get("/v1/fabric?at=2001-01-01T00:00:00Z").status == 404
    assert fabric.registry.get("/v1/fabric?at=noon-ish").status == 400


def test_two_times_are_compared(fabric, history):
    _, times, _ = history
    before, after = (fabric.export(f"@{when}", form="dot").splitlines() for when in (times[0], times[2]))
    assert [line for line in difflib.ndiff(before, after) if line[0] in "+-"] == [
        "+ <tr><td>cn5</td></tr>", '- "spine" -- "leaf2" [headlabel="2"]', '+ "spine" -- "leaf2"']


def test_sql_views(fabric, history):
    _, times, versions = history

    def ask(what, view, at=None):
        where = f"since <= '{at}' AND (until IS NULL OR until > '{at}')" if at else "until IS NULL"
        return fabric.registry.sql(f"SELECT {what} FROM topiary_fabric_{view} WHERE {where} ORDER BY 1, 2").split("\n")

    assert ask("plane, kind, switches, hosts, links, cables",
               "planes") == ["0|fat tree|3|3|5|7", "1|one switch|1|1|1|1"]
    assert ask("switch, guid, plane, rank", "switches") == [
        "leaf1|00000000000000a1|0|0", "leaf2|00000000000000a2|0|0", "other|00000000000000a4|1|0",
        "spine|00000000000000a3|0|1"]
    assert ask("host, known, plane", "hosts", times[2]) == ["cn1|t|0", "cn2|t|0", "cn3|t|0", "cn5|t|0"]
    assert ask("a, b, cables, mbps", "links") == [
        "leaf1|cn1|1|100000", "leaf1|cn2|1|100000", "leaf1|spine|2|200000", "leaf2|cn3|1|100000",
        "leaf2|spine|2|200000", "other|cn1|1|100000"]
    assert "leaf2|spine|1|100000" in ask("a, b, cables, mbps", "links", times[1])
    assert ask("host, port", "adapters") == ["cn1|0000000000000011", "cn1|0000000000000012", "cn2|0000000000000021",
                                             "cn3|0000000000000031"]
    assert fabric.registry.sql("SELECT kind, name, change, before->>'cables', "
                               "after->>'cables' FROM topiary_fabric_changes"
                               f" WHERE version = {versions[3]} ORDER BY 1, 2").split("\n") == \
        ["host|cn5|went||", "link|leaf1 cn5|went|1|", "link|leaf2 spine|changed|1|2"]


def test_nodes_are_matched_by_guid_and_by_name(fabric):
    """An adapter that tells no name is its node's whose topology has its GUID, or its port's, from when that came."""
    xml = {name: individual(machine("intel-2x8"), name) for name in ("gn1", "gn2")}
    guid = int(re.search(r'name="NodeGUID" value="([^"]*)"', xml["gn1"]).group(1).replace(":", ""), 16)
    port = int(re.search(r'name="Port1GID0" value="([^"]*)"', xml["gn2"]).group(1).replace(":", "")[-16:], 16)
    text = discovered([*CABLES, (STRANGER, port, "leaf2")]).replace(
        f"CA 1 1 0x{0x21:016x} 4x EDR - SW 1 2 0x{0xa1:016x} ( 'cn2 mlx5_0'",
        f"CA 1 1 0x{guid:016x} 4x EDR - SW 1 2 0x{0xa1:016x} ( 'localhost HCA-1'")
    fabric.imported(text)
    assert {h["name"] for h in fabric.export()["hosts"] if not h["known"]} == {f"H-{guid:016x}", f"H-{port:016x}"}
    assert (fabric.registry.sql("SELECT count(*) FROM topiary_fabric_hosts WHERE until IS NULL AND node IS NOT NULL")
            == "0")
    levels = fabric.registry.fabric
    assert wait_until(lambda: levels.exists() and f"node H-{guid:016x} tree" in levels.read_text(), 10)
    for name in ("gn1", "gn2"):
        assert fabric.registry.put(name, xml[name].encode()).status == 200
    assert fabric.registry.put("cn3", individual(machine("amd-4x16"), "cn3").encode()).status == 200
    exported = fabric.export()
    assert ({h["name"] for h in exported["hosts"]} == {"cn1", "cn3", "gn1", "gn2"}
            and all(h["known"] for h in exported["hosts"]))
    assert fabric.registry.sql("SELECT host, node FROM topiary_fabric_hosts WHERE until IS NULL "
                               "ORDER BY 1").split("\n") == \
        [f"H-{guid:016x}|gn1", f"H-{port:016x}|gn2", "cn1|", "cn3|cn3"]
    assert "SwitchName=leaf1 Nodes=cn1,gn1\nSwitchName=leaf2 Nodes=cn3,gn2\n" in fabric.export(form="slurm")
    # What is published follows, within its interval.
    assert wait_until(lambda: "node gn1 tree" in levels.read_text() and "node gn2 tree" in levels.read_text(), 70)
    assert fabric.registry.get("/v1/fabric/levels").body == levels.read_bytes()


def test_a_guid_of_two_nodes_is_of_none(fabric):
    """Machines that were cloned with their adapters' GUIDs."""
    xml = individual(machine("intel-2x8"), "twin1")
    guid = int(re.search(r'name="NodeGUID" value="([^"]*)"', xml).group(1).replace(":", ""), 16)
    for name in ("twin1", "twin2"):
        assert fabric.registry.put(name, xml.replace("twin1", name).encode()).status == 200
    fabric.imported([*CABLES, (STRANGER, guid, "leaf2")])
    assert f"H-{guid:016x}" in {h["name"] for h in fabric.export()["hosts"]}


def test_registry_is_asked_without_files(fabric, tmp_path):
    """On a machine that has neither SnapshotFile nor FabricFile, topiary map maps by what the registry tells."""
    for name in ("gn1", "gn2", "gn3"):
        assert fabric.registry.put(name, individual(machine("intel-2x8"), name).encode()).status == 200
    fabric.imported([("gn1 mlx5_0", 0x61, "leaf1"), ("gn2 mlx5_0", 0x62, "leaf2"), ("gn3 mlx5_0", 0x63, "leaf1"),
                     ("leaf1", 0, "spine"), ("leaf1", 0, "spine"), ("leaf2", 0, "spine")])
    config, matrix = tmp_path / "topiary.conf", tmp_path / "matrix"
    config.write_text(re.sub("(?m)^(SnapshotFile|FabricFile)=.*$", r"\1=/nowhere", fabric.registry.config.read_text()))
    matrix.write_text("0 9 1\n9 0 1\n1 1 0\n")

    def mapped(*words):
        done = topiary("map", "--matrix", matrix, "--nodes", "gn[1-3]=0", "--explain=json", "-o", tmp_path / "ranks",
                       "--config", config, *words, status=0)
        return json.loads(done.stdout), (tmp_path / "ranks").read_text(), done.stderr

    costs, ranks, said = mapped()
    assert costs["network_levels"] == 2 and said == ""
    # There and back: the heavy pair on one leaf switch, and to each of them two light ones across.
    assert costs["cost"] == 2 * (9 * 100 + 2 * 200)
    assert re.search(r"^2 gn2 ", ranks, re.M), ranks
    # A file of another form is not read, and said so.
    config.write_text(config.read_text().replace("FabricFile=/nowhere", f"FabricFile={fabric.file('what is this?')}"))
    costs, _, said = mapped()
    assert (costs["network_levels"] == 0
            and ":1: 'what': expected tree, torus, graph, alltoall, ring or node: mapping without the network" in said)


HOSTS = [f"node cn{i} tree 1 1 1 -1\n" for i in (1, 2, 3)]
TREE = f"tree 1 2 200 -1\ntree 1 2 100 -1\n{HOSTS[0]}{HOSTS[1]}tree 1 2 100 1 0\n{HOSTS[2]}"


def published(fabric, levels, seconds=10):
    file = fabric.registry.fabric
    return wait_until(lambda: file.exists() and file.read_text() == levels, seconds)


@pytest.mark.parametrize("cables, levels", [
    (CABLES, TREE), (PAPER, PAPER),
    (GRAPH, "graph 1 5 200 -1\nhops 1\nhops 2 1\nhops 3 2 1\nhops 2 1 2 1\n"
     + "".join(f"tree 1 2 100 -1\nnode g{i} tree 1 1 1 -1\nnode g{i + 5} tree 1 1 1 -1\n" for i in range(5))),
], ids=["tree", "torus", "graph"])
def test_levels_are_published(fabric, cables, levels):
    fabric.imported(cables)
    assert published(fabric, levels)
    assert fabric.registry.get("/v1/fabric/levels").body.decode() == levels
    assert fabric.export(fabric.file(levels), form="paper", registry=False) == levels


def test_a_fabric_without_levels_is_not_published(fabric):
    fabric.imported(CABLES)
    assert wait_until(fabric.registry.fabric.exists, 10)
    fabric.imported("CA 1 1 0x11 4x EDR 'cn1 mlx5_0'\nSW 2 1 0xa1 4x EDR 'leaf'\n")
    assert wait_until(lambda: not fabric.registry.fabric.exists(), 10)
    assert fabric.registry.get("/v1/fabric/levels").status == 404
    assert "hosts without a switch: cn1" in fabric.run("show").stdout
    fabric.imported(CABLES)
    assert published(fabric, TREE)
    fabric.registry.fabric.write_text("damaged")
    assert published(fabric, TREE, 60), "it is written anew"


def fabric_json(**other):
    good = {"switches": [{"name": "s", "guid": None}], "hosts": [{"name": "h", "known": True, "adapters": []}],
            "links": [{"a": "s", "b": "h", "cables": 1, "mbps": 0}], "text": None}
    return json.dumps({**good, **other}).encode()


@pytest.mark.parametrize("body, status, error", [
    (b"{", 422, "fabric: line 1: "),
    (b"[]", 422, "fabric: missing list of switches"),
    (fabric_json(switches=[{"guid": None}]), 422, "fabric: switches[0]: name: expected a name"),
    (fabric_json(switches=[{"name": "a b"}]), 422, "fabric: switches[0]: name: expected a name"),
    (fabric_json(switches=[{"name": "s"}, {"name": "s"}]), 422, "fabric: switches[1]: s: duplicate name"),
    (fabric_json(switches=[{"name": "h"}]), 422, "fabric: hosts[0]: h: duplicate name"),
    (fabric_json(switches=[{"name": "s", "guid": "xyz"}]), 422,
     "fabric: switches[0]: guid: expected 16 hexadecimal digits or null"),
    (fabric_json(hosts=[{"name": "h"}]), 422,
     "fabric: hosts[0]: h: expected known (true or false) and a list of adapters"),
    (fabric_json(hosts=[{"name": "h", "known": False, "adapters": []}]), 422,
     "fabric: hosts[0]: h: an unknown host needs an adapter"),
    (fabric_json(hosts=[{"name": "h", "known": True, "adapters": [{}]}]), 422,
     "fabric: hosts[0]: adapter without a GUID"),
    (fabric_json(links=[{"a": "s", "b": "x", "cables": 1}]), 422,
     "fabric: links[0]: b: neither a switch nor a host of the fabric"),
    (fabric_json(links=[{"a": "s", "b": "h", "cables": 0}]), 422, "fabric: links[0]: cables: expected a number"),
    (fabric_json(links=[{"a": "s", "b": "h", "cables": 1 << 40}]), 422, "fabric: links[0]: cables: expected a number"),
    (fabric_json(links=[{"a": "s", "b": "h", "cables": 1, "mbps": -1}]), 422,
     "fabric: links[0]: mbps: expected a number"),
    (fabric_json(text="tree 1 2\n"), 422, "fabric:1: dimension 1: "),
    (b'{"switches":[],"switches":[]}', 422, "fabric: line 1: duplicate object key"),
])
def test_a_bad_document_changes_nothing(fabric, body, status, error):
    before = fabric.registry.get("/v1/fabric").body
    answer = fabric.put(body)
    assert answer.status == status and error in answer.json()["error"], answer.body
    assert fabric.registry.get("/v1/fabric").body == before
    assert fabric.registry.get("/healthz").status == 200


def test_only_administrators_import(fabric):
    body = fabric_json()
    before = fabric.registry.get("/v1/fabric").body
    refused = [fabric.put(body, user="nobody"), fabric.put(body, fabric.registry.claim("cn1", body, purpose="fabric")),
               fabric.put(body, seq=time.time_ns() - 10**12), fabric.put(body, encoding="gzip"),
               fabric.put(body, sha256="0" * 64), fabric.put(body, length=1 << 40),
               fabric.registry.request("PUT", "/v1/fabric", zstd(body), Content_Encoding="zstd")]
    assert [answer.status for answer in refused] == [403, 403, 403, 415, 422, 413, 401]
    assert "not one of Admins and may not import a fabric" in refused[0].json()["error"]
    assert fabric.registry.get("/v1/fabric").body == before
    program = fabric.registry.folder / "topiary"
    shutil.copy(BUILD / "topiary", program)
    net = fabric.registry.folder / "net.txt"
    net.write_text(discovered(CABLES[:1]))
    done = subprocess.run(as_user("nobody", [str(program), "fabric", "import", str(net), "--config",
                                             str(fabric.registry.config)]),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "may not import a fabric" in done.stderr
    assert fabric.registry.get("/v1/fabric").body == before


def test_files_are_refused_by_name_and_line(fabric):
    bad = fabric.file(discovered(CABLES) + "nonsense\n")
    before = fabric.registry.get("/v1/fabric").body
    assert f"{bad}:9: expected SW, CA or RT" in fabric.run("import", bad, status=1).stderr
    assert "expected a time such as" in fabric.run("show", "@noon", status=1).stderr
    assert fabric.registry.get("/v1/fabric").body == before


def test_a_large_fabric(fabric):
    """10,000 hosts, 625 leaf switches, trunks: kept and read in seconds, and a cable that is pulled is one row."""
    def text(skip=None):
        lines = [f"SwitchName=leaf{i} Nodes=n[{16 * i}-{16 * i + 15}]\n" for i in range(625) if i != skip]
        return "".join(lines) + f"SwitchName=top Switches={','.join(f'leaf{i}' for i in range(625) if i != skip)}\n"

    began = time.monotonic()
    assert fabric.imported(text())["links"] == 10625
    assert len(fabric.export()["hosts"]) == 10000
    assert time.monotonic() - began < 120
    version = fabric.imported(text(skip=7))["version"]
    assert fabric.registry.sql(f"SELECT kind, count(*) FROM fabric_part WHERE went = {version} GROUP BY 1 "
                               "ORDER BY 1").split("\n") == \
        ["host|16", "link|17", "plane|1", "switch|1"]


# --- what questions about the fabric cost

HOSTS = 2000
# Copies of a node with GUIDs of their own, and a fabric with one adapter of each; all of it stored long ago.
FILL = """
INSERT INTO node (name, diff, since, seq, boot, layout, xml_bytes, sha256)
SELECT 'copy' || i, overlay(n.diff PLACING substr(int4send(i), 5 - w.width / 2) FROM (w.at + 1) / 2 + 1),
       now() - interval '1 hour', n.seq, n.boot, n.layout, n.xml_bytes, n.sha256
FROM (SELECT * FROM node WHERE name = 'fn2') n JOIN layout f ON f.id = n.layout
JOIN fact a ON a.base = f.base AND a.name = 'NodeGUID'
JOIN field w ON w.layout = f.id AND w.line = a.line, generate_series(1, {hosts}) i;
WITH host AS MATERIALIZED (SELECT 'host' || row_number() OVER (ORDER BY node) AS name,
                                  row_number() OVER (ORDER BY node) / 20 AS leaf, guid
                           FROM (SELECT node, min(guid) AS guid FROM fabric_guid GROUP BY node) g)
SELECT fabric_keep(jsonb_build_object(
	'text', '', 'planes', '[{{"kind": "tree"}}]'::jsonb,
	'switches', (SELECT jsonb_agg(DISTINCT jsonb_build_object('name', 'leaf' || leaf)) FROM host),
	'hosts', (SELECT jsonb_agg(jsonb_build_object(
		'name', name, 'adapters', jsonb_build_array(jsonb_build_object('guid', guid)))) FROM host),
	'links', (SELECT jsonb_agg(jsonb_build_object('a', 'leaf' || leaf, 'b', name, 'cables', 1)) FROM host)), 0);
ANALYZE node, fabric, fabric_part, fabric_adapter, registry;
"""
BELOW = next(re.findall(r"```sql\n(.*?);\n```", part, re.S)[0]
             for part in (ROOT / "docs/sql.md").read_text(encoding="utf-8").split("## ")
             if part.startswith("Which nodes are below which leaf switch"))


@pytest.fixture(scope="module")
def filled():
    with upkept() as registry:
        assert wait_until(lambda: registry.get("/healthz").status == 200, 60)
        for name in ("fn1", "fn2"):
            assert registry.put(name, individual(machine("intel-2x8"), name).encode()).status == 200
        registry.sql(FILL.format(hosts=HOSTS))
        yield registry


def looked_at(registry, query):
    """Rows that pass through all parts of the plan, those that are compared and dropped included; and the plan."""
    plan = registry.sql(f"EXPLAIN (ANALYZE, TIMING OFF) {query}")
    passed = sum(int(rows) * int(loops) for rows, loops in re.findall(r"actual rows=(\d+) loops=(\d+)", plan))
    return passed + sum(map(int, re.findall(r"Rows Removed by .*?: (\d+)", plan))), plan


def test_a_question_about_the_fabric_decodes_no_guids(filled):
    """Each part is looked at a few times, no two are compared one by one, and the planner does not think it is worth
    compiling."""
    below = filled.sql(BELOW).split("\n")
    assert sum(int(line.split("|")[1]) for line in below) == HOSTS + 2
    filled.sql("UPDATE node SET since = now() - interval '1 hour'; SELECT fabric_match()")
    rows, plan = looked_at(filled, BELOW)
    assert rows < 40 * HOSTS and "JIT" not in plan, plan
    assert re.search(r"Function Scan on fabric_guids .*actual rows=0 ", plan), plan
    assert filled.sql(BELOW).split("\n") == below


def test_upkeep_keeps_the_match(filled):
    """A node that has another adapter is of no host at once, and soon that is known without decoding; the same when it
    is back."""
    host, own = filled.sql("SELECT h.host, n.diff FROM topiary_fabric_hosts h JOIN node n ON n.name = h.node WHERE "
                           "node = 'copy7'").split("|")
    for diff, node in (("sha256(diff)", ""), (f"'{own}'", "copy7")):
        filled.sql(f"UPDATE node SET since = clock_timestamp(), diff = {diff} WHERE name = 'copy7'")
        assert filled.sql(f"SELECT node FROM topiary_fabric_hosts WHERE host = '{host}'") == node
        kept = f"SELECT node FROM fabric_adapter WHERE host = '{host}'"
        assert wait_until(lambda kept=kept, node=node: filled.sql(kept) == node, 60)
        assert filled.sql(f"SELECT node FROM topiary_fabric_hosts WHERE host = '{host}'") == node


def test_a_twin_that_is_removed_leaves_its_adapter(filled):
    """Though no node has a new topology."""
    host, own = filled.sql("SELECT a.host, n.diff FROM fabric_adapter a JOIN node n ON n.name = a.node WHERE "
                           "node = 'copy7'").split("|")
    filled.sql(f"UPDATE node SET since = now() - interval '1 hour', diff = CASE name WHEN 'copy8' THEN '{own}' "
               "ELSE diff END; SELECT fabric_match()")
    kept = f"SELECT node FROM fabric_adapter WHERE host = '{host}'"
    assert filled.sql(kept) == ""
    sha256 = filled.sql("SELECT encode(sha256, 'hex') FROM node WHERE name = 'copy8'")
    assert filled.forget("copy8", b"", sha256=sha256).status == 200
    assert wait_until(lambda: filled.sql(kept) == "copy7", 60)


@pytest.fixture(name="hosts_tool")
def fixture_hosts_tool(tmp_path, monkeypatch):
    """The tool of the host, here what it prints."""
    tool = tmp_path / "ibnetdiscover"

    def now(text):
        (tmp_path / "seen").write_text(text)
        tool.write_text(f"#!/bin/sh\nexec cat {tmp_path}/seen\n")
        tool.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return now


def test_drift_of_cables_is_discovered(fabric, hosts_tool):
    """Each cable that differs from the registry's fabric; then stored."""
    now = hosts_tool
    fabric.imported(CABLES)
    now(discovered(CABLES))
    assert fabric.run("discover").stdout == "no cable differs from the registry's fabric\n"
    # cn2 is on the other leaf switch, a trunk has lost a cable, and a port trains at a lower rate.
    text = discovered([("cn2 mlx5_0", 0x21, "leaf2") if name == "cn2 mlx5_0" else (name, guid, to)
                       for name, guid, to in CABLES[:3] + CABLES[4:]])
    now(re.sub("EDR( - SW 1 . 0x0*a4)", r"QDR\1", text))
    drift = [" ".join(line.split()) for line in fabric.run("discover").stdout.splitlines()]
    assert sorted(drift[1:]) == [
        "capacity leaf1 spine 2 x 100 Gbit/s 1 x 100 Gbit/s", "slow other cn1 1 x 100 Gbit/s 1 x 32 Gbit/s",
        "wiring leaf1 cn2 1 x 100 Gbit/s -", "wiring leaf2 cn2 - 1 x 100 Gbit/s"], drift
    rows = json.loads(fabric.run("discover", "--json").stdout)
    assert sorted(row["severity"] for row in rows) == ["capacity", "slow", "wiring", "wiring"]
    stored = fabric.run("discover", "--import").stdout
    assert "wiring" in stored and re.search(r"^version \d+: 2 planes, ", stored, re.M), stored
    assert fabric.run("discover").stdout == "no cable differs from the registry's fabric\n"
    now(discovered(CABLES))
    stored = json.loads(fabric.run("discover", "--import", "--json").stdout)
    assert stored["changed"] and sorted(row["severity"] for row in stored["drift"]) == sorted(
        row["severity"] for row in rows)


def test_names_of_hosts_are_no_drift(fabric, hosts_tool):
    """Of a node that the registry knows by its GUID, and of one whose name --xml gave, which is kept."""
    xml = {name: individual(machine("intel-2x8"), name) for name in ("dn1", "dn2")}
    guids = [int(re.search(r'name="NodeGUID" value="([^"]*)"', text).group(1).replace(":", ""), 16)
             for text in xml.values()]
    text = discovered([*CABLES, ("other-name mlx5_0", guids[0], "leaf2"), (STRANGER, guids[1], "leaf2")])
    assert fabric.registry.put("dn1", xml["dn1"].encode()).status == 200
    (fabric.folder / "dn2.xml").write_text(xml["dn2"])
    fabric.run("import", "--xml", fabric.folder / "dn2.xml", fabric.file(text))
    named = {host["name"] for host in fabric.export()["hosts"]}
    assert {"dn1", "dn2"} <= named
    hosts_tool(text)
    assert fabric.run("discover").stdout == "no cable differs from the registry's fabric\n"
    assert ", unchanged:" in fabric.run("discover", "--import").stdout
    assert {host["name"] for host in fabric.export()["hosts"]} == named
