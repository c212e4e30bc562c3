# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A user asks why a job has its cores, or why it waits, and is told what slurmctld decided."""
import json

import pytest
from rig.ask import cores_of, expand, jobs, wait_running
from rig.cluster import JOB_USER
from rig.processes import wait_until

# cn1: 4 packages, each of 2 NUMA nodes with an L3 cache of 8 cores


@pytest.fixture
def submit(cluster):
    """Submits jobs that end with the test: their numbers."""
    started = []

    def submit(*options):
        number = cluster.batch("sleep 60", "--output=/dev/null", *options).stdout.strip()
        started.append(number)
        return number

    yield submit
    if started:
        cluster.command(["scancel", *started])


def why(cluster, *arguments, check=True):
    return cluster.topiary("why", *arguments, user=JOB_USER, check=check)


def told(cluster, number):
    """{heading: words}, and the words of the lines without one below it."""
    rows, head = {}, None
    for line in why(cluster, number).stdout.rstrip("\n").split("\n"):
        head, words = (line.split(None, 1) if not line.startswith(" ") else (head, line.strip()))
        rows[head] = rows[head] + "\n" + words if head in rows else words
    return rows


def placed(cluster, submit, *options):
    number = submit("-w", "cn1", "-N1", *options)
    wait_running(cluster, number)
    return number


def test_placed_job(cluster, submit):
    number = placed(cluster, submit, "-n8", "--topo-level=package", "--topo-level=l3")
    rows = told(cluster, number)
    assert rows["job"] == f"{number}, running: placed by Topiary"
    assert rows["asked"] == "within one L3 cache if possible (fit prefer, level l3)"
    assert rows["wanted"] == "8 tasks of 1 core on one node"
    node, cores = rows["cores"].split()
    assert {node: expand(cores)} == cores_of(cluster, number)
    assert rows["touches"].startswith("1 package, 1 NUMA node, 1 L3 cache")
    assert rows["level"] == "satisfied: all within one L3 cache"
    assert rows["leaves"].startswith("exact fit, no free core left in its ")
    assert rows["choice"] == "1 of 1 node offered by Slurm had room"
    picture = cluster.topiary("show", "cn1", "--svg", "--job", number, user=JOB_USER).stdout
    assert f"Dark green: cores {cores} of job {number}" in picture


def test_cores_left_over(cluster, submit):
    first = placed(cluster, submit, "-n5")
    second = placed(cluster, submit, "-n1")
    third = placed(cluster, submit, "-n2")
    assert told(cluster, first)["leaves"] == "3 free cores left in its NUMA node, which was entirely free"
    assert told(cluster, second)["leaves"].startswith("exact fit, no free core left in its L2 cache")
    assert told(cluster, third)["leaves"].startswith("exact fit, no free core left in its ")


def test_level_that_cannot_be_kept(cluster, submit):
    number = placed(cluster, submit, "-n24", "--topo-level=numa")
    assert told(cluster, number)["level"] == "not satisfied: in 3 NUMA nodes"


def test_spread_job(cluster, submit):
    number = placed(cluster, submit, "-n8", "--topo-fit=spread", "--topo-level=l3")
    rows = told(cluster, number)
    assert rows["level"] == "each task has its own L3 cache"
    assert rows["leaves"] == "no core of its L3 caches is used or reserved by others"


def test_best_other_node(cluster, submit):
    number = submit("-N1", "-n8", "-w", "cn1")
    wait_running(cluster, number)
    second = submit("-N1", "-n8", "--exclude=cn3,cn4,cn5")
    wait_running(cluster, second)
    rows = told(cluster, second)
    assert rows["choice"] == "2 of 2 nodes offered by Slurm had room"
    assert {rows["beside"].split()[0].rstrip(":"), rows["cores"].split()[0]} == {"cn1", "cn2"}


def test_waiting_job(cluster, submit):
    placed(cluster, submit, "-n8", "--topo-fit=spread", "--topo-level=l3")
    number = submit("-w", "cn1", "-N1", "-n8", "--topo-fit=require", "--topo-level=l3")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    rows = told(cluster, number)
    assert rows["job"] == f"{number}, pending: waits"
    assert rows["asked"] == "within one L3 cache on each node, otherwise wait (fit require, level l3)"
    assert rows["because"]
    assert rows["choice"] == "0 of 1 node offered by Slurm had room"


def test_waiting_job_that_also_requests_sockets(cluster, submit):
    number = submit("-w", "cn1", "-N1", "-n4", "-B2:2", "--topo-fit=require", "--topo-level=package")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    assert (told(cluster, number)["because"]
            == "it requires 1 node with 4 cores in one package;"
               " within that Slurm decides: the requested sockets, cores or threads")


def test_path(cluster, submit):
    number = placed(cluster, submit, "-n8", "--topo-request=/package=1/l3=2/core=4")
    rows = told(cluster, number)
    assert rows["asked"] == "/package=1/l3=2/core=4 on each node, otherwise wait"
    assert rows["touches"].startswith("1 package, 2 NUMA nodes, 2 L3 caches")


