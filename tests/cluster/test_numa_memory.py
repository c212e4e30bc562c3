# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A job's cores are where their own NUMA nodes have its memory, which Slurm counts by the node only."""
import json

import pytest
from rig.ask import cores_of, jobs, wait_running
from rig.cluster import JOB_USER
from rig.node import configured
from rig.processes import wait_until

# cn1: 8 NUMA nodes of 8 cores, of which the sixth has half as much memory as the others: 15 halves in all.
SMALL = 5


class Node:
    """cn1, and jobs on it that end with the test."""

    def __init__(self, cluster, submit):
        self.cluster, self.submit_any = cluster, submit
        told = cluster.command(["scontrol", "-o", "show", "node", "cn1"]).stdout
        self.unit = int(dict(word.split("=", 1) for word in told.split() if "=" in word)["RealMemory"]) * 2 // 15

    def submit(self, cores, share, *options):
        """A job with `share` of the memory of one of the larger NUMA nodes."""
        return self.submit_any("-w", "cn1", "-N1", f"-n{cores}", f"--mem={int(share * self.unit)}", *options)

    def where(self, number):
        """{NUMA node: cores} of a job once it runs."""
        wait_running(self.cluster, number)
        numas = [core // 8 for core in cores_of(self.cluster, number)["cn1"]]
        return {numa: numas.count(numa) for numa in sorted(set(numas))}

    def place(self, *job):
        return self.where(self.submit(*job))

    def refused(self, cores, share, *options):
        return self.cluster.batch("true", "-w", "cn1", "-N1", f"-n{cores}", f"--mem={int(share * self.unit)}",
                                  "--output=/dev/null", *options, check=False).stderr


@pytest.fixture
def node(cluster, submit):
    return Node(cluster, submit)


def test_memory_off_packs_cores_alone(node):
    places = [node.place(1, 0.75, "--topo-mem=off") for _ in range(3)]
    assert places[0] == places[1] == places[2]


def test_memory_is_near(node):
    places = [node.place(1, 0.75) for _ in range(3)]
    assert len({numa for place in places for numa in place}) == 3
    assert SMALL not in {numa for place in places for numa in place}


def test_jobs_with_little_memory_share_a_numa_node(node):
    assert len({numa for job in ((1, 0.2), (1, 0.2), (2, 0.5)) for numa in node.place(*job)}) == 1


def test_more_memory_than_one_numa_node_has_is_divided_as_the_cores_are(node):
    """Two thirds of it fit into one: two of its three cores."""
    assert sorted(node.place(3, 1.5).values()) == [1, 2]
    assert sorted(node.place(4, 1.9).values()) == [2, 2]


def test_memory_for_each_cpu(node, submit):
    number = submit("-w", "cn1", "-N1", "-n6", f"--mem-per-cpu={int(node.unit * 0.3)}")
    assert sorted(node.where(number).values()) == [3, 3]


def test_tasks_that_spread(node):
    node.place(1, 0.9)
    taken = node.place(1, 0.9)
    assert not set(taken) & set(node.place(4, 2, "--topo-fit=spread"))


def test_small_numa_node_gets_small_jobs(node):
    places = [node.place(8, 0.9) for _ in range(7)]
    assert sorted(numa for place in places for numa in place) == [0, 1, 2, 3, 4, 6, 7]


def test_far_memory_is_said(node):
    for _ in range(7):
        node.place(8, 0.9)
    number = node.submit(8, 0.9)
    assert node.where(number) == {SMALL: 8}, "a job that prefers does not wait"
    told = node.cluster.topiary("why", "-v", number, user=JOB_USER).stdout
    assert ("memory   on 1 of 1 node, it requests more than the NUMA nodes of its cores have free: part of it may be"
            " far\n" in told)
    (told,) = json.loads(node.cluster.topiary("why", "--json", number, user=JOB_USER).stdout)["jobs"]
    assert told["verdict"]["memory_far"] == 1


def test_require_waits_until_memory_is_free(node):
    running = [node.submit(8, 0.9) for _ in range(7)]
    places = [node.where(number) for number in running]
    waiting = node.submit(8, 0.9, "--topo-mem=require")
    assert wait_until(lambda: "topiary:1 waits" in jobs(node.cluster, waiting)[0], 30, 0.2)
    told = node.cluster.topiary("why", "-v", waiting, user=JOB_USER).stdout
    assert f"it requires 1 node with 8 cores and {int(0.9 * node.unit)} MB free in their NUMA nodes" in told
    node.cluster.command(["scancel", running[3]])
    assert node.where(waiting) == places[3]


def test_requirement_that_no_node_meets_is_refused(node):
    refusal = node.refused(1, 1.2, "--topo-mem=require")
    assert "node configuration is not available" in refusal and "has 1 core whose NUMA nodes hold " in refusal
    assert node.refused(2, 1.2, "--topo-mem=require") == ""


# cn3 has two NUMA nodes, with more memory each than cn1's eight: its three of these hold what two of cn1's do not.
UNEVEN = ("-w", "cn1,cn3", "-N2", "--topo-mem=require")


@pytest.mark.parametrize("tasks, on_cn1", [("-n4", 3), ("-n6", 3), ("-n40", 20)])
def test_tasks_are_divided_as_memory_allows(node, submit, tasks, on_cn1):
    """Half of four tasks would have two NUMA nodes of cn1, which do not hold the memory."""
    number = submit(*UNEVEN, tasks, f"--mem={int(2.2 * node.unit)}")
    wait_running(node.cluster, number)
    mine = cores_of(node.cluster, number)
    assert len(mine["cn1"]) == on_cn1 and len(mine["cn3"]) == (int(tasks[2:]) - on_cn1 + 1) // 2, "cn3 has two threads"
    numas = [core // 8 for core in mine["cn1"]]
    assert max(map(numas.count, numas)) <= len(numas) / 2.2


@pytest.fixture
def defaults(node):
    """A partition of cn1 with this default of memory, in MB."""
    def make(**words):
        node.cluster.command(["scontrol", "create", "PartitionName=lent", "Nodes=cn1", "State=UP",
                              *(f"{name}={value}" for name, value in words.items())])
    yield make
    node.cluster.command(["scancel", "--quiet", "--partition=lent"], check=False)
    assert wait_until(lambda: not node.cluster.command(["squeue", "-h", "-p", "lent"]).stdout, 60)
    node.cluster.command(["scontrol", "delete", "PartitionName=lent"])


@pytest.mark.parametrize("default, share, cores, numas", [
    ("DefMemPerCPU", 0.3, "-n6", [3, 3]), ("DefMemPerNode", 2.2, "-n3", [1, 1, 1]), ("DefMemPerNode", 0.9, "-n3", [3]),
])
def test_memory_that_the_partition_gives(node, submit, defaults, default, share, cores, numas):
    defaults(**{default: int(share * node.unit)})
    number = submit("-p", "lent", "-N1", cores, "--topo-mem=require")
    assert sorted(node.where(number).values()) == numas


@pytest.mark.parametrize("default", ["DefMemPerCPU", "DefMemPerNode"])
def test_memory_that_the_partition_gives_and_no_numa_node_has(node, defaults, default):
    mem = int(1.2 * node.unit)
    defaults(**{default: mem})
    refused = node.cluster.batch("true", "-p", "lent", "-N1", "-n1", "--topo-mem=require", check=False).stderr
    assert f"no node that the job may get has 1 core whose NUMA nodes hold {mem} MB\n" in refused, refused


def test_requirement_that_no_division_meets_is_refused(node):
    mem = int(2.2 * node.unit)
    refused = node.cluster.batch("true", *UNEVEN, "-n3", f"--mem={mem}", check=False).stderr
    assert ("--topo-mem=require: the job's 3 tasks cannot be divided among 2 nodes that each have cores whose NUMA"
            f" nodes hold {mem} MB: cn1 holds 3, cn3 holds 1-3\n" in refused), refused


def replace(path, text):
    """At once: slurmds may be reading it, for the change before, and end where it is empty."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def test_requirement_of_the_site_is_refused_with_its_reason(node):
    slurm_conf = node.cluster.folder / "etc" / "slurm.conf"
    plain = slurm_conf.read_text()
    words = "TopoMem=require in slurmctld's topiary.conf: no node that the job may get has 1 core whose NUMA nodes hold"
    with configured(node.cluster, "TopoMem = require\n"):
        replace(slurm_conf, plain.replace("DefMemPerCPU=10\n", ""))
        node.cluster.command(["scontrol", "reconfigure"])
        replace(slurm_conf, plain)
        assert wait_until(lambda: words in node.refused(1, 1.2), 30, 0.5), node.refused(1, 1.2)
        # Without a default, --topo-mem=require means nothing.
        said = node.cluster.batch("true", "-w", "cn1", "-n1", "--topo-mem=require", "--output=/dev/null").stderr
        assert "--topo-mem=require has no effect: the job requests no memory" in said, said
    node.cluster.command(["scontrol", "reconfigure"])
    assert wait_until(lambda: node.refused(1, 1.2) == "", 30, 0.5), node.refused(1, 1.2)
    # One that was submitted before slurmctld had the requirement may still wait.
    node.cluster.command(["scancel", "--quiet", f"--user={JOB_USER}"])
    assert wait_until(lambda: not node.cluster.command(["squeue", "-h"]).stdout, 60)


def test_tasks_that_spread_and_are_larger_than_a_domain(node):
    """To be spread is a preference: what is required is that their memory is near."""
    options = ["--topo-fit=spread", "--topo-mem=require"]
    for cores, became in ((9, True), (8, False)):
        number = node.submit(1, 0.1, f"-c{cores}", *options)
        assert sum(node.where(number).values()) == cores
        said = node.cluster.topiary("why", "-v", number, user=JOB_USER).stdout
        assert ("fit spread became prefer: its tasks could not be spread" in said) == became, said
        assert "per task if possible (fit spread)" in said, said
    refused = node.refused(1, 8, *options)
    assert "no node that the job may get has 1 core whose NUMA nodes hold " in refused, refused


@pytest.mark.parametrize("options, words", [
    (("--topo-mem=require", "--overcommit"), "--topo-mem=require cannot be met: --overcommit"),
    (("--topo-mem=require", "--topo-fit=off"), "--topo-mem=require cannot be met: topo-fit is off"),
    (("--topo-mem=near",), "--topo-mem=near: invalid value, expected one of: off, prefer, require"),
    (("--comment=topo-mem=near",), "--topo-mem=near: invalid value, expected one of: off, prefer, require"),
])
def test_what_cannot_be_met(node, options, words):
    assert words in node.refused(2, 0.1, *options)


def test_whole_nodes_have_all_their_memory(node):
    number = node.submit(4, 3, "--exclusive", "--topo-mem=require")
    assert sum(node.where(number).values()) == 64


def test_running_jobs_survive_a_restart_of_slurmctld(node):
    before = [node.place(2, 0.9), node.place(2, 0.9)]
    node.cluster.end("slurmctld")
    node.cluster.start_slurmctld()
    after = [node.place(2, 0.9), node.place(2, 0.9)]
    assert len({numa for place in before + after for numa in place}) == 4


def test_suspended_jobs_keep_their_memory(node):
    first = node.submit(2, 0.9)
    place = node.where(first)
    node.cluster.command(["scontrol", "suspend", first])
    assert not set(node.place(2, 0.9)) & set(place)
    node.cluster.command(["scontrol", "resume", first])


def test_a_job_that_ends_gives_its_memory_back(node):
    first = node.submit(2, 0.9)
    place = node.where(first)
    node.cluster.command(["scancel", first])
    assert wait_until(lambda: node.cluster.job_state(first) == "CANCELLED", 30, 0.2)
    assert node.place(2, 0.9) == place
