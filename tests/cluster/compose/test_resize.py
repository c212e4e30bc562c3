# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A job that gives nodes back keeps its other cores, and what it gave back is free; growing is as refused as under
stock Slurm."""
import pytest
from rig.ask import fields, jobs, wait_running
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until

from .pair import cores, cuts, fate, running, settled, submit


def test_shrinking_job_releases_a_node(plain):
    def run(cluster):
        number, had = running(cluster, "-N2", "-n128", "-C", "wide", "--ntasks-per-node=64")
        waiting = submit(cluster, "-n8", "-C", "wide")
        before = fate(cluster, settled(cluster, waiting)[0])
        cluster.command(["scontrol", "update", f"JobId={number}", f"NodeList={min(had)}"])
        wait_running(cluster, waiting)
        left = cores(cluster, jobs(cluster, number)[0])
        assert all(had[node] == taken for node, taken in left.items())
        return waiting, (before, [fate(cluster, jobs(cluster, n)[0]) for n in (number, waiting)], list(left))

    (waiting, ours), (_, stock) = plain.both(run)
    assert ours == stock
    assert not cuts(cores(plain.ours, jobs(plain.ours, waiting)[0]))


def test_growing_is_refused_by_default(plain):
    def run(cluster):
        number, _ = running(cluster, "-n8", "-w", "big1")
        return settled(cluster, submit(cluster, "-n8", "-w", "big2", f"--dependency=expand:{number}"))[0]

    refusal = plain.agree(run)
    assert "JobState" not in fields(refusal), refusal


@pytest.mark.parametrize("words", ["MinMemoryNode=3000", "MinMemoryCPU=300", "MinMemoryNode=100000", "NumCPUs=16"])
def test_more_is_refused_as_by_stock_slurm(plain, words):
    def run(cluster):
        number, had = running(cluster, "-n8", "-w", "big1", "--mem=2000")
        done = cluster.command(["scontrol", "update", f"JobId={number}", *words.split()], check=False)
        record = jobs(cluster, number)[0]
        assert cores(cluster, record) == had
        told = done.stderr.replace(str(number), "NUMBER")
        return done.returncode != 0, told, fate(cluster, record), fields(record)["MinMemoryNode"]

    assert plain.agree(run)[0]


if SLURM_RELEASE >= (26, 5):
    @pytest.fixture
    def contained(pairs):
        """Slurm reduces a running job's memory by its extern step."""
        pair = pairs({"big1": "amd-4x16"}, nodes={"big1": "RealMemory=16000"}, conf="PrologFlags=contain\n")
        yield pair
        pair.clean()

    def test_job_gives_memory_back(contained):
        def run(cluster):
            number, _ = running(cluster, "-n8", "--mem=15000")
            waiting = submit(cluster, "-n8", "--mem=10000", *[] if cluster.stock else ["--topo-fit=require"])
            before = fields(settled(cluster, waiting)[0])["JobState"]
            cluster.command(["scontrol", "update", f"JobId={number}", "MinMemoryNode=5000"])
            wait_running(cluster, waiting)
            assert wait_until(lambda: fields(jobs(cluster, waiting)[0])["Reason"] != "Prolog", 10)
            return waiting, (before, fate(cluster, jobs(cluster, waiting)[0]))

        (waiting, ours), (_, stock) = contained.both(run)
        assert ours == stock and ours[0] == "PENDING"
        assert not cuts(cores(contained.ours, jobs(contained.ours, waiting)[0]))
