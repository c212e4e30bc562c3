# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A data folder of PostgreSQL for each private server: a copy of one that initdb made once, which takes ten times as
long."""
import fcntl
import os
import pwd
import subprocess
import tempfile
from pathlib import Path

from .paths import CACHE

POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def as_user(user, command):
    who = pwd.getpwnam(user)
    return ["setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups", *command]


def copied_data(folder):
    """Makes the data folder. The template is in the cache, where PostgreSQL's own user may not be able to write."""
    CACHE.mkdir(parents=True, exist_ok=True)
    template = CACHE / f"postgres-{POSTGRES.parent.name}"
    with open(f"{template}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            with tempfile.TemporaryDirectory(prefix="topiary_initdb_") as work:
                os.chown(work, pwd.getpwnam("postgres").pw_uid, -1)
                initdb = [f"{POSTGRES}/initdb", "--no-sync", "-D", f"{work}/data", "-A", "peer", "-E", "UTF8",
                          "--locale=C.UTF-8"]
                subprocess.run(as_user("postgres", initdb), check=True, capture_output=True, cwd="/")
                subprocess.run(["cp", "-a", f"{work}/data", f"{template}.new"], check=True)
                os.rename(f"{template}.new", template)
    subprocess.run(["cp", "-a", template, folder], check=True)
