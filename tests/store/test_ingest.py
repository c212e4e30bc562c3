# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The way of a node's topology into the registry and out of it again, to the byte."""
import hashlib
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from registry_rig import machine, run
from rig.paths import CACHE
from rig.processes import wait_until

SHAPES = {
    "two": "Package:2 [NUMANode] L3Cache:2 L2Cache:4 Core:1 PU:2",
    "wide": "Package:4 [NUMANode] Core:16 PU:1",
}


def test_agent_first_boot_then_hash_only(registry, tmp_path):
    file = tmp_path / "cn1.xml"
    file.write_bytes(machine(SHAPES["two"], "cn1", 11))
    (registry.folder / "run/topology.xml").unlink(missing_ok=True)
    first = registry.agent("cn1", file, "--once")
    assert first.returncode == 0, first.stderr
    assert "acknowledged" in first.stderr and "base" in first.stderr
    assert registry.get("/v1/nodes/cn1/topology").body == file.read_bytes()
    assert not (registry.folder / "run/topology.xml").exists(), "another node's"
    assert registry.agent("cn1", file, "--local").returncode == 0
    assert (registry.folder / "run/topology.xml").read_bytes() == file.read_bytes()
    assert (registry.folder / "run/topology.xml").stat().st_mode & 0o777 == 0o644
    again = registry.agent("cn1", file, "--once")
    assert again.returncode == 0 and "known" in again.stderr
    node = registry.get("/v1/nodes/cn1").json()
    assert (node["last_boot"] >= node["topology_since"]
            and node["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest())
    assert len(registry.get("/v1/nodes/cn1/history").json()["history"]) == 1


@pytest.mark.parametrize("ahead", [1, 86400 * 10**9, 2**62 - time.time_ns()], ids=["now", "a day", "most"])
def test_agent_is_not_locked_out_by_numbers_of_a_clock_that_was_ahead(registry, tmp_path, ahead):
    """An earlier agent of this boot numbered by the time of day, which was wrong: the next export is taken at once,
    known or not."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    node, file = f"ahead{ahead}", tmp_path / "ahead.xml"
    file.write_bytes(machine(SHAPES["two"], node, 31))
    last = time.time_ns() + ahead
    assert registry.put(node, file.read_bytes(), seq=last, boot=boot).status == 200
    for serial in (31, 32, 33):
        file.write_bytes(machine(SHAPES["two"], node, serial))
        done = registry.agent(node, file, "--once")
        assert done.returncode == 0, done.stderr
        assert registry.get(f"/v1/nodes/{node}/topology").body == file.read_bytes()
    assert last < registry.get(f"/v1/nodes/{node}").json()["seq"] < last + 10


def test_agent_numbers_by_the_boot_and_not_by_the_clock(registry, tmp_path):
    file = tmp_path / "clock.xml"
    file.write_bytes(machine(SHAPES["two"], "clock", 41))
    assert registry.agent("clock", file, "--once").returncode == 0
    assert registry.get("/v1/nodes/clock").json()["seq"] <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def test_live_discovery(registry, tmp_path):
    command = [c for c in registry.agent_command("live", "X", "--once") if c not in ("--input", "X")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "live.xml"
    file.write_bytes(registry.get("/v1/nodes/live/topology").body)
    here = run(["hwloc-calc", "--whole-system", "--number-of", "pu", "machine:0"])
    assert run(["hwloc-calc", "--input", file, "--number-of", "pu", "machine:0"]) == here


def test_near_identical_nodes_become_differences(registry):
    documents = {f"row{i}": machine(SHAPES["two"], f"row{i}", 500 + i) for i in range(1, 9)}
    for name, xml in documents.items():
        assert registry.put(name, xml).status == 200
    nodes = {n["node"]: n for n in registry.get("/v1/nodes").json()["nodes"]}
    for name, xml in documents.items():
        assert registry.get(f"/v1/nodes/{name}/topology").body == xml
        assert nodes[name]["xml_bytes"] == len(xml)
        assert nodes[name]["stored"] == "fields" and nodes[name]["base"] == "cn1"
        assert nodes[name]["stored_bytes"] < 20


def test_structural_difference_becomes_a_patch(registry):
    xml = machine("Package:8 [NUMANode] L3Cache:2 L2Cache:4 Core:1 PU:2", "big", 1)
    assert registry.put("big1", xml).json()["stored"] == "base"
    info = b"".join(b'    <info name="Extra%d" value="%d"/>\n' % (i, i) for i in range(3))
    longer = xml.replace(b'    <info name="HostName"', info + b'    <info name="HostName"', 1)
    assert registry.put("big2", longer).json()["stored"] == "patch"
    assert registry.get("/v1/nodes/big2/topology").body == longer


def test_another_model_of_the_same_shape_becomes_a_base(registry):
    plain = machine(SHAPES["two"], "m1", 1)
    noise = b"".join(b'    <info name="I%d" value="%s"/>\n' % (i, os.urandom(24).hex().encode()) for i in range(60))
    other = plain.replace(b'    <info name="HostName"', noise + b'    <info name="HostName"', 1)
    got = registry.put("model1", other).json()
    assert got["stored"] == "base"
    assert registry.put("model2", other.replace(b"C000001", b"C000002")).json()["stored"] == "fields"
    assert (registry.put("cn2", machine(SHAPES["two"], "cn2", 12)).json()["stored"]
            != "base"), "the older base is tried too"
    assert registry.get("/v1/nodes/model1/topology").body == other


def test_original_that_is_not_canonical_is_kept_to_the_byte(registry):
    """hwloc numbers objects in the order of discovery: both the document and its canonical form are given."""
    xml = machine(SHAPES["two"], "odd", 3)
    odd = xml.replace(b"\n", b"\n \n", 5).replace(b'gp_index="1"', b'gp_index="901"', 1)
    assert registry.put("odd", odd).status == 200
    assert registry.get("/v1/nodes/odd/topology").body == odd
    canonical = registry.get("/v1/nodes/odd/topology?form=canonical").body
    assert registry.put("plain", xml).status == 200
    assert canonical == registry.get("/v1/nodes/plain/topology?form=canonical").body != odd
    assert registry.put("canon", canonical).status == 200
    assert registry.get("/v1/nodes/canon/topology?form=canonical").body == canonical


def test_a_node_does_not_slip_into_another_class(registry):
    """What was accepted from its class is open to it; what its class was accepted from is not: that is a change of its
    own."""
    whole, less = ("Package:3 [NUMANode] Core:4 PU:1", "Package:3 [NUMANode] Core:4 PU:2")
    for node in ("slip1", "slip2", "slip3"):
        assert registry.put(node, machine(whole, node, 1)).status == 200
    assert registry.put("slip3", machine(less, "slip3", 1)).status == 200
    old, new = registry.get("/v1/nodes/slip1").json(), registry.get("/v1/nodes/slip3").json()
    assert (old["class"], new["drift"]) == (new["class"], "capacity") and not old["drift"]
    accepted = registry.accept("slip3", machine(less, "slip3", 1), length=0)
    assert accepted.status == 200, accepted.body
    assert registry.put("slip2", machine(less, "slip2", 2)).status == 200
    moved = registry.get("/v1/nodes/slip2").json()
    assert moved["class"] == accepted.json()["class"] != old["class"] and not moved["drift"]
    assert registry.put("slip2", machine(whole, "slip2", 3)).status == 200
    back = registry.get("/v1/nodes/slip2").json()
    assert (back["class"], back["drift"]) == (moved["class"], "capacity")
    assert registry.get("/v1/nodes/slip2/topology").body == machine(whole, "slip2", 3)


def test_a_base_that_is_gone_is_made_again(registry):
    """Another topiaryd's upkeep may delete a base that this one has at hand."""
    text = "Package:1 [NUMANode] L3Cache:3 Core:5 PU:1"
    assert registry.put("gone1", machine(text, "gone1", 1)).json()["stored"] == "base"
    base = registry.sql("SELECT f.base FROM node n JOIN layout f ON f.id = n.layout WHERE n.name = 'gone1'")
    registry.sql(f"DELETE FROM node WHERE name = 'gone1'; UPDATE class SET baseline = NULL WHERE baseline = {base};"
                 f" DELETE FROM base WHERE id = {base}")
    assert registry.put("gone2", machine(text, "gone2", 2)).json()["stored"] == "base"
    assert registry.get("/v1/nodes/gone2/topology").body == machine(text, "gone2", 2)


def test_equal_nodes_at_once_have_one_base(registry):
    """Boots come at once: all are stored, and one of them is the base."""
    documents = {f"at{i}": machine(SHAPES["wide"], f"at{i}", i) for i in range(24)}
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: registry.put(n, documents[n], seq=10**18 + int(n[2:])), documents))
    assert [a.status for a in answers] == [200] * 24
    assert sorted(a.json()["stored"] for a in answers) == ["base"] + ["fields"] * 23
    for name, xml in documents.items():
        assert registry.get(f"/v1/nodes/{name}/topology").body == xml


