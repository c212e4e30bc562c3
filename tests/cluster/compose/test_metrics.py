# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""slurmctld's own metrics (MetricsType, 25.11) count as under stock Slurm; no name of topiaryd's is among them."""
import re
import urllib.request

import pytest
from rig import Cluster
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until

from .pair import Pair, running, settled, submit

NODES = {"big1": "amd-4x16", "mid1": "intel-2x8"}
COUNTS = ("nodes", "jobs", "partitions", "jobs-users-accts")
PAGES = (*COUNTS, "scheduler")
FREE_MEMORY = re.compile(r"mem(ory)?_free")     # of the machine, as it is at the moment


def read(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
        return answer.read().decode()


def values(text):
    return dict(line.rsplit(" ", 1) for line in text.split("\n") if line and not line.startswith("#"))


def names(text):
    return {re.match(r"\w+", line)[0] for line in values(text)}


if SLURM_RELEASE >= (25, 11):
    @pytest.fixture(scope="module")
    def metered_pair(folders):
        conf = "MetricsType=metrics/openmetrics\nPartitionName=whole Nodes=ALL OverSubscribe=EXCLUSIVE\n"
        with Cluster(folders(), NODES, conf=conf) as ours, Cluster(folders(), NODES, conf=conf, stock=True) as stock:
            yield Pair(ours, stock)

    @pytest.fixture
    def metered(metered_pair):
        yield metered_pair
        metered_pair.clean()

    def slurms(cluster, page):
        return read(cluster.ports["ctld"], f"metrics/{page}")

    def test_numbers_equal_stock_slurm(metered):
        def run(cluster):
            running(cluster, "-n8", "-w", "big1")
            running(cluster, "-n3", "-c2", "-w", "mid1", "--mem=100")
            held = submit(cluster, "-n2", "--hold")
            waits = submit(cluster, "-n1", "-p", "whole", "-w", "big1")
            settled(cluster, waits)
            told = [values(slurms(cluster, page)) for page in COUNTS]
            cluster.command(["scancel", held])
            return {name: value for page in told for name, value in page.items() if not FREE_MEMORY.search(name)}

        told = metered.agree(run)
        assert told['slurm_node_cpus_alloc{node="big1"}'] == "8"
        assert told["slurm_jobs_running"] == told["slurm_jobs_pending"] == "2"
        assert told['slurm_partition_jobs{partition="whole"}'] == "1"

    def test_names_are_slurms_or_topiarys(metered):
        ours, stock = metered.both(lambda cluster: {name for page in PAGES for name in names(slurms(cluster, page))})
        assert ours == stock and len(ours) > 100
        topiarys = names(read(metered.ours.ports["http"], "metrics"))
        assert {name.partition("_")[0] for name in topiarys} == {"topiary"}
        assert {name.partition("_")[0] for name in ours} == {"slurm"}

    def test_both_are_read_while_jobs_start(metered):
        cluster = metered.ours
        number = submit(cluster, "-n1", "--array=1-40", script="exec true")
        pages = 0

        def done():
            nonlocal pages
            assert names(slurms(cluster, "jobs")) and names(read(cluster.ports["http"], "metrics"))
            pages += 1
            return not cluster.command(["squeue", "-h", "-j", number], check=False).stdout

        assert wait_until(done, 30, 0) and pages > 1
        assert int(values(slurms(cluster, "jobs"))["slurm_jobs_completed"]) >= 40
