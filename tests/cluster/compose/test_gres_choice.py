# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""GPUs at NUMA nodes, several to a socket: of a node's free ones a job gets those near its cores, though Slurm alone
grants the first ones of a socket."""
import itertools
import json
import re

import pytest
from rig.ask import expand, fields, jobs, wait_running
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until

from .conftest import FINE_AT, FINE_GPUS
from .pair import cores, running, submit

BESIDE = 8      # cores of the NUMA node that a GPU is at
NEAR = [set(range(BESIDE * at, BESIDE * (at + 1))) for at in FINE_AT]
# Since 24.11 Slurm refuses Cores= of less than a socket: then fine1 is told by the snapshot, too.
TOLD_BY = pytest.mark.parametrize("node", ["fine1", "fine2"][SLURM_RELEASE >= (24, 11):])


def gpus(record):
    """Indices of the GPUs that a job was granted on its node."""
    told = re.search(r"GRES=\S*gpu(?::\w+)?:\d+\(IDX:([\d,-]+)\)", record)
    return set(expand(told.group(1))) if told else set()


def near(granted):
    return set().union(*(NEAR[gpu] for gpu in granted))


def place(cluster, *words):
    """Start a job: its number, node, cores and GPUs."""
    number, placed = running(cluster, "-N1", *words)
    (node, mine), = placed.items()
    (record,) = jobs(cluster, number)
    return number, node, set(mine), gpus(record)


@TOLD_BY
@pytest.mark.parametrize("words", ["-n8 --gpus-per-node=1", "-n1 -c8 --gpus-per-task=1",
                                   "-n6 --gres=gpu:1 --gres-flags=enforce-binding"])
def test_the_gpu_is_near_the_cores_where_the_first_free_one_is_not(fine, node, words):
    ours, _ = fine.fates([f"-N1 -w {node} -n8", f"-N1 -w {node} {words}"])
    first, mine = (set(cores(fine.ours, job)[node]) for job in ours)
    assert first == set(range(BESIDE)) and not mine & first and mine <= near(gpus(ours[1]))


@TOLD_BY
def test_near_gpus_and_whole_tasks_come_before_memory(fine, node):
    """Two NUMA nodes do not have so much memory; tasks over more of them would be cut and far from their GPUs."""
    record = fine.ours.command(["scontrol", "show", "node", node]).stdout
    most = int(re.search(r"RealMemory=(\d+)", record).group(1)) * 7 // 10
    number, _, mine, granted = place(fine.ours, "-w", node, "-n2", "-c8", "--gpus-per-task=1", f"--mem={most}")
    assert len(granted) == 2 and mine == near(granted)
    told = fine.ours.topiary("why", "-v", number).stdout
    assert "GPUs     2, near its cores" in told and "part of it may be far" in told and "none is split" in told


@TOLD_BY
def test_memory_is_near_where_cores_are_far_from_the_gpu(fine, node):
    """One core is free near the last GPU, six in each other NUMA node, whose memory is enough for four of the five."""
    record = fine.ours.command(["scontrol", "show", "node", node]).stdout
    share = int(re.search(r"RealMemory=(\d+)", record).group(1)) // FINE_GPUS
    place(fine.ours, "-w", node, "-n14", f"--gres=gpu:{FINE_GPUS - 1}")
    place(fine.ours, "-w", node, "-n7", "--topo-fit=require", "--topo-level=numa")
    number, _, mine, granted = place(fine.ours, "-w", node, "-n5", "--gres=gpu:1", f"--mem={share * 6 // 5}")
    assert len(mine & near(granted)) == 1
    assert "part of it may be far" not in fine.ours.topiary("why", number).stdout


def test_gpus_that_are_free_with_their_cores(fine):
    """topiary fragmentation, against the records of the jobs."""
    taken, granted = set(), set()
    for words in (["-n9", "--gres=gpu:2"], ["-n3"]):
        _, _, mine, theirs = place(fine.ours, "-w", "fine2", *words)
        taken, granted = taken | mine, granted | theirs
    told = json.loads(fine.ours.topiary("fragmentation", "--nodes=fine2", "--json").stdout)["levels"]["gpu"]
    left = set(range(FINE_GPUS)) - granted
    assert told == {"all": FINE_GPUS, "free": sum(not NEAR[gpu] & taken for gpu in left),
                    "partly": sum(bool(NEAR[gpu] & taken) for gpu in left)}


def test_gpus_are_granted_once_and_all_of_them(fine):
    """Each choice is Slurm's to count: eight jobs get eight GPUs of a node, the next one waits."""
    def fill(cluster):
        running(cluster, "-N1", "-w", "fine2", "-n3")
        numbers = [submit(cluster, "-N1", "-w", "fine2", "-n5", "--gres=gpu:1") for _ in range(FINE_GPUS + 1)]
        for number in numbers[:-1]:
            wait_running(cluster, number)
        return [gpus(jobs(cluster, number)[0]) for number in numbers]

    ours, stock = fine.both(fill)
    assert sorted(itertools.chain(*ours)) == sorted(itertools.chain(*stock)) == list(range(FINE_GPUS))


