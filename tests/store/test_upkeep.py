# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Upkeep: nodes move to better bases and layouts, what nobody uses goes, and nothing else changes."""
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import SMALL, machine
from rig.processes import wait_until
from upkeep_rig import (INTERVAL, alike, all_there, at_rest, clone, holding, kill_topiaryd, name, number, relinked,
                        session, start_second, upkeep_ran, upkeep_tried, upkept)

PATIENCE = 15 * INTERVAL
FACTS = "SELECT node, object, fact, value FROM topiary_facts ORDER BY 1, 2, 3, 4"
FACTS_TWICE = "SELECT count(*) FROM node_fact a JOIN topiary_nodes n ON n.node = a.node WHERE n.stored <> 'patch'"
OLD_LAYOUTS = ("SELECT count(*) FROM node n JOIN layout f ON f.id = n.layout WHERE f.kind = 'fields' AND f.id <"
             " (SELECT max(l.id) FROM layout l WHERE l.base = f.base AND l.kind = 'fields')")
FIELD_COLUMNS = ("n, line, start, len, keep_start, keep_end, alias, fixed, digits, pages, at, width, ordinal, before, "
                 "middle, after")
PATCHES = "SELECT count(*) FROM topiary_nodes WHERE stored = 'patch'"


@pytest.fixture(scope="module")
def registry():
    with upkept(KeepHistory=7) as r:
        yield r


@pytest.fixture(scope="module")
def shared():
    return alike(30, 12, "nic")


@pytest.fixture(scope="module")
def documents(registry, shared):
    """Forty nodes, of which twelve have a card less."""
    documents = {**{name(i): clone(i) for i in range(28)}, **shared}
    with at_rest(registry):
        for node, xml in documents.items():
            assert registry.put(node, xml).status == 200
        registry.drift_before = registry.sql("SELECT node, severity, since, changes FROM drift ORDER BY node")
        registry.patches_before = number(registry, PATCHES)
        registry.seen_before = registry.sql("SELECT name, since, seen, seq, boot, xml_bytes, "
                                            "sha256 FROM node ORDER BY name")
        registry.facts_before = registry.sql(FACTS)
        registry.old_before = number(registry, OLD_LAYOUTS)
        registry.bytes_before = number(registry, "SELECT sum(octet_length(diff)) FROM node")
    return documents


def test_nodes_that_differ_alike_get_a_base(registry, documents):
    assert registry.patches_before == 12
    assert wait_until(lambda: number(registry, PATCHES) == 0, PATIENCE), registry.log("topiaryd")
    assert number(registry, "SELECT count(*) FROM base") == 2 and number(registry, "SELECT count(*) FROM class") == 1
    assert number(registry, "SELECT sum(octet_length(diff)) FROM node") < registry.bytes_before
    assert all_there(registry, documents)


def test_what_a_move_leaves_as_it_was(registry, documents):
    """Drift, facts, and when a node was seen."""
    assert registry.sql("SELECT node, severity, since, changes FROM drift ORDER BY node") == registry.drift_before
    assert len(registry.drift_before.split("\n")) == 12
    assert (registry.sql("SELECT name, since, seen, seq, boot, xml_bytes, sha256 FROM node ORDER BY name")
            == registry.seen_before)
    assert registry.sql(FACTS) == registry.facts_before
    assert number(registry, FACTS_TWICE) == 0


def test_reencoding_and_export_report_the_same_drift(registry, documents):
    """One more node without the card comes to the new base by itself."""
    documents[name(66)] = clone(66, "nic")
    assert registry.put(name(66), documents[name(66)]).json()["stored"] == "fields"
    words = "SELECT words FROM topiary_drift WHERE node = '{}'"
    assert registry.sql(words.format(name(66))) == registry.sql(words.format(name(30))) != ""


def test_old_layouts_are_left(registry, documents):
    assert registry.old_before > 0
    assert wait_until(lambda: number(registry, OLD_LAYOUTS) == 0, PATIENCE), registry.log("topiaryd")
    assert all_there(registry, documents)


