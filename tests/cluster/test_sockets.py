# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What Slurm calls a socket may be a package, a NUMA node or an L3 cache: the cores are the same ones, and so is the
choice."""
import pytest
from rig import Cluster
from rig.ask import cores_of, wait_running

PACKAGE, L3 = 16, 8     # cores of amd-4x16; a NUMA node has as many as an L3
SMT = 8                 # cores of a package of intel-2x8, which is a NUMA node and an L3 too
SOCKETS = {"l3cache_as_socket": "Sockets=8 CoresPerSocket=8", "numa_node_as_socket": "Sockets=8 CoresPerSocket=8"}


@pytest.fixture(scope="module", params=SOCKETS)
def cluster(request, folders):
    machines = {"cn1": "amd-4x16", "cn2": "intel-2x8"}
    with Cluster(folders(), machines, registry=False, conf=f"SlurmdParameters={request.param}\n",
                 nodes={"cn1": SOCKETS[request.param]}) as cluster:
        yield cluster


def placed(cluster, *options):
    number = cluster.batch("sleep 60", "--output=/dev/null", *options).stdout.strip()
    wait_running(cluster, number)
    cores = cores_of(cluster, number)
    why = cluster.topiary("why", "-v", number).stdout
    cluster.command(["scancel", number])
    assert "placed by Topiary" in why, why
    return cores


@pytest.mark.parametrize("tasks, size, count", [(16, PACKAGE, 1), (24, L3, 3)])
def test_packages_are_kept_though_sockets_are_smaller(cluster, tasks, size, count):
    cores = placed(cluster, "-w", "cn1", f"--ntasks={tasks}")["cn1"]
    assert len(cores) == tasks and len({c // size for c in cores}) == count, cores


@pytest.mark.parametrize("tasks, cores", [(16, SMT), (8, SMT // 2)])
def test_threads_of_a_core_stay_together(cluster, tasks, cores):
    mine = placed(cluster, "-w", "cn2", f"--ntasks={tasks}")["cn2"]
    assert len(mine) == cores and len({c // SMT for c in mine}) == 1, mine


def test_nothing_disagrees(cluster):
    log = (cluster.folder / "log" / "slurmctld.log").read_text()
    assert "jobs are placed on it as without Topiary" not in log
