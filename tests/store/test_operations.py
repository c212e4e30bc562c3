# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""docs/operations.md does what it says: its commands are run, line by line, on two servers."""
import datetime
import os
import re
import signal
import subprocess
import time

from registry_rig import POSTGRES, ROOT, SMALL, machine, running
from rig.cluster import as_user
from rig.processes import wait_until
from test_failover import Pair

PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```sh\n# on (db\d), as postgres\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M).group(1)


class Site(Pair):
    """db1 and db2 are servers on sockets in folders; what systemctl does to them is done by the rig."""

    def __init__(self, folder):
        super().__init__(folder)
        self.moment = None
        self.backups = self.folder / "backups"
        self.backups.mkdir()
        self.home("db2").mkdir()
        for made in (self.backups, self.home("db2")):
            made.chmod(0o755)
            os.chown(made, os.stat(self.home("db1")).st_uid, -1)
        self.as_postgres("initdb", "-D", self.home("db2") / "data", "-A", "peer")

    def complete_servers(self):
        self.as_postgres("createuser", "-h", self.home("db1"), "topiary")

    def home(self, host):
        return self.folder / {"db1": "pg", "db2": "pg2"}[host]

    def here(self, line, host):
        """A line of the page with this site's paths."""
        data = self.home(host) / "data"
        for theirs, ours in (("/etc/postgresql/15/main", data), ("/var/lib/postgresql/15/main", data),
                             ("/var/backups", self.backups), ("/usr/share/topiary/sql", self.folder / "sql"),
                             ("/usr/lib/postgresql/15/bin", POSTGRES),
                             ("host=db1", f"host={self.home('db1')}"), ("host=db2", f"host={self.home('db2')}"),
                             ("createdb -O topiary", "createdb -O daemon"),
                             ("pg_ctlcluster 15 main", f"pg_ctl -D {data}"),
                             ("2026-11-22 12:00:00+00", str(self.moment))):
            line = line.replace(theirs, str(ours))
        return line

    def systemctl(self, verb, unit, host):
        name = {"topiaryd": "topiaryd", "db1": "postgres", "db2": "pg2"}[unit if unit == "topiaryd" else host]
        if verb in ("stop", "restart") and name in self.daemons:
            self.stop(name, signal.SIGTERM if name == "topiaryd" else signal.SIGINT)
        if verb in ("start", "restart"):
            if name == "topiaryd":
                self.start_topiaryd()
            else:
                self.start_server(self.home(host).name)

    def run_block(self, host, lines):
        said = ""
        env = {**os.environ, "PGHOST": str(self.home(host)), "PATH": f"{POSTGRES}:{os.environ['PATH']}"}
        # A line that begins with a tab goes on with the one before.
        for line in re.sub(r"\\?\n\t", " ", lines).strip().split("\n"):
            if line.startswith("systemctl"):
                self.systemctl(line.split()[1], line.split()[2].partition("@")[0], host)
                continue
            done = subprocess.run(as_user("postgres", ["bash", "-ec", self.here(line, host)]), env=env, cwd="/",
                                  capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            said += done.stdout
        return said

    def follow(self, title, between=lambda number: None):
        """All of a section; what it shows is what comes out. (The outputs.) between is called before each block."""
        outputs = []
        for number, (host, lines, shown) in enumerate(BLOCK.findall(section(title))):
            between(number)
            said = self.run_block(host, lines)
            assert not shown or said.strip().endswith(shown.strip()), f"{lines}{said}"
            outputs.append(said)
        assert outputs
        return outputs


site = running(Site)


def put(site, *names):
    for name in names:
        assert wait_until(lambda n=name: site.put(n, machine(SMALL, n, 1)).status == 200,
                          60), site.put(name, machine(SMALL, name, 1)).body


def nodes(site):
    answer = site.get("/v1/nodes")
    return {n["node"] for n in answer.json()["nodes"]} if answer.status == 200 else None


def is_primary(site, where):
    return wait_until(lambda: site.superuser(where, "SELECT pg_is_in_recovery()") == "f", 60)


def test_backup_and_restore(site):
    put(site, "a", "b")
    site.follow("Backup")
    put(site, "c")
    site.follow("Restore")
    assert wait_until(lambda: nodes(site) == {"a", "b"}, 60)
    put(site, "c")


def test_point_in_time_recovery(site):
    def between(number):
        if number == 2:
            put(site, "before")
            time.sleep(1)
            site.moment = datetime.datetime.now(datetime.timezone.utc)
            time.sleep(1)
            put(site, "after")
        if number == 3:
            assert is_primary(site, "pg")
    said = site.follow("Point-in-time recovery", between)
    assert said[1].startswith("0|"), "the archive works"
    assert wait_until(lambda: nodes(site) == {"a", "b", "c", "before"}, 60), nodes(site)
    put(site, "after")


def test_replication_and_failover(site):
    site.follow("Replication")
    put(site, "replicated")

    def between(number):
        if number == 0:
            site.kill("postgres")
        if number == 1:
            put(site, "on the new primary".replace(" ", "-"))
            site.start_server("pg")
            assert wait_until(lambda: "topiary_postgresql_split 1" in site.get("/metrics").body.decode(), 60)
    said = site.follow("Failover", between)
    assert re.fullmatch(r"f\|0000000[2-9]", said[0].strip().split("\n")[-1]), said
    put(site, "whole")
    assert wait_until(lambda: site.superuser("pg", "SELECT count(*) FROM node WHERE name = 'whole'") == "1",
                      60), "it follows the new one"
    assert nodes(site) == {"a", "b", "c", "before", "after", "replicated", "on-the-new-primary", "whole"}


def test_the_rest(site):
    sizes = site.follow("Disk full")[0].split("\n")
    assert {line.partition("|")[0] for line in sizes[:5]} & {"base", "node", "layout", "field", "fact"}


def test_database_of_a_development_version(site):
    def between(number):
        if number == 1:
            site.superuser("pg2", "DELETE FROM topiary_migration", "INSERT INTO topiary_migration (name, sha256) VALUES"
                           " ('0001_registry.sql', 'x'), ('0004_identity.sql', 'x'), ('0017_removed.sql', 'x')")
            assert "schema of a development version" in site.get("/healthz").json()["error"]
    site.follow("Upgrades", between)
    put(site, "upgraded")


def test_every_command_is_run():
    """A block in another spelling would be passed over."""
    assert PAGE.count("```sh\n") == len(BLOCK.findall(PAGE))
    ran = ("Backup", "Restore", "Point-in-time recovery", "Replication", "Failover", "Disk full", "Upgrades")
    assert sum(len(BLOCK.findall(section(title))) for title in ran) == len(BLOCK.findall(PAGE))
