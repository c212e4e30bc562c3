# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A thousand nodes move from hwloc 2 to hwloc 3: the same hardware, one new base, no drift."""
import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from rig.machines import individual, machine
from rig.paths import CACHE, ROOT

NODES = [f"cn{i:04d}" for i in range(1000)]
DATA = ROOT / "tests/data/hwloc3"
SOURCE = next(iter(sorted(CACHE.glob("src/hwloc-*/tests/hwloc/xml/power8gpudistances.xml"))), None)
pytestmark = pytest.mark.skipif(SOURCE is None, reason="no hwloc source: run packaging/setup")
# As a patch against the first, the second would be small enough to be stored so.
OF_HWLOC2 = SOURCE.read_text(encoding="utf-8") if SOURCE else ""
OF_HWLOC3 = (DATA / "power8-gpus.xml").read_text(encoding="utf-8")
BYTES = 400  # at most of the database for one upgraded node
ROWS = ("SELECT (SELECT sum(pg_column_size(n.*)) FROM node n)"
        " + (SELECT coalesce(sum(pg_column_size(p.*)), 0) FROM past p)"
        " + (SELECT sum(pg_column_size(b.*)) FROM base b) + (SELECT sum(pg_column_size(f.*)) FROM layout f)"
        " + (SELECT sum(pg_column_size(f.*)) FROM fact f)"
        " + (SELECT coalesce(sum(pg_column_size(f.*)), 0) FROM node_fact f)")


def node_xml(xml, node):
    """One node of a series, which lacks some pages of memory."""
    pages = random.Random(node).randrange(1, 20000)
    xml = re.sub(r'(local_memory=")(\d+)', lambda m: f"{m.group(1)}{int(m.group(2)) - 4096 * pages}",
                 individual(xml, node), count=1)
    return re.sub(r'(size="4096" count=")(\d+)', lambda m: f"{m.group(1)}{max(0, int(m.group(2)) - pages)}", xml,
                  count=1).encode()


def put_all(registry, xml):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda node: registry.put(node, node_xml(xml, node)), NODES))
    assert {a.status for a in answers} == {200}
    return Counter(a.json()["stored"] for a in answers)


@pytest.fixture(scope="module")
def before(registry):
    """Bytes of all rows with a thousand nodes of hwloc 2."""
    assert put_all(registry, OF_HWLOC2) == {"base": 1, "fields": 999}
    return int(registry.sql(ROWS))


@pytest.fixture(scope="module")
def upgraded(registry, before):
    shapes = registry.sql("SELECT DISTINCT shape FROM topiary_nodes")
    assert put_all(registry, OF_HWLOC3) == {"base": 1, "fields": 999}
    assert registry.sql("SELECT DISTINCT shape FROM topiary_nodes") == shapes
    return registry


def test_no_node_drifts_and_one_base_serves_all(upgraded, before):
    assert upgraded.sql("SELECT count(*) FROM drift") == "0"
    assert upgraded.sql("SELECT count(*) FROM class") == "1"
    assert upgraded.sql("SELECT count(*) FROM base") == "2"
    each = (int(upgraded.sql(ROWS)) - before) / len(NODES)
    print(f"{each:.0f} bytes an upgraded node, its past included")
    assert each <= BYTES
    for node in NODES[::100]:
        assert upgraded.get(f"/v1/nodes/{node}/topology").body == node_xml(OF_HWLOC3, node)


def test_facts_have_the_same_names(upgraded):
    assert upgraded.sql("SELECT value FROM topiary_facts WHERE node = 'cn0007' AND object = 'machine' AND fact = "
                        "'HostName'") == "cn0007"
    assert upgraded.sql("SELECT count(*) FROM topiary_facts WHERE node = 'cn0007' AND fact = 'memory'") == "2"


def test_what_an_upgraded_node_lost_is_drift(upgraded):
    whole, name = node_xml(OF_HWLOC3, "cn0005"), "SELECT severity, words FROM topiary_drift WHERE node = 'cn0005'"
    less, done = re.subn(rb'( local_memory=")\d+', rb"\g<1>12884901888", whole, count=1)
    assert done and upgraded.put("cn0005", less).status == 200
    assert upgraded.sql(name) == "capacity|NUMA node 0: memory 64 GiB -> 12 GiB"
    assert upgraded.put("cn0005", whole).status == 200
    assert upgraded.sql(name) == ""


def test_a_node_that_comes_first_with_the_other_hwloc_is_of_the_class(upgraded):
    assert upgraded.put("new1", node_xml(OF_HWLOC3, "new1")).json()["stored"] == "fields"
    assert upgraded.put("intel2", machine("intel-2x8").encode()).status == 200
    xml = (DATA / "intel-2x8.xml").read_bytes()
    assert upgraded.put("intel3", xml).json()["stored"] == "base"
    assert upgraded.put("uneven2", machine("uneven-2x6").encode()).status == 200
    assert upgraded.put("uneven4", xml.replace(b"Tesla", b"Other")).status == 200
    classes = dict(line.split("|")
                   for line in upgraded.sql("SELECT node, class FROM topiary_nodes WHERE node NOT "
                                            "LIKE 'cn%'").split("\n"))
    assert classes["intel2"] == classes["intel3"] != classes["uneven2"] and classes["new1"] != classes["intel2"]
    assert upgraded.sql("SELECT count(*) FROM drift WHERE node IN ('new1', 'intel3')") == "0"


def test_the_older_format_of_hwloc_3_is_one_base_too(upgraded):
    """Nodes that are upgraded with ExportFormat=2, and then without it."""
    series = [f"vm{i}" for i in range(6)]
    for name, kinds in (("vm.by2", {"base": 1, "fields": 5}), ("vm.as2", {"base": 1, "fields": 5}),
                        ("vm", {"base": 1, "fields": 5})):
        xml = (DATA / f"{name}.xml").read_text(encoding="utf-8")
        assert Counter(upgraded.put(node, node_xml(xml, node)).json()["stored"] for node in series) == kinds
    assert upgraded.sql("SELECT count(DISTINCT class) FROM topiary_nodes WHERE node LIKE 'vm%'") == "1"
    assert upgraded.sql("SELECT count(*) FROM drift WHERE node LIKE 'vm%'") == "0"


def test_a_node_that_goes_back_costs_nothing_new(upgraded):
    xml = node_xml(OF_HWLOC2, "cn0009")
    assert upgraded.put("cn0009", xml).json()["stored"] == "fields"
    assert upgraded.sql("SELECT count(*) FROM drift WHERE node = 'cn0009'") == "0"
