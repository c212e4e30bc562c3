# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A line a step, with its seconds: this suite is one long walk, and who waits for it sees where it is."""
import sys
import tempfile
from pathlib import Path

import pytest
from hosts import Host


def pytest_runtest_logreport(report):
    if report.when == "call" or report.when == "setup" and report.duration > 1:
        step = report.nodeid.rpartition("::")[2] + (" (set-up)" if report.when == "setup" else "")
        print(f"recipe: {step} ... {report.outcome} ({report.duration:.0f} s)", file=sys.__stdout__, flush=True)


def pytest_report_teststatus(report):
    """No dot besides."""
    if report.passed and report.when == "call" and report.nodeid.startswith("tests/recipe/"):
        return "passed", "", "PASSED"
    return None


@pytest.fixture(scope="module")
def host():
    """One that is in no cluster, for packages."""
    with tempfile.TemporaryDirectory(prefix="topiary-recipe-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        host = Host("single", Path(folder) / "single")
        yield host.await_boot()
        host.end()
