# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary bind: ranks of launchers other than srun, on machines that nobody drew by hand, judged by their XML."""
import itertools
import os
import random
import re
import subprocess
import sys

import pytest
from rig import command
from rig.ask import expand
from rig.machines import machine, memory_indexes, os_indexes
from rig.paths import BUILD
from whole.judge import Hardware
from whole.machines import draw

MACHINES = 30
LINE = re.compile(r"topiary: rank (\d+) of (\d+) on this node: CPUs (\S+), memory (\S+), GPU (.+), NIC (.*)")


def environment(xml, folder):
    """Of a process on that machine."""
    path = folder / "machine.xml"
    path.write_text(xml)
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "LD_PRELOAD": str(BUILD / "tests/cpus.so"),
            "HWLOC_XMLFILE": str(path), "HWLOC_THISSYSTEM": "1", "RIG_CPUS_DIR": str(folder),
            "RIG_CPUS": ",".join(map(str, os_indexes(xml))), "RIG_MEMS": ",".join(map(str, memory_indexes(xml)))}


def bind(env, *words, **more):
    return command.topiary("bind", "--topo-report", *words, env={**env, **more})


def got(done):
    """(CPUs, memory policy, GPUs as the report has them, NIC)"""
    found = LINE.search(done.stderr)
    assert done.returncode == 0 and found, done.stderr
    return frozenset(expand(found[3])), found[4], found[5], found[6]


def drawn(seed):
    """A machine with several GPUs, and its hardware by the judge."""
    rng = random.Random(f"bind {seed}")
    while True:
        one = draw(rng)
        hardware = Hardware(one.xml)
        if len(hardware.gpus) > 1:
            return one.xml, hardware


def judge(hardware, masks):
    """Place i is that of GPU i: as many as can be are near, and none shares a core while there are enough."""
    places = [hardware.cores_of(mask) for mask in masks]
    room = {}
    for gpu in hardware.gpus:
        room.setdefault(hardware.near([gpu]), []).append(gpu)
    if len(hardware.cores) >= len(places):
        assert not any(a & b for a, b in itertools.combinations(masks, 2)), masks
    if not any(a & b for a, b in itertools.combinations(room, 2)):
        near = sum(place <= hardware.near([gpu]) for gpu, place in enumerate(places))
        assert near >= sum(min(len(some), len(domain)) for domain, some in room.items()), (places, room)


