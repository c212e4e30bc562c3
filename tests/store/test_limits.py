# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What anyone may ask or hold costs little: host lists that stand for a million names, in every place that takes one;
more connections than there are; more reads than PostgreSQL can do at once."""
import contextlib
import http.client
import itertools
import os
import re
import resource
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import SMALL, USER, machine, run, superuser, zstd
from rig.cluster import as_user
from rig.elsewhere import ip
from rig.limits import limits
from rig.processes import wait_until
from upkeep_rig import memory_below, session

LETTERS = "a" * 235
# What it is, the list, what topiaryd says of it: 200 and nobody, or 400.
BOMBS = {
    "long names": (f"{LETTERS}[0-999999]", 200),
    "short names": ("zz[0-999999]", 200),
    "many lists": (",".join(f"{c}{LETTERS[:200]}[0-49999]" for c in "abcdefghijklmnop"), 200),
    "more than a million": (",".join(f"x{i}[0-99999]" for i in range(200)), 400),
    "a suffix": (f"{LETTERS}[0-999999]-ib", 400),
    "brackets in brackets' rows": ("n" + "[0-99]" * 60, 400),
    "no end": (f"{LETTERS}[0-999999][0-999999][", 400),
    "doubles": (",".join(["zz[0-999]"] * 400), 200),
}
ENDPOINTS = ["/v1/nodes?hosts={}", "/v1/facts?fact=DMIProductSerial&hosts={}"]
MEMORY = 160 << 20      # bytes of topiaryd and its workers
POSTGRES = 192 << 20    # of PostgreSQL, its shared memory too
COMMAND = 384 << 20     # of address space that a command may take


@pytest.fixture(scope="module", autouse=True)
def nodes(registry):
    for i in range(4):
        assert registry.put(f"cn{i}", machine(SMALL, f"cn{i}", i)).status == 200
    return registry


def test_host_list_bombs_over_http(registry):
    """Twelve of each at once: topiaryd and PostgreSQL stay small, and other nodes' names are found by ranges as by
    names."""
    asked = [(path.format(bomb), status) for path in ENDPOINTS for bomb, status in BOMBS.values()]
    with memory_below(registry, MEMORY), memory_below(registry, POSTGRES, "postgres"), ThreadPoolExecutor(12) as pool:
        for path, status in asked:
            for answer in pool.map(registry.get, [path] * 12):
                assert answer.status == status, (path[:80], answer.body)
                if status == 200:
                    assert [] in answer.json().values()


def test_ranges_find_the_known_names(registry):
    def names(hosts):
        return [node["node"] for node in registry.get(f"/v1/nodes?hosts={hosts}").json()["nodes"]]
    assert names("cn[0-99999]") == names("cn[0-3]") == names("cn[0-1],cn[2-50000]") == ["cn0", "cn1", "cn2", "cn3"]
    assert names("cn[00-50000]") == [] and names("cn[2-2000],zz[0-999]") == ["cn2", "cn3"]
    assert ({f["node"] for f in registry.get("/v1/facts?fact=DMIProductSerial&hosts=cn[1-5000]").json()["facts"]}
            == {"cn1", "cn2", "cn3"})


@pytest.mark.parametrize("bomb, command",
                         zip(BOMBS, itertools.cycle(["nodes", "drift", "facts --fact=DMIProductSerial"])))
def test_host_list_bombs_in_commands(registry, command, bomb):
    """The list is refused, or its names are said not to be known: in bounded memory and time, and in one line."""
    done = registry.topiary(*command.split(), BOMBS[bomb][0], preexec_fn=limits(COMMAND, cpu=20), timeout=300)
    assert done.returncode in (1, 64), done
    assert done.stderr.count("\n") == 1 and "out of memory" not in done.stderr, done.stderr[:500]


# --- places

HEALTH = ("/healthz", "/livez", "/readyz")


@contextlib.contextmanager
def held(registry, sources, each, head=b""):
    """Connections from so many addresses that begin a request and leave it at that."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with contextlib.ExitStack() as stack:
        for i in range(sources * each):
            sock = stack.enter_context(socket.socket())
            sock.bind((f"127.0.0.{2 + i % sources}", 0))
            sock.settimeout(60)
            with contextlib.suppress(ConnectionError):
                sock.connect(("127.0.0.1", registry.port))
                sock.sendall(head)
        yield


