# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Every query of docs/sql.md as a reader may ask it, and the views behind them, against nodes that are known."""
import re
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from registry_rig import POSTGRES, ROOT, USER, run
from rig.cluster import as_user
from rig.machines import individual, machine

READER = "nobody"  # a system user, as peer authentication wants
OWNER = "bin"
LESS = 17179869184
ROLES = (ROOT / "sql/roles.sql").read_text(encoding="utf-8")
QUERIES = re.findall(r"^## (.*?)\n.*?```sql\n(.*?)```", (ROOT / "docs/sql.md").read_text(encoding="utf-8"), re.M | re.S)


def node_xml(i):
    """The i-th of a series of GPU nodes, each with its own addresses and serial numbers."""
    xml = individual(machine("intel-2x8"), f"cn{i}")
    xml = re.sub(r'"00:25:90:95:[0-9a-f:]{5}(?=")|"00:25:90:[0-9a-f:]{8}(?=")', f'"0c:42:a1:00:00:{i:02x}',
                 xml, count=1)
    return re.sub(r'( *)<info name="GPUModel" value="Tesla K40m"/>\n',
                  rf'\g<0>\1<info name="NVIDIASerial" value="165052200000{i}"/>\n', xml)


def changed(i, *changes):
    xml = node_xml(i)
    for old, new in changes:
        assert xml.count(old) == 1, (old, xml.count(old))
        xml = xml.replace(old, new)
    return xml


NODES = {
    "cn1": node_xml(1),
    "cn2": node_xml(2),
    "cn3": changed(3, ('"3.2.0-4-amd64"', '"3.16.0-4-amd64"')),
    "cn4": changed(4, ('local_memory="34359738368"', f'local_memory="{LESS}"'),
                   ('count="8388608"', f'count="{LESS // 4096}"')),
    "cn5": changed(5, ('"1.0c"', '"2.0"')),
    "cn6": changed(6, ('local_memory="34330173440"', 'local_memory="34330132480"'),
                   ('count="8381390"', 'count="8381380"')),
}
EXPECTED = {
    "Which BIOS versions are there, and where is the old one?": [["1.0c", "5", "cn1"], ["2.0", "1", "cn5"]],
    "Which node has this MAC address?": [["cn2", "eth0", "0c:42:a1:00:00:02"]],
    "Which kernels run, on how many nodes?": [["3.2.0-4-amd64", "5"], ["3.16.0-4-amd64", "1"]],
    "Which nodes have less memory than their class?": [["cn4", "c1", "NUMA node 1", "32", "16"]],
    "How much memory has each NUMA node of one node?": [["NUMA node 0", "34330173440"], ["NUMA node 1", "34359738368"]],
    "Where is the GPU with this serial number?": [["cn2", "cuda0"]],
    "Which nodes have not booted for a month?": [],
    "Which nodes are slower than their class, and by how much?": [],  # test_costs.py has one
    "Which nodes were not measured, or with other hardware?": [[f"cn{i}", "c1", ""] for i in range(1, 7)],
    "Which trunks have fewer cables than before?": [["leaf1", "spine", "1", "2"]],
    "Which nodes are below which leaf switch?": [["leaf1", "2", "cn1,cn2"], ["leaf2", "1", "cn3"]],
    "Which nodes are in no fabric?": [["cn4"], ["cn5"], ["cn6"]],
    "What was the fabric an hour ago?": [],
}
# As ibnetdiscover -p tells it: cn3's adapter has no name of its own; later a cable to the spine is gone.
CABLES = [("CA 1 1 0x11", "SW 1 1 0xa1", "cn1 mlx5_0", "leaf1"), ("CA 1 1 0x12", "SW 1 2 0xa1", "cn2 mlx5_0", "leaf1"),
          ("CA 1 1 {guid}", "SW 1 1 0xa2", "MT4115 ConnectX4 Mellanox Technologies", "leaf2"),
          ("SW 1 3 0xa1", "SW 1 1 0xa3", "leaf1", "spine"), ("SW 1 2 0xa2", "SW 1 2 0xa3", "leaf2", "spine"),
          ("SW 1 4 0xa1", "SW 1 3 0xa3", "leaf1", "spine")]


