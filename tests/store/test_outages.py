# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""PostgreSQL without room, read-only, or gone while nodes boot: nothing is acknowledged that is not kept, and all is
well afterwards."""
import contextlib
import http.client
import re
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import BUILD, POSTGRES, USER, run, superuser
from rig import clones
from rig.cluster import as_user
from rig.processes import descendants, wait_until
from upkeep_rig import BASE, all_there, clone, memory_below, name, relinked, upkept

DISK = 192  # MiB
MEMORY = 256 << 20  # bytes of topiaryd and its workers
CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'topiaryd'"


@pytest.fixture(scope="module")
def registry():
    """Its database is on a small disk of its own."""
    with upkept(prepare=small_disk) as r, memory_below(r, MEMORY):
        yield r


def small_disk(registry, stack):
    registry.disk = registry.folder / "disk"
    registry.disk.mkdir()
    run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m,mode=755", "tmpfs", registry.disk])
    stack.callback(run, ["umount", registry.disk])
    run(["cp", "-a", registry.folder / "pg/data", registry.disk])
    shutil.rmtree(registry.folder / "pg/data")
    (registry.folder / "pg/data").symlink_to(registry.disk / "data")


def postgres_again(registry):
    """PostgreSQL runs: it may have ended by itself."""
    daemon = registry.daemons["postgres"]
    if not daemon.alive():
        registry.daemons.pop("postgres")
        registry.start_postgres()


def fill(registry):
    """Leave no room; PostgreSQL's own files may grow no more."""
    ballast = registry.disk / "ballast"
    with ballast.open("wb") as f, contextlib.suppress(OSError):
        while True:
            f.write(b"\0" * 65536)
            f.flush()
    return ballast


def distinct(i):
    """A document that nothing is like: it needs room."""
    return relinked(clone(i), b"%d.125000" % i).replace(b"PCIDevice", b"PCIDevice%d" % i)


def test_disk_full(registry):
    documents = {name(i): clone(i) for i in range(4)}
    for node, xml in documents.items():
        assert registry.put(node, xml).status == 200
    ballast = fill(registry)
    refused = []
    for i in range(1000, 1400):
        xml = distinct(i)
        answer = registry.put(name(i), xml)
        if answer.status == 200:
            documents[name(i)] = xml
            continue
        assert answer.status == 503, answer.body
        assert int(answer.headers["Retry-After"]) > 0
        assert re.match(rf"{name(i)}: ", answer.json()["error"]), answer.body
        refused.append(answer.json()["error"])
        if len(refused) == 5:
            break
    assert len(refused) == 5, f"{len(documents)} documents found room"
    assert any("PostgreSQL" in words for words in refused), refused
    assert registry.daemons["topiaryd"].alive()
    ballast.unlink()
    postgres_again(registry)
    assert wait_until(lambda: registry.put(name(1), documents[name(1)]).status == 200,
                      60), registry.log("postgres")[-2000:]
    assert all_there(registry, documents)
    for i in range(1500, 1503):
        assert wait_until(lambda n=i: registry.put(name(n), distinct(n)).status == 200, 20)
        documents[name(i)] = distinct(i)
    assert all_there(registry, documents)
    known = {n["node"] for n in registry.get("/v1/nodes").json()["nodes"]}
    assert known == set(documents), "nothing of what was refused"


@pytest.mark.parametrize("where", ["SYSTEM", f"ROLE {USER}"])
def test_read_only(registry, where):
    """As a standby is, or a cluster that its administrator has stopped for a moment; of a role it holds for sessions
    that begin meanwhile."""
    assert registry.put(name(1), clone(1)).status == 200
    superuser(registry, f"ALTER {where} SET default_transaction_read_only = on", "SELECT pg_reload_conf()", CUT)
    try:
        assert wait_until(lambda: registry.put(name(2000), clone(2000)).status == 503, 10)
        before = registry.get("/v1/nodes").json()       # PostgreSQL ends sessions when it comes to it
        answer = registry.put(name(2000), clone(2000))
        assert answer.status == 503 and "read-only" in answer.json()["error"], answer.body
        answer = registry.put(name(2001), distinct(2001))
        assert answer.status == 503 and "read-only" in answer.json()["error"], answer.body
        assert registry.get("/v1/nodes").json() == before
        assert registry.get(f"/v1/nodes/{name(1)}/topology").body == clone(1)
    finally:
        superuser(registry, "SET default_transaction_read_only = off",
                  f"ALTER {where} RESET default_transaction_read_only", "SELECT pg_reload_conf()")
    assert wait_until(lambda: registry.put(name(2000), clone(2000)).status == 200, 10)
    assert all_there(registry, {name(2000): clone(2000)})


def test_sessions_of_other_clients(registry):
    """What PgBouncer has in transaction mode: a session's settings, locks and statements are another client's."""
    superuser(registry, f"ALTER ROLE {USER} SET topiary.session = 'used'", CUT)
    try:
        assert wait_until(lambda: registry.put(name(1), clone(1)).status == 503, 10)
        assert "pool_mode=session" in registry.put(name(1), clone(1)).json()["error"]
    finally:
        superuser(registry, f"ALTER ROLE {USER} RESET topiary.session", CUT)
    assert wait_until(lambda: registry.put(name(1), clone(1)).status == 200, 10)