def test_every_export_has_its_hash(registry):
    """The sha256 of every export is that of what HTTP gives back."""
    rows = registry.sql("SELECT node, sha256 FROM topiary_nodes").split("\n")
    assert len(rows) > 20
    for node, sha256 in (row.split("|") for row in rows):
        assert hashlib.sha256(registry.get(f"/v1/nodes/{node}/topology").body).hexdigest() == sha256


def test_a_transaction_reads_its_own_nodes_alone(registry):
    """PostgreSQL would read the whole of a small table, and keep that plan when it has grown."""
    def reads():
        return int(registry.sql("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'node_pkey'"))
    xml, asked = machine(SHAPES["two"], "ix1", 41), 20
    assert registry.put("ix1", xml).status == 200
    registry.sql("ANALYZE node")
    before = reads()
    assert {registry.ask("ix1", xml).status for _ in range(asked)} == {200}
    assert wait_until(lambda: reads() >= before + 2 * asked, 20), "one for the row as it is, one to update it"


def test_history_and_return_to_an_older_topology(registry):
    old, new = (machine(s, "hist", 7) for s in SHAPES.values())
    for xml in (old, new, old):
        assert registry.put("hist", xml).status == 200
    assert registry.get("/v1/nodes/hist/topology").body == old
    history = registry.get("/v1/nodes/hist/history").json()["history"]
    assert [h["sha256"] for h in history] == [hashlib.sha256(x).hexdigest() for x in (old, new, old)]
    assert [h["until"] for h in history] == [None, history[0]["since"], history[1]["since"]]
    for h, xml in zip(history, (old, new, old)):
        assert registry.get(f"/v1/nodes/hist/topology?at={h['since'].replace('+', '%2B')}").body == xml


