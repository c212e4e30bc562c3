# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Many jobs of all kinds at once: each ends well, and at no moment has a core two of them."""
import random

from rig.ask import fields, given_too_often, jobs
from rig.processes import wait_until

from .pair import submit

JOBS = 60
KINDS = ["-n1", "-n2", "-n3", "-n5 -c2", "-n8", "-n11", "-n16", "-n24", "-n12 --ntasks-per-core=1",
         "-N2 -n8 --ntasks-per-node=4", "-N2 -n9", "-n4 --mem=500", "-n4 --mem=3000", "--exclusive -n4",
         "-n4 --array=1-3", "-n2 : -n4", "-n6 -C smt", "-n6 -p weighed", "-n40 -C wide", "-n8 --ntasks-per-socket=2",
         "-n7 --comment=topo-fit=require,topo-level=numa", "-n4 --comment=topo-fit=spread",
         "-n8 --comment=topo-request=/package=1/core=8", "-n8 --comment=topo-fit=off"]


def test_many_jobs_at_once(plain):
    chance = random.Random(16)
    kinds = [chance.choice(KINDS).split() for _ in range(JOBS)]

    def run(cluster):
        shared = []
        numbers = [submit(cluster, *kind, script="exec sleep 1") for kind in kinds]
        done = wait_until(lambda: shared.extend(given_too_often(cluster))
                          or not cluster.command(["squeue", "-h"]).stdout, 90, 0.3)
        return done, shared, [fields(record)["JobState"] for number in numbers for record in jobs(cluster, number)]

    done, shared, states = plain.agree(run)
    assert done and not shared
    assert set(states) == {"COMPLETED"}
