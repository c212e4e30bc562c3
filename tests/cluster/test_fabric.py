# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""slurmctld takes the topology.conf that was made of a discovered fabric, and tells the same."""
import re
import subprocess

import pytest
from rig import Cluster
from rig.paths import BUILD

NODES = {"cn1": "amd-4x16", "cn2": "amd-4x16", "cn3": "intel-2x8"}
# cn1 and cn2 on a leaf switch, cn3 and a host that is no node of Slurm's on another, two spines.
LINKS = [("cn1", "leaf1"), ("cn2", "leaf1"), ("cn3", "leaf2"), ("login1", "leaf2"), ("leaf1", "spine1"), ("leaf1", "spine2"),
         ("leaf2", "spine1"), ("leaf2", "spine2")]


def discovered():
    """As ibnetdiscover -p has it."""
    guids, ports, lines = {}, {}, []

    def end(name):
        ports[name] = ports.get(name, 0) + 1
        guid = guids.setdefault(name, 0xa0 + len(guids))
        return f"{'CA' if name[:2] in ('cn', 'lo') else 'SW'} 1 {ports[name]} 0x{guid:016x}"

    for a, b in LINKS:
        description = f"{a} mlx5_0" if a[:2] in ("cn", "lo") else a
        lines.append(f"{end(a)} 4x EDR - {end(b)} ( '{description}' - '{b}' )\n")
    return "".join(lines)


def export(path, *options):
    return subprocess.run([BUILD / "topiary", "fabric", "export", "--format=slurm", *options, path], capture_output=True, text=True,
                          check=True, timeout=60).stdout


def told(text):
    """What each switch joins, without order."""
    found = {}
    for name, rest in re.findall(r"^SwitchName=(\S+) (.*)$", text, re.MULTILINE):
        found[name] = {key: value for key, value in re.findall(r"(Nodes|Switches)=(\S+)", rest)}
    return found


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    path = tmp_path_factory.mktemp("fabric") / "discovered.txt"
    path.write_text(discovered())
    return export(path, "--nodes", "cn[1-3]")


@pytest.fixture(scope="module")
def tree(folders, topology):
    with Cluster(folders(), NODES, stock=True, registry=False, conf="TopologyPlugin=topology/tree\n",
                 files={"topology.conf": topology}) as it:
        yield it


def test_slurmctld_tells_the_same(tree, topology, tmp_path):
    shown = tree.command(["scontrol", "show", "topology"]).stdout
    switches = told(shown)
    assert {name: rest.get("Nodes") for name, rest in switches.items() if not rest.get("Switches")} == \
        {"leaf1": "cn[1-2]", "leaf2": "cn3"}, shown
    assert switches["tier1-0"] == {"Nodes": "cn[1-3]", "Switches": "leaf[1-2]"}, shown
    assert told(topology) == {"leaf1": {"Nodes": "cn[1-2]"}, "leaf2": {"Nodes": "cn3"}, "tier1-0": {"Switches": "leaf[1-2]"}}
    # What slurmctld runs with is read back, and written the same.
    again = tmp_path / "topology.conf"
    again.write_text((tree.folder / "etc" / "topology.conf").read_text())
    assert export(again) == topology


def test_slurmctld_finds_no_fault_with_it(tree):
    log = (tree.folder / "log" / "slurmctld.log").read_text()
    assert not re.search(r"(error|fatal|WARNING).*(switch|topology)", log, re.IGNORECASE), log
    assert "topology" in log


def test_a_job_that_needs_one_switch_gets_one(tree):
    number, state, _ = tree.job("true", "-N2", "--switches=1@10:00", "--exclusive")
    assert state == "COMPLETED"
    assert "NodeList=cn[1-2]" in tree.command(["scontrol", "show", "job", str(number)]).stdout
