# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What is stored is damaged: no node hears that its document is known, `topiary fsck` and upkeep tell, and the node's
own document mends it."""
import http.server
import json
import signal
import threading

import pytest
from rig.processes import wait_until
from test_restored import boot, metric, nodes, told_right
from upkeep_rig import INTERVAL, all_there, at_rest, clone, kill_topiaryd, name, relinked, upkept

# What is damaged, of a1 and whoever shares it, and the words of fsck.
DAMAGES = {
    "another kind's layout": ("UPDATE node SET layout = (SELECT layout FROM node WHERE name = 'b1') WHERE name = 'a1'",
                              ""),
    "another document of its kind": ("UPDATE node SET diff = (SELECT diff FROM node WHERE name = 'a2')"
                                     " WHERE name = 'a1'", "differs from the one that the node signed"),
    "no document": ("UPDATE node SET diff = '\\x28b52ffd' WHERE name = 'a1'", ""),
    "half a base": ("UPDATE base SET bytes = substr(bytes, 1, 500) WHERE node LIKE 'a%'", "base "),
    "another base": ("UPDATE base b SET bytes = o.bytes FROM base o WHERE b.node LIKE 'a%' AND o.node LIKE 'b%'",
                     "base "),
    "a field that went": ("DELETE FROM field WHERE n = 0 AND layout = (SELECT layout FROM node WHERE name = 'a1')",
                          ""),
}


def fsck(registry, *options, status):
    done = registry.topiary("fsck", "--json", *options, status=status, timeout=300)
    return json.loads(done.stdout) if status < 2 else done.stderr


@pytest.fixture(scope="module")
def damaged():
    """A registry that does its upkeep on request."""
    with upkept(UpkeepInterval=86400) as r:
        assert r.get("/healthz").status == 200
        yield r


def start_over(registry):
    """Nothing is stored, or cached by topiaryd."""
    registry.sql("TRUNCATE node, past, class, base, layout, shape, unreadable CASCADE")
    kill_topiaryd(registry)


# What topiaryd has at hand is as it was.
RUNNING = [what for what in DAMAGES if what not in ("half a base", "another base", "a field that went")]


@pytest.mark.parametrize("what, again", [(what, False) for what in RUNNING] + [(what, True) for what in DAMAGES])
def test_damage(damaged, what, again):
    damage, words = DAMAGES[what]
    r = damaged
    documents = nodes("a") | nodes("b")
    start_over(r)
    boot(r, documents)
    since = dict(row.split("|") for row in r.sql("SELECT name, since FROM node").split("\n"))
    r.sql(damage)
    if again:
        kill_topiaryd(r)
    told = fsck(r, status=1)
    assert told["checked"] == len(documents)
    found = {one["node"]: one["reason"] for one in told["unreadable"]}
    assert "a1" in found and all(node[0] == "a" and words in reason for node, reason in found.items()), found
    assert r.sql("SELECT count(*) FROM unreadable") == "0", "it was only asked"
    assert r.ask("a1", documents["a1"]).status == 202, "it cannot be rebuilt"
    assert r.ask("b1", documents["b1"]).status == 200
    for node in documents:
        assert wait_until(lambda n=node: set(boot_or_again(r, {n: documents[n]})) == {200}, 60)
    told_right(r, documents)
    assert fsck(r, "--repair", status=0) == {"checked": len(documents), "repaired": True, "unreadable": []}
    assert r.sql("SELECT count(*) FROM unreadable") == "0"
    assert (dict(row.split("|") for row in r.sql("SELECT name, since FROM node").split("\n"))
            == since), "it is no new document"
    kill_topiaryd(r)
    told_right(r, documents)


@pytest.mark.parametrize("what", ["half a base", "another base"])
def test_base_at_hand(damaged, what):
    """Only the database's copy is damaged: fsck tells of it, and writes it again from memory."""
    r = damaged
    documents = nodes("a") | nodes("b")
    start_over(r)
    boot(r, documents)
    r.sql(DAMAGES[what][0])
    assert {one["node"] for one in fsck(r, status=1)["unreadable"]} == set(nodes("a"))
    assert fsck(r, "--repair", status=0)["unreadable"] == []
    assert "was restored from memory" in r.log("topiaryd")
    kill_topiaryd(r)
    told_right(r, documents)


@pytest.mark.parametrize("again", [False, True])
def test_another_shape(damaged, again):
    """The document says what its shape is."""
    r = damaged
    documents = nodes("a") | nodes("b")
    start_over(r)
    boot(r, documents)
    shapes = r.sql("SELECT name, shape FROM node JOIN layout ON id = layout ORDER BY name")
    r.sql("WITH b AS (UPDATE base SET shape = (SELECT shape FROM base WHERE node LIKE 'b%' LIMIT 1)"
          " WHERE node LIKE 'a%' RETURNING id, shape) UPDATE layout f SET shape = b.shape FROM b WHERE f.base = b.id")
    if again:
        kill_topiaryd(r)
    found = {one["node"]: one["reason"] for one in fsck(r, status=1)["unreadable"]}
    assert set(found) == set(nodes("a")) and all("its shape is s" in reason for reason in found.values()), found
    assert fsck(r, "--repair", status=0)["unreadable"] == []
    assert "and was corrected" in r.log("topiaryd")
    assert r.sql("SELECT name, shape FROM node JOIN layout ON id = layout ORDER BY name") == shapes
    assert r.sql("SELECT count(*) FROM layout f JOIN base b ON b.id = f.base WHERE f.shape <> b.shape") == "0"
    told_right(r, documents)
    assert fsck(r, status=0)["unreadable"] == []


