# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Commands as people run them: their output as text, and how they end."""
import subprocess

from .paths import BUILD


def run(*words, status=None, timeout=120, **how):
    """The finished process; status: what it must end with, and its words are shown if it does not."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=timeout, check=False, **how)
    assert status in (None, done.returncode), (words, done.returncode, done.stdout, done.stderr)
    return done


def topiary(*words, **how):
    return run(BUILD / "topiary", *words, **how)


def printed(*words, **how):
    """By a `topiary` that has nothing to complain of."""
    done = topiary(*words, status=0, **how)
    assert not done.stderr
    return done.stdout


def trace_made(path, topology="Package:2 [numa] L3:2 Core:2 PU:2", ticks=130, node="made", name="", busy=0):
    """By trace_make, which see; its path."""
    run(BUILD / "tests" / "trace_make", path, topology, ticks, node, name, busy, status=0)
    return path