@pytest.mark.parametrize("head, sources, each", [
    (b"", 1, 1300), (b"GET /v1/nodes HTTP/1.1\r\nHost: x\r\nX-Long: ", 5, 300)],
    ids=["no request, one address", "half a request, five addresses"])
def test_connections_of_a_few_do_not_keep_others_out(registry, sources, each, head):
    """Everybody else is served at once: a connection would have had to wait for half a minute."""
    with held(registry, sources, each, head):
        began = time.monotonic()
        for i in range(5):
            assert all(registry.get(path).status == 200 for path in HEALTH)
            assert registry.get("/v1/nodes/cn1").status == 200
            assert registry.put(f"place{i}", machine(SMALL, f"place{i}", i)).status == 200
        assert time.monotonic() - began < 20


# connections of an address: of four together more than SOURCE_CONNECTIONS (deadline.h), and fewer than CONNECTIONS
EACH = 150
SOURCE_CONNECTIONS = 512


def is_open(sock):
    try:
        return sock.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@pytest.fixture
def networks(registry, configured, elsewhere):
    """topiaryd's IPv6 address, and another host's: four of one /64, and four of as many."""
    first = f"fd00:{os.getpid() % 65536:x}"
    here, there = f"{first}::1", f"{first}::2"
    one, many = ([f"{first}:1:{i if spread else 0}::{i + 1}" for i in range(4)] for spread in (False, True))
    ip("address", "add", f"{here}/64", "dev", f"{elsewhere.name}a", "nodad")
    ip("-n", elsewhere.name, "address", "add", f"{there}/64", "dev", f"{elsewhere.name}b", "nodad")
    for address in {*one, *many}:
        ip("-n", elsewhere.name, "address", "add", f"{address}/128", "dev", "lo", "nodad")
    route = f"{first}:1::/48", "via", there, "dev", f"{elsewhere.name}a"
    ip("-6", "route", "add", *route)
    configured(Listen=f"[::]:{registry.port}")
    yield here, {"one /64": one, "four /64": many}
    ip("-6", "route", "delete", *route)
    for address in {*one, *many}:
        ip("-n", elsewhere.name, "address", "delete", f"{address}/128", "dev", "lo")
    for name, end, address in (((), "a", here), (("-n", elsewhere.name), "b", there)):
        ip(*name, "address", "delete", f"{address}/64", "dev", elsewhere.name + end)


@pytest.mark.parametrize("sources, expected", [("one /64", SOURCE_CONNECTIONS), ("four /64", 4 * EACH)])
def test_a_network_of_ipv6_is_one_source(registry, networks, elsewhere, sources, expected):
    """Whoever has one address of a /64 has all of them, and no more connections by that; another /64 is another
    host's."""
    here, addresses = networks

    def connect(address):
        sock = socket.socket(socket.AF_INET6)
        sock.bind((address, 0))
        sock.settimeout(60)
        sock.connect((here, registry.port))
        sock.setblocking(False)
        return sock
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with elsewhere.threads(1) as far, contextlib.ExitStack() as stack:
        socks = [stack.enter_context(sock) for sock in far.map(connect, addresses[sources] * EACH)]
        wait_until(lambda: sum(map(is_open, socks)) <= expected, 20)
        assert registry.get("/livez").status == 200, "all that came before are accepted"
        assert sum(map(is_open, socks)) == expected


def test_admitted_export_is_not_disconnected(registry):
    """What an agent sends slowly goes on while a thousand others come."""
    xml = machine(SMALL, "slow", 5)
    cred = registry.sign(registry.claim("slow", xml))
    body = zstd(xml)
    agent = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=60)
    agent.putrequest("PUT", "/v1/nodes/slow/topology")
    for name, value in {"Authorization": f"Munge {cred}", "Content-Encoding": "zstd",
                        "Content-Length": len(body)}.items():
        agent.putheader(name, value)
    agent.endheaders(body[:10])
    time.sleep(0.5)
    with held(registry, 1, 1300):
        agent.send(body[10:])
        assert agent.getresponse().status == 200
    agent.close()


@contextlib.contextmanager
def readers(registry, number, paths):
    """So many who read all the time; the statuses that they have got, and when they are to come again."""
    got, over = [], threading.Event()

    def read(path):
        while not over.is_set():
            answer = registry.get(path)
            got.append((answer.status, answer.headers.get("Retry-After")))
            over.wait(1)
    with ThreadPoolExecutor(number) as pool:
        for i in range(number):
            pool.submit(read, paths[i % len(paths)])
        try:
            yield got
        finally:
            over.set()


