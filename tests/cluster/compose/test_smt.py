# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
What a task without -c is where cores have two threads: under each of Slurm's settings stock tells how many cores the
tasks have; preferred and required places have as many; spread tasks share none as long as there is room, and share as
under stock where there is not.
"""
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from rig.ask import fields, held, jobs, threads, wait_running
from rig.processes import wait_until

from .pair import submit

PACKAGE = 8     # cores of a package of a smt node, which has two
SETTINGS = {"CR_Core": "", "one task a core": "SelectTypeParameters=CR_Core_Memory,CR_ONE_TASK_PER_CORE\n",
            "bound to threads": "TaskPlugin=task/affinity\nTaskPluginParam=Threads\n"}
WORDS = {"": (1, 2), "--hint=nomultithread": (2, 2), "--threads-per-core=1": (2, 2), "--ntasks-per-core=1": (2, 2),
         "--ntasks-per-core=2": (1, 1),
         "--hint=multithread": (1, 2), "-c2": (2, 2)}     # cores of two tasks: under stock, and spread
DEPENDS = ("", "--hint=nomultithread", "--ntasks-per-core=2")   # on the setting
SHARING = pytest.mark.parametrize("smt", ["CR_Core"], indirect=True)     # where tasks may share cores


@pytest.fixture(scope="module")
def smt_pairs(pairs):
    """A pair for each setting, started with the first test that has it."""
    made = {}

    def of(setting):
        if setting not in made:
            made[setting] = pairs({"smt1": "intel-2x8", "one1": "amd-4x16"}, conf=SETTINGS[setting])
            made[setting].setting = setting
        return made[setting]
    return of


@pytest.fixture(params=SETTINGS)
def smt(request, smt_pairs):
    pair = smt_pairs(request.param)
    yield pair
    pair.clean()


def placed(cluster, *words, script="exec sleep 300"):
    number = submit(cluster, *words, script=script)
    wait_running(cluster, number)
    record = jobs(cluster, number)[0]
    return number, record, held(cluster, record, threads(cluster))


def packages(cores):
    return {core // PACKAGE for core in cores}


@pytest.mark.parametrize("smt, words", [(setting, words) for setting in SETTINGS for words in WORDS
                                        if setting == "CR_Core" or words in DEPENDS], indirect=["smt"])
def test_cores_of_two_tasks(smt, words):
    options = ("-N1", "-n2", "-w", "smt1", *words.split())
    cores, spread = WORDS[words]
    if smt.setting == "one task a core" and words not in ("--ntasks-per-core=2", "--hint=multithread"):
        cores, spread = 2, 2
    fits = ([], ["--topo-fit=prefer"], ["--topo-fit=require", "--topo-level=package"],
            ["--topo-fit=spread", "--topo-level=package"])
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda fit: placed(smt.ours if fit else smt.stock, *options, *fit)[2]["smt1"], fits))
    assert [len(one) for one in found[:3]] == [cores] * 3
    apart = found[3]
    assert len(apart) == spread and len(packages(apart)) == spread


def test_steps_of_spread_tasks_are_apart(smt):
    """Also the steps, which choose among the job's cores by themselves."""
    number = placed(smt.ours, "-N1", "-n2", "-w", "smt1", "--topo-fit=spread", "--topo-level=package",
                    script="srun sleep 300")[0]
    told = []
    assert wait_until(lambda: told.append(smt.ours.command(["scontrol", "-d", "-o", "show", "step", f"{number}.0"],
                                                           check=False).stdout) or
                      "Tasks=2" in told[-1], 40, 0.2)
    assert int(re.search(r"CPUs=(\d+)", told[-1])[1]) == 4, told[-1]


@SHARING
def test_spread_tasks_share_cores_where_there_is_no_room(smt):
    placed(smt.ours, "-N1", "-n1", "-c28", "-w", "smt1")
    number, record, cores = placed(smt.ours, "-N1", "-n4", "-w", "smt1", "--topo-fit=spread", "--topo-level=package")
    assert len(cores["smt1"]) == 2
    assert "4 tasks on one node; they share 2 cores\n" in smt.ours.topiary("why", "-v", number).stdout


def test_why_counts_the_cores_that_were_given(smt):
    number, _, cores = placed(smt.ours, "-N1", "-n8", "-w", "smt1")
    told = smt.ours.topiary("why", "-v", number).stdout
    assert len(cores["smt1"]) == (8 if smt.setting == "one task a core" else 4)
    assert (("8 tasks of 1 core" if smt.setting == "one task a core" else "8 tasks on one node; they share 4 cores\n")
            in told), told


@SHARING
def test_whole_cores_come_first(smt):
    """12 tasks: six cores with two threads, or twelve without."""
    assert list(placed(smt.ours, "-N1", "-n12")[2]) == ["one1"]


@SHARING
def test_a_job_that_runs_again_shares_cores_where_it_must(smt):
    number = placed(smt.ours, "-N1", "-n4", "-w", "smt1", "--topo-fit=spread", "--topo-level=package")[0]
    smt.ours.command(["scontrol", "requeuehold", number])
    assert wait_until(lambda: fields(jobs(smt.ours, number)[0])["JobState"] == "PENDING", 40, 0.1)
    assert "topiary:" not in jobs(smt.ours, number)[0]
    placed(smt.ours, "-N1", "-n1", "-c28", "-w", "smt1")
    smt.ours.command(["scontrol", "release", number])
    smt.ours.command(["scontrol", "update", f"JobId={number}", "StartTime=now"], check=False)
    wait_running(smt.ours, number, 60)
    assert len(held(smt.ours, jobs(smt.ours, number)[0], threads(smt.ours))["smt1"]) == 2


@SHARING
def test_the_rest_of_an_array_shares_cores_where_it_must(smt):
    """Its record is split off while its first task starts with cores of its own."""
    placed(smt.ours, "-N1", "-n1", "-c20", "-w", "smt1")
    array = submit(smt.ours, "-N1", "-n4", "-w", "smt1", "--array=0-1", "--topo-fit=spread", "--topo-level=package",
                   script="exec sleep 300")
    assert wait_until(lambda: sum("JobState=RUNNING" in job for job in jobs(smt.ours, array)) == 2, 40, 0.2), \
        jobs(smt.ours, array)
    assert sorted(len(held(smt.ours, job, threads(smt.ours))["smt1"]) for job in jobs(smt.ours, array)) == [2, 4]