@pytest.fixture(scope="module")
def reader(registry):
    """Ask as a member of topiary_read, whom nothing else was given."""
    assert registry.get("/healthz").status == 200, "the schema is there"
    for _ in range(2):
        superuser(registry, "topiary", "-v", f"owner={USER}", "-f", "-", text=ROLES)
    superuser(registry, "topiary", "-c", f"CREATE ROLE {READER} LOGIN IN ROLE topiary_read")
    assert registry.put("cn5", node_xml(5).encode()).status == 200
    for name, xml in NODES.items():
        assert registry.put(name, xml.encode()).status == 200
    guid = re.search(r'"NodeGUID" value="([^"]*)"', NODES["cn3"]).group(1).replace(":", "")
    for cables in (CABLES, CABLES[:-1]):
        net = "".join(f"{a} 4x EDR - {b} ( '{x}' - '{y}' )\n" for a, b, x, y in cables).format(guid=f"0x{guid}")
        registry.topiary("fabric", "import", "-", input=net, status=0)

    def ask(query):
        return psql(registry, READER, query)
    return ask


def superuser(registry, database, *options, text=None):
    run(as_user("postgres", [POSTGRES / "psql", "-h", registry.folder / "pg", "-d", database, "-qAt", "-v",
                             "ON_ERROR_STOP=1", *options]), cwd="/", input=text and text.encode())


def psql(registry, user, query, database="topiary"):
    done = subprocess.run([str(c) for c in as_user(user, [POSTGRES / "psql", "-h", registry.folder / "pg", "-d",
                                                          database, "-qAtF", "\t", "-v", "ON_ERROR_STOP=1", "-c",
                                                          query])],
                          capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.split("\n")[:-1]]


def test_there_are_ten_queries():
    assert len(QUERIES) >= 10 and set(EXPECTED) <= {title for title, _ in QUERIES}


@pytest.mark.parametrize("title, query", QUERIES, ids=[title for title, _ in QUERIES])
def test_query(reader, title, query):
    rows = reader(query)
    if title in EXPECTED:
        assert rows == EXPECTED[title]
    else:
        OTHERWISE[title](rows)


def test_a_value_is_found_as_the_view_has_it(reader):
    """Each value of each node: in a field of hexadecimal digits or not, in a patch, in a count of pages, of all nodes
    alike."""
    kinds = reader("SELECT count(*) FILTER (WHERE stored = 'patch'), count(*) FILTER (WHERE stored = 'fields') FROM "
                   "topiary_nodes")
    assert all(int(n) for n in kinds[0])
    line = "v.node, v.object, v.fact, v.value, v.line"
    found = ("SELECT {} FROM (SELECT DISTINCT fact, value FROM topiary_facts) d, LATERAL topiary_find(d.fact, "
             "d.value) v")
    assert reader(f"{found.format(line)} EXCEPT ALL SELECT {line} FROM topiary_facts v") == []
    assert reader(f"SELECT {line} FROM topiary_facts v EXCEPT ALL {found.format(line)}") == []
    for value in ("", "0", "0c:42:a1", "0c:42:a1:00:00:zz", "0c-42-a1-00-00-02", "0C:42:A1:00:00:02",
                  "0c:42:a1:00:00:02:03", "%s", "\u00e4"):
        assert reader(f"SELECT * FROM topiary_find('Address', '{value}')") == []
    assert reader("SELECT * FROM topiary_find('Nothing', '1')") == []


def drift_is_told(rows):
    assert ([row[:3] for row in rows] == [["cn4", "c1", "capacity"]]
            and re.search("NUMA node 1.*memory.*32 GiB.*16 GiB", rows[0][3]))


def one_change(rows):
    assert [row[0] for row in rows] == ["cn5"]


def base_is_dearest(rows):
    sizes = [int(row[2]) for row in rows]
    assert (rows[0][:2] == ["cn4", "patch"] and len(rows) == len(NODES) and sizes == sorted(sizes, reverse=True)
            and sizes[-1] < 100)


def one_topology(rows):
    assert len(rows) == 1 and rows[0][1] == ""


def two_kinds(rows):
    assert sorted(row[1:3] for row in rows) == [["1", "0"], ["5", "3"]]


def a_cable_went(rows):
    assert rows[0][1:] == ["changed", "link", "leaf1 spine", "2", "1"] and len(rows) == 12


OTHERWISE = {
    "What changed in the fabric last week?": a_cable_went,
    "Which nodes have lost capacity, and what?": drift_is_told,
    "What changed last week?": one_change,
    "Which nodes use the most space in the database?": base_is_dearest,
    "Which serial number was it before?": one_topology,
    "How many nodes of each shape are there, and how many without drift?": two_kinds,
}