def pytorch(hardware, mode):
    """The cores of each GPU's rank by PyTorch's --numa-binding, as its documentation has it; none where it raises."""
    nodes = {one.number: hardware.cores_of(one.pus) for one in hardware.memory if one.pus}

    def node(gpu):
        """What the kernel names; 0 for a GPU that is as near to all."""
        near = [number for number, cores in nodes.items() if cores & hardware.near([gpu])]
        return min(near) if len(near) < len(nodes) else min(nodes)
    for gpu in hardware.gpus:
        here, beside = nodes[node(gpu)], sorted(one for one in hardware.gpus if node(one) == node(gpu))
        nth = beside.index(gpu)
        if mode == "socket":
            here = frozenset().union(*hardware.touched("package", here))
        elif mode == "exclusive":
            here = frozenset(sorted(here)[nth * len(here) // len(beside):(nth + 1) * len(here) // len(beside)])
        elif mode == "core-complex" and (caches := hardware.touched("l3", here)):
            here &= sorted(caches, key=lambda cache: (-len(cache), min(cache)))[nth % len(caches)]
        yield gpu, here


@pytest.mark.parametrize("seed", range(MACHINES))
def test_ranks_and_workers_are_near_their_gpus(seed, tmp_path):
    """torchrun's ranks use GPU LOCAL_RANK of those that all see; a worker of Ray or Dask uses the one it sees."""
    xml, hardware = drawn(seed)
    env, n = environment(xml, tmp_path), len(hardware.gpus)
    ranks = [got(bind(env, "true", LOCAL_RANK=str(i), LOCAL_WORLD_SIZE=str(n))) for i in range(n)]
    judge(hardware, [mask for mask, *_ in ranks])
    workers = [got(bind(env, "true", CUDA_VISIBLE_DEVICES=str(i))) for i in range(n)]
    assert [one[0] for one in workers] == [one[0] for one in ranks]
    for gpu, (mask, _, told, _) in enumerate(ranks):
        cores, near = hardware.cores_of(mask), hardware.near([gpu])
        word = "near" if cores <= near else f"near {len(cores & near)} of {len(cores)} cores" if cores & near else "far"
        assert told == f"{gpu} {word}"
    for mode in ("node", "socket", "exclusive", "core-complex"):
        for gpu, theirs in pytorch(hardware, mode):
            ours, near = hardware.cores_of(ranks[gpu][0]), hardware.near([gpu])
            # Where GPUs have fewer cores than there are of them, theirs share cores.
            crowded = sum(hardware.near([one]) == near for one in hardware.gpus) > len(near)
            assert (crowded or not theirs
                    or len(ours - near) * len(theirs) <= len(theirs - near) * len(ours)), (mode, gpu)


def test_numbers_of_slurm(tmp_path):
    """Where a cgroup constrains them, Slurm numbers a step's GPUs from 0."""
    env = environment(*[xml for xml, hardware in map(drawn, range(99)) if len(hardware.gpus) == 8][:1], tmp_path)
    step = {"SLURM_STEP_GPUS": "4,5,6,7", "LOCAL_WORLD_SIZE": "4"}
    for i in range(4):
        for visible in ("0,1,2,3", "4,5,6,7"):
            told = got(bind(env, "true", LOCAL_RANK=str(i), CUDA_VISIBLE_DEVICES=visible, **step))[2]
            assert told.split()[0] == str(4 + i)
    assert got(bind(env, "true", SLURM_STEP_GPUS="4,5,6,7", CUDA_VISIBLE_DEVICES="3"))[2].split()[0] == "7"
    assert got(bind(env, "true", SLURM_STEP_GPUS="2,5", CUDA_VISIBLE_DEVICES="5"))[2].split()[0] == "5"
    done = bind(env, "echo", "ran", SLURM_STEP_GPUS="1,2", CUDA_VISIBLE_DEVICES="1")
    assert done.stdout == "ran\n"
    assert "cannot tell whether GPU 1 is number 1 of the node or the one that is 2 there" in done.stderr


NOT_NEAR = "topiary: rank 0: not placed near a GPU: "
OF_MPIEXEC = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize("daemon, gpu, said", [
    # Slurm has constrained them by cgroup: GPU 3 is number 0 there.
    ({"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "3", "CUDA_VISIBLE_DEVICES": "0"}, "3 near", None),
    ({"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "0,3", "CUDA_VISIBLE_DEVICES": "0,3"}, "0 near", None),
    ({"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "3", "CUDA_VISIBLE_DEVICES": "3"}, "-",
     "Slurm has given this node GPU 3, but mpiexec passes GPU 0, of its own node"),
    ({"SLURM_JOB_ID": "7"}, "-", None),
    ({"SSH_CLIENT": "host"}, "-", "which GPUs the job has on this node is not known: GPU 0 is of mpiexec's node"),
    # srun passes the batch script's variable on to each step.
    ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0", "TOPIARY_STEP_DIR": "/run/7.0"}, "-", None),
], ids=["cgroup", "more", "other numbers", "none", "ssh", "a step without"])
def test_gpus_of_a_rank_are_of_its_node(daemon, gpu, said, tmp_path):
    """Hydra's ranks have the variables of mpiexec's node: what its proxy on their own node has is true."""
    env = environment(*[xml for xml, hardware in map(drawn, range(99)) if len(hardware.gpus) == 8][:1], tmp_path)
    rank = [f"{name}={value}" for name, value in [*env.items(), *OF_MPIEXEC.items(), ("MPI_LOCALRANKID", 0),
                                                  ("MPI_LOCALNRANKS", 1)]]
    done = command.run("sh", "-c", 'env "$@"; exit $?', "sh", *rank, BUILD / "topiary", "bind", "--topo-report", "true",
                       env={"PATH": env["PATH"], **daemon})
    assert got(done)[2] == gpu
    assert re.findall(f"{NOT_NEAR}(.*)", done.stderr) == ([said] if said else [])


@pytest.mark.parametrize("local, count", [
    (("OMPI_COMM_WORLD_LOCAL_RANK", "{}"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "4")),
    (("MPI_LOCALRANKID", "{}"), ("MPI_LOCALNRANKS", "4")), (("LOCAL_RANK", "{}"), ("LOCAL_SIZE", "4")),
    (("SLURM_LOCALID", "{}"), ("SLURM_STEP_TASKS_PER_NODE", "7(x2),4"))])
def test_ranks_without_gpus_share_the_cores(local, count, tmp_path):
    env = environment(machine("amd-8x2"), tmp_path)
    hardware = Hardware(machine("amd-8x2"))
    masks = [got(bind(env, "true", **{local[0]: local[1].format(i), count[0]: count[1]}, SLURM_NODEID="2",
                      CUDA_VISIBLE_DEVICES="NoDevFiles"))[0] for i in range(4)]
    assert sorted(map(len, masks)) == [4] * 4
    assert frozenset().union(*masks) == hardware.pus_of(range(16))
    assert all(len(hardware.touched("numa", hardware.cores_of(mask))) == 2 for mask in masks)


def test_ranks_of_mpirun(tmp_path):
    """A real launcher, whose own binding is replaced."""
    env = environment(machine("amd-8x2"), tmp_path)
    words = [f"{name}={value}" for name, value in env.items() if name != "PATH"]
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4", "env", *words,
                           BUILD / "topiary", "bind", "--topo-report", "--topo-place=compact:numa", "-c2", "true"],
                          capture_output=True, text=True, timeout=60, check=True)
    masks = {int(one[0]): expand(one[2]) for one in LINE.findall(done.stderr)}
    hardware = Hardware(machine("amd-8x2"))
    assert sorted(masks) == [0, 1, 2, 3]
    assert len({cpu for mask in masks.values() for cpu in mask}) == 8
    assert all(len(hardware.touched("numa", hardware.cores_of(frozenset(mask)))) == 1 for mask in masks.values())


def test_who_was_bound_before_stays(tmp_path):
    env = environment(machine("amd-8x2"), tmp_path)
    done = command.run("taskset", "-c", "3", BUILD / "topiary", "bind", "sh", "-c", "taskset -pc $$",
                       env={**env, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}, status=0)
    assert done.stdout.endswith(": 3\n")
    assert done.stderr == ("topiary: rank 0: sh runs as it was started: the process was bound "
                           "already, by its launcher or by numactl or taskset\n")


@pytest.mark.parametrize("own, stays", [
    ({}, False), ({"I_MPI_PIN_DOMAIN": "2", "I_MPI_PIN_CELL": "unit"}, False), ({"I_MPI_PIN_DOMAIN": "core"}, True),
    ({"I_MPI_PIN_DOMAIN": "2", "I_MPI_PIN_CELL": "core"}, True), ({"I_MPI_PIN_ORDER": "scatter"}, True),
    ({"I_MPI_PIN_DOMAIN": "2", "I_MPI_PIN_RESPECT_CPUSET": "0"}, True),
], ids=str)
def test_ranks_that_the_user_of_intel_mpi_binds_stay(own, stays, tmp_path):
    """Beside the variables that Intel MPI sets itself."""
    env = environment(machine("amd-8x2"), tmp_path) | own
    done = command.run("taskset", "-c", "3", BUILD / "topiary", "bind", "--job", "true", status=0,
                       env={**env, "TOPIARY_BIND": "topo-place=compact", "SLURM_CPUS_PER_TASK": "2",
                            "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"})
    assert ("runs as it was started: the process was bound already" in done.stderr) == stays, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_a_program_that_binds_itself_is_named():
    first, second, *_ = sorted(os.sched_getaffinity(0))
    done = command.topiary("bind", "-c1", sys.executable, "-c", "import os, time; time.sleep(1)\n"
                           f"os.sched_setaffinity(0, os.sched_getaffinity(0) ^ {{{first}, {second}}}); time.sleep(4)",
                           env={**os.environ, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})
    assert re.search(r"rank 0: \S+ has bound itself to CPUs \S+ after topiary bind gave it \S+: switch one of the two "
                     "off", done.stderr), done.stderr


@pytest.mark.parametrize("words, env, status, said", [
    ([], {}, 64, "a PROGRAM"), (["--topo-place=near", "true"], {}, 64, "--topo-place=near: invalid value"),
    (["/nowhere"], {}, 127, "/nowhere: No such file or directory"), (["/etc/passwd"], {}, 126, "Permission denied"),
    (["sh", "-c", "exit 7"], {}, 7, ""),
    (["sh", "-c", "exit 7"], {"LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "2"}, 7, "not a rank and a number of ranks"),
    (["sh", "-c", "exit 7"], {"LOCAL_RANK": "x", "LOCAL_WORLD_SIZE": "2"}, 7, "not a rank and a number of ranks"),
    (["sh", "-c", "exit 7"], {"HWLOC_XMLFILE": "/dev/null"}, 7, "")])
def test_the_program_runs_whatever_fails(words, env, status, said):
    done = command.topiary("bind", *words, env={**os.environ, **env})
    assert done.returncode == status, done.stderr
    assert said in done.stderr
