# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What the user's guide shows is what comes out: the same words, whatever the numbers."""
import re

from rig.ask import ring, wait_running
from rig.cluster import JOB_USER
from rig.command import topiary
from rig.paths import ROOT
from rig.processes import wait_until

GUIDE = (ROOT / "docs/user-guide.md").read_text()


def words(text):
    """Each line without its numbers, lists of these, and the width of its columns."""
    return [re.sub(r"\s+", " ", re.sub(r"[\d.,-]*\d(?:e[+-]?\d+)?", "N", line)).strip() for line in text.splitlines()]


def shown(command):
    """What the guide has below such a command, as far as the next one."""
    text = re.search(rf"^(?:\$ )?{command}.*?\n(.*?)^(?:\$ |```)", GUIDE, re.M | re.S)[1]
    return [line for line in words(text) if line != "..."]


def assert_comes_out(lines, text):
    assert lines and not set(lines) - set(words(text)), (lines, text)


def test_jobs_of_the_guide(cluster, submit):
    def why(number):
        return cluster.topiary("why", "-v", number, user=JOB_USER, check=False).stdout.replace(", running:", ", ended:")

    first = submit("-N1", "-n6", "--exclude=cn3,cn4,cn5")
    wait_running(cluster, first)
    assert_comes_out(shown("topiary why -v 2"), why(first))
    cluster.command(["scancel", first])
    spread = submit("-N1", "-n8", "-w", "cn1", "--topo-fit=spread")
    wait_running(cluster, spread)
    assert_comes_out(shown("topiary why -v 16"), why(spread))
    waits = submit("-N1", "-n8", "-w", "cn1", "--topo-fit=require", "--topo-level=l3")
    assert wait_until(lambda: ": waits\n" in why(waits), 60)
    assert_comes_out(shown("topiary why -v 18"), why(waits))
    cluster.command(["scancel", spread])
    wait_running(cluster, waits)
    assert_comes_out(shown("cores    cn1 0-7\ntouches  1 package, 1 NUMA node, 1 L3 cache, 4 L2 caches"), why(waits))
    never = cluster.batch("true", "-N1", "-n64", "--topo-fit=require", "--topo-level=l3", check=False)
    assert_comes_out(shown("sbatch -N1 -n64 --topo-fit=require --topo-level=l3"), never.stderr)


def test_maps_of_the_guide(tmp_path):
    (tmp_path / "halo.mat").write_text(ring(32))
    (tmp_path / "snapshot").write_text("topiary-snapshot 1\nshape S Package:4 [NUMANode] L3Cache:2 Core:8 PU:1\n"
                                       "nodes cn[1-4] S\nend\n")
    done = topiary("map", "--matrix=halo.mat", "--nodes=cn[1-4]=0-7", "--explain", "-o", "ranks.txt",
                   "--snapshot=snapshot", cwd=tmp_path, status=0)
    lines = [line for line in shown("topiary map --matrix halo.mat") if not line.startswith("chosen")]
    assert_comes_out(lines, done.stdout + done.stderr)
    assert_comes_out(shown("topiary matrix --info halo.mat"),
                     topiary("matrix", "--info", "halo.mat", cwd=tmp_path, status=0).stdout)
