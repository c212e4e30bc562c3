# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Jobs that Slurm suspends for others or lets take turns: as under stock Slurm, and no core has two running jobs at
once."""
from rig.ask import fields, given_too_often, jobs, wait_running
from rig.processes import wait_until

from .pair import cores, running, submit


def states(cluster, *numbers):
    """All told at one moment."""
    told = {job["JobId"]: job["JobState"] for job in map(fields, jobs(cluster))}
    return [told[number] for number in numbers]


def test_patient_job_is_suspended_and_goes_on(gang):
    def run(cluster):
        patient, had = running(cluster, "-N1", "-n64", "-p", "patient")
        urgent = submit(cluster, "-N1", "-n8", "-p", "urgent")
        wait_running(cluster, urgent)
        during = states(cluster, patient, urgent)
        twice = given_too_often(cluster)
        cluster.command(["scancel", urgent])
        wait_running(cluster, patient)
        return during, twice, cores(cluster, jobs(cluster, patient)[0]) == had

    assert gang.agree(run) == (["SUSPENDED", "RUNNING"], {}, True)


def test_jobs_take_turns(gang):
    def run(cluster):
        numbers = [submit(cluster, "-N1", "-n40", "-p", "turns") for _ in range(2)]
        seen = []

        def both_ran():
            seen.append(tuple(states(cluster, *numbers)))
            return ("RUNNING", "SUSPENDED") in seen and ("SUSPENDED", "RUNNING") in seen

        return wait_until(both_ran, 30, 0.2), ("RUNNING", "RUNNING") in seen

    assert gang.agree(run) == (True, False)


def test_room_beside_a_patient_job_is_used(gang):
    gang.fates(["-N1 -n40 -p patient", "-N1 -n16 -p urgent", "-N1 -n8 -p turns"], start=True)
