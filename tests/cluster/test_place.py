# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What a task gets on its node: CPUs, memory policy, threads, large pages; and the report of it. Each under a Slurm
that binds and one that does not."""
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from rig import Cluster
from rig.ask import expand, reports
from rig.cluster import JOB_USER, SLURM_RELEASE
from rig.node import configured
from rig.paths import BUILD, ROOT
from rig.processes import wait_until

NODES = {"cn1": "amd-4x16", "cn3": "intel-2x8", "cn5": None}
LIBOMP = sorted(Path("/usr/lib").glob("llvm-*/lib/libomp.so.5"))[-1:]
VARIABLES = "env | grep -E '^(OMP_|GOMP_|KMP_|GLIBC_)' | grep -v ^OMP_PROC_BIND | sort | tr '\\n' ' '"


class Binding(Cluster):
    """A cluster with a task plugin of one's choice."""

    plugin = "task/none"

    def _configure(self):
        super()._configure()
        conf = self.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("TaskPlugin=task/none", f"TaskPlugin={self.plugin}"))


class Affine(Binding):
    plugin = "task/affinity"


def link_with_libomp(program):
    """LLVM's runtime has gcc's entry points, too."""
    subprocess.run(["gcc", "-fopenmp", "-D_GNU_SOURCE", "-c", "-o", f"{program}.o", ROOT / "tests/rig/threads.c"],
                   check=True)
    subprocess.run(["gcc", "-o", program, f"{program}.o", LIBOMP[0], "-lhwloc", f"-Wl,-rpath={LIBOMP[0].parent}"],
                   check=True)


# What does not depend on who binds.
ONE_BINDING = pytest.mark.parametrize("whole", [Binding], ids=["task/none"], indirect=True)


@pytest.fixture(scope="module", params=[Binding, Affine], ids=["task/none", "task/affinity"])
def whole(request, folders):
    with request.param(folders(), NODES, registry=False) as made:
        for name in ("threads", "touch"):
            shutil.copy(BUILD / "tests" / name, made.folder / "bin")
        if LIBOMP:
            link_with_libomp(made.folder / "bin" / "threads-libomp")
        yield made


def step(cluster, *options, script="true", check=True):
    return cluster.command(["srun", "-Q", *options, "sh", "-c", script], user="nobody", check=check)


def told(cluster, *options, script="true"):
    """The report, by rank."""
    tasks, _ = reports(step(cluster, "--topo-report=json", *options, script=script).stderr)
    return {task["rank"]: task for task in tasks}


def masks(cluster, *options):
    """The CPUs of each task, as hwloc's own tool asks for them in the task: apart from ours."""
    said = step(cluster, *options, script="echo $SLURM_PROCID $(hwloc-bind --get --taskset)").stdout
    sets = {int(rank): int(mask, 16) for rank, mask in re.findall(r"^(\d+) (0x[0-9a-f]+)$", said, re.M)}
    return [[cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1] for _, mask in sorted(sets.items())]


def affine(cluster):
    return cluster.plugin == "task/affinity"


@pytest.mark.parametrize("options, wanted", [
    ("-w cn1 -n4 -c4 --topo-place=scatter", ["0-3", "8-11", "4-7", "12-15"]),
    ("-w cn1 -n4 -c4 --topo-place=mem", ["0-3", "4-7", "8-11", "12-15"]),
    ("-w cn3 -n8 -c1 --topo-place=compact", ["0", "16", "1", "17", "2", "18", "3", "19"]),
    ("-w cn5 -n2 -c1 --topo-place=scatter", ["0", "1"]),
])
def test_tasks_run_where_requested(cluster, options, wanted):
    assert masks(cluster, *options.split()) == [sorted(expand(cpus)) for cpus in wanted]


@ONE_BINDING
def test_remaining_cores_are_shared(cluster):
    """Steps of a job that has more cores than they ask for: mem takes all of them, as nobody said how many CPUs a task
    has."""
    output = cluster.output("srun --topo-report=json --topo-omp=auto --topo-place=mem true", "-w", "cn1", "-n4",
                            "--exclusive")
    tasks, _ = reports(output)
    assert len(tasks) == 4
    assert all(len(expand(task["cpus_os"])) == int(task["threads"]) for task in tasks)


