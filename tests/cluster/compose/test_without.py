# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where Topiary cannot place jobs: whoever asks for a place is told in one line, and the job is Slurm's, or waits if
the site says so."""
import pytest
from rig import Cluster
from rig.ask import fields, jobs, wait_running
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until

REQUIRED = ("--topo-fit=require", "--topo-level=l3")


class Unread(Cluster):
    """slurmctld reads no snapshot, so that nobody waits for it."""

    def knows_hardware(self):
        return True


class WithoutSnapshot(Unread):
    """The registry has written none, and the site says what then."""

    site = "run"

    def write_offline(self):
        super().write_offline()
        self.snapshot_file.rename(self.snapshot_file.with_suffix(".kept"))
        with open(self.folder / "etc" / "topiary.conf", "a", encoding="utf-8") as f:
            f.write(f"WithoutSnapshot = {self.site}\n")


class Waiting(WithoutSnapshot):
    site = "wait"


class Missing(Unread):
    """The snapshot is another cluster's."""

    def write_offline(self):
        super().write_offline()
        self.snapshot_file.write_text("topiary-snapshot 1\nshape E Core:8\nnodes dn1 E\nend\n")


def started(folders, kind=Cluster, **more):
    return kind(folders(), {"cn1": "intel-2x8"}, registry=False, **more)


# Settings of slurm.conf under which Topiary places nothing, and what its line says. select/cons_res is gone since
# 23.11.
SETTINGS = {"CR_CPU": ("SelectTypeParameters=CR_CPU_Memory\n", "SelectTypeParameters")}
if SLURM_RELEASE < (23, 11):
    SETTINGS["cons_res"] = ("SelectType=select/cons_res\n", "no effect")


@pytest.mark.parametrize("conf, why", SETTINGS.values(), ids=SETTINGS)
def test_options_without_effect_are_reported(folders, conf, why):
    with started(folders, kind=Unread, conf=conf) as cluster:
        taken = cluster.batch("exec sleep 60", "-n2", "--output=/dev/null", "--topo-fit=spread")
        assert [line for line in taken.stderr.split("\n") if "have no effect" in line and why in line], taken.stderr
        wait_running(cluster, taken.stdout.strip())
        assert not cluster.batch("true", "-n2", "--output=/dev/null").stderr
        if "CR_CPU" in conf:
            assert why in cluster.topiary("why", "-v", taken.stdout.strip()).stdout
            refused = cluster.batch("true", "-n2", *REQUIRED, check=False)
            assert refused.returncode and why in refused.stderr, refused
        cluster.command(["scancel", taken.stdout.strip()])


def test_required_placement_without_a_snapshot_is_left_to_slurm(folders):
    with started(folders, kind=WithoutSnapshot) as cluster:
        number = cluster.batch("exec sleep 60", "-n2", "--output=/dev/null", *REQUIRED).stdout.strip()
        wait_running(cluster, number)
        assert "no snapshot" in cluster.topiary("why", "-v", number).stdout
        log = (cluster.folder / "log" / "slurmctld.log").read_text()
        assert log.count(f"JobId={number}: it requires a placement, but there is no snapshot") == 1
        cluster.command(["scancel", number])


def test_required_placement_waits_for_a_snapshot_if_configured(folders):
    with started(folders, kind=Waiting) as cluster:
        number, other = (cluster.batch("exec sleep 60", "-n2", "--output=/dev/null", *options).stdout.strip()
                         for options in (REQUIRED, ()))
        wait_running(cluster, other)
        assert wait_until(lambda: "there is no snapshot" in cluster.topiary("why", number, check=False).stdout, 60, 0.2)
        assert fields(jobs(cluster, number)[0])["JobState"] == "PENDING"
        kept = cluster.snapshot_file.with_suffix(".kept")
        kept.rename(cluster.snapshot_file)
        wait_running(cluster, number, 120)
        cluster.command(["scancel", number, other])


def test_required_placement_on_a_node_that_the_snapshot_lacks_waits_and_names_it(folders):
    with started(folders, kind=Missing) as cluster:
        number, other = (cluster.batch("exec sleep 60", "-n2", "--output=/dev/null", *options).stdout.strip()
                         for options in (REQUIRED, ()))
        wait_running(cluster, other)
        told = cluster.topiary("why", "-v", other).stdout
        assert "because  the snapshot has none of its nodes, or different hardware for them\n" in told
        assert "choice   0 of 1 node offered by Slurm had room; 1 is not in the snapshot, or different there\n" in told
        assert wait_until(lambda: "; node cn1 is not in the snapshot\n" in
                          cluster.topiary("why", "-v", number, check=False).stdout, 60, 0.2)
        cluster.command(["scancel", number, other])
