# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Tiers of memory on nodes with the topologies of real machines, as the kernel's policy of each task; policies that
follow the job's NUMA nodes; and kinds of core."""
import json
import re

import pytest
from rig import Cluster
from rig.ask import reports
from rig.made_machines import made_machine
from rig.node import configured

MACHINES = {"cn1": "knl-flat", "cn2": "xeon-max", "cn3": "mi300a", "cn4": "gh200", "cn5": "xeon-max-plain",
            "cn6": "hybrid"}


@pytest.fixture(scope="module")
def whole(folders):
    # Newer releases leave out efficiency cores unless told, and `slurmd -C` reads no slurm.conf.
    with Cluster(folders(), {node: made_machine(name) for node, name in MACHINES.items()}, registry=False,
                 conf="SlurmdParameters=allow_ecores\n", nodes={"cn6": "CoresPerSocket=16"}) as made:
        yield made


def step(cluster, *options):
    """The memory policy of each task, by rank, and the lines about what was not applied."""
    done = cluster.command(["srun", "-Q", "--topo-report=json", *options, "true"], user="nobody")
    tasks, lines = reports(done.stderr)
    return [task["memory"] for task in tasks], lines


@pytest.mark.parametrize("options, wanted", [
    ("-w cn1 -n2 -c4 --topo-membind=hbm", ["preferred:1 hbm"] * 2),
    ("-w cn1 -n1 -c4 --topo-membind=hbm,strict", ["bind:1 hbm"]),
    ("-w cn1 -n1 -c4 --topo-membind=bind", ["bind:0 dram"]),
    ("-w cn1 -n1 -c4 --topo-membind=capacity", ["preferred:0 dram"]),
    ("-w cn1 -n1 -c4 --topo-membind=latency", ["preferred:0 dram"]),
    ("-w cn2 -n8 -c14 --topo-place=compact --topo-membind=bandwidth", [f"preferred:{n} hbm" for n in range(8, 16)]),
    ("-w cn2 -n8 -c14 --topo-place=compact --topo-membind=dram", [f"preferred:{n} dram" for n in range(8)]),
    ("-w cn2 -n2 -c56 --topo-place=compact --topo-membind=hbm",
     ["preferred-many:8-11 hbm", "preferred-many:12-15 hbm"]),
    ("-w cn2 -n8 -c14 --topo-place=compact --topo-membind=hbm:job,strict", ["bind:8-15 hbm"] * 8),
    ("-w cn5 -n8 -c14 --topo-place=compact --topo-membind=hbm", [f"preferred:{n} hbm" for n in range(8, 16)]),
    ("-w cn3 -n4 -c24 --topo-place=compact --topo-membind=bandwidth", [f"preferred:{n}" for n in range(4)]),
    ("-w cn4 -n1 -c72 --topo-membind=capacity", ["preferred:0 dram"]),
    ("-w cn4 -n1 -c72 --topo-membind=interleave", ["interleave:0 dram"]),
])
def test_tasks_get_the_tier(cluster, options, wanted):
    assert step(cluster, *options.split()) == (wanted, [])


@pytest.mark.parametrize("node, tasks", [("cn3", "-n4 -c24"), ("cn4", "-n4 -c18")])
def test_a_tier_that_is_not_there_is_said_once(cluster, node, tasks):
    policies, said = step(cluster, "-w", node, *tasks.split(), "--topo-place=compact", "--topo-membind=hbm")
    assert policies == ["default"] * 4
    assert len(said) == 1 and "--topo-membind is not applied: no HBM is local to its cores" in said[0], said


HYBRID = ("-N1", "-w", "cn6")     # cores 0 to 7 are performance cores, 8 to 15 efficiency cores


def test_a_job_gets_cores_of_one_kind(place):
    assert place(*HYBRID, "-n4") == [0, 1, 2, 3]
    # Four performance cores and two of the others would do, too.
    assert place(*HYBRID, "-n6") == [8, 9, 10, 11, 12, 13]
    assert place(*HYBRID, "-n5") == [4, 5, 6, 7, 14]


def test_a_job_gets_the_kind_that_it_requests(place):
    assert place(*HYBRID, "-n4", "--topo-request=/core:efficiency=4") == [8, 9, 10, 11]
    assert place(*HYBRID, "-n2", "--topo-request=/core:performance=2") == [0, 1]


@pytest.mark.parametrize("node, path", [("cn6", "/core:performance=9"), ("cn3", "/core:efficiency=4")])
def test_a_kind_that_no_node_has_enough_of_is_refused(cluster, node, path):
    refused = cluster.batch("true", "-N1", "-w", node, f"-n{path.rpartition('=')[2]}", f"--topo-request={path}",
                            check=False)
    assert refused.returncode and "configuration is not available" in refused.stderr, refused


def test_no_task_has_cores_of_two_kinds(cluster):
    _, _, output = cluster.job("srun --topo-place=mem --topo-report=json true", "-w", "cn6", "-n3", "--exclusive")
    assert [task["cpus_os"] for task in reports(output)[0]] == ["0-3", "4-7", "8-15"], output


# The mode and the first 64 NUMA nodes of the policy, by libc's syscall(2): get_mempolicy is 239 on x86-64.
KERNEL = ("import ctypes; m = ctypes.c_int(); n = (ctypes.c_ulong * 16)(); "
          "ctypes.CDLL(None).syscall(ctypes.c_long(239), ctypes.byref(m), n, ctypes.c_ulong(1024), None, "
          'ctypes.c_ulong(0)); print("script", m.value, n[0])')


@pytest.mark.parametrize("fit, prefix", [("prefer", "preferred-many"), ("strict", "bind")])
def test_memory_follows_the_jobs_numa_nodes(cluster, fit, prefix):
    """A job with the cores of two NUMA nodes: both, for its script, for a step on one of them, and for what they start;
    not for a task with a policy of its own."""
    report = "srun -n1 -c14 --exact --topo-report=json {} true"
    with configured(cluster, f"TopoMems = {fit}\n"):
        output = cluster.output(f"python3 -c '{KERNEL}'; {report.format('')}; "
                                f"{report.format('--topo-membind=hbm')}; {report.format('--topo-mems=off')}",
                                "-w", "cn2", "-n1", "-c28", "--topo-fit=require", "--topo-level=package")
    policies = [json.loads(line)["memory"] for line in output.split("\n") if line.startswith("{")]
    assert re.findall(r"^script (\d+) (\d+)$", output, re.M) == [("5" if fit == "prefer" else "2", "3")], output
    assert policies[0] == f"{prefix}:0-1 dram"
    assert re.fullmatch(r"preferred(-many)?:[89,-]+ hbm", policies[1]), policies
    assert policies[2] == "default", policies
