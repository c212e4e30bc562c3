# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The units: how little they leave to a program, and that it does its work with that."""
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from rig.command import run
from rig.paths import BUILD, ROOT
from rig.unit import confined, setting

UNITS = ROOT / "packaging/systemd"
# systemd's exposure level, 0 to 10
SERVICES = {"topiary-agent": 2.5, "topiary-monitor": 2.5, "topiary-recheck": 2.5, "topiary-snapshot": 2.5,
            "topiary-fabric": 2.5, "topiaryd": 2.5}


def tool(name):
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    return name


@pytest.mark.parametrize("unit", SERVICES)
def test_exposure(unit):
    told = run(tool("systemd-analyze"), "security", "--offline=yes", "--no-pager", UNITS / f"{unit}.service")
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", told.stdout)
    assert level, told.stderr
    assert float(level.group(1)) <= SERVICES[unit], told.stdout


def agent(folder, *before):
    """What the agent writes, run by these words."""
    folder.mkdir()
    config = folder / "topiary.conf"
    config.write_text(f"RunDir={folder}/run\nTopologyFile={folder}/run/topology.xml\n")
    subprocess.run([*before, BUILD / "topiary-agent", "--config", config, "--local"], check=True, timeout=300)
    return {file.name: file.read_bytes() for file in (folder / "run").iterdir()}


def test_the_agent_sees_as_much_with_the_units_capabilities(tmp_path):
    """All that root sees, on the machine that runs this."""
    if os.geteuid():
        pytest.skip("needs root: capabilities are taken from it")
    wanted = "".join(f",+{name.removeprefix('CAP_').lower()}"
                     for name in setting("topiary-agent", "CapabilityBoundingSet")[0].split())
    bounded = [tool("setpriv"), "--bounding-set", "-all" + wanted, "--inh-caps", "-all", "--no-new-privs"]
    mask = run(*bounded, "grep", "CapEff", "/proc/self/status", status=0).stdout
    assert int(mask.split()[1], 16).bit_count() <= len(wanted.split(",")) - 1
    assert agent(tmp_path / "bounded", *bounded) == agent(tmp_path / "root")


def test_the_agent_makes_no_call_that_its_unit_refuses(tmp_path):
    tool("systemd-analyze")
    agent(tmp_path / "agent", *confined("topiary-agent", tmp_path))


def test_a_call_that_the_unit_refuses_ends_the_program(tmp_path):
    """The tests of topiaryd, topiary-agent and topiary-monitor run these so: their units allow all that they call."""
    tool("systemd-analyze")
    done = subprocess.run([*confined("topiaryd", tmp_path), sys.executable, "-c", "import os; os.chroot('/')"],
                          check=False, timeout=60)
    assert done.returncode == -signal.SIGSYS