def test_shapes_and_snapshot(registry):
    shapes = {s["shape"]: s for s in registry.get("/v1/shapes").json()["shapes"]}
    rows = [s for s in shapes.values() if "row[1-8]" in s["hosts"]]
    assert len(rows) == 1 and rows[0]["cores"] == 16 and rows[0]["pus"] == 32
    text = registry.get("/v1/snapshot").body.decode()
    assert "at[0-23]" in text
    assert wait_until(lambda: registry.snapshot_text() == text, 5)
    assert text.startswith("topiary-snapshot 1\n") and re.search(r"\nend sha256=[0-9a-f]{64}\n$", text)
    assert registry.snapshot.stat().st_mode & 0o777 == 0o644
    for name, shape in shapes.items():
        assert f"shape {name} {shape['allocation']}\n" in text


def test_restart_loses_nothing(registry):
    before = registry.get("/v1/nodes").json()
    registry.stop("topiaryd")
    registry.snapshot.unlink()
    registry.start_topiaryd()
    assert registry.get("/v1/nodes").json() == before
    assert wait_until(lambda: registry.snapshot_text().startswith("topiary-snapshot 1"), 5)


def test_sigterm_ends_cleanly(registry):
    daemon = registry.daemons["topiaryd"]
    registry.stop("topiaryd")
    assert daemon.child.returncode == 0
    registry.start_topiaryd()


@pytest.mark.parametrize("file", sorted((CACHE / "src").glob("hwloc-*/tests/hwloc/xml/*.xml")), ids=lambda f: f.name)
def test_corpus_is_returned_byte_for_byte_or_refused(registry, file):
    xml = file.read_bytes()
    node = "c-" + re.sub(r"[^A-Za-z0-9]", "-", file.stem)
    answer = registry.put(node, xml)
    assert answer.status in (200, 422), answer.body
    if answer.status == 200:
        assert registry.get(f"/v1/nodes/{node}/topology").body == xml
    else:
        assert node.lower() in answer.json()["error"]
