# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The demo runs to its end, and what README.md shows of it is what comes out."""
import os
import re
import subprocess
import sys

import pytest
from rig.paths import CACHE, ROOT

DEMO = [sys.executable, str(ROOT / "tests" / "demo" / "demo.py")]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """All that the demo says; its state is in a cache of its own, so that a demo that runs here goes on."""
    env = {**os.environ, "CACHE": str(tmp_path_factory.mktemp("demo")), "TOPIARY_CACHE": str(CACHE), "NO_COLOR": "1"}
    try:
        done = subprocess.run([*DEMO, "up"], env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        yield done.stdout
    finally:
        subprocess.run([*DEMO, "down"], env=env, capture_output=True, timeout=120, check=False)


def ranks(shown, launcher):
    return re.findall(r"rank +\d+ .*",
                      shown.partition(f"$ {launcher}")[2].partition("\n   \n")[0].partition("   done in")[0])


def test_srun_starts_mpi_programs_as_mpirun_does(shown):
    assert len(ranks(shown, "srun -Q ./where")) == 16
    assert ranks(shown, "srun -Q ./where") == ranks(shown, "mpirun ./where")


def sample():
    """The lines that README.md shows, without their remarks."""
    block = re.search(r"^What you see of the job.*?^```\n(.*?)^```", (ROOT / "README.md").read_text(),
                      re.MULTILINE | re.DOTALL)[1]
    return [re.sub(r" {2,}# .*", "", line) for line in block.strip().split("\n")]


def test_readme_shows_the_real_output(shown):
    """In this order; "..." stands for anything."""
    at = 0
    for line in sample():
        found = re.compile(".*".join(re.escape(part) for part in line.split("..."))).search(shown, at)
        assert found, f"README.md: '{line}' does not come out, or not there"
        at = found.end()
