# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A PostgreSQL that does not answer, or that promises less than an acknowledgement says: 503 in time, and nothing
acknowledged is lost."""
import contextlib
import http.client
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from registry_rig import SMALL, USER, machine, superuser
from rig.cluster import as_user
from rig.processes import descendants, wait_until

BOUND = 60  # seconds within which an export is answered: topiaryd(8)
OTHER = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'topiaryd'"


def node(number):
    return f"n{number}", machine(SMALL, f"n{number}", number)


def timed_put(registry, number):
    begun = time.monotonic()
    answer = registry.put(*node(number))
    return answer, time.monotonic() - begun


def is_refusal(answer):
    return answer.status == 503 and int(answer.headers["Retry-After"]) > 0 and "PostgreSQL" in answer.json()["error"]


def put_many(registry, numbers):
    """Signed before any is sent; (answers, seconds of the slowest)."""
    credentials = [registry.sign(registry.claim(*node(n))) for n in numbers]
    begun = time.monotonic()
    with ThreadPoolExecutor(len(numbers)) as pool:
        answers = list(pool.map(lambda n, c: registry.put(*node(n), cred=c), numbers, credentials))
    return answers, time.monotonic() - begun


@contextlib.contextmanager
def stopped(registry):
    pids = [registry.daemons["postgres"].pid, *descendants(registry.daemons["postgres"].pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def well_again(registry, number):
    assert wait_until(lambda: registry.put(*node(number)).status == 200, BOUND)
    assert registry.get(f"/v1/nodes/n{number}/topology").body == node(number)[1]


def test_stopped_postgres(registry):
    for n in range(3):
        assert registry.put(*node(n)).status == 200
    with stopped(registry), ThreadPoolExecutor(2) as pool:
        reads = [pool.submit(registry.get, path) for path in ("/v1/nodes", "/healthz")]
        answers, slowest = put_many(registry, range(100, 132))
        assert all(is_refusal(a) for a in answers), [a.body for a in answers]
        assert slowest < BOUND
        answers, slowest = put_many(registry, range(100, 132))
        assert (all(is_refusal(a) for a in answers)
                and slowest < BOUND / 2), "known to be down: nobody waits for it in turn"
        assert [r.result().status for r in reads] == [503, 503]
    for n in range(100, 132):
        well_again(registry, n)


def test_a_stop_answers_what_waits_for_postgres(registry):
    """Half of a request has come when topiaryd is to end, the rest ten seconds later, and PostgreSQL answers for longer
    than topiaryd waits for its clients."""
    cred = registry.sign(registry.claim(*node(0)))
    agent = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=120)
    agent.connect()
    agent.send(b"PUT /v1/nodes/n0/boot HTTP/1.1\r\nHost: registry\r\n")
    daemon = registry.daemons.pop("topiaryd")
    daemon.send(signal.SIGTERM)
    time.sleep(10)
    with stopped(registry):
        agent.send(f"Authorization: Munge {cred}\r\n\r\n".encode())
        answer = http.client.HTTPResponse(agent.sock, method="PUT")
        answer.begin()
        assert answer.status == 503 and daemon.child.wait(120) == 0, registry.log("topiaryd")
    agent.close()
    registry.start_topiaryd()
    well_again(registry, 0)


class Wire:
    """A way to PostgreSQL over TCP that can fall silent: connections stay, new ones are taken, and nothing comes any
    more."""

    def __init__(self, path):
        self.path, self.silent, self.sockets = str(path), threading.Event(), []
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.door.accept()[0]
                self.sockets.append(near)
                if self.silent.is_set():
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self.path)
                self.sockets.append(far)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.silent.is_set():
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)

    def end(self):
        for one in (self.door, *self.sockets):
            one.close()


def test_silent_network(registry):
    """What is under way, and who comes anew."""
    hba = registry.folder / "pg/data/pg_hba.conf"
    hba.write_text(f"local topiary {USER} trust\n" + hba.read_text())
    superuser(registry, "SELECT pg_reload_conf()")
    wire = Wire(registry.folder / "pg/.s.PGSQL.5432")
    own = registry.folder / "wired.conf"
    own.write_text(registry.config.read_text().replace(f"host={registry.folder}/pg",
                                                       f"host=127.0.0.1 port={wire.port}"))
    registry.stop("topiaryd")
    registry.daemon("topiaryd", as_user(USER, [str(registry.folder / "topiaryd"), "--config", str(own)]),
                    registry.listening)
    try:
        assert registry.put(*node(200)).status == 200
        wire.silent.set()
        answers, slowest = put_many(registry, range(200, 216))
        assert all(is_refusal(a) for a in answers) and slowest < BOUND, [a.body for a in answers]
        answers, slowest = put_many(registry, range(200, 216))
        assert all(is_refusal(a) for a in answers) and slowest < BOUND, [a.body for a in answers]
        wire.silent.clear()
        well_again(registry, 200)
    finally:
        registry.stop("topiaryd")
        wire.end()
        registry.start_topiaryd()


def configured(registry, **settings):
    """PostgreSQL's own settings, for a while; topiaryd connects anew after each change."""
    @contextlib.contextmanager
    def change():
        apply([f"ALTER SYSTEM SET {name} = '{value}'" for name, value in settings.items()])
        try:
            yield
        finally:
            apply([f"ALTER SYSTEM RESET {name}" for name in settings])

    def apply(statements):
        superuser(registry, "SET synchronous_commit = local", *statements, "SELECT pg_reload_conf()")
        superuser(registry, "SELECT pg_sleep(0.2), count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                            " WHERE application_name = 'topiaryd'")
    return change()


def test_server_that_does_not_wait_for_its_disk(registry):
    """synchronous_commit=off there: what was acknowledged is there after a crash all the same."""
    with configured(registry, synchronous_commit="off", wal_writer_delay="10s", wal_writer_flush_after="100MB"):
        documents = dict(node(n) for n in range(300, 320))
        for name, xml in documents.items():
            assert registry.put(name, xml).status == 200
        daemon = registry.daemons.pop("postgres")
        children = descendants(daemon.pid)
        for pid in (daemon.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        daemon.child.wait()
        assert wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), 30)
        for lock in (registry.folder / "pg/data/postmaster.pid", registry.folder / "pg/.s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)
        registry.start_postgres()
        there = {n["node"] for n in registry.get("/v1/nodes?hosts=n[300-319]").json()["nodes"]}
        assert there == set(documents)


def test_server_without_fsync_is_refused(registry):
    with configured(registry, fsync="off"):
        answer = registry.put(*node(400))
        assert answer.status == 503 and "fsync=off" in answer.json()["error"], answer.body
        assert registry.get("/v1/nodes/n300").status == 200, "reads go on"
    well_again(registry, 400)


def test_torn_pages_are_warned_of_once(registry):
    with configured(registry, full_page_writes="off"):
        for n in range(401, 404):
            assert registry.put(*node(n)).status == 200
    assert registry.log("topiaryd").count("full_page_writes=off") == 1


def test_missing_synchronous_standby(registry):
    """A wait for it that somebody ends is no acknowledgement, and waits that nobody waits for do not take all of
    PostgreSQL's places."""
    with configured(registry, synchronous_standby_names="nobody"):
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(registry.put, *node(500))
            assert wait_until(lambda: superuser(registry, OTHER + " AND wait_event = 'SyncRep'").strip() == "1", 10)
            superuser(registry, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            answer = waiting.result()
        assert (answer.status == 503
                and "canceling wait for synchronous replication" in answer.json()["error"]), answer.body
        answer, seconds = timed_put(registry, 501)
        assert is_refusal(answer) and seconds < BOUND
        assert int(superuser(registry, OTHER)) <= 14
        assert int(superuser(registry, OTHER + " AND wait_event = 'SyncRep'")) <= 2
    well_again(registry, 500)
    well_again(registry, 501)