def test_the_past_moves_along(registry, documents):
    """A layout is not kept for what a node exported once."""
    for i in range(4):
        documents[name(i)] = clone(i).replace(b'"3.2.0-4-amd64"', b'"3.2.0-%d-amd64"' % (i + 5))
        assert registry.put(name(i), documents[name(i)]).status == 200
    used = "SELECT count(DISTINCT layout) FROM past WHERE layout IN (SELECT id FROM layout WHERE kind = 'fields')"
    assert wait_until(lambda: number(registry, OLD_LAYOUTS) == 0 and number(registry, used) <= 1, PATIENCE)
    for i in range(4):
        since = registry.sql(f"SELECT since FROM past WHERE node = '{name(i)}'").replace(" ", "T").replace("+", "%2B")
        assert registry.get(f"/v1/nodes/{name(i)}/topology?at={since}").body == clone(i)


def test_unused_rows_are_deleted_after_an_hour(registry, documents, shared):
    fields = "SELECT count(*) FROM layout WHERE kind IN ('fields', 'patch')"
    many = number(registry, fields)
    upkeep_ran(registry)
    assert number(registry, fields) == many > 2
    registry.sql("UPDATE layout SET created = created - interval '2 hours'")
    assert wait_until(lambda: number(registry, fields) <= 2, PATIENCE), "the latest of each base stays"
    for node in (*shared, name(66)):
        documents[node] = clone(int(node[2:]))
        assert registry.put(node, documents[node]).status == 200
    registry.sql("UPDATE base SET created = created - interval '2 hours'")
    upkeep_ran(registry)
    assert number(registry, "SELECT count(*) FROM base") == 2, "the past is made of it"
    registry.sql("UPDATE layout SET created = created - interval '2 hours'")
    registry.sql("UPDATE past SET until = until - interval '8 days'")
    assert wait_until(lambda: number(registry, "SELECT count(*) FROM base") == 1, PATIENCE), registry.log("topiaryd")
    assert number(registry, "SELECT count(*) FROM layout WHERE base NOT IN (SELECT id FROM base)") == 0
    assert all_there(registry, documents)


def test_what_is_gone_is_learned_again(registry, documents, shared):
    """The base is not at hand any more either."""
    documents.update(shared)
    for node, xml in shared.items():
        assert registry.put(node, xml).status == 200
    assert wait_until(lambda: number(registry, PATCHES) == 0, PATIENCE), registry.log("topiaryd")
    assert all_there(registry, documents)


def test_a_class_without_nodes_is_deleted(registry, documents):
    """Unless somebody accepted it: nodes that change alike follow there."""
    lone = {node: machine(SMALL.replace("Core:1", f"Core:{cores}"), node) for node, cores in (("lone", 3), ("kept", 5))}
    classes = "SELECT string_agg(g.node, ' ' ORDER BY g.node) FROM class c JOIN base g ON g.id = c.baseline"
    others = registry.sql(classes)
    for node, xml in lone.items():
        assert registry.put(node, xml).status == 200
    registry.sql("UPDATE class SET accepted_from = 1 WHERE baseline = (SELECT id FROM base WHERE node = 'kept')")
    for node, xml in lone.items():
        assert registry.forget(node, xml).status == 200
    upkeep_ran(registry)
    assert registry.sql(classes) == f"{others} kept lone", "not within an hour"
    empty = [c for c in registry.get("/v1/classes").json()["classes"] if c["baseline"] in lone]
    assert [(c["nodes"], c["hosts"]) for c in empty] == [(0, ""), (0, "")]
    for table in "class", "base", "layout":
        registry.sql(f"UPDATE {table} SET created = created - interval '2 hours'")
    assert wait_until(lambda: registry.sql(classes) == f"{others} kept", PATIENCE), registry.log("topiaryd")
    assert number(registry, "SELECT count(*) FROM base WHERE node = 'lone'") == 0
    assert registry.put("lone", lone["lone"]).json()["stored"] == "base"
    assert registry.forget("lone", lone["lone"]).status == 200
    assert all_there(registry, documents)


