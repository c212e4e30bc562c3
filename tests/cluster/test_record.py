# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary record in a job's steps: a trace per rank, of the PUs of the job; tasks as without it where nothing can be
recorded."""
import json
import subprocess

import pytest
from rig.cluster import JOB_USER, as_user

BURN = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo rank $SLURM_PROCID"


@pytest.fixture(autouse=True)
def needs_a_kernel_that_counts(cluster):
    """Containers may forbid it, and kernel.perf_event_paranoid of 3 or more forbids it to users."""
    folder = cluster.folder / "work" / "record"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    done = subprocess.run(as_user(JOB_USER, [cluster.build / "topiary", "record", "true"]), cwd=folder,
                          capture_output=True, text=True, timeout=60, check=True)
    if "not recorded: perf_event_open: " in done.stderr:
        pytest.skip("the kernel lets no user count here")


def run(cluster, node, ranks, *options):
    folder = cluster.folder / "work" / f"record.{node}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    done = cluster.command(["srun", "-Q", "-w", node, f"-n{ranks}", f"--chdir={folder}", *options,
                            cluster.build / "topiary", "record", "--hz=20", "sh", "-c", BURN], user="nobody")
    assert sorted(done.stdout.split("\n")) == ["", *(f"rank {i}" for i in range(ranks))], done
    return done.stderr, sorted(folder.glob("*.trace"))


def test_each_rank_has_a_trace_of_the_jobs_pus(cluster):
    """On this very hardware, where the kernel can count."""
    said, traces = run(cluster, "cn5", 2, "--topo-place=scatter")
    assert [path.name.split(".")[2:] for path in traces] == [["0", "0", "trace"], ["0", "1", "trace"]], said
    for rank, path in enumerate(traces):
        found = json.loads(cluster.command([cluster.build / "topiary", "trace", "summary", path, "--level=PU",
                                            "--json"]).stdout)
        busy = {m["object"]: m["total"] for m in found["metrics"] if m["metric"] == "busy"}
        assert found["complete"] and max(busy, key=busy.get) == rank, busy


def test_node_with_other_pus_than_this_kernel(cluster):
    """As any machine where the kernel counts nothing: the tasks run, and each says why there is no trace."""
    said, traces = run(cluster, "cn1", 4)
    assert not traces and said.count("not recorded: perf_event_open of busy on PU 2: ") == 4, said