def test_reads_that_wait_do_not_delay_others(registry):
    """A table that lists of facts need is locked: our health, exports and questions about one node are answered
    meanwhile."""
    lists = ["/v1/facts?fact=Address", "/v1/facts?fact=HostName&value=cn1"]
    xml = machine(SMALL, "cn1", 1)
    # A topiaryd that was just started rebuilds the document once before it calls it known, and reads the table for
    # that.
    assert registry.put("cn1", xml).status == 200
    with session(registry, "BEGIN; LOCK TABLE fact IN ACCESS EXCLUSIVE MODE"), readers(registry, 200, lists) as got:
        time.sleep(2)
        began = time.monotonic()
        for _ in range(5):
            for path in (*HEALTH, "/v1/nodes/cn1", "/v1/nodes/cn1/drift"):
                answer = registry.get(path)
                assert answer.status == 200, (path, answer.body)
            assert registry.ask("cn1", xml).status == 200
        assert time.monotonic() - began < 20
        assert wait_until(lambda: len(got) > 200, 100)
        assert {status for status, _ in got} == {503} and all(int(after) > 0 for _, after in got)
    assert wait_until(lambda: registry.get(lists[0]).status == 200, 60)


# --- readiness

def checks(registry):
    answer = registry.get("/readyz")
    told = answer.json()
    bad = {name for name, words in told["checks"].items() if words != "ok"}
    waits = bad - {"reads", "snapshot"}  # exports are accepted without
    assert answer.status == (503 if waits else 200) and told["status"] == ("not ready" if waits else "ok")
    assert not waits or int(answer.headers["Retry-After"]) > 0
    return bad


