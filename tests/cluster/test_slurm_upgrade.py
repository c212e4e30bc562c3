# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Slurm is upgraded underneath Topiary while jobs run and wait: with the plugins of the old release jobs are placed by
stock Slurm, with those of the new one by Topiary again, and no job is lost."""
import os
import subprocess

import pytest
from rig import Cluster
from rig.ask import given_too_often, jobs, wait_running
from rig.cluster import SLURM_RELEASE
from rig.paths import BUILD, CACHE, ROOT, SLURM_PREFIX
from rig.processes import wait_until

from .compose.pair import cores, cuts, submit

WHAT = ("topiary", "tests/cpus.so", "tests/where",
        *(f"slurm/{name}.so" for name in ("select_cons_tres", "spank_topiary", "job_submit_topiary")))


def older_slurms():
    """{version: where packaging/slurm-from-source has built it} of the releases before the one under test, which reads
    the state of each."""
    installed = sorted(CACHE.glob("slurm/[0-9]*/prefix/sbin/slurmctld"))
    homes = {path.parents[2].name.partition("-")[0]: path.parents[2] for path in installed}
    return {version: home for version, home in homes.items() if tuple(map(int, version.split(".")[:2])) < SLURM_RELEASE}


OLDER = older_slurms() if SLURM_PREFIX else {}


@pytest.fixture(params=OLDER
                or [pytest.param(None, marks=pytest.mark.skip(reason="no older release of Slurm is built below "
                                                              "CACHE/slurm"))])
def upgraded(request, folders):
    """A cluster of the old release, on which Topiary places jobs."""
    home = OLDER[request.param]
    build = BUILD / "older" / request.param
    subprocess.run(["make", "-C", ROOT, f"-j{os.cpu_count()}", f"BUILD={build}", f"SLURM_SRC={home}/source/",
                    f"SLURM_PREFIX={home}/prefix", *(f"{build}/{name}" for name in WHAT)], check=True,
                   capture_output=True, env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"})
    with Cluster(folders(), {"big1": "amd-4x16", "big2": "amd-4x16"}, build=build, registry=False,
                 prefix=home / "prefix") as cluster:
        yield cluster


def restart(cluster, build, submit=True):
    """All of Slurm, of the release under test, with the plugins of a build: the lines of slurmctld's log since then."""
    for name in [name for name in cluster.daemons if name.startswith("slurm")]:
        cluster.end(name)
    cluster.change(SLURM_PREFIX, build)
    if not submit:
        conf = cluster.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("JobSubmitPlugins=topiary\n", ""))
    log = cluster.folder / "log" / "slurmctld.log"
    log.replace(log.with_name("slurmctld.before.log"))
    cluster.start_slurmctld()
    ctld = cluster.daemons["slurmctld"]
    wait_until(lambda: not ctld.alive() or "UP" in cluster.command(["scontrol", "ping"], check=False).stdout, 30)
    if ctld.alive():
        for node in cluster.xml:
            cluster.start_slurmd(node)
    return log.read_text(errors="replace").split("\n")


def started(cluster, *options, **how):
    """Submit a job and wait until it runs: its number and {node: cores}."""
    number = submit(cluster, *options, **how)
    wait_running(cluster, number)
    return number, cores(cluster, jobs(cluster, number)[0])


def test_jobs_live_on_and_are_placed_again(upgraded):
    cluster, old = upgraded, upgraded.build
    flag = cluster.folder / "work" / "flag"
    waits_for_flag = f"while ! test -e {flag}; do sleep 0.1; done"
    runs, placed = started(cluster, "-n8", "-N1", "-w", "big1", "--topo-level=numa", script=waits_for_flag)
    waits = submit(cluster, "-n16", "-N1", "-w", "big1", "--topo-level=package", "--topo-fit=require",
                   f"--dependency=afterok:{runs}")
    assert "placed by Topiary" in cluster.topiary("why", runs).stdout and not cuts(placed)

    log = restart(cluster, old)
    assert not cluster.daemons["slurmctld"].alive()
    assert "cannot create job_submit context for job_submit/topiary" in "\n".join(log)

    log = restart(cluster, old, submit=False)
    assert len([line for line in log if " topiary: " in line or "Incompatible" in line]) == 1, log
    assert [(job, cluster.job_state(job)) for job in (runs, waits)] == [(runs, "RUNNING"), (waits, "PENDING")]
    assert cores(cluster, jobs(cluster, runs)[0]) == placed
    by_stock, spread = started(cluster, "-n8", "-N1", "-w", "big2")
    assert cuts(spread), "stock Slurm packs by itself: this test proves nothing"

    log = restart(cluster, BUILD)
    assert not [line for line in log if "Incompatible" in line]
    assert wait_until(cluster.knows_hardware, 20)
    again, beside = started(cluster, "-n8", "-N1", "-w", "big2")
    assert "placed by Topiary" in cluster.topiary("why", again).stdout and not cuts(beside)
    assert ([cores(cluster, jobs(cluster, number)[0]) for number in (runs, by_stock)] == [placed, spread]
            and not given_too_often(cluster))
    flag.touch()
    assert cluster.wait_job(runs) == "COMPLETED"
    wait_running(cluster, waits)
    assert ("placed by Topiary" in cluster.topiary("why", waits).stdout
            and not cuts(cores(cluster, jobs(cluster, waits)[0])))
    for number in (waits, by_stock, again):
        cluster.command(["scancel", number])
    cluster.assert_at_rest()
