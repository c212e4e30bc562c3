# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The first node of an order is the odd one: what most nodes are is what is expected of them, and a fault that comes
later is none."""
import json
import random
import time

import pytest
from registry_rig import POSTGRES, SMALL, USER, machine, run
from rig.cluster import as_user
from rig.processes import wait_until
from upkeep_rig import (INTERVAL, all_there, at_rest, clone, holding, kill_topiaryd, name, number, relinked,
                        start_second, upkeep_ran, upkeep_tried, upkept)

PATIENCE = 20 * INTERVAL
APART = 30  # seconds between two passes that patches ask for: PATCHES_INTERVAL of registry/upkeep/upkeep.c
PATCHES = "SELECT count(*) FROM topiary_nodes WHERE stored = 'patch'"
DRIFTING = "SELECT string_agg(node, ' ' ORDER BY node) FROM drift"
BASELINE = "SELECT baseline FROM class WHERE id = 1"
UNTOLD = "SELECT count(*) FROM class WHERE recompare_since = '-infinity'"
ODD = name(30)
HOOK = """#!/bin/sh
cat > {state}/changes-$1
"""


def odd_first(registry, whole=20):
    """A node without its first card is the first to boot; the documents of all."""
    documents = {ODD: clone(30, "nic"), **{name(i): clone(i) for i in range(whole)}}
    with at_rest(registry):
        for node, xml in documents.items():
            assert registry.put(node, xml).status == 200
        assert number(registry, PATCHES) == number(registry, "SELECT count(*) FROM drift") == whole
    return documents


def words(registry, node):
    return registry.sql(f"SELECT words FROM topiary_drift WHERE node = '{node}'")


def hook(registry, _):
    path = registry.folder / "hook"
    path.write_text(HOOK.format(state=registry.folder / "state"))
    path.chmod(0o755)


def expected(registry, documents):
    """Only the odd one drifts, and has less."""
    assert wait_until(lambda: registry.sql(DRIFTING) == ODD, PATIENCE), registry.log("topiaryd")
    assert ({c["direction"] for c in json.loads(registry.sql(f"SELECT changes FROM drift WHERE node = '{ODD}'"))}
            == {"gone"})
    assert registry.sql(f"SELECT severity FROM drift WHERE node = '{ODD}'") == "capacity"
    assert number(registry, PATCHES) == 0
    assert registry.sql("SELECT id FROM base WHERE drift IS NULL") == registry.sql(BASELINE)
    assert all_there(registry, documents)


@pytest.fixture(scope="module")
def registry():
    with upkept(hook, DriftHook="{folder}/hook", KeepHistory=7) as r:
        yield r


@pytest.fixture(scope="module")
def documents(registry):
    return odd_first(registry)


def test_majority_sets_the_baseline(registry, documents):
    expected(registry, documents)
    assert registry.sql("SELECT baseline FROM topiary_classes") in documents.keys() - {ODD}
    told = registry.folder / "state" / f"changes-{ODD}"
    assert wait_until(lambda: told.exists() and told.read_text().strip().endswith("]"),
                      PATIENCE), "the hook hears of the odd one"
    assert {c["direction"] for c in json.loads(told.read_text())} == {"gone"}


def test_later_ones_are_told_the_same(registry, documents):
    for node, xml in {name(40): clone(40), name(33): clone(33, "nic")}.items():
        documents[node] = xml
        assert registry.put(node, xml).json()["stored"] == "fields"
    assert words(registry, name(40)) == ""
    assert words(registry, name(33)) == words(registry, ODD) != ""


def test_words_that_are_right_stay(registry):
    """The hook does not run again for the same drift."""
    drift = "SELECT node, since, reported, changes FROM drift ORDER BY node"
    assert wait_until(lambda: number(registry, "SELECT count(*) FROM drift WHERE NOT reported") == 0, PATIENCE)
    before = registry.sql(drift)
    with at_rest(registry):
        registry.sql("UPDATE class SET recompare_since = '-infinity'")
    assert wait_until(lambda: number(registry, UNTOLD) == 0, PATIENCE)
    assert registry.sql(drift) == before


def test_what_was_under_way_is_told_anew(registry):
    """Another topiaryd compared them with the previous baseline."""
    with at_rest(registry):
        registry.sql("UPDATE class SET recompare_since = now() - interval '1 minute'")
        registry.sql(f"DELETE FROM drift WHERE node = '{name(33)}'")
        registry.sql(f"INSERT INTO drift (node, severity, changes) VALUES ('{name(40)}', 'wiring', '[]')")
    assert wait_until(lambda: registry.sql(DRIFTING) == f"{ODD} {name(33)}", PATIENCE)
    assert words(registry, name(33)) == words(registry, ODD)
    registry.sql("UPDATE class SET recompare_since = recompare_since - interval '1 hour'")
    assert wait_until(lambda: registry.sql("SELECT recompare_since FROM class") == "", PATIENCE)


def test_killed_during_maintenance(registry, documents):
    """SIGKILL at any moment; each time the odd one is the baseline again."""
    chance = random.Random(7)
    odd = registry.sql(f"SELECT id FROM base WHERE node = '{ODD}'")
    for _ in range(3):
        with at_rest(registry):
            registry.sql(f"UPDATE class SET baseline = {odd}, recompare_since = '-infinity'")
        wait_until(lambda: registry.sql(BASELINE) != odd, chance.random() * 3 * INTERVAL)
        kill_topiaryd(registry)
    assert wait_until(lambda: registry.sql(BASELINE) != odd and number(registry, UNTOLD) == 0,
                      PATIENCE), registry.log("topiaryd")
    assert registry.sql(DRIFTING) == f"{ODD} {name(33)}"
    assert words(registry, name(33)) == words(registry, ODD)
    assert all_there(registry, documents)


def test_a_node_that_is_held_is_told_later(registry):
    odd = registry.sql(f"SELECT id FROM base WHERE node = '{ODD}'")
    drifting = number(registry, "SELECT count(*) FROM node") - 2
    with at_rest(registry):
        registry.sql(f"UPDATE class SET baseline = {odd}, recompare_since = '-infinity'")
    assert wait_until(lambda: number(registry, "SELECT count(*) FROM drift") == drifting,
                      PATIENCE), registry.log("topiaryd")
    with holding(registry, name(7)):
        assert wait_until(lambda: registry.sql(DRIFTING) == f"{name(7)} {ODD} {name(33)}",
                          PATIENCE), registry.log("topiaryd")
        assert number(registry, UNTOLD) == 1
        kill_topiaryd(registry)
    assert wait_until(lambda: registry.sql(DRIFTING) == f"{ODD} {name(33)}", PATIENCE), registry.log("topiaryd")
    assert wait_until(lambda: number(registry, UNTOLD) == 0, PATIENCE)


def test_a_fault_that_hits_most_nodes_is_one():
    """Also when it is longer ago than history is kept."""
    with upkept(KeepHistory=7) as registry:
        numbers = range(0, 60, 3)
        documents = {name(i): clone(i) for i in numbers}
        for node, xml in documents.items():
            assert registry.put(node, xml).status == 200
        baseline, broken = registry.sql(BASELINE), " ".join(name(i) for i in numbers[5:])
        for i in numbers[5:]:
            documents[name(i)] = clone(i, "nic")
            assert registry.put(name(i), documents[name(i)]).status == 200
        assert wait_until(lambda: number(registry, PATCHES) == 0, PATIENCE), registry.log("topiaryd")
        upkeep_ran(registry)
        assert registry.sql(BASELINE) == baseline and registry.sql(DRIFTING) == broken
        registry.sql("UPDATE past SET until = until - interval '8 days'; UPDATE node SET since = since - "
                     "interval '8 days'")
        assert wait_until(lambda: number(registry, "SELECT count(*) FROM past") == 0, PATIENCE)
        upkeep_ran(registry)
        assert registry.sql(BASELINE) == baseline and registry.sql(DRIFTING) == broken
        assert all_there(registry, documents)


def test_accepted_baseline_is_kept():
    with upkept() as registry:
        documents = odd_first(registry, whole=12)
        with at_rest(registry):
            other = registry.sql("INSERT INTO class (baseline) SELECT baseline FROM class RETURNING id").split("\n")[0]
            registry.sql(f"UPDATE class SET accepted_from = {other} WHERE id = 1")
            baseline, drifting = registry.sql(BASELINE), registry.sql(DRIFTING)
        assert wait_until(lambda: number(registry, PATCHES) == 0, PATIENCE), registry.log("topiaryd")
        upkeep_ran(registry)
        assert registry.sql(BASELINE) == baseline and registry.sql(DRIFTING) == drifting
        assert all_there(registry, documents)


def test_two_topiaryd_agree():
    """What another one found out is known to whichever is asked."""
    with upkept() as registry:
        port = start_second(registry)
        documents = odd_first(registry)
        expected(registry, documents)
        with at_rest(registry):
            upkeep_tried(registry, 2)
        for at, i in ((registry.port, 51), (port, 60)):
            registry.port = at
            for node, xml in {name(i): clone(i), name(i + 3): clone(i + 3, "nic")}.items():
                documents[node] = xml
                assert registry.put(node, xml).json()["stored"] == "fields"
        assert registry.sql(DRIFTING) == f"{ODD} {name(54)} {name(63)}"
        assert words(registry, name(54)) == words(registry, name(63)) == words(registry, ODD)
        logs = registry.log("topiaryd") + registry.log("topiaryd-2")
        assert logs.count("new baseline by the vote") == 1 and "deadlock" not in logs, logs
        assert all_there(registry, documents)


def test_many_patches_ask_for_a_pass():
    """Soon after they came, and not for each few of them."""
    with upkept(UpkeepInterval=86400) as registry:
        documents = {ODD: clone(30, "nic"), **{name(i): clone(i) for i in range(20)}}
        began = time.monotonic()
        for node, xml in documents.items():
            assert registry.put(node, xml).status == 200
        expected(registry, documents)
        for i in range(100, 116):
            documents[name(i)] = relinked(clone(i))
            assert registry.put(name(i), documents[name(i)]).json()["stored"] == "patch"
        assert wait_until(lambda: number(registry, PATCHES) == 0, 40), registry.log("topiaryd")
        assert time.monotonic() - began >= APART


# --- the room of what is no more

def vacuumed(registry):
    return registry.sql("SELECT string_agg(relname, ' ') FROM pg_stat_user_tables WHERE vacuum_count > 0")


def forget(registry, rows):
    """So much history is too old."""
    registry.sql("INSERT INTO past SELECT now() - interval '9 days' + i * interval '1 s', now() - interval '8 days', "
                 f"n.layout, n.xml_bytes, n.sha256, n.name, n.diff FROM node n, generate_series(1, {rows}) i")
    assert wait_until(lambda: number(registry, "SELECT count(*) FROM past") == 0, PATIENCE)


def test_dead_rows_make_room():
    with upkept(KeepHistory=7) as registry:
        assert registry.put(name(0), clone(0)).status == 200
        forget(registry, 900)
        upkeep_ran(registry)
        assert vacuumed(registry) == ""
        forget(registry, 1500)
        assert wait_until(lambda: vacuumed(registry) == "past", PATIENCE), registry.log("topiaryd")
        assert registry.sql("SELECT pg_relation_size('past')") == "0"


def test_a_loose_index_is_built_anew():
    """Names that come in no order leave their index a third empty."""
    xml = machine(SMALL, name(0))       # without addresses: 11000 with those of one machine would all be compared
    with upkept(UpkeepInterval=86400) as registry:
        assert registry.put(name(0), xml).status == 200
        for part in range(20):
            registry.sql("INSERT INTO node (since, seq, boot, layout, xml_bytes, sha256, name, diff)"
                         " SELECT since, seq, boot, layout, xml_bytes, sha256, 'zz' || lpad(i::text, 6, '0'), "
                         "diff FROM node,"
                         f" (SELECT i FROM generate_series(1, 11000) i WHERE hashint4(i) % 20 IN ({part}, "
                         f"-{part}) ORDER BY hashint4(i + 1)) s WHERE name = '{name(0)}'")
        registry.sql("ANALYZE node")
        rows, before = (int(n) for n in registry.sql("SELECT count(*), pg_relation_size('node_pkey') "
                                                     "FROM node").split("|"))
        assert rows > 10000 and before > 38 * rows
        registry.stop("topiaryd")
        registry.config.write_text(registry.config.read_text().replace("UpkeepInterval=86400", "UpkeepInterval=2"))
        registry.start_topiaryd()
        assert wait_until(lambda: int(registry.sql("SELECT pg_relation_size('node_pkey')")) < 35 * rows,
                          PATIENCE), registry.log("topiaryd")
        assert registry.get(f"/v1/nodes/{name(0)}/topology").body == xml


def test_tables_of_another_owner_are_skipped():
    with upkept(KeepHistory=7) as registry:
        assert registry.put(name(0), clone(0)).status == 200
        run(as_user("postgres", [POSTGRES / "psql", "-h", registry.folder / "pg", "-d", "topiary", "-c",
                                 "ALTER DATABASE topiary OWNER TO postgres; ALTER TABLE past OWNER TO postgres; "
                                 f"GRANT ALL ON past TO {USER}"]),
            cwd="/")
        forget(registry, 1500)
        upkeep_ran(registry)
        assert vacuumed(registry) == "" and "past" not in registry.log("topiaryd"), registry.log("topiaryd")


@pytest.mark.parametrize("first", ["honest", "false"])
def test_a_host_has_one_vote(elsewhere, first):
    """Whatever names it has: neither as voters nor as the nodes of the baseline do they outvote the others."""
    false = [f"alias{i}" for i in range(43)]
    with upkept(lambda r, _: r.name_host(elsewhere.there, *false), KeepHistory=7) as registry:
        registry.stop("topiaryd")
        registry.config.write_text(registry.config.read_text().replace(
            f"Listen=127.0.0.1:{registry.port}", f"Listen=0.0.0.0:{registry.port}"))
        registry.start_topiaryd()

        def honest():
            return [registry.put(name(i), clone(i)).status for i in range(12)]

        def hostile():
            with elsewhere.threads(1) as far:
                return [far.submit(registry.put, node, clone(i, "nic"), at=elsewhere.here).result().status
                        for i, node in enumerate(false)]
        with at_rest(registry):
            for put in (honest, hostile) if first == "honest" else (hostile, honest):
                assert set(put()) == {200}
        upkeep_ran(registry)
        drifting = "SELECT name FROM drift JOIN node n ON n.name = node WHERE peer IS {} NULL"
        assert wait_until(lambda: not registry.sql(drifting.format("")), PATIENCE), registry.log("topiaryd")
        assert len(registry.sql(drifting.format("NOT")).split()) == len(false)
