# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The cores of a job: in the fewest domains, and as it asks: kept within a boundary or the job waits, each task apart,
a path of domains, the smallest machine."""
import json
import subprocess
import time
from datetime import datetime

import pytest
from rig.ask import cores_of, fields, jobs, wait_running
from rig.cluster import as_user
from rig.node import configured
from rig.processes import wait_until

L2, L3, PACKAGE = 2, 8, 16     # cores of these on cn1 and cn2; an L3 is a NUMA node's
BF_RESOLUTION = 60             # seconds to which backfill rounds
ON = ("-N1", "-w", "cn1")
WITHIN_L3 = ("--topo-fit=require", "--topo-level=l3")


def domains(cores, size):
    return sorted({core // size for core in cores})


@pytest.fixture
def crumbs(cluster, submit):
    """Leaves one core free in each L3 of cn1: the numbers of the jobs that hold the others."""
    held = [submit(*ON, "-n7", f"--time={minutes}") for minutes in (5, 60, 60, 60, 60, 60, 60, 60)]
    for number in held:
        wait_running(cluster, number)
    assert sorted(domains(cores_of(cluster, number)["cn1"], L3) for number in held) == [[i] for i in range(8)]
    return held


@pytest.mark.parametrize("lines, limit, small", [
    ("", "3-0", False), ("", "3-00:01:00", True), ("TopoWeight=job\n", "3-00:01:00", False),
    ("TopoWeight=queue\n", "1", True)])
def test_large_nodes_are_spared(cluster, submit, lines, limit, small):
    """12 cores are one package of cn1, and two of cn3, which is smaller: for long jobs, or if the site says so."""
    with configured(cluster, lines):
        cluster.command(["scontrol", "reconfigure"])
        number = submit("-N1", "-n12", "--ntasks-per-core=1", "--exclude=cn5", f"--time={limit}")
        wait_running(cluster, number)
        assert record(cluster, number)["NodeList"] in (["cn3"] if small else ["cn1", "cn2"])
    cluster.command(["scontrol", "reconfigure"])


def record(cluster, number):
    return fields(jobs(cluster, number)[0])


def waits(cluster, number):
    """The scheduler has looked at the job and let it wait."""
    return wait_until(lambda: record(cluster, number)["Reason"] not in ("None", "Priority"), 10, 0.1) \
        and record(cluster, number)["JobState"] == "PENDING"


# --- by default

@pytest.mark.parametrize("tasks, size, count", [(2, L2, 1), (8, L3, 1), (24, L3, 3)])
def test_fewest_domains(place, tasks, size, count):
    cores = place(*ON, f"-n{tasks}")
    assert len(cores) == tasks and len(domains(cores, size)) == count, cores


def test_level_off_is_stock(place):
    assert len(domains(place(*ON, "-n8", "--topo-fit=off"), L3)) > 1


def test_named_nodes_that_hold_no_equal_shares(cluster, submit):
    """cn4 has twelve cores, which is less than half of the tasks."""
    number = submit("-w", "cn1,cn4", "-N2", "-n60")
    wait_running(cluster, number)
    told = cluster.topiary("why", number).stdout
    assert "placed by Topiary" in told, told


# --- require

def test_required_boundary_is_waited_for(cluster, submit, crumbs):
    number = submit(*ON, "-n2", *WITHIN_L3)
    assert waits(cluster, number)
    assert "topiary:1 waits" in jobs(cluster, number)[0]
    cluster.command(["scancel", crumbs[3]])
    wait_running(cluster, number)
    assert len(domains(cores_of(cluster, number)["cn1"], L3)) == 1


def test_preferred_placement_is_not_waited_for(cluster, place, crumbs):
    assert len(domains(place(*ON, "-n2", "--topo-fit=prefer", "--topo-level=l3"), L3)) == 2


@pytest.mark.parametrize("options", [[*ON, "-n2"], ["-N2", "-w", "cn1,cn2", "-n4", "--ntasks-per-node=2"]],
                         ids=["one node", "another node has it now"])
def test_waiting_job_is_planned(cluster, submit, crumbs, options):
    """Backfill knows when the first L3 will be free: when the job of five minutes ends, not those of an hour."""
    number = submit(*options, "--time=10", *WITHIN_L3)
    assert wait_until(lambda: record(cluster, number)["StartTime"] != "Unknown", 30, 0.5)
    start, end = (datetime.fromisoformat(record(cluster, n)[w])
                  for n, w in ((number, "StartTime"), (crumbs[0], "EndTime")))
    assert 0 <= (start - end).total_seconds() <= 2 * BF_RESOLUTION, (start, end)


def test_waiting_job_keeps_its_request_over_a_restart(cluster, submit, crumbs):
    number = submit(*ON, "-n2", *WITHIN_L3)
    assert waits(cluster, number)
    cluster.end("slurmctld")
    cluster.start_slurmctld()
    assert wait_until(lambda: "*" not in cluster.command(["sinfo", "-h", "-o", "%T"], check=False).stdout, 20)
    time.sleep(2)
    assert record(cluster, number)["JobState"] == "PENDING"
    cluster.command(["scancel", crumbs[0]])
    wait_running(cluster, number)
    assert len(domains(cores_of(cluster, number)["cn1"], L3)) == 1


NEVER = "configuration is not available"


@pytest.mark.parametrize("options, why", [
    ([*ON, "-n9", "--topo-fit=require", "--topo-level=numa"], NEVER),
    (["-w", "cn1", "-N1", "-n9", *WITHIN_L3], "largest has 8"),
    (["-x", "cn3,cn4,cn5", "-n1", "-c40", *WITHIN_L3], "needs 40 cores in one L3 cache, but the largest has 8"),
    (["-w", "cn1", "-n2", "-c9", *WITHIN_L3], "node cn1"),
    (["-w", "cn1", "-N2", "-n40", "-x", "cn3,cn4,cn5", *WITHIN_L3], "largest has 8"),
    ([*ON, "-n8", "--ntasks-per-socket=2", "--topo-request=/l3=1/core=8"], "--topo-request cannot be met"),
    ([*ON, "-n8", "--overcommit", "--topo-request=/l3=1/core=8"], "--topo-request cannot be met"),
    ([*ON, "-n9", "--topo-request=/l3=9/core=1"], "/l3=9/core=1: node cn1 does not have these domains"),
    ([*ON, "-c9", "--topo-request=/l3=1/core=8"],
     "/l3=1/core=8 requests exactly 8 cores on each node, but 1 task needs 9 there: "),
    (["-N1", "-x", "cn3,cn4,cn5", "-n1", "--topo-request=/l3=1/core=8"],
     "/l3=1/core=8 requests exactly 8 cores on each node, but 1 task needs 1 there: "),
    (["-N3", "-x", "cn5", "-n24", "--topo-request=/package=4/core=2"],
     "/package=4/core=2: the job needs 3 nodes with these domains, but only 2 have them"),
    (["-N1", "-n9", "--topo-request=/l3=9/core=1"], "/l3=9/core=1: no node that the job may get has these domains"),
    (["-N2", "-x", "cn5", "-n5", "--topo-request=/core=3"],
     "/core=3 requests 3 cores on each node, but the job's 5 tasks cannot be divided evenly among nodes"),
    ([*ON, "-c9", *WITHIN_L3], "node cn1 cannot meet the requirement: a task needs 9 cores in one L3 cache, but its"
                               " largest has 8"),
    ([*ON, "-n17", "--topo-fit=require", "--topo-level=die"],      # it has no dies
     "--topo-fit=require --topo-level=die: the job needs 17 cores in one package, but the largest has 16"),
    ([*ON, "-n4", "--ntasks-per-socket=12", *WITHIN_L3], "node cn1 cannot meet the requirement: the job needs 12 cores"
     " in one L3 cache (with --ntasks-per-socket=12 Slurm uses only nodes with room for 12 tasks), but its largest has"
     " 8"),
], ids=str)
def test_impossible_requirement_is_refused(cluster, options, why):
    refused = cluster.batch("true", *options, check=False)
    assert refused.returncode and NEVER in refused.stderr and why in refused.stderr, refused


@pytest.mark.parametrize("command", [["sbatch", "--wrap=true"], ["srun", "true"], ["salloc", "true"],
                                     ["sbatch", "--test-only", "--wrap=true"]],
                         ids=" ".join)
def test_every_command_refuses_it(cluster, command):
    refused = cluster.command([command[0], *ON, "-n9", *WITHIN_L3, *command[1:]], user="nobody", check=False)
    assert refused.returncode and "configuration is not available" in refused.stderr, refused


@pytest.mark.parametrize("options", [["--overcommit", "-n40"], ["--ntasks-per-socket=8", "-n8"],
                                     ["--distribution=block:cyclic", "-n6"]],
                         ids=" ".join)
def test_job_left_to_slurm_keeps_the_boundary(place, options):
    assert len(domains(place(*ON, *options, *WITHIN_L3), L3)) == 1


@pytest.mark.parametrize("options", [["-N2", "-n4"], ["-n4"]], ids=" ".join)
def test_tasks_are_shared_unevenly_where_that_keeps_the_boundary(cluster, submit, crumbs, options):
    """cn1 has one free core in each L3, so that cn2 takes all tasks but one."""
    number = submit(*options, "-x", "cn3,cn4,cn5", *(["-N2"] if "-N2" in options else ["-w", "cn2"]), *WITHIN_L3)
    wait_running(cluster, number)
    assert all(len(domains(cores, L3)) == 1 for cores in cores_of(cluster, number).values())


def test_whole_domain_is_allocated(place):
    place(*ON, "-n1")
    assert len(domains(place(*ON, "-n16", "--topo-fit=require", "--topo-level=package"), PACKAGE)) == 1


def test_another_node_is_taken_where_the_boundary_can_be_kept(cluster, submit, crumbs):
    number = submit("-N1", "-n6", "-x", "cn3,cn4,cn5", *WITHIN_L3)
    wait_running(cluster, number)
    assert list(cores_of(cluster, number)) == ["cn2"]


@pytest.mark.parametrize("options", [["-n20"], ["-N1-2", "-n20", "-w", "cn1"]],
                         ids=" ".join)
def test_more_nodes_are_taken_where_one_cannot_keep_the_boundary(cluster, submit, options):
    number = submit(*options, "-x", "cn3,cn4,cn5", "--topo-fit=require", "--topo-level=package")
    wait_running(cluster, number)
    placed = cores_of(cluster, number)
    assert sorted(placed) == ["cn1", "cn2"] and sum(map(len, placed.values())) == 20
    assert [len(domains(cores, PACKAGE)) for cores in placed.values()] == [1, 1]


def test_array_takes_one_domain_each_and_the_rest_waits(cluster, submit):
    number = submit(*ON, "-n8", "--array=1-9", *WITHIN_L3)
    assert wait_until(lambda: [fields(r)["JobState"] for r in jobs(cluster, number)].count("RUNNING") == 8, 20, 0.1)
    taken = [cores_of(cluster, fields(r)["JobId"])["cn1"] for r in jobs(cluster, number)
             if fields(r)["JobState"] == "RUNNING"]
    assert sorted(domains(cores, L3) for cores in taken) == [[i] for i in range(8)]


def test_job_that_runs_again_has_one_verdict(cluster, submit):
    number = submit(*ON, "-n4", *WITHIN_L3)
    wait_running(cluster, number)
    cluster.command(["scontrol", "requeue", number])
    assert wait_until(lambda: record(cluster, number)["JobState"] == "PENDING", 10, 0.1)
    assert "topiary:" not in jobs(cluster, number)[0], "the verdict of a run that is over"
    cluster.command(["scontrol", "update", f"JobId={number}", "StartTime=now+2"], check=False)
    wait_running(cluster, number)
    assert jobs(cluster, number)[0].count("topiary:1 ") == 1


# --- spread

def test_tasks_are_spread(place):
    cores = place(*ON, "-n4", "-c2", "--topo-fit=spread", "--topo-level=package")
    assert len(domains(cores, L2)) == len(domains(cores, PACKAGE)) == 4


# --- paths

def test_path_is_kept(place):
    cores = place(*ON, "-n8", "--topo-request=/package=1/l3=2/core=4")
    assert len(domains(cores, PACKAGE)) == 1
    assert [sum(core // L3 == domain for core in cores) for domain in domains(cores, L3)] == [4, 4], cores


# --- the words

def test_comment_equals_options(place):
    assert len(domains(place(*ON, "-n8", "--comment=run 7, topo-fit=spread; for the paper"), L3)) == 8


def test_unknown_word_of_a_comment_is_reported(cluster):
    done = cluster.batch("true", *ON, "--comment=run 7, topo-foo; for the paper")
    cluster.wait_job(done.stdout.strip())
    assert "--comment: 'topo-foo' has no effect" in done.stderr, done.stderr


def test_option_overrides_the_comment(place):
    assert len(domains(place(*ON, "-n8", "--topo-fit=prefer", "--comment=topo-fit=spread"), L3)) == 1


# --- heterogeneous jobs

SPREAD, L3_LEVEL = "--topo-fit=spread", "--topo-level=l3"


def numbers(cluster):
    """Of all jobs that wait or run, the first component's first."""
    return sorted(cluster.command(["squeue", "-h", "-o", "%A"]).stdout.split(), key=int)


