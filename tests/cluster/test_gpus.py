# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""--topo-tasks=auto and --topo-place=gpu: each task has a GPU of the step's and cores near it, and never one that is
not its own."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from rig import Cluster
from rig.ask import advised, expand, fields, jobs, wait_running
from rig.cluster import SLURM_RELEASE
from rig.made_machines import made_machine
from rig.mpi import hydra_in
from rig.node import cgroups_removed
from rig.processes import wait_until

# A GPU at the first package, two at the second.
AT = {"0": 0, "1": 1, "2": 1}
PACKAGE = 16  # PUs
# Later releases of Slurm refuse Cores= of less than a socket.
BY_NUMA = SLURM_RELEASE < (24, 11)
VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
             "HIP_VISIBLE_DEVICES")


def gres(flags=""):
    nodes = {"cn3": ["0-7", "8-15", "8-15"], "cn4": ["0-7", *["8-15"] * 4],
             "cn8": [f"{8 * i}-{8 * i + 7}" for i in range(8)] if BY_NUMA else []}
    return "".join(f"NodeName={node} Name=gpu File={{folder}}/{node}gpu{i} Cores={at}{flags}\n"
                   for node, cores in nodes.items()
                   for i, at in enumerate(cores))


# What does not depend on whose variable names the GPUs.
ONE_MAKER = pytest.mark.parametrize("whole", [""], ids=["CUDA"], indirect=True)


@pytest.fixture(scope="module", params=["", " Flags=amd_gpu_env"], ids=["CUDA", "ROCm"])
def whole(request, folders):
    """cn4 has a GPU by gres.conf that its topology does not know; cn6 has none; cn8 one at each of eight NUMA nodes."""
    with Cluster(folders(), {"cn3": "intel-2x8", "cn4": "intel-2x8", "cn6": "amd-4x16",
                             "cn8": made_machine("epyc-nps4")}, registry=False, conf="GresTypes=gpu\n",
                 nodes={"cn3": "Gres=gpu:3", "cn4": "Gres=gpu:5", **({"cn8": "Gres=gpu:8"} if BY_NUMA else {})},
                 files={"gres.conf": gres(request.param)}) as made:
        made.maker = VARIABLES[1 if request.param else 0]
        yield made


@ONE_MAKER
@pytest.mark.parametrize("options, wanted", [
    # Of the cores that Slurm counts for stated tasks, it takes off one that a task of nine threads needs.
    ("-w cn3,cn4 -N2 -n4 -c9 --gpus-per-task=1 --topo-request=/core=9", "4 tasks on 2 nodes, 2 on each"),
    ("-w cn4 -n3 --gpus=3 --cpus-per-gpu=7 --topo-fit=require --topo-mem=require --mem=100", "3 tasks on "),
    # Slurm counts two GPUs a node only with the cores of the package that has two.
    *((f"-w cn3,cn4 -N2 -n2 --gpus=4 --cpus-per-gpu=4 {word}", "2 tasks on 2 nodes, 1 on each")
      for word in ("--topo-request=/package=1/core=4", "--topo-fit=require --topo-level=package")),
    ("-w cn3 -N1 -n1 --ntasks-per-node=4 --topo-mem=require --mem=100", "1 task of 1 core on one node"),
    ("-w cn3,cn4 -N2 -n5 --ntasks-per-node=3 -c2 --topo-mem=require --mem=100",
     "5 tasks of 1 core on 2 nodes, at most 3 on each"),
    # Ten cores of both packages were planned.
    ("-w cn3 -N1 -n10 --gres=gpu:1 --gres-flags=enforce-binding --cpus-per-gpu=5 --topo-fit=spread --topo-mem=require"
     " --mem=0", "10 tasks on one node\ncores    cn3 0-4\ntouches  1 package"),
    # Two cores near the GPU of one package, four near those of the other.
    *((f"-w cn3 -n4 --gpus=3 --cpus-per-gpu=4 --topo-request=/core=6 {more}",
       "4 tasks on one node\ncores    cn3 0-1,8-11")
      for more in ("", "-N1")),
    ("-w cn3,cn4 -n4 --gpus=2 --cpus-per-gpu=8 --topo-request=/core=4", "4 tasks on 2 nodes, 2 on each"),
    # No package is near all GPUs, which Slurm 22.05 counts with the cores of all.
    *((f"-w cn3 -N1 -n2 --gpus=3 --cpus-per-gpu=4 {word}", f"2 tasks on one node\ncores    cn3 {cores}")
      for word, cores in (("--topo-request=/package=1/core=6", "0-5"), ("--topo-request=/package=2/core=3", "0-2,8-10"),
                          ("--topo-fit=require --topo-level=package", "0-5"))),
    ("-w cn3,cn4 -N2 -n2 --gpus=7 --cpus-per-gpu=2 --topo-fit=require --topo-level=package", "2 tasks on 2 nodes"),
    # Slurm has no cores for more than the only task.
    ("-w cn3 -N1 -n1 -c10 --ntasks-per-node=2 --topo-request=/package=1/core=5", "1 task of 5 cores on one node"),
    ("-w cn3 -N1 -n1 --ntasks-per-node=2 --topo-fit=spread --topo-mem=require --mem=9", "1 task of 1 core on one node"),
    ("-w cn3 -N1 -n1 -c16 --ntasks-per-node=2 --topo-fit=require --topo-level=numa", "1 task of 8 cores on one node"),
], ids=str)
def test_a_requirement_that_can_be_met_is_met(whole, options, wanted):
    done = whole.command(["salloc", "-Q", "-I20", *options.split(), "sh", "-c", "topiary why -v $SLURM_JOB_ID"],
                         user="nobody")
    assert ", running: " in done.stdout and f"wanted   {wanted}" in done.stdout, done


