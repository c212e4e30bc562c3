# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The schema that topiaryd finds: brought up to date for as long as it takes, and not served when it is not its own."""
import contextlib
import hashlib
import re
import subprocess

import pytest
from registry_rig import POSTGRES, ROOT, SMALL, USER, machine
from rig.cluster import as_user
from rig.processes import wait_until

NEWEST = max(p.name for p in (ROOT / "sql").glob("[0-9]*.sql"))
XML = machine(SMALL, "one", 1)


@contextlib.contextmanager
def without_topiaryd(registry):
    registry.stop("topiaryd")
    try:
        yield
    finally:
        if "topiaryd" not in registry.daemons:
            registry.start_topiaryd()


def run_topiaryd(registry, *options):
    """Its exit status and words, of one that ends by itself."""
    command = as_user(USER, [str(registry.folder / "topiaryd"), "--config", str(registry.config), *options])
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=120, check=False)
    return done.returncode, done.stderr


@contextlib.contextmanager
def with_migration(registry, name, text):
    """A file more for topiaryd, whose rows go with it."""
    file = registry.folder / "sql" / name
    file.write_text(text)
    try:
        yield file
    finally:
        file.unlink()
        registry.sql(f"DELETE FROM topiary_migration WHERE name = '{name}'")


def test_every_migration_is_recorded_with_its_hash(registry):
    assert registry.get("/healthz").status == 200
    rows = dict(row.split("|") for row in registry.sql("SELECT name, sha256 FROM topiary_migration").split("\n"))
    assert rows == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (ROOT / "sql").glob("[0-9]*.sql")}


def test_migration_that_takes_longer_than_a_statement_may(registry):
    with without_topiaryd(registry), with_migration(registry, "0900_slow.sql",
                                                    "SELECT pg_sleep(13);\nCREATE TABLE slow ();\n"):
        done = run_topiaryd(registry, "--migrate")
        assert done[0] == 0, done
        assert "migration 0900_slow.sql: started" in done[1] and re.search(r"0900_slow.sql: done after 1\d s", done[1])
        assert registry.sql("SELECT count(*) FROM slow") == "0"
        registry.sql("DROP TABLE slow")


def test_migration_that_meets_a_lock_gives_way(registry):
    """It does not queue before everybody else's reads."""
    hold = as_user(USER, [str(POSTGRES / "psql"), "-qAt", "-h", str(registry.folder / "pg"), "-d", "topiary"])
    with without_topiaryd(registry), with_migration(registry, "0900_locks.sql",
                                                    "ALTER TABLE node ADD COLUMN mine int;\n"):
        psql = subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        psql.stdin.write("BEGIN; SELECT count(*) >= 0 FROM node;\n")
        psql.stdin.flush()
        assert psql.stdout.readline() == "t\n"
        status, words = run_topiaryd(registry, "--migrate")
        assert status == 1 and "migration 0900_locks.sql" in words and "lock timeout" in words, words
        psql.communicate("ROLLBACK;\n", timeout=10)


def test_migration_that_fails_is_announced_once(registry):
    """It is tried again at each connect; why it fails is said at the start, and that topiaryd tries again."""
    with without_topiaryd(registry), with_migration(registry, "0900_broken.sql", "SELECT 1 / 0;\n"):
        mark = len(registry.log("topiaryd"))
        registry.start_topiaryd()
        answers = [registry.get("/healthz") for _ in range(4)]
        registry.stop("topiaryd")
    log = registry.log("topiaryd")[mark:]
    assert all("division by zero" in answer.json()["error"] for answer in answers), answers[0].body
    assert log.count("migration 0900_broken.sql: started") == 1, log
    assert "Database: migration 0900_broken.sql: PostgreSQL: ERROR:  division by zero; exports and reads" in log, log


REFUSED = {
    "newer": ("INSERT INTO topiary_migration (name, sha256) VALUES ('0999_later.sql', 'x')",
              "0999_later.sql .*does not know"),
    "newer, works with a later one": ("INSERT INTO topiary_migration (name, sha256, works_with)"
                                      " VALUES ('0999_later.sql', 'x', '0998')", "0999_later.sql .*does not know"),
    "a gap": ("DELETE FROM topiary_migration WHERE name = '0002_views.sql'",
              "lacks migration 0002_views.sql, but has .*: restore it from a backup"),
    "edited": ("UPDATE topiary_migration SET sha256 = repeat('0', 64) WHERE name = '0002_views.sql'",
               "0002_views.sql was edited"),
    "of a development version": ("UPDATE topiary_migration SET sha256 = repeat('0', 64);"
                                 "INSERT INTO topiary_migration (name, sha256) VALUES ('0004_identity.sql', 'x')",
                                 "development version .migration 0004_identity.sql, .*: see operations.md, Upgrades"),
    "without hashes": ("ALTER TABLE topiary_migration DROP sha256, DROP works_with",
                       "development version .migration 0001_registry.sql, .*: see operations.md, Upgrades"),
}


@pytest.mark.parametrize("change, words", REFUSED.values(), ids=REFUSED)
def test_foreign_schema(registry, change, words):
    """It is noticed while serving, and topiaryd does not start on it."""
    assert registry.put("one", XML).status == 200
    registry.sql("CREATE TABLE kept (LIKE topiary_migration INCLUDING ALL);"
                 "INSERT INTO kept SELECT * FROM topiary_migration")
    registry.sql(change)
    answer = registry.get("/healthz")
    with without_topiaryd(registry):
        status, said = run_topiaryd(registry)
        registry.sql("DROP TABLE topiary_migration; ALTER TABLE kept RENAME TO topiary_migration")
    assert answer.status == 503 and re.search(words, answer.json()["error"]), answer.body
    assert status == 1 and re.search(words, said), said
    assert wait_until(lambda: registry.get("/healthz").status == 200, 20)


def test_newer_schema_with_which_this_release_works(registry):
    number = NEWEST[:4]
    registry.sql(f"INSERT INTO topiary_migration (name, sha256, works_with) VALUES ('0999_later.sql', 'x', '{number}')")
    with without_topiaryd(registry):
        pass
    assert registry.get("/healthz").status == 200 and registry.put("one", XML).status == 200
    registry.sql("DELETE FROM topiary_migration WHERE name = '0999_later.sql'")


def test_what_a_migration_works_with_is_recorded(registry):
    with without_topiaryd(registry), with_migration(registry, "0900_line.sql",
                                                    "-- A comment\n-- Works with: 0003\nSELECT 1;\n"):
        assert run_topiaryd(registry, "--migrate")[0] == 0
        assert registry.sql("SELECT works_with FROM topiary_migration WHERE name = '0900_line.sql'") == "0003"