def test_a_stop_cuts_no_request(registry):
    """Ten stops under load: each request that was sent is answered; others find nobody who listens. One on a connection
    that has carried others may find it closed, and is to be sent again (RFC 9112, 9.3.1). On a machine under load
    the kernel resets one or two that it has accepted as the listening socket closes; without care 156 were cut."""
    xml, over, cut = clone(1), threading.Event(), []
    registry.put(name(1), xml)

    def load(keep):
        one, fresh = None, True
        while not over.is_set():
            fresh = one is None
            one = one or http.client.HTTPConnection("127.0.0.1", registry.port, timeout=60)
            try:
                one.connect() if one.sock is None else None
            except ConnectionError:
                one = None
                continue
            try:
                one.request("GET", f"/v1/nodes/{name(1)}/topology")
                answer = one.getresponse()
                body = answer.read()
                if answer.status == 200 and body != xml:
                    cut.append(len(body))
                if not keep or answer.will_close:
                    one.close()
                    one = None
            except (OSError, http.client.HTTPException) as why:
                cut.extend([why] if fresh else [])
                one = None
    with ThreadPoolExecutor(8) as pool:
        for i in range(8):
            pool.submit(load, i % 2)
        try:
            for _ in range(10):
                registry.stop("topiaryd")
                registry.start_topiaryd()
        finally:
            over.set()
    assert len(cut) <= 2, (len(cut), cut[:5])


def test_cut_connections(registry):
    """An administrator ends them all, again and again: at most the export under way is to be sent again."""
    documents = {name(i): clone(i) for i in range(2100, 2130)}
    for node, xml in documents.items():
        superuser(registry, CUT)
        assert wait_until(lambda n=node, x=xml: registry.put(n, x).status == 200, 10)
    assert all_there(registry, documents)


def test_refused_connections(registry):
    """All places are taken: 503, and well again when there is one."""
    superuser(registry, "ALTER ROLE daemon CONNECTION LIMIT 0", CUT)
    try:
        answer = registry.put(name(2200), clone(2200))
        assert answer.status == 503 and "too many connections" in answer.json()["error"], answer.body
    finally:
        superuser(registry, "ALTER ROLE daemon CONNECTION LIMIT -1")
    assert wait_until(lambda: registry.put(name(2200), clone(2200)).status == 200, 10)


def test_locked_table(registry):
    """A lock of an administrator's costs some seconds and a 503, not a thread for ever."""
    command = as_user("postgres", [str(POSTGRES / "psql"), "-h", str(registry.folder / "pg"), "-d", "topiary", "-qAtX"])
    psql = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    psql.stdin.write("BEGIN; LOCK TABLE node IN ACCESS EXCLUSIVE MODE; SELECT 'held';\n")
    psql.stdin.flush()
    assert psql.stdout.readline() == "held\n"
    begun = time.monotonic()
    answer = registry.put(name(2300), clone(2300))
    assert answer.status == 503 and "lock timeout" in answer.json()["error"], answer.body
    assert time.monotonic() - begun < 100
    psql.communicate("ROLLBACK;\n", timeout=10)
    assert wait_until(lambda: registry.put(name(2300), clone(2300)).status == 200, 20)


def test_postgres_is_killed_while_nodes_boot(registry, tmp_path):
    """What storm says is acknowledged is there; what is not comes again until it is."""
    log, kind = tmp_path / "acknowledged", tmp_path / "kind"
    kind.write_text(clones.kind(BASE, True), encoding="utf-8")
    command = [BUILD / "bench/storm", "--config", registry.config, "--base", kind, "--agents", "300", "--first", 3000,
               "--threads", "16", "--window", "4", "--pause-max", "2", "--deadline", "90", "--variants", "20",
               "--log", log]
    storm = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert wait_until(lambda: log.exists() and log.stat().st_size, 20), "no node is acknowledged"
    daemon = registry.daemons.pop("postgres")
    children = descendants(daemon.pid)
    daemon.stop(signal.SIGKILL)
    # The postmaster's children notice that it is gone, and hold its data until then; its number may be another's soon.
    assert wait_until(lambda: not any(alive(pid) for pid in children), 30)
    for lock in (registry.disk / "data/postmaster.pid", registry.folder / "pg/.s.PGSQL.5432.lock"):
        lock.unlink(missing_ok=True)
    registry.start_postgres()
    said = storm.communicate(timeout=120)[0]
    assert storm.returncode == 0, said
    lines = [line.split() for line in log.read_text().split("\n") if line]
    assert len({line[0] for line in lines}) == 300
    rows = dict(row.split("|") for row in registry.sql("SELECT node, sha256 FROM topiary_nodes").split("\n"))
    assert [line for line in lines if rows[line[0]] != line[3]] == []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