def test_tasks_stay_within_the_users_binding(cluster):
    options = ["-w", "cn1", "-n4", "-c2", "--topo-place=compact"]
    bound = masks(cluster, *options, "--cpu-bind=mask_cpu:0x7,0xc,0x3,0xf0")
    places = [[0, 1], [2, 3], [4, 5], [6, 7]]
    # The third's place is outside of its mask, which stays.
    assert bound == ([[0, 1], [2, 3], [0, 1], [6, 7]] if affine(cluster) else places)
    assert masks(cluster, *options, "--cpu-bind=none") == places


@pytest.mark.parametrize("binding", ["sockets", "map_cpu:3,2,1,0"])
def test_user_binding_overrides_the_sites_place(cluster, binding):
    options = ["-w", "cn1", "-n4", "-c4", f"--cpu-bind={binding}"]
    stock = masks(cluster, *options)
    with configured(cluster, "TopoPlace = scatter\n"):
        assert masks(cluster, *options) == stock
        assert [cpus[0] for cpus in masks(cluster, "-w", "cn1", "-n4", "-c4")] == [0, 8, 4, 12]


@pytest.mark.parametrize("option", ["--ntasks-per-core=1", "--ntasks-per-socket=4"])
def test_number_of_tasks_for_each_core_or_socket_is_no_binding(cluster, option):
    places = masks(cluster, "-w", "cn1", "-n4", "-c4", option, "--topo-place=scatter")
    assert places == [[places[0][0] + first + n for n in range(4)] for first in (0, 8, 4, 12)]


@ONE_BINDING
def test_memory_policy_outlives_exec(cluster):
    said = step(cluster, "-w", "cn1", "-n2", "-c8", "--topo-place=compact", "--topo-membind=bind",
                script="echo $SLURM_PROCID $(hwloc-bind --get --membind --nodeset --taskset)").stdout
    assert dict(re.findall(r"(\d) .*?(0x\d+)", said)) == {"0": "0x1", "1": "0x2"}, said


# Slurm 25.05 leaves SIGCHLD blocked in a step, and gdb waits for it.
UNBLOCKED = ("python3 -c 'import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, []); "
             "os.execvp(sys.argv[1], sys.argv[1:])'" if SLURM_RELEASE == (25, 5) else "")


def test_a_rank_under_gdb_keeps_its_place(cluster):
    """As the user guide has it: one rank in gdb, the others as they are."""
    ask = "grep Cpus_allowed_list /proc/self/status; head -1 /proc/self/numa_maps"
    said = step(cluster, "-w", "cn5", "-n2", "-c1", "--topo-place=scatter", "--topo-membind=bind", "--label",
                script=f"[ $SLURM_PROCID = 0 ] && exec {UNBLOCKED} gdb -q -batch -ex run --args sh -c '{ask}'; "
                       f"exec sh -c '{ask}'").stdout
    rank = {r: re.findall(rf"^{r}: +(.*)$", said, re.M) for r in (0, 1)}
    assert any("exited normally" in line for line in rank[0]), said
    for r in rank:
        assert [line.split()[1] for line in rank[r] if line.startswith("Cpus_allowed_list")] == [str(r)], said
        assert [line.split()[1] for line in rank[r] if re.match("[0-9a-f]{8,} ", line)] == ["bind:0"], said


@ONE_BINDING
@pytest.mark.parametrize("policy, kernel", [("bind", "bind:0"), ("interleave", "interleave:0"), ("local", "local")])
def test_pages_follow_the_policy(cluster, policy, kernel):
    said = step(cluster, "-w", "cn5", "-n1", f"--topo-membind={policy}", script="touch").stdout
    assert re.match(rf"policy {kernel}, 1638\d pages of node 0,", said), said


@ONE_BINDING
def test_large_pages(cluster):
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel gives none")
    huge = int(re.search(r", (\d+) kB huge",
                         step(cluster, "-w", "cn5", "-n1", "--topo-hugepages=thp", script="touch").stdout).group(1))
    assert huge > 32 << 10