def test_a_node_without_a_free_gpu_is_no_candidate(fine):
    """None is free on fine1, none at all on mid1, and on fine2 no cores are free near any but the last."""
    ours = fine.ours
    place(ours, "-w", "fine1", "-n1", f"--gres=gpu:{FINE_GPUS}")
    for _ in range(FINE_GPUS - 1):
        place(ours, "-w", "fine2", "-n7", "--topo-fit=require", "--topo-level=l3")
    number, node, mine, granted = place(ours, "-n5", "--gres=gpu:1")
    assert node == "fine2" and granted == {FINE_AT.index(FINE_GPUS - 1)} and mine <= near(granted)
    assert "near its cores" in ours.topiary("why", "-v", number).stdout


@pytest.mark.parametrize("before", [[], ["-w", "fine2"]], ids=["nothing before", "another node before"])
def test_a_plan_does_not_change_the_weights_of_nodes(fine, before):
    """In a plan Slurm writes another unit (24.11) or the GPUs near free cores into the weights of nodes that it is
    offered. They are the same again when a job starts."""
    def planned(*words):
        said = fine.ours.batch("true", "--test-only", "-C", "fine", "-N1", "-n8", "--gres=gpu:1", *words)
        return re.search(r"on nodes? (\S+)", said.stderr).group(1)

    place(fine.ours, "-w", "mid1", "-n1")
    if before:
        planned(*before)
    assert [planned() for _ in range(3)] == ["fine1"] * 3


def test_a_job_that_is_requeued_gives_its_gpu_back(fine):
    """Without Cores= Slurm keeps a selection that it did not make; the job must not come back with it."""
    ours = fine.ours
    place(ours, "-w", "fine2", "-n8")
    first, *_, granted = place(ours, "-w", "fine2", "-n4", "--gres=gpu:1", "--requeue")
    second = {FINE_AT.index(1)}
    assert granted == second
    ours.command(["scontrol", "requeuehold", first])
    assert wait_until(lambda: fields(jobs(ours, first)[0])["JobState"] == "PENDING", 30, 0.1)
    assert place(ours, "-w", "fine2", "-n4", "--gres=gpu:1")[3] == second
    place(ours, "-w", "fine2", f"-n{BESIDE * (FINE_GPUS - 2)}")
    ours.command(["scontrol", "update", f"JobId={first}", "StartTime=now"])
    ours.command(["scontrol", "release", first])
    wait_running(ours, first, 60)
    (record,) = jobs(ours, first)
    assert set(cores(ours, record)["fine2"]) < near(second) and len(gpus(record) - second) == 1


@pytest.mark.parametrize("words", ["--gpus-per-task=young:1 -n1 -c8",
                                   "--gres=gpu:young:1 --topo-request=/package=1/core=8"])
def test_a_node_with_gpus_of_another_type_is_no_candidate(typed, words):
    number, node, _, granted = place(typed.ours, *f"-x both1 -n8 {words}".split())
    assert node == "young1" and len(granted) == 1
    assert "1 of 2 nodes offered by Slurm had room" in typed.ours.topiary("why", "-v", number).stdout


@pytest.mark.parametrize("words, count", [
    ("--gres=gpu:old:1,gpu:young:1", 2), ("--gpus=old:1,young:1 --mem=100 --topo-mem=require", 2),
    ("--gres=gpu:old:2,gpu:young:1", 3), ("--gpus-per-node=young:2,old:2 --topo-fit=spread", 4),
    ("--gpus=young:2,old:1 -N1-4", 3), ("--gpus=old:1,young:2 -N1-4 --mem-per-gpu=30 --topo-mem=require", 3),
    ("-n2 -c4 --gres=gpu:old:1 --gpus-per-task=young:1", 3),
    ("-n2 -c4 --gres=gpu:young:1 --gpus-per-task=old:1 --topo-mem=require --mem-per-gpu=30", 3)])
def test_job_with_gpus_of_two_types(typed, words, count):
    """Only one node has both, and each GPU at a package of its own: cores near all that the job gets."""
    number, node, _, _ = place(typed.ours, "-n8", *words.split())
    told = typed.ours.topiary("why", "-v", number).stdout
    assert node == "both1" and f"GPUs     {count}, near its cores" in told, told
    assert "1 of 3 nodes offered by Slurm had room" in told or "spread" in words, told


def test_gpus_of_two_types_that_too_few_nodes_have(typed):
    done = typed.ours.batch("true", "-N2", "-n2", "--gres=gpu:old:1,gpu:young:1", "--topo-fit=require",
                            "--topo-level=package", check=False)
    assert done.returncode and "2 nodes with 1 core in one package of a node with 2 GPUs, but only 1 has" in done.stderr


def test_the_type_with_the_fewest_gpus_bounds_the_nodes(typed):
    done = typed.ours.batch("true", "-N1-4", "-n40", "--gpus=young:2,old:1", "--topo-fit=require",
                            "--topo-level=package", check=False)
    assert done.returncode and "with 3 GPUs (1 of a type: at most 1 node)" in done.stderr, done.stderr


@pytest.mark.parametrize("words", ["--gres=gpu:old:2,gpu:young:2", "--gres=gpu:4"])
def test_distance_counts_gpus_of_all_types(typed, words):
    """Of a node with two types: each GPU is at a package of its own, and each package has cores of the job."""
    number, _, mine, _ = place(typed.ours, "-w", "both1", "-n64", *words.split())
    verdict = json.loads(typed.ours.topiary("why", "--json", number).stdout)["jobs"][0]["verdict"]
    assert len(mine) == 64 and [verdict[name] for name in ("gpus", "gpus_far", "cores_far")] == [4, 0, 0]
