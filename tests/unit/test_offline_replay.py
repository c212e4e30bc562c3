# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary replay on small records: what it prints, what it takes, what it refuses."""
import functools
import json
import random
import re

import pytest
from rig import command
from rig.paths import ROOT

SNAPSHOT = """topiary-snapshot 1
shape small Package:2 [NUMANode] L3Cache:1 Core:4 PU:1
shape large Package:2 [NUMANode] L3Cache:1 Core:6 PU:2
nodes cn[1-2] small
nodes cn[3-4] large
end
"""
HALVES = """topiary-snapshot 1
shape halves Package:2 [NUMANode(memory=8GiB)] Core:4 PU:1
nodes cn1 halves
end
"""
USUAL = ["stock", "block", "prefer"]


@pytest.fixture(name="snapshot")
def fixture_snapshot(tmp_path):
    path = tmp_path / "snapshot"
    path.write_text(SNAPSHOT)
    return path


topiary = functools.partial(command.topiary, "replay")


def replay(*args, **given):
    done = topiary("--json", *args, **given)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    return told, {policy["policy"]: policy for policy in told["policies"]}


def record(tmp_path, text, name="jobs"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_whole_package_for_six(snapshot, tmp_path):
    """Six cores fit into a package of cn3; Slurm takes the node with fewer cores, and both of its packages."""
    told, of = replay("--snapshot", snapshot, record(tmp_path, "1 0 0 60 1 12 1 - -\n"))
    assert [policy["policy"] for policy in told["policies"]] == USUAL
    assert (told["jobs"], told["skipped"], told["nodes"], told["cores"]) == (1, 0, 4, 40)
    assert of["prefer"]["dominated_percent"] == 0
    assert of["prefer"]["touched_to_ideal"] == 1 and of["prefer"]["broken_per_job"] == 0
    assert of["stock"]["dominated_percent"] == 100
    assert of["stock"]["split_package_percent"] == of["stock"]["split_l3_percent"] == 100
    assert of["stock"]["split_package_own_percent"] == 100 and of["block"]["split_package_own_percent"] == 0
    assert {policy["makespan_seconds"] for policy in of.values()} == {60}


def sacct(jobs):
    head = "JobID|Submit|Start|End|NNodes|NCPUS|State|NodeList|Partition"
    return "\n".join([head] + ["|".join(map(str, job)) for job in jobs]) + "\n"


def test_reads_sacct_output(snapshot, tmp_path):
    text = sacct([
        ("7", "2026-11-20T10:00:00", "2026-11-20T10:00:10", "2026-11-20T10:10:10", 2, 8, "COMPLETED",
         "cn[1-2]", "long"),
        ("7.batch", "2026-11-20T10:00:10", "2026-11-20T10:00:10", "2026-11-20T10:10:10", 1, 4, "COMPLETED", "cn1", ""),
        ("8_1", "2026-11-20T10:00:05", "2026-11-20T10:00:10", "2026-11-20T10:20:10", 1, 1, "FAILED", "cn3", "long"),
        ("9", "2026-11-20T10:00:05", "Unknown", "Unknown", 1, 1, "PENDING", "None assigned", "long"),
    ])
    told, of = replay("--snapshot", snapshot, "--policies", "prefer", record(tmp_path, text))
    assert (told["jobs"], told["skipped"], of["prefer"]["jobs"]) == (2, 1, 2)
    assert of["prefer"]["makespan_seconds"] == 1205
    assert replay("--snapshot", snapshot, "--policies", "prefer", "-", input=text) == (told, of)


def trace(jobs, seed):
    chance, lines, now = random.Random(seed), [], 0
    for job in range(jobs):
        now += chance.randrange(30)
        cores, run = chance.choice([1, 1, 2, 3, 4, 6, 8]), chance.randrange(20, 400)
        lines.append(f"{job}\t{now}\t{now}\t{now + run}\t{chance.choice([1, 1, 1, 2])}\t{2 * cores}\t1\t-\t-\n")
    return "".join(lines)


def test_prefer_crosses_fewest_boundaries(snapshot, tmp_path):
    jobs = record(tmp_path, trace(500, 1))
    told, of = replay("--snapshot", snapshot, "--policies", "stock,block,off,prefer,prefer:l3,require:numa,spread",
                      jobs)
    assert told["jobs"] == 500
    assert {name: policy["jobs"] + policy["refused"] for name, policy in of.items()} == dict.fromkeys(of, 500)
    assert of["off"] == {**of["stock"], "policy": "off"}
    assert of["prefer"]["dominated_percent"] == 0
    assert of["stock"]["dominated_percent"] > of["block"]["dominated_percent"] > 0
    assert of["require:numa"]["refused"] > 0 and of["require:numa"]["split_numa_percent"] == 0
    assert all(0 <= policy[f"{what}_percent"] <= 100 for policy in of.values()
               for what in ("utilisation", "loose_package", "loose_l3"))
    assert replay("--snapshot", snapshot, "--limit", 7, jobs)[0]["jobs"] == 7


def test_memory_of_sacct_is_counted(tmp_path):
    halves = record(tmp_path, HALVES, "halves")
    # NUMA nodes of 8 GiB; a job of 4 cores and 12 GiB, and one that is alone with 16 GiB
    text = ("JobID|Submit|Start|End|NNodes|NCPUS|ReqMem|\n1|0|0|9|1|4|12G|\n2|0|0|9|1|1|16G|\n3|0|0|9|1|1|17G|\n")
    _, of = replay("--snapshot", halves, "--policies=block,prefer,prefer:mem=off", record(tmp_path, text))
    assert {name: [p[key] for key in ("jobs", "refused", "memory_jobs", "memory_far_percent",
                                      "memory_needless_percent", "wait_mean_seconds")] for name, p in of.items()} == {
        "block": [2, 1, 2, 100, 50, 4.5], "prefer": [2, 1, 2, 50, 0, 4.5], "prefer:mem=off": [2, 1, 2, 100, 50, 4.5]}
    done = topiary("--snapshot", halves, "--policies=prefer", record(tmp_path, text))
    assert re.search(r"^memory requested, jobs +2$", done.stdout, re.M)


def test_several_records_are_one(snapshot, tmp_path):
    lines = trace(60, 2).splitlines(keepends=True)
    both = [record(tmp_path, "".join(lines[1::2]), "odd"), record(tmp_path, "".join(lines[::2]), "even")]
    assert replay("--snapshot", snapshot, *both) == replay("--snapshot", snapshot, record(tmp_path, "".join(lines)))


def test_jobs_of_a_real_cluster(tmp_path):
    """NREL Eagle, on fewer nodes than it had: who cannot run, and what each class waited, add up."""
    nodes = 200
    snapshot = record(tmp_path, "topiary-snapshot 1\nshape e Package:2 [NUMANode] L3Cache:1 Core:18 PU:1\n"
                      f"nodes r[1-{nodes}] e\nend\n", "snapshot")
    jobs = [list(map(int, line.split())) for line in (ROOT / "tests/data/eagle.jobs").read_text().splitlines()
            if line[0].isdigit()]
    never = [job for job in jobs if job[4] > nodes or -(-job[5] // job[4]) > 36]
    told, of = replay("--snapshot", snapshot, ROOT / "tests/data/eagle.jobs")
    assert (told["jobs"], told["skipped"], told["unreadable"]) == (len(jobs), 0, 0) == (1000, 0, 0)
    classes = ("quarter", "half", "node", "nodes", "gpu")
    for policy in of.values():
        assert (policy["jobs"], policy["refused"]) == (1000 - len(never), len(never))
        assert sum(policy[f"{name}_jobs"] for name in classes) == policy["jobs"]
        assert abs(sum(policy[f"{name}_jobs"] * policy[f"{name}_wait_mean_seconds"] for name in classes) -
                   policy["jobs"] * policy["wait_mean_seconds"]) < 6
    assert of["prefer"]["dominated_percent"] == 0 < of["stock"]["dominated_percent"]
    assert of["prefer"]["makespan_seconds"] <= of["stock"]["makespan_seconds"]


def test_nodes_that_an_swf_line_lists(snapshot, tmp_path):
    """The node of each processor behind the 18 values; one list names more nodes than the job has processors."""
    lists = ["1", "1,1", "1,2", "1,1,2,2", "3,3,3,4", "1,2,3,4", "4,4,4,4,4,4", "2,3", "", "1,2,3"]
    text = "".join(f"{nth} {20 * nth} 0 50 {cpus} -1 -1 {cpus} 90{' -1' * 9} {{{nodes}}}\n"
                   for nth, nodes in enumerate(lists) for cpus in [2 if nodes == "1,2,3" else len(nodes.split(","))])
    told, of = replay("--snapshot", snapshot, record(tmp_path, text))
    assert (told["jobs"], told["skipped"], told["unreadable"]) == (len(lists), 0, 0)
    assert [(policy["jobs"], policy["nodes_jobs"]) for policy in of.values()] == [(len(lists), 6)] * len(USUAL)


def test_table_for_people(snapshot, tmp_path):
    done = topiary("--snapshot", snapshot, "--policies=stock,prefer:l3", record(tmp_path, trace(50, 3)))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "50 jobs on 4 nodes with 40 cores"
    assert lines[2].split() == ["POLICY", "stock", "prefer:l3"]
    rows = {line[:-22].strip(): line.split()[-2:] for line in lines[3:]}
    assert [cells for name, cells in rows.items() if name.startswith("jobs")] == [["50", "50"]]
    counts = [int(line.split()[-1]) for line in lines if re.match("on .*: jobs ", line)]
    assert len(counts) == 4 and sum(counts) == 50
    assert len(lines) == 3 + 20 + 4 * 3 and all(len(cells) == 2 for cells in rows.values())


@pytest.mark.parametrize("nodes, says", [
    ("", "the snapshot lists no nodes"), ("shape A Core:2\nnodes cn[1-3,2] A", "the snapshot lists node cn2 twice"),
    ("shape A Core:2\nnodes cn[1 A", "'cn[1': invalid host list"), ("nodes cn1 B", ":2: undefined shape"),
])
def test_bad_snapshot_is_one_clear_error(nodes, says, tmp_path):
    snapshot = record(tmp_path, f"topiary-snapshot 1\n{nodes}\nend\n", "snapshot")
    refused(topiary("--snapshot", snapshot, record(tmp_path, trace(1, 1))), snapshot, says)


@pytest.mark.parametrize("text, says", [
    ("", ": no jobs in this file"), (sacct([]), ": no job in this file has started and ended"),
    (sacct([("7", 0, 0, 1, 1, 1, "", "cn1", ""), ("8", 0, 0, 1, 1, 1, "", "cn[4-5]", "")]),
     ":3: job 8 ran on cn5, which the snapshot does not have"),
])
def test_bad_record_is_one_clear_error(text, says, snapshot, tmp_path):
    jobs = record(tmp_path, text)
    refused(topiary("--snapshot", snapshot, jobs), jobs, says)


@pytest.mark.parametrize("policies, says", [
    ("best", "'best': invalid policy, expected one of: stock"),
    ("stock,require:cache", "'require:cache': --topo-level=cache"), ("", "the list is empty"),
    (",", "'': invalid policy, expected one of: stock"), ("stock:l3", "'stock:l3'"),
    ("prefer:weight=node", "'prefer:weight=node': weight=node: expected job, long or queue"),
    (",".join(["stock"] * 16), "more than 15"),
])
def test_bad_policies_are_one_clear_error(policies, says, snapshot, tmp_path):
    refused(topiary("--snapshot", snapshot, "--policies", policies, record(tmp_path, trace(1, 1))), "--policies", says)


def refused(done, where, says):
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(where) in done.stderr and says in done.stderr


def test_usage(snapshot):
    assert "at least one file of JOBS is required" in topiary("--snapshot", snapshot).stderr
    for limit in ("0", "-1", "x", "1x"):
        assert topiary("--limit", limit, "jobs").returncode == 64


@pytest.mark.parametrize("snapshot_there", [True, False], ids=["snapshot", "no snapshot"])
def test_mistyped_file_is_named(snapshot, tmp_path, snapshot_there):
    """Whatever else is wrong: the site's snapshot may be missing where this runs."""
    place = ["--snapshot", snapshot if snapshot_there else tmp_path / "none"]
    for jobs in ("nowhere", "jobs.trace", tmp_path / "x" / "y"):
        done = topiary(*place, jobs)
        assert (done.returncode, done.stdout, done.stderr) == \
            (1, "", f"topiary: replay: {jobs}: No such file or directory\n")
    trace_file = command.trace_made(tmp_path / "cn1.trace", "Core:2 PU:1", 3)
    done = topiary(*place, trace_file)
    assert (done.returncode, done.stdout) == (1, "")
    assert (done.stderr == f"topiary: replay: {trace_file}: a trace of a node, expected past jobs: "
            "use topiary trace replay\n")
