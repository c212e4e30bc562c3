# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Cores that a node keeps for its system are given to no job, and the others are placed along boundaries."""
from rig.ask import expand, fields

from .pair import cores, cuts


def test_no_job_has_specialised_cores(rich):
    node = fields(rich.ours.command(["scontrol", "-o", "show", "node", "mid2"]).stdout)
    special = {cpu // 2 for cpu in expand(node["CPUSpecList"])}
    assert len(special) == 2
    ours, _ = rich.fates(["-N1 -w mid2 -n12", "-N1 -w mid2 -n16", "-N1 -w mid2 -n2"])
    for record in ours:
        assert not special & set(cores(rich.ours, record).get("mid2", ()))
    assert not cuts(cores(rich.ours, ours[0]))


def test_jobs_own_specialised_cores(rich):
    rich.fates(["-N1 -w big1 -n8 --core-spec=4"])
