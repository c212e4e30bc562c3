# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""GPUs and other countable things: granted and waited for as under stock Slurm; the cores of a job are near its GPU."""
import json
import re

import pytest
from rig.ask import expand, fields, jobs
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until

from .conftest import GPUS, KEPT
from .pair import cores, cuts, running

BESIDE_GPU = 16     # cores of the package that a GPU is at
TOLD_BY = pytest.mark.parametrize("node", ["big1", "big2"], ids=["told by gres.conf", "told by the snapshot"])


def gpus(record):
    """Indices of the GPUs that a job was granted on its node."""
    return expand(re.search(r"GRES=\S*gpu(?::\w+)?:\d+\(IDX:([\d,-]+)\)", record).group(1))


def packages(taken):
    return {core // BESIDE_GPU for core in taken}


@TOLD_BY
@pytest.mark.parametrize("words", ["-n3 --gpus=1", "-n1 --gpus-per-task=1 --cpus-per-gpu=4",
                                   "-n8 --gres=gpu:1 --gres-flags=enforce-binding"])
def test_cores_are_at_the_gpu(rich, node, words):
    ours, _ = rich.fates([f"-N1 -w {node} {words}"])
    placed = cores(rich.ours, ours[0])
    assert packages(placed[node]) == set(gpus(ours[0]))
    assert not cuts(placed)


def test_memory_by_gpu_is_within_the_node(rich):
    """All GPUs of a node with more memory than it has: not all of them on one node, as under stock Slurm."""
    told = rich.ours.command(["scontrol", "-o", "show", "node", "big1,big2"]).stdout
    each = max(map(int, re.findall(r"RealMemory=(\d+)", told))) // GPUS + 1
    ours, stock = rich.fates([f"-n2 --gpus={GPUS} --mem-per-gpu={each}"])
    assert [fields(r)["NumNodes"] for r in ours] == [fields(r)["NumNodes"] for r in stock]
    ours, _ = rich.fates([f"-N1 -w big1 -n1 --mem={2 * each}",
                          f"-N1 -w big1 -n1 --gpus-per-node=2 --mem-per-gpu={each}"])
    assert [fields(r)["JobState"] for r in ours] == ["RUNNING", "PENDING"]


@TOLD_BY
def test_job_without_gpus_spares_the_cores_near_free_ones(rich, node):
    """Four cores are left beside a free GPU and beside one that is in use: by the cores alone one is as good as the
    other, and the first would be taken."""
    ours = rich.ours

    def place(*words):
        number, at = running(ours, "-N1", "-w", node, *words)
        return number, packages(at[node])

    first, at = place("-n12", "--gres=gpu:1")
    assert at == {0}
    assert place("-n12", "--gres=gpu:1")[1] == {1}
    ours.command(["scancel", first])
    assert wait_until(lambda: fields(jobs(ours, first)[0])["JobState"] == "CANCELLED", 10)
    assert place("-n12")[1] == {0}
    assert place("-n4")[1] == {1}
    last, at = place("-n4", "--gres=gpu:1")
    assert at == {0} and gpus(jobs(ours, last)[0]) == [0]


@TOLD_BY
def test_why_names_gpus_that_are_far(rich, node):
    ours = rich.ours

    def placed(*words):
        number, _ = running(ours, "-N1", "-w", node, *words)
        (told,) = json.loads(ours.topiary("why", "--json", number).stdout)["jobs"]
        return number, [told["verdict"][name] for name in ("gpus", "gpus_far", "cores_far")]

    number, told = placed("-n8", "--gres=gpu:1")
    assert told == [1, 0, 0] and "GPUs     1, near its cores\n" in ours.topiary("why", "-v", number).stdout
    assert placed("-n1", "-c32", "--gres=gpu:1")[1] == [1, 0, BESIDE_GPU]
    assert placed("-n20")[1] == [0, 0, 0]
    number, told = placed("-n4", "--gres=gpu:2")
    (record,) = jobs(ours, number)
    assert told == [2, 2, 4] and not packages(cores(ours, record)[node]) & set(gpus(record))
    assert "2 of 2 are far from all of its cores, 4 of its cores are far" in ours.topiary("why", "-v", number).stdout
    audit = json.loads(ours.topiary("audit", "--json").stdout)
    assert [(job["gpus"], job["gpus_far"]) for job in audit["jobs"] if job["job"] == number] == [(2, 2)]


@pytest.mark.parametrize("submissions", [
    ["-n60 -w big1", "-n2 --gres=gpu:4 -w big1"],
    ["-n1 --gres=gpu:3 -w big2", "-n1 --gres=gpu:1 -w big2", "-n1 --gres=gpu:1 -w big2"],
    ["-n64 -w big2", "-n1 --gres=gpu:1 -w big2"],
    ["-n2 --gpus-per-socket=1 --sockets-per-node=2 -w big1"],
    ["--exclusive -n1 --gres=gpu:2 -w big1"],
], ids=", ".join)
def test_same_outcome_as_stock_slurm_with_gpus(rich, submissions):
    rich.fates(submissions)


@pytest.mark.parametrize("submissions", [
    ["-n8 --gres=widget:5 -w big1", "-n8 --gres=widget:3 -w big1", "-n8 --gres=widget:1 -w big1"],
    ["-n2 --gres=widget:2 -w mid1", "-n2 --gres=widget:2 -w mid1"],
    ["-n1 --gres=nothing:1"],
    ["-n8 --gres=gpu:1,widget:2"],
], ids=", ".join)
def test_same_outcome_as_stock_slurm_with_other_gres(rich, submissions):
    rich.fates(submissions)


def test_other_gres_do_not_affect_the_cores(rich):
    ours, _ = rich.fates(["-N1 -n8 --gres=widget:5 -w big1"])
    assert not cuts(cores(rich.ours, ours[0]))


def test_job_without_gpus_leaves_no_gpu_without_cores(rich):
    ours, _ = rich.fates(["-N1 -w big2 -n16", "-N1 -w big2 -n8 --gres=gpu:1"])
    assert [fields(record)["JobState"] for record in ours] == ["RUNNING"] * 2


# --- RestrictedCoresPerGPU

if SLURM_RELEASE >= (24, 5):
    FREE = BESIDE_GPU - KEPT

    @pytest.mark.parametrize("words", ["-n8", "-n7 --topo-fit=require --topo-level=package",
                                       f"-n{FREE} --topo-fit=require --topo-level=package",
                                       "-n8 --topo-fit=require --topo-level=l3", "-n16 --topo-fit=spread"])
    def test_a_job_without_gpus_has_no_core_that_is_kept_for_them(restricted, words):
        stock = words.partition(" --topo")[0]
        ours, _ = restricted.both(lambda c: running(c, *(stock if c.stock else words).split())[1])
        assert not {core for core in ours["big1"] if core % BESIDE_GPU < KEPT}
        if "spread" not in words:
            assert not cuts(ours)

    def test_a_job_with_gpus_has_no_core_that_is_kept_for_others(restricted):
        """GPU 1 is in use by a job with cores at GPU 0, so that all cores beside GPU 1 are free. Near a free GPU are
        only those kept for it."""
        ours, beside = restricted.ours, None
        running(ours, "-n1", "-c2", "--gres=gpu:2")
        for _ in range(GPUS):
            number, placed = running(ours, f"-n{FREE}", "--topo-fit=require", "--topo-level=package")
            beside = number if packages(placed["big1"]) == {1} else beside
        ours.command(["scancel", beside])
        assert wait_until(lambda: fields(jobs(ours, beside)[0])["JobState"] == "CANCELLED", 10)
        number, placed = running(ours, "-n4", "--gres=gpu:1")
        assert len(gpus(jobs(ours, number)[0])) == 1
        assert not {core for core in placed["big1"] if core // BESIDE_GPU == 1 and core % BESIDE_GPU < KEPT}

    @pytest.mark.parametrize("submissions", [
        [f"-n{GPUS * FREE}", "-n1", "-n2 --gres=gpu:1", "-n4 --gres=gpu:2", "-n2 --gres=gpu:1"],
        [f"-n{GPUS * FREE + 1}", "-n8"],
        ["--exclusive -n1", "-n1"],
        ["-n16 --gres=gpu:1", "-n16 --gpus=1", "-n30", "-n2 --gres=gpu:1"],
    ], ids=", ".join)
    def test_same_outcome_beside_cores_kept_for_gpus(restricted, submissions):
        restricted.fates(submissions)
