# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary memory and topiary move, on processes of this machine."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rig import command

MIB = 64
STEP = {"SLURM_JOB_ID": "4000000077", "SLURM_STEP_ID": "3"}


def topiary(*words, **env):
    return command.topiary(*words, env={**os.environ, **env})


@pytest.fixture
def start():
    running = []

    def go(rank=None, mib=MIB, **env):
        """A process that has touched so much, on its first CPU."""
        cpu = min(os.sched_getaffinity(0))
        env = {**env, **STEP, "SLURM_PROCID": str(rank)} if rank is not None else env
        p = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c",
                              f"b = b'x' * ({mib} << 20); print(flush=True); input()"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env={**os.environ, **env})
        running.append(p)
        p.stdout.readline()
        return p
    yield go
    for p in running:
        if p.returncode is None:
            p.communicate(b"\n")


def test_a_process(start):
    p = start()
    done = topiary("--json", "memory", f"--pid={p.pid}")
    answer = json.loads(done.stdout)
    total = sum(answer["numa_kib"].values())
    assert total == answer["local_kib"] + answer["far_kib"] >= MIB << 10
    with open(f"/proc/{p.pid}/numa_maps") as maps:
        assert {word.split("=")[0][1:] for line in maps for word in line.split()
                if word[0] == "N" and word[1].isdigit()} == set(answer["numa_kib"])


def test_far_memory_is_marked(start, tmp_path):
    """To a topology in which the NUMA node with all memory is not that of the CPU."""
    cpu = min(os.sched_getaffinity(0))
    xml = tmp_path / "far.xml"
    subprocess.run(["lstopo", "-i", f"pack:2 [numa] core:1 pu:1(indexes={cpu + 1},{cpu})", "--of", "xml", str(xml)],
                   check=True)
    p = start()
    done = topiary("memory", f"--pid={p.pid}", HWLOC_XMLFILE=str(xml), HWLOC_THISSYSTEM="1")
    assert f"process {p.pid}  NUMA 1  local " in done.stdout and "0 (far): " in done.stdout, done.stderr
    far = int(done.stdout.partition("  far ")[2].split()[0])
    assert far >= MIB


def test_ranks_of_a_step(start):
    big, small = start(1), start(0, mib=1)
    helper = start(1, mib=8)  # belongs to rank 1, too
    done = topiary("--json", "memory", "--here", ".".join(STEP.values()))
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["rank"], first["pid"], second["rank"]) == (0, small.pid, 1)
    assert second["pid"] == min(big.pid, helper.pid) and second["local_kib"] + second["far_kib"] >= (MIB + 8) << 10
    assert done.stdout == topiary("--json", "memory", "--here", STEP["SLURM_JOB_ID"]).stdout
    other = topiary("memory", "--here", STEP["SLURM_JOB_ID"] + ".4")
    assert not other.stdout and other.stderr.count("no process of yours") == 1 and other.returncode == 0


def test_name_of_a_node_that_is_none(start):
    start(0, mib=1, SLURMD_NODENAME="n1\x1b]0;x\x07")
    done = topiary("memory", "--here", STEP["SLURM_JOB_ID"])
    assert f"node {os.uname().nodename}  " in done.stdout and "\x1b" not in done.stdout


@pytest.fixture
def cgroup():
    """Of a job, as slurmstepd makes it, in whichever hierarchy of this machine can be written."""
    for root in ("devices", "pids", "freezer", "."):
        path = Path("/sys/fs/cgroup", root, f"job_{STEP['SLURM_JOB_ID']}")
        if (path.parent / "cgroup.procs").exists() and os.access(path.parent, os.W_OK):
            path.mkdir()
            yield path
            path.rmdir()
            return
    pytest.skip("no cgroup can be made here")


def test_processes_that_claim_to_be_of_a_job(cgroup, start):
    """Where the job's processes are in a cgroup, its environment makes none of another one."""
    task, other = start(0, mib=1), start(1, mib=1)
    words = "--json", "move", "--to=local", "--here", STEP["SLURM_JOB_ID"]
    assert {json.loads(line)["pid"] for line in topiary(*words).stdout.splitlines()} == {task.pid, other.pid}
    (cgroup / "cgroup.procs").write_text(str(task.pid))
    assert [json.loads(line)["pid"] for line in topiary(*words).stdout.splitlines()] == [task.pid]
    task.communicate(b"\n")


def test_pages_move(start):
    """There may be one NUMA node only: then they are there."""
    p = start(0)
    for to in ("local", "0"):
        done = topiary("move", "--here", ".".join(STEP.values()), f"--to={to}")
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 1, done.stderr
        assert f"{'.'.join(STEP.values())} rank 0  node" in done.stdout
    with open(f"/proc/{p.pid}/numa_maps") as maps:
        assert not [w for line in maps for w in line.split() if w[:2] in ("N1", "N2") and "anon" in line]


@pytest.mark.parametrize("to, said", [("1023", "migrate_pages: NUMA nodes that this node does not have"),
                                      ("", "expected local"), ("all", "expected local"), ("0-", "expected local"),
                                      ("9999", "expected local")])
def test_numa_nodes_that_are_none(start, to, said):
    done = topiary("move", f"--pid={start(mib=1).pid}", f"--to={to}")
    assert done.returncode and said in done.stderr


@pytest.mark.parametrize("words", [["memory"], ["memory", "1", "--pid=1"], ["memory", "x"], ["memory", "1.batch"],
                                   ["memory", "1."], ["memory", "12345678901"], ["move", "1"], ["move", "--to=0"]])
def test_usage(words):
    done = topiary(*words)
    assert done.returncode == 64 and "expected" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_processes_of_others(start):
    p = start()
    for words in (["memory"], ["move", "--to=0"]):
        done = command.topiary(*words, f"--pid={p.pid}", user="nobody")
        assert done.returncode == 1 and ("ermission" in done.stderr or "not your process" in done.stderr)
