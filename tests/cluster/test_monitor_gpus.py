# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary-monitor on a node of which a step has a part: the GPUs that Slurm granted it are recorded, and no other."""
import json
import os
import shutil
import subprocess

import pytest
from rig import Cluster
from rig.cluster import as_user
from rig.processes import wait_until

USER = "nobody"
ASK = "--topo-monitor=sw,set=gpu,hz=20"
GPUS = {0: {"gpu_busy.nvml0", "gpu_memory_used.nvml0", "gpu_power.nvml0"},
        1: {"gpu_memory_used.nvml1", "gpu_power.nvml1"}}      # tests/rig/nvml.c
GRES = {"conf": "GresTypes=gpu\n", "nodes": {"cn1": "Gres=gpu:2"},
        "files": {"gres.conf": "".join(f"NodeName=cn1 Name=gpu File={{folder}}/cn1gpu{i}\n" for i in GPUS)}}
LIE = {"SLURM_STEP_GPUS": "0,1", "SLURM_JOB_GPUS": "0,1", "CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.fixture(scope="module", params=[{}, GRES], ids=["unmanaged", "managed"])
def whole(request, folders):
    """cn1 is this machine with two GPUs by a stand-in for NVIDIA's library; Slurm knows of none, or manages them."""
    if os.cpu_count() < 2:
        pytest.skip("needs two PUs, of which a step has one")
    with Cluster(folders(), {"cn1": None}, registry=False, **request.param) as cluster:
        program = shutil.copy(cluster.build / "topiary-monitor", cluster.folder / "bin")
        cluster.run_daemon("monitor", cluster.on_node("cn1", [program, "--config",
                                                              cluster.folder / "etc" / "topiary.conf"]),
                           env=cluster.env(LD_LIBRARY_PATH=str(cluster.build / "tests")))
        assert wait_until(lambda: (cluster.folder / "nodes" / "cn1" / "run" / "monitor.lock").exists(), 30)
        yield cluster


@pytest.fixture
def folder(cluster, request):
    path = cluster.folder / "work" / f"gpus.{abs(hash(request.node.name)):x}"
    path.mkdir()
    path.chmod(0o777)
    return path


def recorded(cluster, folder, step="0"):
    """The events of GPUs in the trace of a step."""
    path, = folder.glob(f"topiary-*.{step}/cn1.trace")
    found = json.loads(cluster.command([cluster.build / "topiary", "trace", "summary", path, "--level=Machine",
                                        "--json"]).stdout)
    return {m["metric"] for m in found["metrics"] if m["metric"].startswith("gpu")}


managed = pytest.mark.parametrize("whole", [GRES], ids=["managed"], indirect=True)


@managed
def test_only_the_gpus_that_slurm_granted(cluster, folder):
    """While another job has the first GPU, the second is the step's."""
    go, first, second = folder / "go", folder / "first", folder / "second"
    for path in (first, second):
        path.mkdir()
        path.chmod(0o777)
    wait = f"echo $SLURM_STEP_GPUS; until [ -e {go} ]; do sleep 0.1; done"
    other = subprocess.Popen([str(w) for w in as_user(USER, ["srun", "-Q", "-n1", "--gres=gpu:1", ASK, "sh", "-c",
                                                             wait])],
                             env=cluster.env(), cwd=first, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "0\n"
    done = cluster.command(["srun", "-Q", "-n1", "--gres=gpu:1", ASK, "sh", "-c", "echo $SLURM_STEP_GPUS; sleep 0.5"],
                           user=USER, cwd=second, env=cluster.env(**LIE))
    go.touch()
    assert (done.stdout, done.stderr, other.wait(60)) == ("1\n", "", 0)
    assert (recorded(cluster, first), recorded(cluster, second)) == (GPUS[0], GPUS[1])


@managed
def test_batch_script_has_those_of_its_job(cluster, folder):
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\nsleep 0.5\n")
    cluster.command(["sbatch", "-W", "-Q", "-n1", "--gres=gpu:1", ASK, f"--output={folder}/out", script], user=USER,
                    cwd=folder, env=cluster.env(**LIE))
    assert (folder / "out").read_text() == "" and recorded(cluster, folder, "batch") == GPUS[0]


@pytest.mark.parametrize("how", ["srun", "sbatch"])
def test_what_a_user_claims_is_not_believed(cluster, folder, how):
    """Neither of a node whose GPUs are Slurm's, of which the job has none, nor of one where Slurm sets no variable."""
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\nsleep 0.5\n")
    script.chmod(0o755)
    cluster.command([*(["srun"] if how == "srun" else ["sbatch", "-W", "--output=/dev/null"]), "-Q", "-n1", ASK,
                     "--export=ALL", script], user=USER, cwd=folder, env=cluster.env(**LIE))
    assert recorded(cluster, folder, "0" if how == "srun" else "batch") == set()
