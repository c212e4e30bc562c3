# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""All tests under one roof: each case of a cmocka program is a test beside those in Python; one line of totals ends the run."""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("TOPIARY_BUILD", ROOT / "build"))
UNIT_TIMEOUT = 300
TAP = re.compile(r"^(not ok|ok) \d+ - (\S+)(?: # (SKIP))?")

sys.path.insert(0, str(ROOT / "tests"))


def pytest_collect_file(file_path, parent):
    if file_path.parent.name == "unit" and file_path.suffix == ".c" and file_path.name.startswith("test_"):
        return Program.from_parent(parent, path=file_path)
    return None


class Program(pytest.File):
    """A cmocka program: run once, each of its cases reported by name."""

    def collect(self):
        program = BUILD / "tests" / self.path.stem
        if not program.exists():
            yield Case.from_parent(self, name=self.path.stem, outcome="not ok", text=f"{program} was not built")
            return
        status, text = run(program)
        cases = [(found.group(2), "skip" if found.group(3) else found.group(1)) for found in map(TAP.match, text.split("\n")) if found]
        for name, outcome in cases:
            yield Case.from_parent(self, name=name, outcome=outcome, text=text)
        if status and all(outcome != "not ok" for _, outcome in cases):
            yield Case.from_parent(self, name=self.path.stem, outcome="not ok", text=f"{how_it_ended(status)}\n{text}")


def run(program):
    try:
        done = subprocess.run([str(program)], cwd=ROOT, env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}, timeout=UNIT_TIMEOUT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired as late:
        return -signal.SIGALRM, (late.stdout or b"").decode(errors="replace")
    return done.returncode, done.stdout


def how_it_ended(status):
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


class CaseFailed(Exception):
    """A cmocka case that failed; the text is the program's."""


class Case(pytest.Item):
    def __init__(self, *, outcome, text, **kwargs):
        super().__init__(**kwargs)
        self.outcome, self.text = outcome, text

    def runtest(self):
        if self.outcome == "skip":
            pytest.skip("the program says so")
        if self.outcome != "ok":
            raise CaseFailed(self.text)

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if isinstance(excinfo.value, CaseFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


totals = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        totals[report.outcome] += 1


def pytest_collectreport(report):
    if report.outcome == "failed":
        totals["failed"] += 1


def pytest_unconfigure(config):
    if not config.option.collectonly:
        print(", ".join(f"{count} {outcome}" for outcome, count in totals.items()), flush=True)
