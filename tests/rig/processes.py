# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Processes that the rig started, remembered by pid and start time, so that nobody else's is ever ended."""
import os
import signal
import subprocess
import time


def start_time(pid):
    """When the kernel started pid, in ticks; None when there is no such process or it is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            fields = f.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


class Daemon:
    """One running program; its output goes to a log of its own."""

    def __init__(self, name, pid, start, log):
        self.name, self.pid, self.start, self.log = name, pid, start, log

    @classmethod
    def run(cls, name, command, log, env=None, cwd="/"):
        with open(log, "ab") as out:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd,
                                     start_new_session=True)
        daemon = cls(name, child.pid, start_time(child.pid), str(log))
        daemon.child = child
        return daemon

    def alive(self):
        child = getattr(self, "child", None)
        if child and child.poll() is not None:
            return False
        return self.start is not None and start_time(self.pid) == self.start

    def stop(self, how=signal.SIGTERM, seconds=10):
        if self.alive():
            os.kill(self.pid, how)
        if not wait_until(lambda: not self.alive(), seconds) and self.alive():
            os.kill(self.pid, signal.SIGKILL)
            wait_until(lambda: not self.alive(), 5)

    def record(self):
        return {"name": self.name, "pid": self.pid, "start": self.start, "log": self.log}


def descendants(pid):
    """All processes below pid, the deepest last."""
    below = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            below.append(int(entry))
            below += descendants(int(entry))
    return below


def patience(seconds):
    """How long to wait for what takes so many seconds on a quiet machine: a slow machine is slow, not broken."""
    return max(seconds, min(20 * seconds, 300))


def wait_until(true, seconds, pause=0.05):
    """Whether true() came to be; seconds: how long that takes on a quiet machine, at most."""
    deadline = time.monotonic() + patience(seconds)
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