def said(xml):
    """What a document says in its objects: names and values."""
    facts = Counter()
    for element in ET.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", xml)).iter("object"):
        facts.update((info.get("name"), info.get("value")) for info in element.findall("info"))
        facts.update((f"pages {page.get('size')}", page.get("count")) for page in element.findall("page_type"))
        facts.update(("memory", element.get("local_memory")) for _ in range("local_memory" in element.attrib))
    return facts


@pytest.mark.parametrize("name", NODES)
def test_facts_are_what_the_document_says(reader, name):
    """However a node is stored, SQL tells its values as its XML has them."""
    rows = reader(f"SELECT fact, value FROM topiary_facts WHERE node = '{name}' AND object !~ '^CPU kind'")
    told = Counter(tuple(row) for row in rows)
    assert told == said(NODES[name])


def test_facts_of_patches_are_joined(reader):
    """As a filter they were expected to cost so much that each node was compared with each of thousands of bases."""
    plan = reader("EXPLAIN SELECT node, value FROM topiary_facts WHERE fact = 'DMIBIOSVersion'")
    assert "Anti Join" in str(plan) and "SubPlan" not in str(plan), plan


def test_nodes_are_stored_in_every_way(reader):
    assert {row[0] for row in reader("SELECT DISTINCT stored FROM topiary_history")} == {"base", "fields", "patch"}
    for way in ("pages", "digits > 0", "ordinal > 0"):
        assert reader(f"SELECT count(*) FROM field WHERE {way}") != [["0"]], way


@pytest.mark.parametrize("query", ["DELETE FROM node", "UPDATE drift SET reported = true", "CREATE TABLE mine (a int)",
                                   "INSERT INTO class (baseline) VALUES (1)"])
def test_a_reader_only_reads(registry, reader, query):
    with pytest.raises(AssertionError, match="permission denied"):
        reader(query)


def test_separate_roles(registry, reader):
    """The owner migrates, topiaryd may not change a table and still keeps exports and fabrics."""
    superuser(registry, "postgres", "-c", "CREATE DATABASE apart", "-c", "DROP OWNED BY topiary_ingest, topiary_read")
    superuser(registry, "topiary", "-c", "DROP OWNED BY topiary_ingest, topiary_read")
    superuser(registry, "postgres", "-c", "DROP ROLE topiary_ingest, topiary_read")
    for _ in range(2):
        superuser(registry, "apart", "-f", "-", text=ROLES)
    superuser(registry, "apart", "-c", f"CREATE ROLE {OWNER} LOGIN IN ROLE topiary_owner;"
              f" ALTER ROLE {OWNER} SET role = 'topiary_owner'; GRANT topiary_ingest TO {USER}; "
              f"GRANT topiary_read TO {READER}")
    own = registry.folder / "own.conf"
    common = registry.config.read_text()
    own.write_text(re.sub(r"dbname=topiary user=\S+", f"dbname=apart user={OWNER}", common))
    run(as_user(OWNER, [registry.folder / "topiaryd", "--config", own, "--migrate"]), cwd="/")
    registry.stop("topiaryd")
    registry.config.write_text(common.replace("dbname=topiary", "dbname=apart"))
    registry.start_topiaryd()
    try:
        for name in ("cn1", "cn2", "cn4", "cn3"):
            assert registry.put(name, NODES[name].encode()).status == 200, registry.log("topiaryd")
        assert registry.put("cn4", node_xml(4).encode()).status == 200, "a drift ends"
        query = "SELECT node, drift FROM topiary_nodes WHERE drift = 'capacity' OR node = 'cn4'"
        assert psql(registry, READER, query, "apart") == [["cn4", ""]]
        for cables in (1, 2, 1):
            registry.topiary("fabric", "import", "-", status=0, input="".join(
                f"CA 1 1 0x1{i} 4x EDR - SW 1 {i + 1} 0xa1 ( 'cn{i} mlx5_0' - 's' )\n" for i in range(cables)))
        assert psql(registry, READER,
                    "SELECT count(*) FILTER (WHERE until IS NULL), count(*) FROM topiary_fabric_links",
                    "apart") == [["1", "2"]]
        assert registry.forget("cn3", NODES["cn3"].encode()).status == 200
        with pytest.raises(AssertionError, match="must be owner"):
            psql(registry, USER, "ALTER TABLE node ADD COLUMN mine int", "apart")
    finally:
        registry.stop("topiaryd")
        registry.config.write_text(common)
        registry.start_topiaryd()
