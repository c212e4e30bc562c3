# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A primary, a hot standby and two topiaryds: the primary is killed while nodes boot, the standby takes over, and the
old one comes back."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from registry_rig import POSTGRES, ROOT, SMALL, USER, machine, run, running
from rig.cluster import as_user
from rig.processes import wait_until

sys.path.insert(0, str(ROOT / "bench"))

import storms  # noqa: E402

PATIENCE = 60  # seconds for what takes one to five


class Pair(storms.Stormy):
    """PostgreSQL with streaming replication; what is acknowledged is on both."""

    def __init__(self, folder):
        super().__init__(folder)
        text = self.config.read_text()
        pair = f"host={self.folder}/pg,{self.folder}/pg2 dbname=topiary user={USER} target_session_attrs"
        text = re.sub("^Database=.*$", f"Database={pair}=read-write\nReadDatabase={pair}=prefer-standby",
                      text, flags=re.M)
        self.config.write_text(text)

    def as_postgres(self, program, *arguments):
        return run(as_user("postgres", [str(a) for a in (POSTGRES / program, *arguments)]), cwd="/")

    def superuser(self, where, *statements):
        options = [o for s in statements for o in ("-c", s)]
        return self.as_postgres("psql", "-h", self.folder / where, "-d", "topiary", "-AtX", *options).decode().strip()

    def complete_servers(self):
        self.make_standby("pg", "pg2", "one")
        self.superuser("pg", "ALTER SYSTEM SET synchronous_standby_names = 'one'", "SELECT pg_reload_conf()")

    def make_standby(self, primary, where, name):
        home = self.folder / where
        home.mkdir(mode=0o755)
        os.chown(home, *[getattr(os.stat(self.folder / primary), k) for k in ("st_uid", "st_gid")])
        self.as_postgres("pg_basebackup", "-d", f"host={self.folder / primary} application_name={name}",
                         "-D", home / "data", "-R", "-X", "stream", "-c", "fast")
        self.start_server(where)

    def start_server(self, where):
        home = self.folder / where
        for lock in (home / "data/postmaster.pid", home / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)
        command = [str(POSTGRES / "postgres"), "-D", str(home / "data"), "-k", str(home), "-c", "listen_addresses="]
        self.daemon({"pg": "postgres"}.get(where, where), as_user("postgres", command), lambda: self.answers(where))

    def answers(self, where):
        return not subprocess.run([POSTGRES / "pg_isready", "-q", "-h", self.folder / where], check=False).returncode

    def end(self):
        for name in ("second", "topiaryd", "node-munged", "munged", "pg2", "postgres"):
            if name in self.daemons:
                self.stop(name, signal.SIGQUIT if name in ("pg2", "postgres") else signal.SIGTERM)


pair = running(Pair)


def both(registry, ask):
    """The answers of both topiaryds."""
    first, answers = registry.port, []
    for port in (first, registry.second_port):
        registry.port = port
        answers.append(ask())
    registry.port = first
    return answers


def metric(registry, line):
    return [line in a.body.decode() for a in both(registry, lambda: registry.get("/metrics"))]


def put(registry, serial):
    return registry.put("after", machine(SMALL, "after", serial))


def test_primary_is_killed_in_a_storm(pair):
    urls = [f"http://127.0.0.1:{pair.port}", pair.start_second()]
    assert metric(pair, f'topiary_postgresql_server{{server="{pair.folder}/pg2",role="standby"}} 1') == [True, True]
    before = machine(SMALL, "before", 1)
    assert pair.put("before", before).status == 200
    where = ("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'topiaryd' AND query LIKE '%FROM "
             "topiary_nodes%'")
    both(pair, lambda: pair.get("/v1/nodes/before"))
    assert int(pair.superuser("pg2", where)) >= 2, "reads go to the standby"
    storm, log = pair.background_storm(storms.machines(), agents=400, first=1000, window=4, pause_max=2, deadline=300,
                                       variants=20, url=urls)
    assert wait_until(lambda: log.exists() and log.read_text().count("\n") > 40, PATIENCE)
    pair.kill("postgres")
    assert storm.poll() is None
    answers = both(pair, lambda: pair.get("/v1/nodes/before/topology"))
    assert [a.body for a in answers] == [before, before], "reads are served meanwhile"
    assert [a.status for a in both(pair, lambda: put(pair, 1))] == [503, 503]
    pair.as_postgres("pg_ctl", "promote", "-D", pair.folder / "pg2/data")
    report = json.loads(storm.communicate(timeout=300)[0])
    exports = list(storms.read_log(log))
    assert report["retries"] > 0 and len(exports) == len({e.node for e in exports}) == 400, report
    assert pair.survivors(exports) == []
    assert pair.superuser("pg2", "SELECT count(*) FROM node WHERE name LIKE 'cn%'") == "400"
    assert wait_until(lambda: [a.status for a in both(pair, lambda: put(pair, time.time_ns() % 10**6))] == [200, 200],
                      PATIENCE)


def test_old_primary_that_comes_back(pair):
    """Two that would take what is written: nobody writes until there is one."""
    pair.start_server("pg")
    assert wait_until(lambda: metric(pair, "topiary_postgresql_split 1") == [True, True], PATIENCE)
    for answer in both(pair, lambda: put(pair, 3)):
        words = answer.json()["error"]
        assert answer.status == 503 and "two primaries" in words, words
        assert f"{pair.folder}/pg (timeline 1)" in words and f"{pair.folder}/pg2 (timeline 2)" in words
    assert both(pair, lambda: pair.get("/v1/nodes/before").status) == [200, 200]
    assert pair.log("topiaryd").count("topiaryd: PostgreSQL has two primaries") == 1
    pair.stop("postgres", signal.SIGINT)
    assert wait_until(lambda: [a.status for a in both(pair, lambda: put(pair, 4))] == [200, 200], PATIENCE)
    assert metric(pair, "topiary_postgresql_split 0") == [True, True]


def test_old_primary_alone(pair):
    """The one that took over is down, and the one that was replaced comes up: what it lacks would be written beside."""
    pair.stop("pg2", signal.SIGINT)
    pair.start_server("pg")
    try:
        def refused():
            answers = both(pair, lambda: put(pair, 5))
            return all(a.status == 503 and "timeline 1" in a.json()["error"]
                       and f"{pair.folder}/pg2" in a.json()["error"] for a in answers)
        assert wait_until(refused, PATIENCE)
        assert pair.superuser("pg", "SELECT count(*) FROM node WHERE name = 'after'") == "0"
    finally:
        pair.stop("postgres", signal.SIGINT)
        pair.start_server("pg2")
    assert wait_until(lambda: [a.status for a in both(pair, lambda: put(pair, 6))] == [200, 200], PATIENCE)