def test_history_is_kept_so_long(registry):
    for i in range(3):
        assert registry.put("old", clone(70 + i)).status == 200
    registry.sql("UPDATE past SET until = until - interval '6 days 23 hours' WHERE node = 'old'")
    upkeep_ran(registry)
    assert number(registry, "SELECT count(*) FROM past WHERE node = 'old'") == 2
    first = "(SELECT min(since) FROM past WHERE node = 'old')"
    registry.sql(f"UPDATE past SET until = until - interval '2 hours' WHERE node = 'old' AND since = {first}")
    assert wait_until(lambda: number(registry, "SELECT count(*) FROM past WHERE node = 'old'") == 1, PATIENCE)
    assert registry.get("/v1/nodes/old/topology").body == clone(72)


def test_one_of_two_topiaryd_maintains(registry, documents):
    """Two topiaryd on one database: each move is made once, and neither has anything to complain of."""
    start_second(registry)
    with at_rest(registry):
        for i in range(150, 162):
            documents[name(i)] = relinked(clone(i))
            assert registry.put(name(i), documents[name(i)]).status == 200
        upkeep_tried(registry, 2)
        assert number(registry, PATCHES) == 12
        marks = {log: len(registry.log(log)) for log in ("topiaryd", "topiaryd-2")}
    assert wait_until(lambda: number(registry, PATCHES) == 0, PATIENCE)

    def logs():
        return "".join(registry.log(log)[mark:] for log, mark in marks.items())
    assert wait_until(lambda: sum(int(n) for n in re.findall(r"(\d+) nodes moved from patches", logs())) == 12,
                      PATIENCE), logs()
    upkeep_ran(registry)
    registry.stop("topiaryd-2")
    assert sum(int(n) for n in re.findall(r"(\d+) nodes moved from patches", logs())) == 12
    assert not re.search(r"upkeep: [a-z ]+: [A-Z]|deadlock", logs()), logs()
    assert all_there(registry, documents)


def test_killed_during_maintenance(registry, documents):
    """SIGKILL at any moment of a pass: all documents are there, and the next topiaryd goes on."""
    chance = random.Random(4)
    for turn in range(3):
        with at_rest(registry):
            for i in range(200, 224):
                documents[name(i)] = relinked(clone(i), b"%d.500000" % (turn + 5))
                assert registry.put(name(i), documents[name(i)]).status == 200
        moved = number(registry, PATCHES)
        wait_until(lambda before=moved: number(registry, PATCHES) != before,
                   chance.random() * 2 * INTERVAL)
        kill_topiaryd(registry)
        assert all_there(registry, documents)
    assert wait_until(lambda: number(registry, PATCHES) == 0, PATIENCE)
    assert number(registry, FACTS_TWICE) == 0
    assert all_there(registry, documents)


def test_nodes_that_boot_are_left_alone(registry, documents):
    """A row that a transaction holds is not waited for."""
    with at_rest(registry):
        for i in range(150, 162):
            documents[name(i)] = relinked(clone(i), b"4.000000")
            assert registry.put(name(i), documents[name(i)]).status == 200
    with holding(registry, name(155)):
        stored = "SELECT string_agg(node, ' ') FROM topiary_nodes WHERE stored = 'patch'"
        assert wait_until(lambda: registry.sql(stored) == name(155), 5 * INTERVAL)
    assert wait_until(lambda: registry.sql(stored) == "", PATIENCE)
    assert all_there(registry, documents)


def test_a_node_that_moves_while_it_boots_is_known(registry, documents):
    """Its row changes to a layout created after the question was asked: it is not asked for its document again."""
    node = name(3)
    move = f"BEGIN; SELECT 1 FROM node WHERE name = '{node}' FOR UPDATE"
    layout = ("WITH f AS (INSERT INTO layout (base, kind, shape)"
              " SELECT base, kind, shape FROM layout JOIN node ON layout = id"
              f" WHERE name = '{node}' RETURNING id), w AS (INSERT INTO field"
              f" SELECT (SELECT id FROM f), {FIELD_COLUMNS} FROM field"
              f" WHERE layout = (SELECT layout FROM node WHERE name = '{node}'))"
              f" UPDATE node SET layout = (SELECT id FROM f) WHERE name = '{node}'; COMMIT")
    with at_rest(registry), session(registry, move) as mover, ThreadPoolExecutor() as pool:
        answer = pool.submit(registry.ask, node, documents[node])
        assert wait_until(lambda: number(registry, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type "
                                         "= 'Lock'"), 10)
        mover.tell(layout)
        assert answer.result().status == 200
    assert all_there(registry, documents)
