# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""TopoMode: Slurm's choice stands while Topiary observes, and elsewhere when it begins with one partition."""
import json
import random
import re
from contextlib import contextmanager

from rig.ask import cores_of, wait_running
from rig.node import configured
from rig.processes import wait_until

DOMAIN = 8     # cores of an L3 and its NUMA node on cn1; 16 in a package


def placed(cluster, *options):
    number = cluster.batch("sleep 60", "-w", "cn1", "-N1", "--output=/dev/null", *options).stdout.strip()
    wait_running(cluster, number)
    return number, cores_of(cluster, number)["cn1"]


def domains(cores):
    return {core // DOMAIN for core in cores}


@contextmanager
def restarted(cluster, lines, says, stock=False):
    """With these lines in topiary.conf, and without Topiary's select plugin if stock, in a slurmctld that has logged
    what it says; yields what it has logged since then."""
    log, conf = cluster.folder / "log" / "slurmctld.log", cluster.folder / "etc" / "slurm.conf"
    plain = conf.read_text()
    size = log.stat().st_size

    def logged():
        with open(log, errors="replace") as f:
            f.seek(size)
            return f.read()

    def restart():
        cluster.end("slurmctld")
        cluster.start_slurmctld()

    try:
        with configured(cluster, lines.format(folder=cluster.folder)):
            if stock:
                conf.write_text(plain.replace(f"PluginDir={cluster.folder}/plugins:", "PluginDir="))
            restart()
            assert wait_until(lambda: says in logged(), 10), logged()
            yield logged
    finally:
        conf.write_text(plain)
        restart()


def trace(cluster, count=12):
    """What each of a row of jobs gets on cn1, submitted one after another; some end in between."""
    drawn, running, found = random.Random(4), [], []
    for _ in range(count):
        options = drawn.choice(((), (), ("--mem=100",), ("--distribution=block:block",), ("--ntasks-per-core=1",)))
        number, cores = placed(cluster, f"-n{drawn.choice((1, 2, 3, 4, 6, 8))}", f"-c{drawn.choice((1, 1, 2))}",
                               *options)
        found.append(cores)
        running.append(number)
        if len(running) > 4:
            ended = running.pop(drawn.randrange(len(running)))
            cluster.command(["scancel", ended])
            cluster.wait_job(ended)
    cluster.command(["scancel", *running])
    for number in running:
        cluster.wait_job(number)
    return found


def records(cluster):
    """slurmctld's record of each job by its number: tests before this one have left some."""
    shown = cluster.command(["scontrol", "-o", "show", "job"]).stdout
    return dict(re.findall(r"^JobId=(\d+) (.*)$", shown, re.M))


def test_observing_changes_nothing_and_reports(cluster):
    lines = "TopoMode=observe\nObserveFile={folder}/work/observed\nObserveShare=100\nTopoPlace=compact\n"
    with restarted(cluster, lines, "TopoMode=observe: Slurm places all jobs"):
        before = records(cluster)
        found = trace(cluster)
        done = cluster.command(["srun", "-n1", "--topo-place=scatter", "--topo-request=/package=64/core=1", "env"],
                               user="nobody")
        assert {line.partition("=")[0] for line in done.stdout.split("\n")
                if line.startswith(("TOPIARY_", "HWLOC_", "OMP_"))} <= {"TOPIARY_CONF", "HWLOC_THISSYSTEM"}
        assert "topiary: no effect: --topo-place: TopoMode in topiary.conf is not on" in done.stderr
        assert "topo-request and --topo-mem have no effect: TopoMode=observe" in done.stderr
        number, _ = placed(cluster, "-n1")
        assert "the site's TopoMode was observe" in cluster.topiary("why", number, check=False).stderr
        cluster.command(["scancel", number])
        ours = {number: record for number, record in records(cluster).items() if number not in before}
        assert len(ours) >= 13 and not any("topiary:" in record for record in ours.values()), ours

        def report():
            return json.loads(cluster.topiary("observed", "--json", check=False).stdout or "{}")

        assert wait_until(lambda: report().get("compared") == 14, 10), report()
    with restarted(cluster, "", "Topiary's select_cons_tres.so is not in use", stock=True):
        assert trace(cluster) == found
    found = report_of(cluster)
    assert found["better"] >= 6 and found["worse"] == found["unreadable"] == 0, found
    assert found["L3 caches"]["touched_slurm"] > found["L3 caches"]["touched_topiary"] >= 12
    with open(cluster.folder / "work" / "observed", "a") as file:
        file.write("observed=1 time=x\nobserved=1 time=1 partition=main outcome=other passed=0\nends here")
    assert report_of(cluster) == {**found, "unreadable": 3}


def report_of(cluster):
    return json.loads(cluster.topiary("observed", "--json", f"--file={cluster.folder}/work/observed").stdout)


def test_some_jobs_at_first(cluster):
    """For others Slurm's choice stands; a partition that is none is reported."""
    lines = "TopoPartitions=big,small\nObserveFile={folder}/work/elsewhere\n"
    with restarted(cluster, lines, "snapshot: ") as logged:
        number, cores = placed(cluster, "--ntasks=8")
        assert len(domains(cores)) > 1
        assert "AdminComment" not in cluster.command(["scontrol", "show", "job", number]).stdout
        cluster.command(["scancel", number])
        assert "TopoPartitions=big,small: there is no partition small" in logged()
        done = cluster.command(["srun", "-n1", "--topo-omp=auto", "env"], user="nobody")
        assert "OMP_PLACES" not in done.stdout
        assert "no effect: --topo-omp: TopoPartitions in topiary.conf does not have" in done.stderr
    lines = "TopoPartitions=main\nTopoAccounts=Pilot\nObserveFile={folder}/work/elsewhere\n"
    with restarted(cluster, lines, "snapshot: "):
        for account, most in (("pilot", 1), ("others", 8)):
            number, cores = placed(cluster, "--ntasks=8", "-A", account)
            cluster.command(["scancel", number])
            done = cluster.command(["srun", "-n1", "-A", account, "--topo-omp=auto", "env"], user="nobody")
            assert (most == 1) == (len(domains(cores)) == 1) == ("OMP_PLACES" in done.stdout), (cores, done.stdout)
        assert "no effect: --topo-omp: TopoAccounts in topiary.conf does not have" in done.stderr
    number, cores = placed(cluster, "--ntasks=8")
    cluster.command(["scancel", number])
    assert len(domains(cores)) == 1


def test_observing_without_a_good_snapshot(cluster):
    broken = cluster.folder / "work" / "broken"
    broken.write_text("topiary-snapshot 1\nshape S Package:2\nno")
    lines = f"TopoMode=observe\nSnapshotFile={broken}\nObserveFile={{folder}}/work/none\n"
    with restarted(cluster, lines, str(broken)) as logged:
        number, _ = placed(cluster, "--ntasks=8")
        cluster.command(["scancel", number])
        cluster.wait_job(number)
        assert sum(str(broken) in line for line in logged().split("\n")) == 1