def test_job_left_to_slurm(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n4", "--overcommit"))
    assert rows["job"].endswith(", running: left to Slurm")
    assert rows["because"]


def test_comment_changed_to_an_unknown_option(cluster, submit):
    number = submit("-w", "cn1", "-n4", "--hold")
    cluster.command(["scontrol", "update", f"job={number}", "comment=topo-fit=maybe"])
    cluster.command(["scontrol", "release", number])
    wait_running(cluster, number)
    assert (told(cluster, number)["because"]
            == "unknown Topiary option, or value of one, in --comment or the environment of the job")


def test_whole_node_is_within_no_domain(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n4", "--exclusive", "--topo-fit=require", "--topo-level=l3"))
    assert rows["touches"].startswith("4 packages")
    assert rows["level"] == "not considered: the job has all cores of its nodes"


def test_json(cluster, submit):
    number = placed(cluster, submit, "-n8")
    job, = json.loads(why(cluster, number, "--json").stdout)["jobs"]
    assert (job["job"], job["state"], job["error"]) == (number, "running", None)
    verdict = job["verdict"]
    assert ((verdict["outcome"], verdict["fit"], verdict["level"], verdict["tasks_per_node"])
            == ("placed", "prefer", "node", 8))
    assert {part["nodes"]: expand(part["cores"]) for part in verdict["cores"]} == cores_of(cluster, number)
    assert verdict["counts"]["touched"]["l3"] == 1


def test_array(cluster, submit):
    number = submit("-w", "cn1", "-N1", "-n4", "--array=1-4%2")
    assert wait_until(lambda: not why(cluster, f"{number}_2", check=False).returncode, 30)
    rows = [line.split() for line in why(cluster, number).stdout.split("\n")[1:-1]]
    assert [row[:3] for row in rows[:2]] == [[f"{number}_1", "running", "placed"], [f"{number}_2", "running", "placed"]]
    assert ["topiary:" in record for record in sorted(jobs(cluster, number), key=lambda r: "[" in r
                                                      or "ArrayTaskId=3-4" in r)] == [True, True, False]
    assert rows[2][:4] == [f"{number}_[3-4%2]", "pending", "-", "-"], "the verdict of another task"
    assert why(cluster, f"{number}_3", check=False).returncode == 1
    assert told(cluster, f"{number}_2")["job"] == f"{number}_2, running: placed by Topiary"
    refused = why(cluster, f"{number}_7", check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and f"job {number}_7: " in refused.stderr


def test_heterogeneous_job(cluster, submit):
    number = submit("-w", "cn1", "-n4", ":", "-w", "cn2", "-n8")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    assert [line.split()[0] for line in why(cluster, number).stdout.split("\n")[1:-1]] == [f"{number}+0", f"{number}+1"]
    assert told(cluster, f"{number}+1")["wanted"] == "8 tasks of 1 core on one node"
    assert why(cluster, f"{number}+2", check=False).returncode == 1


def test_job_without_a_verdict(cluster, submit):
    number = submit("--hold", "-n1")
    refused = why(cluster, number, check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert f"job {number}: no verdict: it is pending" in refused.stderr


def test_job_that_slurmctld_does_not_know(cluster):
    refused = why(cluster, "999999", check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert refused.stderr.endswith("job 999999: slurmctld does not know this job, or no longer, and neither does"
                                   " accounting: Slurm accounting storage is disabled\n"), refused.stderr


def test_job_with_fit_off(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n8", "--topo-fit=off"))
    assert rows["job"].endswith(", running: left to Slurm") and rows["because"] == "topo-fit is off"
    assert rows["wanted"] == "8 tasks of 1 core on one node"


def test_job_that_ended_before_it_started(cluster, submit):
    number = submit("--hold", "-n1")
    cluster.command(["scancel", number])
    refused = why(cluster, number, check=False)
    assert refused.returncode == 1 and refused.stderr.endswith("no verdict: it ended before it started\n"), refused
    waits = submit("-w", "cn1", "-N1", "-n4", "-B2:2", "--topo-fit=require", "--topo-level=package")
    assert wait_until(lambda: not why(cluster, waits, check=False).returncode, 30)
    assert told(cluster, waits)["choice"] == "1 of 1 node offered by Slurm had room"
    cluster.command(["scancel", waits])
    assert told(cluster, waits)["job"] == f"{waits}, ended: waited"


def test_named_node_is_not_compared_with_others(cluster, submit):
    """The other one is: it is what was chosen."""
    number = submit("-w", "cn2", "-N2", "-n16", "--exclude=cn3,cn4,cn5")
    wait_running(cluster, number)
    assert "beside" not in told(cluster, number)


def test_tasks_that_cannot_be_divided_evenly(cluster, submit):
    number = submit("-n70", "--exclude=cn3,cn4,cn5")
    wait_running(cluster, number)
    rows, cores = told(cluster, number), [len(cores) for cores in cores_of(cluster, number).values()]
    assert rows["wanted"] == f"70 tasks of 1 core on 2 nodes, at most {max(cores)} on each"
    assert sum(cores) == 70 and rows["choice"] == "2 of 2 nodes offered by Slurm had room"


@pytest.mark.parametrize("words", [[], ["x"], ["12.0"], ["0"], ["-1"], ["12_"], ["12+"], ["12_3+1"], ["1", "2"],
                                   ["99999999999"]], ids=str)
def test_usage_errors(cluster, words):
    refused = why(cluster, *words, check=False)
    assert refused.returncode == 64, refused.stderr
