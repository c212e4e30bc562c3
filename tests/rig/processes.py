# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Processes that the rig started, remembered by pid and start time, so that nobody else's is ever ended. As a program:
reads lines "PID START" and folders of clusters until its standard input ends, and then ends what is left of them.
"""
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

guardian, left_running = None, False      # a demo sets left_running: its daemons go on without it
guardian_lock = threading.Lock()


def guarded(line):
    """A daemon or folder of this process's ends with it, even if it is killed. A parent-death signal would not do: the
    kernel sends it when the thread ends that started the daemon."""
    global guardian
    if left_running:
        return
    with guardian_lock:
        guardian = guardian or subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, text=True,
                                                stdout=subprocess.DEVNULL, start_new_session=True)
        guardian.stdin.write(f"{line}\n")
        guardian.stdin.flush()


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
    def run(cls, name, command, log, env=None, cwd="/", guard=True):
        with open(log, "ab") as out:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd,
                                     start_new_session=True)
        daemon = cls(name, child.pid, start_time(child.pid), str(log))
        daemon.child = child
        if guard:
            guarded(f"{daemon.pid} {daemon.start}")
        return daemon

    def alive(self):
        child = getattr(self, "child", None)
        if child and child.poll() is not None:
            return False
        return self.start is not None and start_time(self.pid) == self.start

    def send(self, how):
        if self.alive():
            os.kill(self.pid, how)

    def stop(self, how=signal.SIGTERM, seconds=10):
        self.send(how)
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


def end_steps(folder):
    """slurmstepd outlives its slurmd: end those of the cluster in this folder, which hold its slurmd's log open, and
    what runs below them."""
    for entry in os.listdir("/proc"):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
            files = ([os.readlink(file) for file in Path(f"/proc/{entry}/fd").iterdir()]
                     if b"slurmstepd" in command else [])
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if any(file.startswith(f"{folder}/") for file in files):
            kill(descendants(int(entry)) + [int(entry)])


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def patience(seconds):
    """How long to wait for what takes so many seconds on a quiet machine: a slow machine is slow, not broken."""
    return max(seconds, min(20 * seconds, 300))


def wait_until(true, seconds, pause=0.05):
    """Whether true() came to be; seconds: how long that takes on a quiet machine, at most. It is asked ever less often,
    at last every 8 pauses, since most questions start a program."""
    deadline, longest = time.monotonic() + patience(seconds), 8 * pause
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(1.25 * pause, longest)
    return True


def main():
    for line in sys.stdin.read().splitlines():
        if line.startswith("/"):
            end_steps(line)
        else:
            pid, start = line.split()
            if start == str(start_time(int(pid))):
                kill([*descendants(int(pid)), int(pid)])


if __name__ == "__main__":
    main()