def tasks(cluster, node, gpus, *options, **env):
    """{rank: (its GPUs, the packages of its CPUs, its report)} of a step on all cores of a node, and what else was
    said."""
    script = "echo $SLURM_PROCID $" + " $".join(f"{{{name}:--}}" for name in VARIABLES)
    done = cluster.command(["salloc", "-Q", "-w", node, "--exclusive", *([f"--gres=gpu:{gpus}"] if gpus else []),
                            "srun", "-Q", "--topo-report=json", *options, "sh", "-c", script], user="nobody",
                           env=cluster.env(**env) if env else None)
    reports = {task["rank"]: task for task in map(json.loads, re.findall(r"^\{.*$", done.stderr, re.M))}
    variables = {int(line.split()[0]): dict(zip(VARIABLES, line.split()[1:])) for line in done.stdout.splitlines()}
    return ({rank: (variables[rank][cluster.maker], {cpu // PACKAGE for cpu in expand(task["cpus_logical"])}, task,
                    variables[rank])
             for rank, task in reports.items()},
            [line for line in done.stderr.splitlines() if not line.startswith("{")])


def assert_near(found):
    for gpus, packages, report, _ in found.values():
        assert packages == {AT[gpu] for gpu in gpus.split(",")}, report
        assert all(one.endswith(" near") for one in report["gpu"].split(",")), report


@pytest.mark.parametrize("ask, gpus, options, wanted", [
    ("--topo-tasks=auto", 3, "-n6", "001122"), ("--topo-tasks=auto", 1, "-n2", "00"),
    ("--topo-tasks=auto", 2, "-n2 -c16", "01"), ("--topo-tasks=auto", 3, "-n6 --gpu-bind=map_gpu:1,2,0", "120120"),
    ("--topo-place=gpu", 3, "-n3", "012"), ("--topo-place=gpu", 3, "-n3 --gpu-bind=map_gpu:2,0,1", "201"),
])
def test_each_task_is_near_its_gpu(cluster, ask, gpus, options, wanted):
    found, said = tasks(cluster, "cn3", gpus, *options.split(), ask)
    assert said == [] and [found[rank][0] for rank in range(len(wanted))] == list(wanted)
    assert_near(found)
    cpus = [set(expand(task["cpus_os"])) for _, _, task, _ in found.values()]
    assert all(not a & b for i, a in enumerate(cpus) for b in cpus[:i]), "no two tasks share a core"


@ONE_MAKER
def test_ranks_of_another_launcher_are_placed_as_those_of_srun(cluster):
    """topiary bind in a task that starts ranks, as torchrun does, with the step's own topology."""
    found, _ = tasks(cluster, "cn3", 3, "-n3", "--topo-tasks=auto")
    each = "export LOCAL_WORLD_SIZE=3; for i in 0 1 2; do LOCAL_RANK=$i topiary bind --topo-report true; done"
    done = cluster.command(["salloc", "-Q", "-w", "cn3", "--exclusive", "--gres=gpu:3", "srun", "-Q", "-n1", "sh", "-c",
                            each], user="nobody")
    ranks = re.findall(r"rank (\d) of 3 on this node: CPUs (\S+), memory local, GPU (\d) near", done.stderr)
    assert [(rank, expand(cpus), gpu) for rank, cpus, gpu in ranks] == [
        (str(rank), expand(found[rank][2]["cpus_os"]), found[rank][0]) for rank in range(3)], done.stderr


@ONE_MAKER
@pytest.mark.parametrize("name", ["intel", "mpich"])
def test_gpus_that_mpiexec_passes_to_another_node(cluster, name):
    """The job has GPU 0 of cn3 and 1 of cn4, where Slurm constrains none: the rank there uses 0, which is not its."""
    home = hydra_in(cluster.folder, name)
    holder = cluster.batch("sleep 300", "-wcn4", "-n1", "--gres=gpu:1", "--output=/dev/null").stdout.strip()
    wait_running(cluster, holder)
    done = cluster.output(f"export HYDRA_IFACE=lo I_MPI_HYDRA_IFACE=lo PATH={home}:$PATH; mpiexec -n 2 topiary bind "
                          "--topo-report sh -c 'sleep $SLURM_NODEID; echo $(hostname) uses $CUDA_VISIBLE_DEVICES'",
                          "-wcn3,cn4", "-N2", "-n2", "--ntasks-per-node=1", "--gres=gpu:1")
    cluster.command(["scancel", holder])
    assert sorted(re.findall("cn. uses .*", done)) == ["cn3 uses 0", "cn4 uses 0"], done
    assert sorted(re.findall("GPU ([^,]*), NIC", done)) == ["-", "0 near"], done
    assert re.findall("topiary: (rank 0: .*)", done) == [
        "rank 0: not placed near a GPU: Slurm has given this node GPU 1, but mpiexec passes GPU 0, of its own node"]


@ONE_MAKER
def test_report_says_which_cores_a_gpu_is_near(cluster):
    """One of all cores is not enough for "near"."""
    told = "0 near 8 of 16 cores,1 near 8 of 16 cores,2 near 8 of 16 cores"
    found, said = tasks(cluster, "cn3", 3, "-n1", "-c32", "--topo-place=compact")
    assert said == [] and found[0][2]["gpu"] == told
    found, said = tasks(cluster, "cn3", 1, "-n2", "-c16", "--topo-place=scatter:package")
    assert said == [] and sorted(task["gpu"] for _, _, task, _ in found.values()) == ["0 far", "0 near"]


@ONE_MAKER
@pytest.mark.parametrize("words, wanted", [
    ("-n1 -c8 --gpus=3", [1, 3]), ("-n2 -c8 --gpus=3", [4, 4]), ("-n3 -c5 --gres=gpu:3", [3, 5]),
    ("-n6 -c3 --gres=gpu:3", [3, 6])])
def test_cores_are_divided_as_the_gpus_are(cluster, words, wanted):
    """One GPU is at the first package, two are at the second; a core has two CPUs, which two tasks may share."""
    done = cluster.command(["salloc", "-Q", "-w", "cn3", *words.split(), "sh", "-c",
                            "echo $SLURM_JOB_ID; scontrol -d show job $SLURM_JOB_ID"], user="nobody")
    number, _, record = done.stdout.partition("\n")
    mine = {cpu // 2 for cpu in expand(re.search(r"Nodes=cn3 CPU_IDs=(\S+)", record).group(1))}
    assert [len([core for core in mine if core // 8 == package]) for package in (0, 1)] == wanted
    assert "3, near its cores" in cluster.topiary("why", "-v", number).stdout


@ONE_MAKER
@pytest.mark.parametrize("words, reason", [
    ("-n40 --gpus=1", "20 cores in one node with GPUs (1 in all: at most 1 node), but the largest has 16"),
    ("-n40 --ntasks-per-gpu=40", "with GPUs (1 in all: at most 1 node), but the largest has 16"),
    ("-n40 -N1 --gres=gpu:1", "the job needs 20 cores in one node with GPUs, but the largest has 16"),
    ("-n40 -N1 --gres=gpu:4", "the job needs 20 cores in one node with 4 GPUs, but the largest has 16"),
    ("-w cn4 -N1 -n1 --gpus=5 --mem-per-gpu=8000 --topo-mem=require", "no node that the job may get has 1 core whose"
     " NUMA nodes hold 40000 MB"),
    ("-w cn4 -N1 -n1 --gpus=5 --cpus-per-gpu=4 --topo-request=/core=4", "requests exactly 4 cores on each node, but"
     " 1 task needs 10 there"),
    ("-n4 --gpus-per-node=2 --ntasks-per-node=4 --topo-request=/package=1/core=1", "4 tasks need 2 there (with"
     " --ntasks-per-node=4 Slurm uses only nodes with room for 4 tasks)"),
    ("-w cn4 -N1 -n3 --gres=gpu:3 --cpus-per-gpu=7 --topo-level=package", "node cn4 cannot meet the requirement: the"
     " job needs 11 cores in one package, but its largest has 8\n"),
    ("-n4 --gpus=4 --cpus-per-gpu=3 --topo-request=/package=1/core=2", "4 GPUs with 3 CPUs each, but the nodes"
     " that it may get have at most 2 with as many CPUs in such cores"),
    # Three GPUs of one node, and of five on the other those for which a package has the CPUs.
    ("-n2 -wcn3,cn4 -N2 --gpus=8 --cpus-per-gpu=4 --topo-level=package", "have at most 7 with as many"),
    *((f"-n4 -wcn3,cn4 {more} --gpus=3 --cpus-per-gpu=4 --topo-request=/core=4", "not each needs as many for its part"
       " of 3 GPUs with 4 CPUs each") for more in ("", "-N2")),
    ("-n5 -wcn3,cn4 -N2 --gpus-per-task=1 --gres-flags=enforce-binding --topo-level=package --ntasks-per-core=1",
     "cannot be met: with --gres-flags=enforce-binding"),
    ("-n1 -wcn3 -N1 -c12 --gpus=3 --gres-flags=enforce-binding --topo-request=/package=1/core=5", "requests exactly 5"),
    ("-n2 -wcn3 -N1 -c17 --overcommit --topo-level=package", "needs 9 cores in one package"),
    ("-n7 -wcn3,cn4 -N2 --gpus-per-task=1 --topo-level=package --ntasks-per-core=1", "no fewer tasks of a step on a"
     " node than on the next, and so the job's nodes hold 6 of its 7"),
    ("-n4 -wcn3,cn4 -N2 -c17 --overcommit --topo-level=package", "needs 9 cores in one package"),
    ("-n2 -c3 --gpus=2 --ntasks-per-core=1 --topo-request=/package=1/core=3", "the job's 2 tasks cannot be divided")])
def test_requirement_that_no_node_with_gpus_can_meet_is_refused_with_its_reason(cluster, words, reason):
    done = cluster.batch("true", *words.split(), "--topo-fit=require", "-xcn8", check=False)
    assert done.returncode and reason in done.stderr, done.stderr


@ONE_MAKER
def test_what_a_partition_has_for_each_gpu_is_counted_at_submission(whole):
    partition = ["scontrol", "update", "partitionname=main"]
    whole.command([*partition, "JobDefaults=DefCpuPerGPU=9,DefMemPerGPU=8000"])
    for words, reason in (
            ("-n1 --gpus=2 --topo-fit=require --topo-level=package", "the job needs 9 cores in one package"),
            ("-n2 --gpus-per-task=2 --topo-fit=require --topo-level=package", "needs 18 cores in one package"),
            ("-n1 --gpus=5 --topo-mem=require", "NUMA nodes hold 40000 MB")):
        done = whole.batch("true", "-wcn4", "-N1", *words.split(), check=False)
        assert done.returncode and reason in done.stderr, done
    whole.command([*partition, "JobDefaults="])


def test_path_that_slurm_does_not_give_keeps_no_nodes_from_other_jobs(folders):
    """Of three GPUs on cn3 and cn4 one node has too few to need its path's cores, which backfill does not reserve
    then. At submission it is not known, as nodes with other threads have other tasks on the path's cores."""
    with Cluster(folders(), {"cn3": "intel-2x8", "cn4": "intel-2x8", "cn6": "amd-4x16"}, registry=False,
                 conf="GresTypes=gpu\n", nodes={"cn3": "Gres=gpu:3", "cn4": "Gres=gpu:5", "cn6": "Gres=gpu:1"},
                 files={"gres.conf": gres() + "NodeName=cn6 Name=gpu File={folder}/cn6gpu0\n"}) as made:
        path = made.batch("true", "-n4", "--gpus=3", "--cpus-per-gpu=4", "--topo-request=/core=4", "--time=9")
        path = path.stdout.strip()
        assert wait_until(lambda: fields(jobs(made, path)[0])["Reason"] == "Resources", 20)
        other = made.command(["salloc", "-Q", "-I20", "-wcn3,cn4", "-N2", "-n2", "--time=9", "true"], user="nobody",
                             check=False)
        assert fields(jobs(made, path)[0])["JobState"] == "PENDING" and not other.returncode, other


@ONE_MAKER
@pytest.mark.parametrize("words", ["-n1 --gres=gpu:2 --cpus-per-gpu=4 --ntasks-per-node=2",
                                   "-n1 --gres=gpu:2 --cpus-per-gpu=1 --ntasks-per-node=2"])
def test_cores_that_slurm_does_not_take_hold_no_job(whole, words):
    """A core of each spread task's own has too few CPUs for those of the GPUs."""
    log = whole.folder / "log" / "slurmctld.log"
    before = log.stat().st_size
    whole.command(["sbatch", "--wait", "--array=0-2", "-wcn3", *words.split(), "--topo-fit=spread", "-o/dev/null",
                   "--wrap=true"], user="nobody", timeout=60)
    assert "sync loop" not in log.read_text()[before:]


@ONE_MAKER
def test_spread_tasks_with_a_gpu_each_on_nodes_with_unequal_numbers_of_them(cluster):
    """One GPU of the first node is taken: it has two of the five. A step has as many tasks on a node as GPUs."""
    done = cluster.command(["salloc", "-Q", "-wcn3", "-n1", "--gres=gpu:1", "salloc", "-Q", "-wcn3,cn4", "-N2", "-n5",
                            "--gpus-per-task=1", "--topo-fit=spread", "srun", "sh", "-c", "echo $SLURMD_NODENAME"],
                           user="nobody")
    assert sorted(done.stdout.split()) == ["cn3"] * 2 + ["cn4"] * 3


@ONE_MAKER
@pytest.mark.parametrize("words, fate", [
    ("-N1 -n1 -c8 --gpus-per-task=1 --topo-request=/package=2/core=2", "never"),
    ("-N1 -n1 -c12 --gpus=3 --topo-request=/package=1/core=6", "never"),
    ("-N1 -n1 -c12 --gpus=2 --topo-request=/package=1/core=6", "runs"),
    ("-N1 -n1 -c12 --gpus=3 --topo-request=/package=2/core=3", "runs"),
    ("-N1 -n3 -c4 --gpus-per-task=1 --topo-fit=require --topo-level=package", "never"),
    ("-N1 -n2 -c4 --gpus-per-task=1 --topo-fit=require --topo-level=package", "runs"),
    ("-N2 -n2 -c12 --gpus=7 --topo-request=/package=1/core=6", "never"),
    ("-N2 -n2 -c12 --gpus-per-node=3 --ntasks-per-node=1 --topo-request=/package=1/core=6", "never"),
    ("-N2 -n2 -c12 --gpus-per-node=2 --ntasks-per-node=1 --topo-request=/package=1/core=6", "runs")])
def test_required_cores_that_are_not_near_enough_gpus(whole, words, fate):
    """One GPU is at the first package of each node, two and four are at the second."""
    done = whole.command(["salloc", "-Q", "-I20", "-wcn3,cn4" if "-N2" in words else "-wcn3", *words.split(),
                          "--gres-flags=enforce-binding", "true"], user="nobody", check=False)
    assert (done.returncode, "cannot be met: with --gres-flags=enforce-binding" in done.stderr) == (
        (1, True) if fate == "never" else (0, False)), done


@ONE_MAKER
def test_a_job_that_waits_for_cores_near_its_gpu(whole):
    """Six cores are left of the package that has the only free GPU, seven of the other."""
    loads = [whole.batch("sleep 100", "-wcn3", *words.split()).stdout.split()[-1]
             for words in ("-n1 -c4 --topo-fit=off", "-n1 -c2 --gres=gpu:2 --gres-flags=enforce-binding")]
    for load in loads:
        wait_running(whole, load)
    number = whole.batch("true", "-wcn3", "-N1", "-n1", "-c14", "--gpus-per-task=1", "--gres-flags=enforce-binding",
                         "--topo-request=/package=1/core=7").stdout.split()[-1]
    assert wait_until(lambda: "chosen for it (--gres-flags=enforce-binding: only cores near its gres)" in
                      whole.topiary("why", number, check=False).stdout, 30), whole.topiary("why", number, check=False)
    whole.command(["scancel", number, *loads])


@ONE_MAKER
def test_a_step_has_the_gpus_of_its_tasks(whole):
    """Each package of the first node has room for one task of three cores, one of the second for two: that is nearer
    together, but then Slurm would start two tasks on the first, with one GPU."""
    done = whole.command(["salloc", "-Q", "-wcn3", "-N1", "-n8", "salloc", "-Q", "-wcn3", "-N1", "-n10", "salloc", "-Q",
                          "-wcn3,cn4", "-N2", "-n3", "-c5", "--gpus-per-task=1", "--ntasks-per-core=1", "sh", "-c",
                          "topiary why $SLURM_JOB_ID; srun sh -c 'echo $SLURMD_NODENAME'"], user="nobody", check=False)
    assert "fewer GPUs on its first nodes" in done.stdout and sorted(done.stdout.split("\n")[-4:]) == [
        "", "cn3", "cn3", "cn4"], done


@ONE_MAKER
def test_a_step_has_the_gpus_of_its_tasks_within_a_requirement(whole):
    """Two tasks would be on the second node, since it has fewer free cores; the first holds them as well. Where it does
    not, the job waits."""
    words = ["-wcn3,cn4", "-N2", "-n3", "-c5", "--gpus-per-task=1", "--ntasks-per-core=1", "--topo-fit=require",
             "--topo-level=package"]
    done = whole.command(["salloc", "-Q", "-wcn4", "-N1", "-n8", "salloc", "-Q", "-I20", *words, "sh", "-c", "topiary "
                          "why $SLURM_JOB_ID; srun sh -c 'echo $SLURMD_NODENAME'"], user="nobody", check=False)
    assert ", running: placed" in done.stdout and sorted(done.stdout.split("\n")[-4:]) == [
        "", "cn3", "cn3", "cn4"], done
    loads = [whole.batch("sleep 999", "-wcn3", "-N1", cores).stdout.split()[-1] for cores in ("-n8", "-n10")]
    for load in loads:
        wait_running(whole, load)
    number = whole.batch("srun true", *words).stdout.split()[-1]
    assert wait_until(lambda: "fewer GPUs on its first nodes" in
                      whole.topiary("why", number, check=False).stdout, 30), whole.topiary("why", number, check=False)
    whole.command(["scancel", *loads])
    assert wait_until(lambda: whole.job_state(number) == "COMPLETED", 60), whole.job_record(number)



if BY_NUMA:
    @ONE_MAKER
    def test_an_odd_number_of_cpus_for_each_of_eight_gpus(cluster):
        """Two tasks of seven CPUs share a core where they may, but none has its cores in two NUMA nodes."""
        done = cluster.command(["salloc", "-Q", "-w", "cn8", "-n8", "-c7", "--gres=gpu:8", "sh", "-c",
                                "echo $SLURM_JOB_ID; scontrol -d show job $SLURM_JOB_ID"], user="nobody")
        number, _, record = done.stdout.partition("\n")
        mine = {cpu // 2 for cpu in expand(re.search(r"Nodes=cn8 CPU_IDs=(\S+)", record).group(1))}
        assert {len([core for core in mine if core // 8 == numa]) for numa in range(8)} <= {3, 4}
        assert "8, near its cores" in cluster.topiary("why", "-v", number).stdout


@ONE_MAKER
def test_a_step_that_slurm_gave_far_cores(cluster):
    """With -c a step has some of its job's cores, the first ones: two of the GPUs are at the others."""
    found, said = tasks(cluster, "cn3", 3, "-n3", "-c2", "--topo-tasks=auto")
    far = sum(" far" in report["gpu"] for *_, report, _ in found.values())
    wanted = [f"{far} of the 3 tasks of this node {'is' if far == 1 else 'are'} far from"] if far else []
    assert far and len(said) == 1 and wanted[0] in said[0] and "srun without -c" in said[0]


@ONE_MAKER
def test_auto_has_memory_and_threads_too(cluster):
    found, _ = tasks(cluster, "cn3", 3, "-n3", "--topo-tasks=auto")
    assert all(int(task["threads"]) >= 1 and task["memory"] == "local" for _, _, task, _ in found.values()), found


@ONE_MAKER
def test_options_of_the_user_win(cluster):
    found, _ = tasks(cluster, "cn3", 3, "-n3", "--topo-tasks=auto", "--topo-place=compact", "--topo-omp=off")
    assert ({gpus for gpus, *_ in found.values()} == {"0,1,2"}
            and {task["threads"] for _, _, task, _ in found.values()} == {None})
    found, _ = tasks(cluster, "cn3", 3, "-n3", "--topo-tasks=off")
    assert {gpus for gpus, *_ in found.values()} == {"0,1,2"}
    plain, _ = tasks(cluster, "cn3", 3, "-n3", "--cpu-bind=map_cpu:0,1,2")
    found, _ = tasks(cluster, "cn3", 3, "-n3", "--cpu-bind=map_cpu:0,1,2", "--topo-tasks=auto")
    assert [found[r][2]["cpus_os"] for r in range(3)] == [plain[r][2]["cpus_os"] for r in range(3)]


@ONE_MAKER
@pytest.mark.parametrize("option", ["--cpu-bind=none", "--hint=nomultithread", "--threads-per-core=1"])
def test_a_binding_of_slurm_that_stays_is_said(cluster, option):
    found, said = tasks(cluster, "cn3", 3, "-n3", option, "--topo-tasks=auto")
    assert {gpus for gpus, *_ in found.values()} == {"0,1,2"}
    assert len([line for line in said if "tasks keep the CPUs and GPUs of Slurm's own binding" in line]) == 1, said
    found, said = tasks(cluster, "cn3", 3, "-n3", option, "--topo-tasks=auto", "--topo-place=gpu")
    assert [found[rank][0] for rank in range(3)] == ["0", "1", "2"] and not any("topiary" in line for line in said)
    assert_near(found)


def test_own_numbers_of_the_user_stay(cluster):
    found, said = tasks(cluster, "cn3", 3, "-n3", "--topo-tasks=auto", HIP_VISIBLE_DEVICES="1")
    assert said == [] and {gpus for gpus, *_ in found.values()} == {"0,1,2"}
    assert {variables["HIP_VISIBLE_DEVICES"] for *_, variables in found.values()} == {"1"}


@ONE_MAKER
@pytest.mark.parametrize("bind", ["--gpus-per-task=1", "--gpu-bind=single:1", "--gpu-bind=mask_gpu:6,1,4"])
def test_what_slurm_bound_stays(cluster, bind):
    """Which GPU a task gets is Slurm's; its cores follow."""
    found, said = tasks(cluster, "cn3", 3, "-n3", bind, "--topo-tasks=auto")
    gpus = [found[rank][0] for rank in range(3)]
    assert said == [] and (gpus == ["1,2", "0", "2"] if "mask" in bind else sorted(gpus) == ["0", "1", "2"])
    assert_near(found)


@ONE_MAKER
def test_gpu_that_the_topology_does_not_have(cluster):
    found, said = tasks(cluster, "cn4", 5, "-n5", "--topo-tasks=auto")
    assert {gpus for gpus, *_ in found.values()} == {"0,1,2,3,4"}
    assert len([line for line in said if "the node's topology does not say which GPU is number 3" in line]) == 1, said


@ONE_MAKER
def test_without_gpus_memory_comes_first(cluster):
    auto, said = tasks(cluster, "cn6", 0, "-n4", "--topo-tasks=auto")
    mem, _ = tasks(cluster, "cn6", 0, "-n4", "--topo-place=mem")
    assert said == [] and [auto[r][2]["cpus_os"] for r in range(4)] == [mem[r][2]["cpus_os"] for r in range(4)]
    named, said = tasks(cluster, "cn6", 0, "-n4", "--topo-place=gpu")
    assert len(said) == 1 and "the step has no GPUs on this node" in said[0]
    assert [named[r][2]["cpus_os"] for r in range(4)] == [mem[r][2]["cpus_os"] for r in range(4)]


DEVICES = Path("/sys/fs/cgroup/devices")
# What the kernel has of the GPUs of cn3: their addresses, in the order of the bus, and their device files.
FUNCTIONS = ["0000:03:00.0", "0000:83:00.0", "0000:84:00.0"]
RENDER = "/dev/dri/renderD{}"


class Constrained(Cluster):
    """The node's GPUs have device files, and tasks those of their own GPUs only. A cgroup's name has the node's in it,
    and is the machine's and not the cluster's."""

    def __init__(self, folder):
        self.node = f"gpus{os.getpid()}"
        super().__init__(folder, {self.node: "intel-2x8"}, registry=False,
                         conf="GresTypes=gpu\nTaskPlugin=task/cgroup\n", nodes={self.node: "Gres=gpu:3"},
                         files={"cgroup.conf": "CgroupPlugin=cgroup/v1\nConstrainDevices=yes\n",
                                "gres.conf": "".join(f"Name=gpu File={RENDER.format(i)} Cores={cores}\n"
                                                     for i, cores in enumerate(["0-7", "8-15", "8-15"]))})
        self.maker = VARIABLES[0]

    def on_node(self, node, command):
        made = "".join(f" && mkdir -p /sys/bus/pci/devices/{function}/drm/renderD{i} && "
                       f"mknod -m 666 {RENDER.format(i)} c 226 {128 + i}" for i, function in enumerate(FUNCTIONS))
        return super().on_node(node, ["unshare", "--mount", "sh", "-c",
                                      "mount -t tmpfs tmpfs /sys/bus/pci/devices && mount -t tmpfs tmpfs /dev/dri"
                                      f'{made} && exec "$@"', "sh", *command])


@pytest.fixture(scope="module")
def constrained(folders):
    if not os.access(DEVICES / "devices.deny", os.W_OK):
        pytest.skip("no devices controller of cgroup v1 is mounted here")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a chroot that is no mount point cannot have a mount namespace")
    made = Constrained(folders())
    # It stays: removing it would unmount what other clusters have there in namespaces of their own.
    os.makedirs("/dev/dri", exist_ok=True)
    with cgroups_removed(DEVICES, made.node), made:
        yield made
        made.assert_at_rest()


def opened(cluster, gpus, *options):
    """Of each rank: the GPUs whose device files it can open, those of its report, and the packages of its CPUs."""
    script = "; ".join(f"cat {RENDER.format(i)} 2>&1 | grep -q permitted || echo $SLURM_PROCID {i}" for i in range(3))
    done = cluster.command(["salloc", "-Q", f"--gres=gpu:{gpus}", *options, "srun", "-Q", "--topo-report=json",
                            "--topo-tasks=auto", "sh", "-c", script], user="nobody")
    assert all(line.startswith("{") for line in done.stderr.splitlines()), done.stderr
    reports = sorted((json.loads(line) for line in done.stderr.splitlines()), key=lambda task: task["rank"])
    return [([int(gpu) for rank, gpu in map(str.split, sorted(done.stdout.splitlines())) if rank == str(task["rank"])],
             task["gpu"], {cpu // PACKAGE for cpu in expand(task["cpus_logical"])}) for task in reports]


@pytest.mark.parametrize("bind, wanted", [
    ("--gpus-per-task=1", [0, 1, 2]), ("--gpu-bind=single:1", [0, 1, 2]), ("--gpu-bind=map_gpu:2,0,1", [2, 0, 1]),
    *([("--tres-per-task=gres/gpu:1", [0, 1, 2])] if SLURM_RELEASE >= (24, 5) else [])])
def test_gpus_that_slurm_bound_by_cgroup(constrained, bind, wanted):
    """Each task sees one, number 0; SLURM_STEP_GPUS is 0 of all."""
    found = opened(constrained, 3, "-n3", "--exclusive", bind)
    assert found == [([gpu], f"{gpu} near", {AT[str(gpu)]}) for gpu in wanted]


def test_gpus_that_a_cgroup_hides(constrained):
    """Slurm numbers the GPUs of a step from 0: these are 1 and 2 of the node."""
    holder = constrained.batch("sleep 300", "-n1", "--gres=gpu:1", "--output=/dev/null").stdout.strip()
    wait_running(constrained, holder)
    found = [opened(constrained, 2, "-n2"), opened(constrained, 2, "-n2", "--gpus-per-task=1")]
    constrained.command(["scancel", holder])
    assert found == [[([1, 2], "1 near", {1}), ([1, 2], "2 near", {1})], [([1], "1 near", {1}), ([2], "2 near", {1})]]


@ONE_MAKER
def test_advice_about_far_gpus(cluster):
    """From what the step left, without topiary-monitor on the node; the option that is named mends it."""
    gpus = ["--gres=gpu:3"]
    bad = advised(cluster, "cn3", "-n2", "--gpu-bind=map_gpu:2,1", "--topo-place=compact", allocate=gpus)
    assert bad["far GPU"] == "rank 0 is on core 0 and has GPU 2 far (2 of 2 ranks are as far)"
    assert "far GPU" not in advised(cluster, "cn3", "-n2", "--topo-tasks=auto", allocate=gpus)


@ONE_MAKER
def test_sites_default(cluster):
    conf = cluster.folder / "etc" / "topiary.conf"
    text = conf.read_text()
    try:
        conf.write_text(f"{text}TopoTasks = auto\n")
        found, said = tasks(cluster, "cn3", 3, "-n3")
        assert said == [] and [found[rank][0] for rank in range(3)] == ["0", "1", "2"]
        found, _ = tasks(cluster, "cn3", 3, "-n3", "--topo-tasks=off")
        assert {gpus for gpus, *_ in found.values()} == {"0,1,2"}
    finally:
        conf.write_text(text)


@ONE_MAKER
@pytest.mark.parametrize("option", ["--topo-tasks=on", "--topo-place=gpus"])
def test_bad_value_is_refused(cluster, option):
    done = cluster.command(["srun", "-Q", "-n1", option, "true"], user="nobody", check=False)
    assert done.returncode and "expected" in done.stderr
