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
