# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary bench node: what this machine takes, on the cores that the process may use."""
import json
import os
import re

import pytest
from rig.command import run, topiary
from rig.paths import BUILD

TOPIARY = BUILD / "topiary"
PUS = sorted(os.sched_getaffinity(0))


def bench(*options, pus=None, **how):
    command = [*(["taskset", "-c", ",".join(map(str, pus))] if pus else []), TOPIARY, "bench", *options]
    return run(*command, **how)


@pytest.fixture(scope="module")
def measured():
    done = bench("node", "--json", "--time=10", status=0)
    return json.loads(done.stdout)


def test_memory_of_each_numa_node(measured):
    rows = measured["memory"]
    assert len(rows) == measured["numa_nodes"] ** 2
    assert {row["from"] for row in rows} == {row["to"] for row in rows}
    assert any(row["latency_seconds"] and row["bytes_per_second"] for row in rows)


def test_latency_is_less_than_that_of_a_disk(measured):
    """A cycle of dependent loads, in nanoseconds: neither optimised away nor a page fault each."""
    assert all(1e-10 < row["latency_seconds"] < 1e-5 for row in measured["memory"] if row["latency_seconds"])


def test_bandwidth_by_number_of_cores(measured):
    if measured["cores"] == 1:
        assert not measured["domains"]
        return
    outer = [row for row in measured["domains"] if row["level"] == measured["domains"][0]["level"]]
    assert [row["used"] for row in outer][0] == 1 and outer[-1]["used"] == outer[-1]["cores"]
    assert all(row["bytes_per_second"] > 0 for row in outer if row["bytes_per_second"] is not None)


def test_pairs_of_cores(measured):
    assert bool(measured["cache_line"]) == (measured["cores"] > 1)
    assert all(row["pairs"] and 0 < row["seconds"] < 1e-3 for row in measured["cache_line"])


def test_costs_are_taken_by_map(measured, tmp_path):
    costs = dict(word.split("=") for word in measured["costs"].split(","))
    assert list(costs)[:7] == ["node", "package", "die", "numa", "l3", "l2", "core"]
    numbers = [float(n) for n in list(costs.values())[:7]]
    assert numbers == sorted(numbers, reverse=True)
    (tmp_path / "matrix").write_text("0 1\n1 0\n")
    (tmp_path / "snapshot").write_text("topiary-snapshot 1\nshape A Package:2 Core:2 PU:1\nnodes n1 A\nend\n")
    done = topiary("map", "--matrix=matrix", "--snapshot=snapshot", "--nodes=n1", f"--costs={measured['costs']}",
                   cwd=tmp_path)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2, done.stderr


def test_result_of_another_node(measured, tmp_path):
    """What --json printed is read back, whatever this machine is."""
    (tmp_path / "result").write_text(json.dumps(measured))
    done = bench("node", "--json", f"--from={tmp_path}/result")
    assert json.loads(done.stdout) == measured, done.stderr
    assert bench("node", "--costs", f"--from={tmp_path}/result").stdout == measured["costs"] + "\n"
    measured = {**measured, "cores": 0}
    (tmp_path / "result").write_text(json.dumps(measured))
    done = bench("node", f"--from={tmp_path}/result")
    assert done.returncode == 1 and f"{tmp_path}/result: cores, numa_nodes: expected at least 1" in done.stderr


def test_one_core_only():
    """Of the process, not of the machine: no core that it may not use is measured."""
    done = bench("node", "--json", "--time=5", pus=PUS[:1])
    found = json.loads(done.stdout)
    assert found["cores"] == 1 and not found["cache_line"] and not found["domains"]


def test_tables():
    done = bench("node", "--time=5", status=0)
    for words in ("MEMORY OF NUMA NODE", "LATENCY", " GB/s", " ns"):
        assert words in done.stdout


@pytest.mark.parametrize("options, words", [
    (["cluster"], "cluster: unknown, expected node or show"), ([], "node"), (["node", "--time=0"], "--time=0"),
    (["show"], "expected show NODE"), (["node", "--node=x"], "--node requires --send"),
    (["node", "--send", "--node=a b"], "not the name of a node"), (["node", "--send", "--costs"], "exclude each other"),
    (["show", "cn1", "--send"], "require node"), (["node", "cn1"], "expected node"),
])
def test_bad_input(options, words):
    done = bench(*options)
    assert done.returncode == 64 and words in done.stderr and not done.stdout


@pytest.mark.parametrize("text, words", [
    ("", "line 1"), ("{", "line 1"), ("[]", "cores"), ('{"cores": 1, "cores": 2}', "duplicate"),
])
def test_bad_result(text, words, tmp_path):
    (tmp_path / "result").write_text(text)
    done = bench("node", f"--from={tmp_path}/result")
    assert done.returncode == 1 and words in done.stderr and f"{tmp_path}/result" in done.stderr and not done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("how", ["scattered", "packed"])
def test_walk_is_recorded(how, tmp_path):
    """bench/walk: lists that do not fit into the cache are slower, where other programs leave it one of ten times; and
    all eight threads run as long as they are to."""
    for _ in range(10):
        done = topiary("record", "-r", "20", "-o", tmp_path / "trace", BUILD / "bench/walk", how, "500", status=0)
        small, large = map(int, re.fullmatch(rf"{how}: (\d+) steps in small lists, (\d+) in large ones\n",
                                             done.stdout).groups())
        assert large > 0
        if small > large:
            break
    else:
        pytest.fail(f"never slower: {small}, {large}")
    if "not recorded" not in done.stderr:
        done = topiary("trace", "summary", tmp_path / "trace", "--json", status=0)
        busy, = (m["total"] for m in json.loads(done.stdout)["metrics"] if m["metric"] == "busy")
        assert busy > 0.3e9
