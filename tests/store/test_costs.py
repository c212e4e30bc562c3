# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Measured costs in the registry: who may store them, nodes slower than their class, and what topiary map reads."""
import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import BUILD, ROOT, USER, zstd
from rig.cluster import as_user
from rig.processes import wait_until
from rig.results import result, slowed
from upkeep_rig import INTERVAL, clone, name, session, upkept

PATIENCE = 20 * INTERVAL
CORES, PACKAGES = 16, (0, 1)  # of upkeep_rig.BASE
CLASS = 20
HOOK = """#!/bin/sh
echo "$1 $2" >> {folder}/state/calls
"""


@pytest.fixture(scope="module", name="registry")
def fixture_registry():
    def prepare(registry, _):
        hook = registry.folder / "hook"
        hook.write_text(HOOK.format(folder=registry.folder))
        hook.chmod(0o755)
    with upkept(prepare, DriftHook="{folder}/hook") as r:
        r.topiary = shutil.copy(BUILD / "topiary", r.folder)
        for i in range(CLASS + 4):
            assert r.put(name(i), clone(i)).status == 200
        yield r


def topiary(registry, *words, user=None, status=0):
    command = [str(w) for w in (registry.topiary, *words, "--config", registry.config)]
    done = subprocess.run(as_user(user, command) if user else command, capture_output=True, text=True, timeout=120,
                          cwd="/", check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def put(registry, node, made, user=None, body=None, encoding="zstd", **other):
    text = made if isinstance(made, bytes) else json.dumps(made).encode()
    cred = registry.sign(registry.claim(other.pop("about", node), text, **{"purpose": "costs", **other}), user)
    return registry.request("PUT", f"/v1/nodes/{node}/costs", body or zstd(text), Authorization=f"Munge {cred}",
                            Content_Encoding=encoding)


def measure(registry, number, noise=0.02, seed=None, change=lambda made: made):
    made = change(result(CORES, PACKAGES, number if seed is None else seed, noise))
    answer = put(registry, name(number), made)
    assert answer.status == 200, answer.body


def compared(registry):
    """All that was measured is in the medians."""
    marks = ("SELECT coalesce(sum(hashtextextended(m.node || ' ' || extract(epoch FROM m.measured), 0)::numeric), 0)"
             " = (SELECT coalesce(sum(mark), 0) FROM class_costs) FROM measured_node m")
    assert wait_until(lambda: registry.sql(marks) == "t", PATIENCE), registry.log("topiaryd")


def slow(registry):
    return {row["node"]: row["changes"] for row in registry.get("/v1/drift?severity=slow").json()["drift"]}


def calls(registry):
    file = registry.folder / "state" / "calls"
    return file.read_text().split("\n")[:-1] if file.exists() else []


def test_lists_that_no_measurement_has_are_deleted(registry):
    """Each could have names of its own."""
    lists = "SELECT count(*) FROM cost_list"
    measure(registry, 0)
    before = int(registry.sql(lists))
    assert put(registry, name(0), result(8, PACKAGES)).status == 422 and int(registry.sql(lists)) == before
    registry.sql("INSERT INTO cost_list VALUES ('unused', '{}')")
    measure(registry, 0)
    assert wait_until(lambda: registry.sql(f"{lists} WHERE name = 'unused'") == "0", PATIENCE)
    assert int(registry.sql(lists)) == before


def test_class_without_medians_is_shown(registry):
    measure(registry, 0)

    def is_said():
        registry.sql("DELETE FROM class_costs")     # as before the next pass of the upkeep
        said = topiary(registry, "bench", "show", name(0)).stdout
        return "class c1, whose medians topiaryd has not computed yet\n" in said
    assert wait_until(is_said, PATIENCE)
    compared(registry)


def test_last_node_of_a_class_is_removed_before_its_medians_are_computed(registry):
    measure(registry, 0)
    refresh = "SELECT class_costs_refresh(999, shape, list, 1, 1) FROM node_costs LIMIT 1"
    assert registry.sql(f"{refresh}; SELECT count(*) FROM class_costs WHERE class = 999") == "0"


@pytest.mark.parametrize("seed", range(2))
def test_noise_is_not_slow(registry, seed):
    for i in range(CLASS):
        measure(registry, i, noise=0.05, seed=100 * seed + i)
    compared(registry)
    assert slow(registry) == {}


def test_one_slow_node_of_twenty(registry):
    odd = name(7)
    for i in range(CLASS):
        measure(registry, i, change=lambda made, i=i: slowed(made, 1, 0.75 if i == 7 else 1))
    compared(registry)
    found = slow(registry)
    assert list(found) == [odd]
    change, = found[odd]
    assert (change["severity"], change["what"]) == ("slow", "memory bandwidth")
    assert re.search(r"NUMA node [01] to 1: [\d.]+ GB/s, c1 has [\d.]+ GB/s \(and 1 more", change["words"])
    # As other drift: commands, exit status, metrics, views, hook.
    drift = topiary(registry, "drift").stdout
    assert odd in drift and "slow" in drift and "1 node with drift: 0 capacity, 1 slow" in drift
    assert "0 nodes with drift" in topiary(registry, "drift", "--severity=capacity").stdout
    assert topiary(registry, "nodes", "--drift=slow", "--names").stdout.split() == [odd]
    assert change["words"] in topiary(registry, "show", odd).stdout
    assert change["words"] in topiary(registry, "verify", odd, status=5).stdout
    assert topiary(registry, "verify", odd, "--severity=capacity").stdout == ""
    assert topiary(registry, "verify", name(8)).stdout == ""
    assert wait_until(lambda: 'nodes_drifted{severity="slow"} 1' in registry.get("/metrics").body.decode(), 15)
    assert registry.sql("SELECT node, severity, what FROM topiary_drift") == f"{odd}|slow|memory bandwidth"
    assert registry.sql("SELECT drifted FROM topiary_classes") == "1"
    text = (ROOT / "docs/sql.md").read_text(encoding="utf-8")
    query = re.search(r"## Which nodes are slower.*?```sql\n(.*?)```", text, re.S).group(1)
    rows = [row.split("|") for row in registry.sql(query).splitlines()]
    assert {row[2] for row in rows} == {f"memory bandwidth, NUMA node {i} to 1" for i in (0, 1)}
    assert all(row[:2] == [odd, "c1"] and -30 < float(row[5]) < -20 for row in rows)
    assert "remains slow until it is measured again" in topiary(registry, "accept", odd).stderr
    assert wait_until(lambda: calls(registry) == [f"{odd} slow"], PATIENCE), calls(registry)
    shown = topiary(registry, "bench", "show", odd).stdout
    assert f"{CLASS} of its nodes measured" in shown and shown.count(" slow\n") == 2
    # Its next export and a measurement that is as bad change nothing, and it is reported once.
    assert registry.put(odd, clone(7)).status == 200
    measure(registry, 7, seed=1007, change=lambda made: slowed(made, 1, 0.75))
    compared(registry)
    assert list(slow(registry)) == [odd] and calls(registry) == [f"{odd} slow"]
    # It has two kinds of drift, of which the worse is its severity.
    assert registry.put(odd, clone(7).replace(b'"3.2.0-4-amd64"', b'"6.1.0-9-amd64"')).status == 200
    both = registry.get(f"/v1/nodes/{odd}/drift").json()
    assert both["severity"] == "slow" and [c["severity"] for c in both["changes"]] == ["slow", "cosmetic"]
    assert registry.put(odd, clone(7)).status == 200
    # Mended.
    measure(registry, 7)
    compared(registry)
    assert slow(registry) == {} and topiary(registry, "verify", odd).stdout == ""


def test_node_with_other_hardware_now(registry):
    """Its measurement does not count any more, and comes back with the hardware."""
    odd = name(5)
    measure(registry, 5, change=lambda made: slowed(made, 0, 0.5))
    compared(registry)
    assert list(slow(registry)) == [odd]
    assert registry.put(odd, clone(5, "core")).status == 200
    assert wait_until(lambda: registry.sql("SELECT count(*) FROM slow_node") == "0", PATIENCE)
    assert "not measured with its present hardware" in topiary(registry, "bench", "show", odd, status=1).stderr
    assert registry.put(odd, clone(5)).status == 200
    assert wait_until(lambda: list(slow(registry)) == [odd], PATIENCE)
    measure(registry, 5)
    compared(registry)


def test_too_few_nodes(registry):
    registry.sql("DELETE FROM node_costs WHERE node >= 'cn000007'")
    measure(registry, 3, change=lambda made: slowed(made, 0, 0.1))
    compared(registry)
    assert slow(registry) == {}
    assert registry.sql("SELECT nodes FROM class_costs") == "7"


def test_row_is_small(registry):
    measure(registry, 1)
    row = int(registry.sql(f"SELECT pg_column_size(c) FROM node_costs c WHERE node = '{name(1)}'"))
    assert row < 250
    assert registry.sql("SELECT count(*) FROM cost_list") == "1"


def test_sent_by_the_command(registry):
    file = registry.folder / "result"
    file.write_text(json.dumps(result(CORES, PACKAGES, 1)))
    node = name(CLASS + 1)
    done = topiary(registry, "bench", "node", f"--from={file}", f"--node={node}", "--send")
    assert done.stdout == f"{node}: costs of {CORES} cores and 2 NUMA nodes sent\n"
    assert json.loads(topiary(registry, "show", node, "--json").stdout)["costs_measured"]
    rows = json.loads(topiary(registry, "bench", "show", node, "--json").stdout)["costs"]
    assert {r["quantity"]: r["value"] for r in rows}["memory latency, NUMA node 0 to 1"] == pytest.approx(180e-9)
    refused = topiary(registry, "bench", "node", f"--from={file}", f"--node={node}", "--send", user="nobody", status=1)
    assert "is neither root of the node nor one of Admins" in refused.stderr


@pytest.mark.parametrize("how, status, words", [
    ({"user": "nobody"}, 403, "nor one of Admins"), ({"purpose": "export"}, 403, ""),
    ({"about": name(2)}, 403, "signed for"), ({"encoding": "gzip"}, 415, "zstd"),
    ({"body": zstd(b"{}")}, 422, ""), ({"seq": 10 ** 18}, 403, "clocks"), ({"length": 1 << 21}, 413, "allowed"),
])
def test_refused_senders(registry, how, status, words):
    before = registry.sql("SELECT max(measured) FROM node_costs")
    answer = put(registry, name(0), result(CORES, PACKAGES), **how)
    assert answer.status == status and words in answer.json()["error"]
    assert registry.sql("SELECT max(measured) FROM node_costs") == before


@pytest.mark.parametrize("made, status, words", [
    (result(8, PACKAGES), 422, "measured on 8 cores, but the node has 16"), (b"[]", 422, "cores"), (b"{", 422, "line"),
    ({**result(CORES, PACKAGES), "memory": []}, 422, "memory"),
    ({"cores": CORES, "numa_nodes": 1, "cache_line": [], "numa_cache_line": [], "domains": [], "memory": [
        {"from": 0, "to": 0, "latency_seconds": None, "bytes_per_second": None}]}, 422, "no value"),
])
def test_refused_results(registry, made, status, words):
    answer = put(registry, name(0), made)
    assert answer.status == status and words in answer.json()["error"]


def test_map_uses_the_medians(registry, tmp_path):
    """Published as a file, and read from the registry where there is none: also for nodes that were not measured."""
    for i in range(3):
        measure(registry, i, noise=0)
    registry.sql("DELETE FROM node_costs WHERE node > 'cn000002'")
    wait_until(lambda: registry.sql("SELECT nodes FROM class_costs") == "3", PATIENCE)
    told = "package=28.0,die=14.0,numa=12.0,l3=8.0,l2=4.0,core=2.0,0-1=28.0"
    line = f"cn[000000-{CLASS + 3:06d}] node=100.0,{told}"
    assert wait_until(lambda: line in registry.costs.read_text().split("\n"), PATIENCE), registry.costs.read_text()
    assert registry.get("/v1/costs").body.decode() == registry.costs.read_text()
    (tmp_path / "ring").write_text("0 1 0 1\n1 0 1 0\n0 1 0 1\n1 0 1 0\n")
    command = ["map", f"--matrix={tmp_path}/ring", f"--nodes={name(0)}=0,1,8,9", "--explain=json", "--output=/dev/null"]

    def explained(*options):
        return json.loads(topiary(registry, *command, *options).stdout)
    by_file = explained()
    assert by_file["costs"] == f"within nodes: of 1 node from {registry.costs}"
    assert by_file["cost"] == 2 * 2 * (4 + 28)  # two neighbours within an L3, two across packages
    assert explained("--costs=default")["costs"] == "within nodes: default for 1 node"
    assert explained("--costs=default")["cost"] == 2 * 2 * (4 + 20)
    hidden = registry.folder / "elsewhere.conf"
    hidden.write_text(re.sub("(SnapshotFile|CostsFile)=.*", r"\1=/nowhere/\1", registry.config.read_text()))
    done = subprocess.run([registry.topiary, *command, f"--config={hidden}"], capture_output=True, text=True,
                          check=True)
    assert json.loads(done.stdout) == {**by_file, "costs": "within nodes: of 1 node from /v1/costs",
                                       "seconds": json.loads(done.stdout)["seconds"]}


def test_nodes_not_in_the_registry(registry):
    assert put(registry, "nowhere", result(CORES, PACKAGES)).status == 404
    assert registry.get("/v1/nodes/nowhere/costs").status == 404


def test_node_is_removed_meanwhile(registry):
    node = name(CLASS + 3)
    with session(registry, f"BEGIN; DELETE FROM node WHERE name = '{node}'") as remover, ThreadPoolExecutor() as pool:
        answer = pool.submit(put, registry, node, result(CORES, PACKAGES))
        assert wait_until(lambda: registry.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                          != "0", 10)
        remover.tell("COMMIT")
        assert answer.result().status == 404, answer.result().body


def test_administrator_sends_for_any_node(registry):
    """On the registry's host: as the user who runs topiaryd, who is one."""
    assert put(registry, name(CLASS + 2), result(CORES, PACKAGES), user=USER).status == 200