@pytest.mark.parametrize("program, form, tasks, wanted", [
    (program, form, tasks, wanted) for program, own in (("threads", "gomp"), ("threads-libomp", "kmp"))
    for form, tasks, wanted in (("auto", "-n1 -c2", ["thread 0 of 2 on 0", "thread 1 of 2 on 1"]),
                                (own, "-n2 -c1", ["thread 0 of 1 on 0", "thread 0 of 1 on 1"]))
])
def test_threads_stay_within_their_task(cluster, program, form, tasks, wanted):
    if program == "threads-libomp" and not LIBOMP:
        pytest.skip("no LLVM OpenMP here")
    said = step(cluster, "-w", "cn5", *tasks.split(), "--topo-place=compact", f"--topo-omp={form}",
                script=program).stdout
    assert sorted(line for line in said.split("\n") if line) == wanted


@ONE_BINDING
def test_variables_of_the_user_are_kept(cluster):
    def variables(*set_by_user):
        return cluster.command(["env", *set_by_user, "srun", "-Q", "-w", "cn1", "-n1", "-c4", "--topo-place=compact",
                                "--topo-omp=auto", "--topo-hugepages=thp", "sh", "-c", VARIABLES],
                               user="nobody").stdout.split()

    tunable = ([] if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
               else ["glibc.malloc.hugetlb=1"])
    ours = [f"GLIBC_TUNABLES={t}" for t in tunable]
    assert variables() == [*ours, "OMP_NUM_THREADS=4", "OMP_PLACES={0},{1},{2},{3}"]
    assert variables("OMP_NUM_THREADS=3") == [*ours, "OMP_NUM_THREADS=3", "OMP_PLACES={0},{1},{2},{3}"]
    assert variables("OMP_PLACES=cores") == [*ours, "OMP_PLACES=cores"]
    mine = "glibc.malloc.perturb=0"
    assert (variables("OMP_PLACES=cores", f"GLIBC_TUNABLES={mine}")
            == [f"GLIBC_TUNABLES={':'.join([mine, *tunable])}", "OMP_PLACES=cores"])


def test_a_step_within_a_step_is_placed_anew(cluster):
    """What an outer step was given is not the user's."""
    _, _, output = cluster.job("srun -n1 -c4 --topo-omp=auto --topo-place=compact sh -c "
                               f"'{VARIABLES.replace(chr(39), chr(34))};"
                               "srun -n2 -c2 --overlap --topo-omp=auto --topo-place=compact --topo-report=json true'",
                               "-w", "cn1", "-n2", "-c4")
    assert "OMP_NUM_THREADS=4" in output
    assert [task["threads"] for task in reports(output)[0]] == ["2", "2"], output


@ONE_BINDING
def test_report_of_several_components_has_the_ranks_of_the_step(cluster):
    tasks = told(cluster, "-w", "cn1", "-n1", ":", "--topo-report=json", "-w", "cn3", "-n2")
    assert {rank: task["node"] for rank, task in tasks.items()} == {0: "cn1", 1: "cn3", 2: "cn3"}


def test_report_is_a_table_of_all_nodes(cluster):
    said = step(cluster, "-w", "cn1,cn3", "-N2", "-n4", "-c2", "-m", "cyclic", "--topo-place=compact",
                "--topo-omp=auto", "--topo-report").stderr
    rows = [re.split(r"\s{2,}", line.strip()) for line in said.split("\n") if line.startswith("rank")]
    assert sorted(row[:4] for row in rows) == [
        ["rank 0", "node cn1", "CPUs L#0-1", "P#0-1"], ["rank 1", "node cn3", "CPUs L#0-1", "P#0,16"],
        ["rank 2", "node cn1", "CPUs L#2-3", "P#2-3"], ["rank 3", "node cn3", "CPUs L#2-3", "P#1,17"]]
    assert {tuple(row[4:]) for row in rows} == {("NUMA 0", "memory default", "NIC -", "GPU -", "threads 2")}


@ONE_BINDING
@pytest.mark.parametrize("option, words", [
    ("--topo-place=compact:die", "--topo-place: level 'die' does not exist within the step's cores"),
    ("--topo-hugepages=hugetlb", "no huge pages are free"),
])
def test_unavailable_binding_is_reported_once(cluster, option, words):
    if "hugetlb" in option and Path("/proc/sys/vm/nr_hugepages").read_text() != "0\n":
        pytest.skip("this node has huge pages")
    done = step(cluster, "-w", "cn3", "-n4", option, "--topo-omp=auto", script="echo $OMP_NUM_THREADS")
    assert done.stderr.count(words) == 1 and len(done.stdout.split()) == 4, done.stderr