def asked(cluster, number):
    """The fit and level of each component."""
    wait_running(cluster, number)
    told = json.loads(cluster.topiary("why", "--json", number).stdout)["jobs"]
    return [f"{job['verdict']['fit']} {job['verdict']['level']}" for job in told]


FIRST_HAS_NONE = [":", SPREAD, ":"], ["prefer node", "spread node", "prefer node"]
ALL_HAVE = [SPREAD, L3_LEVEL, ":", SPREAD, ":", L3_LEVEL], ["spread l3", "spread node", "prefer l3"]


@pytest.mark.parametrize("where, words, expected", [
    ("sbatch", *FIRST_HAS_NONE), ("script", *ALL_HAVE), ("salloc", *ALL_HAVE), ("srun", *FIRST_HAS_NONE)])
def test_each_component_has_its_own_options(cluster, where, words, expected):
    path = cluster.folder / "work" / f"script.{time.monotonic_ns()}"
    lines = " ".join(words).split(":")
    path.write_text("#!/bin/sh\n" + "#SBATCH hetjob\n".join(f"#SBATCH -n1 {line}\n" for line in lines)
                    + "exec sleep 300\n" if where == "script" else "#!/bin/sh\nexec sleep 300\n")
    path.chmod(0o755)
    words = [word for line in lines for word in (":", "-n1", *line.split())][1:]
    command = {"sbatch": ["sbatch", "--parsable", "--output=/dev/null", *words, path],
               "script": ["sbatch", "--parsable", "--output=/dev/null", path],
               "salloc": ["salloc", "--no-shell", *words],
               "srun": ["srun", "-Q", *" ".join(words).replace(" :", f" {path} :").split(), path]}[where]
    with subprocess.Popen(as_user("nobody", [str(word) for word in command]), env=cluster.env(),
                          cwd=cluster.folder / "work", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            assert wait_until(lambda: len(numbers(cluster)) == len(expected), 20, 0.1)
            assert asked(cluster, numbers(cluster)[0]) == expected
        finally:
            cluster.command(["scancel", *numbers(cluster)])
            running.wait(30)


@pytest.mark.parametrize("variables, expected", [
    ({"SBATCH_TOPO_FIT": "require", "SBATCH_TOPO_LEVEL": "numa"}, ["require l3", "require numa"]),
    ({"SALLOC_TOPO_FIT": "require", "SLURM_TOPO_FIT": "require", "SBATCH_TOPO_FIT": ""}, ["prefer l3", "prefer node"]),
    ({"SLURM_SPANK__SLURM_SPANK_OPTION_topiary_topo_level": "numa"}, ["prefer l3", "prefer numa"])])
def test_component_without_an_option_has_that_of_the_environment(cluster, variables, expected):
    """Of the user's defaults, or of a job that submits another one; what is given for the first component is for that
    alone."""
    number = cluster.batch("exec sleep 300", "-n1", L3_LEVEL, ":", "-n1", "--output=/dev/null",
                           variables=variables).stdout.strip()
    try:
        assert asked(cluster, number) == expected
    finally:
        cluster.command(["scancel", number])


def test_default_of_srun_and_one_that_is_wrong(cluster):
    done = cluster.command(["srun", "-Qn1", "true"], user="nobody", env=cluster.env(SLURM_TOPO_REPORT="table"))
    assert done.stderr.startswith("rank 0  node "), done.stderr
    done = cluster.command(["salloc", "true"], user="nobody", check=False, env=cluster.env(SALLOC_TOPO_FIT="strict"))
    assert done.returncode and "topiary: SALLOC_TOPO_FIT: --topo-fit=strict: invalid value" in done.stderr, done.stderr


def test_matrix_of_the_first_component_is_not_for_the_others(cluster, matrix):
    number, _, _ = cluster.job("true", "-n2", f"--topo-matrix={matrix(2)}", ":", "-n4")
    assert number.isdigit()
    done = cluster.batch("true", "-n2", ":", "-n4", f"--topo-matrix={matrix(4)}")
    cluster.wait_job(done.stdout.strip())
    assert f"--topo-matrix={matrix(4)} has no effect on component 1" in done.stderr, done.stderr


def test_srun_says_that_components_share_an_option_for_tasks(cluster):
    done = cluster.command(["srun", "-n1", "true", ":", "-n1", "--topo-place=compact", "true"], user="nobody")
    assert done.stderr.count("--topo-place=compact applies to all components of this step") == 1, done.stderr


@pytest.mark.parametrize("first", [[], ["--topo-place=scatter"]])
def test_what_salloc_runs_has_the_options_of_the_first_component(cluster, first):
    done = cluster.command(["salloc", "-n1", *first, ":", "-n1", "--topo-place=compact", "--topo-omp=off", ":", "-n1",
                            *first, "env"], user="nobody")
    told = [line.split("=", 1)[1] for line in done.stdout.split() if "_OPTION_topiary_topo_" in line]
    assert told == 2 * [word.split("=")[1] for word in first]
    assert done.stderr.count("has no effect on component") == 2, done.stderr
    assert "--topo-place=compact has no effect on component 1 of a heterogeneous job" in done.stderr


# --- whole nodes

@pytest.mark.parametrize("options, nodes", [("-N1 -n16", ["cn3"]), ("-N1 -n9", ["cn4"]),
                                            ("-N2 -n24 --ntasks-per-node=12", ["cn3", "cn4"])])
def test_smallest_sufficient_machines_are_chosen(cluster, submit, options, nodes):
    number = submit("--exclusive", *options.split(), "--ntasks-per-core=1")
    wait_running(cluster, number)
    assert sorted(cores_of(cluster, number)) == nodes


def test_next_larger_machine_is_used_when_the_smallest_is_busy(cluster, submit):
    wait_running(cluster, submit("-N1", "-n1", "-w", "cn3"))
    number = submit("--exclusive", "-N1", "-n16", "--ntasks-per-core=1")
    wait_running(cluster, number)
    assert list(cores_of(cluster, number)) == ["cn1"]
