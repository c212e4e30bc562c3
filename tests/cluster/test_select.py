# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The scheduler cuts along hardware boundaries, where stock Slurm does not; and where it has no say, it is stock
Slurm."""
import pytest
from rig.ask import cores_of, wait_running

DOMAIN = 8     # cores of an L3 and its NUMA node on cn1; 16 in a package
SLEEP = "sleep 60"


def domains(cores, size):
    return {core // size for core in cores}


def placed(cluster, *options):
    number = cluster.batch(SLEEP, "-w", "cn1", "-N1", "--output=/dev/null", *options).stdout.strip()
    wait_running(cluster, number)
    return number, cores_of(cluster, number)["cn1"]


@pytest.fixture
def jobs(cluster):
    """Places jobs that end with the test."""
    started = []

    def place(*options):
        number, cores = placed(cluster, *options)
        started.append(number)
        return cores

    yield place
    if started:
        cluster.command(["scancel", *started])


@pytest.mark.parametrize("tasks, size, whole",
                         [(2, 2, 1), (8, 8, 1), (24, 8, 3)])
def test_fewest_domains(cluster, jobs, tasks, size, whole):
    cores = jobs(f"--ntasks={tasks}")
    assert len(cores) == tasks
    assert len(domains(cores, size)) == whole, cores


def test_stock_slurm_spreads(stock_cluster):
    number, cores = placed(stock_cluster, "--ntasks=8")
    stock_cluster.command(["scancel", number])
    assert len(domains(cores, DOMAIN)) > 1, "stock Slurm packs by itself: the tests above prove nothing"


def test_level_off_is_stock(cluster, jobs):
    assert len(domains(jobs("--ntasks=8", "--topo-fit=off"), DOMAIN)) > 1


def test_broken_domains_are_filled_first(cluster, jobs):
    small = jobs("--ntasks=4")
    rest = jobs("--ntasks=4")
    whole = jobs("--ntasks=8")
    assert domains(small, DOMAIN) == domains(rest, DOMAIN)
    assert len(domains(whole, DOMAIN)) == 1 and domains(whole, DOMAIN) != domains(small, DOMAIN)


def test_jobs_share_no_core(cluster, jobs):
    taken = [core for _ in range(8) for core in jobs("--ntasks=7")]
    assert len(taken) == len(set(taken)) == 56


def test_running_jobs_survive_a_restart_of_slurmctld(cluster, jobs):
    first = jobs("--ntasks=8")
    cluster.end("slurmctld")
    cluster.start_slurmctld()
    second = jobs("--ntasks=8")
    assert not set(first) & set(second)
    assert len(domains(second, DOMAIN)) == 1
