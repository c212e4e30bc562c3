# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The units: how little they leave to a program, and that it does its work with that."""
import os
import re
import shutil
import subprocess

import pytest
from rig.paths import BUILD, ROOT

UNITS = ROOT / "packaging/systemd"
# systemd's exposure level, 0 to 10
SERVICES = {"topiary-agent": 2.5, "topiary-monitor": 2.5, "topiary-recheck": 2.5, "topiary-snapshot": 2.5,
            "topiaryd": 2.5}


def tool(name):
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    return name


def setting(unit, key):
    return re.findall(rf"^{key}=(.*)$", (UNITS / f"{unit}.service").read_text(), re.M)


@pytest.mark.parametrize("unit", SERVICES)
def test_exposure(unit):
    told = subprocess.run([tool("systemd-analyze"), "security", "--offline=yes", "--no-pager",
                           UNITS / f"{unit}.service"],
                          capture_output=True, text=True, check=False)
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
    mask = subprocess.run([*bounded, "grep", "CapEff", "/proc/self/status"], capture_output=True, text=True,
                          check=True).stdout
    assert int(mask.split()[1], 16).bit_count() <= len(wanted.split(",")) - 1
    assert agent(tmp_path / "bounded", *bounded) == agent(tmp_path / "root")


def calls_of(group, seen=()):
    """The system calls of one of systemd's groups."""
    told = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True,
                          check=True).stdout
    words = [line.strip() for line in told.split("\n")[1:] if line.strip() and not line.strip().startswith("#")]
    found = {word for word in words if not word.startswith("@")}
    return found.union(*(calls_of(word, (*seen, group)) for word in words if word.startswith("@") and word not in seen))


def test_the_agent_makes_no_call_that_its_unit_refuses(tmp_path):
    tool("systemd-analyze")
    allowed = set()
    for words in setting("topiary-agent", "SystemCallFilter"):
        groups = set().union(*(calls_of(word) for word in words.lstrip("~").split()))
        allowed = allowed - groups if words.startswith("~") else allowed | groups
    trace = tmp_path / "trace"
    agent(tmp_path / "agent", tool("strace"), "-f", "-qq", "-o", trace)
    made = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.M))
    assert {"openat", "execve"} <= made and made <= allowed, made - allowed