@pytest.mark.parametrize("words, offered", [
    ("--topo-me", ["--topo-mem", "--topo-membind", "--topo-mems"]), ("--topo-fit = re", ["require"]),
    ("--topo-place c", ["compact"]), ("--topo-level l", ["l3", "l2"]), ("--topo-membind = b", ["bind", "bandwidth"]),
    ("--topo-mat", ["--topo-matrix"]), ("--topo-matrix =", []), ("--mem", ["Slurm's own"]),
])
def test_completion_in_front_of_slurms_own(cluster, words, offered):
    """COMPREPLY of the words of a line of srun, of which the last is being written."""
    script = f"""
        own() {{ COMPREPLY=("Slurm's own"); }}
        complete -F own srun
        . {ROOT}/packaging/completion/topiary-slurm.bash
        COMP_WORDS=(srun "$@") COMP_CWORD=$#
        _topiary_slurm srun
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = cluster.command(["bash", "-c", script, "bash", *words.split()])
    assert not done.stderr and done.stdout.split("\n")[:-1] == (offered or [""])


def test_batch_script_is_left_alone(cluster):
    options = ["-w", "cn1", "-n4", "--topo-place=scatter:package", "--topo-omp=auto", "--topo-membind=bind",
               "--topo-report"]
    alone = f"hwloc-bind --get --taskset; {VARIABLES}"
    _, _, plain = cluster.job(alone, "-w", "cn1", "-n4")
    _, _, output = cluster.job(f"{alone}; echo; srun -Q --topo-report=json true", *options)
    before, _, rest = output.partition("\n\n")
    assert before.strip() == plain.strip()
    # Its steps have what the job asked for.
    assert [task["threads"] for task in reports(rest)[0]] == ["1"] * 4


@ONE_BINDING
def test_user_option_overrides_the_sites(cluster):
    options = ["-w", "cn1", "-n2", "-c4"]
    with configured(cluster, "TopoPlace = scatter:core\nTopoMembind = bind\nTopoOmp = everywhere\n"):
        tasks = told(cluster, *options)
        assert [tasks[rank]["memory"] for rank in (0, 1)] == ["bind:0", "bind:0"]
        assert len(expand(tasks[0]["cpus_os"])) == 4 and tasks[0]["threads"] is None
        assert told(cluster, *options, "--topo-membind=off", "--topo-place=off")[0]["memory"] == "default"
    assert ("topiary.conf: TopoOmp=everywhere: invalid value, expected one of: off, auto, gomp, kmp; ignored"
            in (cluster.folder / "log" / "slurmd.cn1.log").read_text(errors="replace"))


def test_what_the_tasks_reported_and_what_to_change(cluster):
    """In one place, and the same as in the job's messages and by the other command."""
    folder = Path(tempfile.mkdtemp(dir=cluster.folder / "work"))
    folder.chmod(0o777)
    script = folder / "script"
    script.write_text("#!/bin/sh\nsrun -Q --topo-report --topo-monitor=sw --cpu-bind=map_cpu:0,0,1 true\n"
                      "sleep 60\n")
    number = cluster.command(["sbatch", "--parsable", "-w", "cn3", "--exclusive", "-n3", "-e", folder / "err", "-o",
                              "/dev/null", script], user=JOB_USER, cwd=folder).stdout.strip()
    try:
        assert wait_until(lambda: list(folder.glob("topiary-*.0/*"))
                          and (folder / "err").read_text().count("rank ") == 3, 30)
        told = cluster.topiary("why", number, user=JOB_USER).stdout
        first = min(line for line in (folder / "err").read_text().split("\n") if line.startswith("rank "))
        assert f"\nreport   {first}; of the other tasks see the job's messages\n" in told
        advice = cluster.topiary("advise", "--brief", number, user=JOB_USER).stdout
        assert "are bound to core 0" in advice or cluster.plugin != "task/affinity"
        assert re.findall(r"\nadvice   (.*)\n", told) == advice.splitlines()[:1], told
    finally:
        cluster.command(["scancel", number])
