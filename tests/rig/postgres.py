# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A data folder of PostgreSQL for each private server, with the registry's role and its empty database: a copy of one
that was made once, which takes ten times as long. Clients are called in POSTGRES, since /usr/bin/psql is a wrapper in
Perl that takes six times the CPU of psql itself."""
import fcntl
import os
import pwd
import subprocess
import tempfile
from pathlib import Path

from .paths import CACHE

POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
REGISTRY_USER = "daemon"


def as_user(user, command):
    who = pwd.getpwnam(user)
    return ["setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups", *command]


def copied_data(folder):
    """Makes the data folder. The template is in the cache, where PostgreSQL's own user may not be able to write."""
    CACHE.mkdir(parents=True, exist_ok=True)
    template = CACHE / f"postgres-{POSTGRES.parent.name}-{REGISTRY_USER}"
    with open(f"{template}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            with tempfile.TemporaryDirectory(prefix="topiary_initdb_") as work:
                os.chown(work, pwd.getpwnam("postgres").pw_uid, -1)
                for command, text in (
                        ([f"{POSTGRES}/initdb", "--no-sync", "-D", f"{work}/data", "-A", "peer", "-E", "UTF8",
                          "--locale=C.UTF-8", "--wal-segsize=1"], ""),
                        ([f"{POSTGRES}/postgres", "--single", "-j", "-D", f"{work}/data", "postgres"],
                         f"CREATE ROLE {REGISTRY_USER} LOGIN;\n\n"
                         f"CREATE DATABASE topiary OWNER {REGISTRY_USER};\n\n"
                         "UPDATE pg_database SET datistemplate = false WHERE datname = 'template0';\n\n"
                         "DROP DATABASE template0;\n\n")):      # a quarter of the files
                    subprocess.run(as_user("postgres", command), check=True, capture_output=True, cwd="/", text=True,
                                   input=text)
                subprocess.run(["cp", "-a", f"{work}/data", f"{template}.new"], check=True)
                os.rename(f"{template}.new", template)
    subprocess.run(["cp", "-a", template, folder], check=True)
