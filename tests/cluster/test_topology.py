# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Each step sees the hardware that it was given, and no other."""
import pytest
from rig import Cluster, MachineError, os_indexes
from rig.ask import cores_of, hwloc_cpus

SHOW = "cat $HWLOC_XMLFILE"


def export(cluster, node):
    return cluster.topology_file(node)


@pytest.mark.parametrize("node, tasks", [("cn1", 1), ("cn1", 6), ("cn1", 64), ("cn3", 5), ("cn4", 2), ("cn4", 12), ("cn5", 1)])
def test_batch_step_has_its_cores_only(cluster, node, tasks):
    number, state, output = cluster.job(SHOW, "-w", node, f"--ntasks={tasks}", "-N1")
    cores = cores_of(cluster, number)[node]
    assert state == "COMPLETED", output
    assert os_indexes(output) == hwloc_cpus(export(cluster, node), [f"core:{c}" for c in cores])
    assert not (cluster.folder / "nodes" / node / "run" / f"{number}.batch").exists()


def test_step_on_each_node_has_that_nodes(cluster):
    script = 'srun -l sh -c \'for f in $HWLOC_XMLFILE; do grep -o "HostName.*value=\\"[^\\"]*" $f; lstopo-no-graphics --only PU -p; done\''
    number, state, output = cluster.job(script, "-w", "cn1,cn2", "-N2", "--ntasks=2", "--ntasks-per-node=1")
    assert state == "COMPLETED", output
    for task, node in enumerate(("cn1", "cn2")):
        mine = [line.split(": ", 1)[1] for line in output.split("\n") if line.startswith(f"{task}: ")]
        cpus = hwloc_cpus(export(cluster, node), [f"core:{c}" for c in cores_of(cluster, number)[node]])
        assert mine[0].endswith(f'"{node}')
        assert mine[1:] == [f"PU P#{cpu}" for cpu in cpus]


def test_restricted_topology_keeps_local_devices(cluster):
    _, state, output = cluster.job("lstopo-no-graphics --only PCI | wc -l", "-w", "cn3", "--ntasks=8", "-N1")
    assert state == "COMPLETED" and int(output) > 0, output


def test_what_the_user_set_stays(cluster):
    _, state, output = cluster.job("echo $HWLOC_XMLFILE", "-w", "cn1", "-n1", "--export=HWLOC_XMLFILE=/etc/mine.xml,PATH")
    assert (state, output) == ("COMPLETED", "/etc/mine.xml\n")


def test_exports_come_back_byte_for_byte(cluster):
    for node in cluster.xml:
        kept = cluster.topiary("show", node, "--xml").stdout
        assert kept == export(cluster, node).read_text(), node


def test_machine_that_slurm_cannot_describe_is_refused(folders):
    with pytest.raises(MachineError, match="cn1: slurmd cannot describe this machine"):
        Cluster(folders(), {"cn1": "uneven-4x3"}, stock=True).prepare()
