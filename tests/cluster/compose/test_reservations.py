# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Reservations keep what they keep under stock Slurm, and jobs are placed along boundaries inside them and beside
them."""
import pytest
from rig.ask import fields

from .pair import cores, cuts


@pytest.fixture
def reserve(plain):
    """Makes a reservation named r on both clusters until the test ends."""
    def make(*words):
        plain.both(lambda c: c.command(["scontrol", "create", "reservation", "ReservationName=r", "Groups=nogroup",
                                        "StartTime=now", "Duration=60", *words]))

    yield make
    plain.both(lambda c: c.command(["scancel", "--quiet", "--reservation=r"], check=False))
    plain.both(lambda c: c.command(["scontrol", "delete", "ReservationName=r"]))


def test_reserved_node(plain, reserve):
    reserve("Nodes=big1")
    ours, _ = plain.fates(["-n8 -C wide", "-n8 -w big1", "-n8 --reservation=r", "-n64 --reservation=r"])
    assert [fields(r)["NodeList"] for r in ours] == ["big2", "", "big1", ""]
    assert not [r for r in ours if cuts(cores(plain.ours, r))]


def test_reserved_cores(plain, reserve):
    reserve("Nodes=big1", "CoreCnt=24")
    inside, beside = "-N1 -w big1 --reservation=r", "-N1 -w big1"
    fit = [f"-n8 {inside}", f"-n16 {inside}", f"-n32 {beside}", f"-n8 {beside}"]
    ours = plain.fates(fit, start=True)[0] + plain.fates([f"-n1 {beside}", f"-n1 {inside}"])[0]
    assert [fields(r)["JobState"] for r in ours] == ["RUNNING"] * 4 + ["PENDING"] * 2
    assert not [r for r in ours if cuts(cores(plain.ours, r))]


def test_cores_reserved_on_any_nodes(plain, reserve):
    # How many on which node is up to the release of Slurm.
    reserve("NodeCnt=2", "CoreCnt=16", "Features=wide")
    plain.fates(["-N2 -n16 --reservation=r", "-n48 -N1 -w big1"], start=True)
    plain.fates(["-n1 --reservation=r", "-n1 -N1 -w big1"])