def boot_or_again(registry, documents):
    """The agent tries again after a 503."""
    for node, xml in documents.items():
        answer = registry.ask(node, xml)
        yield registry.put(node, xml).status if answer.status == 202 else answer.status


def test_history(damaged):
    """A former document that cannot be rebuilt is reported; nobody can send it again, and fsck goes through both tables
    in parts."""
    r = damaged
    start_over(r)
    for number in range(70):
        assert r.put(name(number), clone(number)).status == 200
        assert r.put(name(number), relinked(clone(number))).status == 200
    r.sql(f"UPDATE past SET diff = '\\x00' || diff WHERE node IN ('{name(3)}', '{name(66)}')")
    told = fsck(r, "--repair", status=1)
    assert told["checked"] == 140
    assert {(one["node"], one["present"]) for one in told["unreadable"]} == {(name(3), False), (name(66), False)}
    assert metric(r, "topiary_history_unreadable") == [2] and metric(r, "topiary_nodes_unreadable") == [0]
    assert r.ask(name(3), relinked(clone(3))).status == 200
    r.sql(f"UPDATE past SET diff = substr(diff, 2) WHERE node IN ('{name(3)}', '{name(66)}')")
    assert fsck(r, "--repair", status=0)["checked"] == 140
    assert metric(r, "topiary_history_unreadable")[0] in (0, 2), "reported again in five seconds"
    assert r.sql("SELECT count(*) FROM unreadable") == "0"


def test_goes_on_over_a_restart_of_postgresql(damaged):
    """Which is away for one request, and not known to be back by the next."""
    r = damaged
    start_over(r)
    boot(r, nodes("a"))
    statuses = []

    class Between(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802
            if len(statuses) == 1:
                r.stop("postgres", signal.SIGINT)
            answer = r.request("POST", self.path, Authorization=self.headers["Authorization"])
            if len(statuses) == 1:
                r.start_postgres()
            statuses.append(answer.status)
            self.send_response(answer.status)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_):
            pass
    with http.server.HTTPServer(("127.0.0.1", 0), Between) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        told = fsck(r, "--url", f"http://127.0.0.1:{server.server_port}", status=0)
        server.shutdown()
    assert told["checked"] == len(nodes("a")) and statuses[:2] == [200, 503] and statuses[-1] == 200, statuses


def test_permissions(damaged):
    """Root and topiaryd's user, with a credential for this and no other."""
    r = damaged
    empty = b""
    for path, claim, user, status in (("/v1/fsck", "fsck", None, 200), ("/v1/fsck", "fsck", "nobody", 403),
                                      ("/v1/fsck/repair", "fsck", None, 403), ("/v1/fsck", "fsck-repair", None, 403),
                                      ("/v1/fsck?after=past//-infinity", "fsck", None, 403),
                                      ("/v1/fsck?after=x!", "fsck", None, 400)):
        cred = r.sign(r.claim(claim, empty, purpose="fsck"), user)
        assert r.request("POST", path, Authorization=f"Munge {cred}").status == status, (path, claim, user)
    assert r.request("POST", "/v1/fsck").status == 401
    assert "credential is missing" in r.request("POST", "/v1/fsck").json()["error"]


def test_upkeep_finds_it():
    """A little at a time; a node that asks by its hash alone then sends its document, and the metric is 0 again."""
    with upkept() as r:
        documents = {name(number): clone(number) for number in range(8)}
        with at_rest(r):
            boot(r, documents)
            r.sql(f"UPDATE node SET diff = (SELECT diff FROM node WHERE name = '{name(5)}') WHERE name = '{name(6)}'")
        assert wait_until(lambda: metric(r, "topiary_nodes_unreadable") == [1], 20 * INTERVAL + 60), r.log("topiaryd")
        assert wait_until(lambda: metric(r, "topiary_checked_timestamp_seconds")[0] > 0, 20 * INTERVAL + 60)
        assert r.log("topiaryd").count(f"{name(6)}: the document of ") == 1
        assert boot(r, documents)[name(6)] != "known"
        assert all_there(r, documents)
        assert wait_until(lambda: metric(r, "topiary_nodes_unreadable") == [0], 60)


def test_table():
    """As people see it."""
    with upkept(UpkeepInterval=86400) as r:
        boot(r, nodes("a"))
        assert r.topiary("fsck").stdout == "5 documents checked, 0 cannot be rebuilt\n"
        r.sql("UPDATE node SET diff = '\\x00' WHERE name IN ('a1', 'a2')")
        lines = r.topiary("fsck", status=1).stdout.splitlines()
        assert len(lines) == 4, lines
        assert (lines[0].split() == ["NODE", "SINCE", "DOCUMENT", "REASON"] and lines[1].startswith("a1 ")
                and " present " in lines[1])
        assert (lines[3] == "5 documents checked, 2 cannot be rebuilt; `topiary fsck --repair` requests new exports "
                "from 2 nodes")
        r.stop("topiaryd")
        assert r.topiary("fsck", status=2).stderr.count("\n") == 1
        r.start_topiaryd()