def test_systemd_hears_of_it_when_it_listens(registry, configured, monkeypatch):
    """By a path and by an abstract name; until then `systemctl start` waits."""
    path = registry.folder / "notify"
    for name, where in ((str(path), str(path)), (f"@{path}", f"\0{path}")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.bind(where)
            if not where.startswith("\0"):
                path.chmod(0o777)
            monkeypatch.setenv("NOTIFY_SOCKET", name)
            configured()
            notified.settimeout(60)
            assert notified.recv(64) == b"READY=1" and registry.listening()


def without_postgres(registry):
    registry.stop("postgres", signal.SIGINT)
    yield {"database", "schema"}
    registry.start_postgres()


def without_writes(registry):
    superuser(registry, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    yield {"database"}
    superuser(registry, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")


def without_munge(registry):
    registry.stop("munged")
    yield {"munge"}
    registry.start_munge()


def without_room(registry):
    registry.snapshot.parent.chmod(0o555)
    yield {"disk"}
    registry.snapshot.parent.chmod(0o755)


@contextlib.contextmanager
def another_database(registry):
    """Of a registry, on the same server."""
    superuser(registry, f"CREATE DATABASE another OWNER {USER}")
    config = registry.folder / "another.conf"
    config.write_text(registry.config.read_text().replace("dbname=topiary", "dbname=another"))
    run(as_user(USER, [registry.folder / "topiaryd", "--config", config, "--migrate"]), cwd="/")
    yield f"host={registry.folder}/pg dbname=another user={USER}"
    superuser(registry, "DROP DATABASE another WITH (FORCE)")


def test_read_database_is_checked(registry, configured):
    """At the start and all the time, as Database is; exports are accepted without it."""
    mark = len(registry.log("topiaryd"))
    configured(ReadDatabase=f"host={registry.folder}/nowhere dbname=topiary")
    assert re.search("ReadDatabase: PostgreSQL: .*; reads are answered with 503, and topiaryd tries again",
                     registry.log("topiaryd")[mark:])
    assert wait_until(lambda: checks(registry) == {"reads"}, 120), registry.get("/readyz").body
    assert registry.put("cn1", machine(SMALL, "cn1", 1)).status == 200
    with another_database(registry) as conninfo:
        configured(ReadDatabase=conninfo)
        assert wait_until(lambda: checks(registry) == {"reads"}, 120), registry.get("/readyz").body
        assert "correct ReadDatabase" in registry.get("/readyz").json()["checks"]["reads"]
        assert registry.put("cn1", machine(SMALL, "cn1", 2)).status == 200
    configured(ReadDatabase=f"host={registry.folder}/pg dbname=topiary user={USER}")
    assert wait_until(lambda: not checks(registry), 120), registry.get("/readyz").body


def test_a_new_database_does_not_empty_the_snapshot(registry, configured):
    """As one that Database names by mistake, or that was created anew; a full disk shows the same way."""
    assert wait_until(lambda: "cn[0-3]" in registry.snapshot_text(), 30)
    before = registry.snapshot_text()
    with another_database(registry) as conninfo:
        configured(Database=conninfo)
        assert wait_until(lambda: checks(registry) == {"snapshot"}, 60), registry.get("/readyz").body
        assert registry.snapshot_text() == before
        assert "not replaced by a snapshot without nodes" in registry.log("topiaryd")
        assert b"topiary_snapshot_current 0" in registry.get("/metrics").body
        assert registry.put("stranger", machine(SMALL, "stranger", 1)).status == 200  # another site's
        assert wait_until(lambda: "not replaced by a snapshot of another database" in registry.log("topiaryd"), 60)
        assert registry.snapshot_text() == before and checks(registry) == {"snapshot"}
        copy = registry.folder / "followed"
        for text, done in ((before, 1), ("", 0)):  # as a controller does
            copy.write_text(text)
            registry.topiary("snapshot", "-o", copy, status=done)
        assert "nodes stranger" in copy.read_text()
        configured(Database=f"host={registry.folder}/pg dbname=topiary user={USER}")
    assert wait_until(lambda: not checks(registry), 60), registry.get("/readyz").body
    assert b"topiary_snapshot_current 1" in registry.get("/metrics").body


def test_most_nodes_are_not_lost_at_once(registry):
    """As by a dump of an older day, or rows deleted by hand: kept until they are back, or removed by command."""
    for i in range(9):
        assert registry.put(f"many{i}", machine(SMALL, f"many{i}", 1)).status == 200
    assert wait_until(lambda: "many[0-8]" in registry.snapshot_text(), 30)
    before = registry.snapshot_text()
    registry.sql("CREATE TABLE away AS TABLE node; DELETE FROM node WHERE name <> 'many0'")
    assert registry.put("many0", machine(SMALL, "many0", 2)).status == 200
    assert wait_until(lambda: checks(registry) == {"snapshot"}, 60), registry.get("/readyz").body
    assert registry.snapshot_text() == before
    assert "nodes, which topiary forget has not removed: was the database restored" in registry.log("topiaryd")
    assert b"topiary_snapshot_current 0" in registry.get("/metrics").body
    registry.topiary("snapshot", "-o", registry.snapshot, status=1)
    registry.sql("INSERT INTO node SELECT * FROM away ON CONFLICT DO NOTHING; DROP TABLE away")
    assert wait_until(lambda: not checks(registry), 60), registry.get("/readyz").body
    every = [node["node"] for node in registry.get("/v1/nodes").json()["nodes"]]
    registry.topiary("forget", *(name for name in every if name.startswith("many") or name > "cn1"))
    assert wait_until(lambda: "many" not in registry.snapshot_text(), 60) and not checks(registry)


def test_a_damaged_snapshot_is_written_anew(registry):
    before = registry.snapshot_text(), registry.costs.read_text()
    registry.snapshot.write_text("damaged")
    registry.costs.unlink()
    assert wait_until(lambda: registry.costs.exists()
                      and (registry.snapshot_text(), registry.costs.read_text()) == before, 60)


def without_schema(registry):
    registry.sql("INSERT INTO topiary_migration (name, sha256) VALUES ('9999_late.sql', 'x')")
    yield {"schema"}
    registry.sql("DELETE FROM topiary_migration WHERE name = '9999_late.sql'")


@pytest.mark.parametrize("lack", [without_postgres, without_writes, without_munge, without_room, without_schema])
def test_readiness(registry, lack):
    """What an export needs and is not there is told by name; the process is alive all the while."""
    assert wait_until(lambda: not checks(registry), 120)
    lacking = lack(registry)
    names = next(lacking)
    assert wait_until(lambda: checks(registry) == names, 120), registry.get("/readyz").body
    assert registry.get("/livez").json()["status"] == "ok"
    assert registry.get("/healthz").status == (503 if "schema" in names else 200), "it reads"
    next(lacking, None)
    assert wait_until(lambda: not checks(registry), 120), registry.get("/readyz").body
