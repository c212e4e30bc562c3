# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What a site writes into SystemComment stays, whatever becomes of the job, and Topiary's verdict beside it is of the
present run."""
import re
import shutil

import pytest
from rig import Cluster
from rig.ask import fields, jobs, wait_running
from rig.processes import wait_until

from .pair import end_jobs, submit

BEFORE, AFTER = "bay 7 of row 3", "seen by the night shift"
WHOLE = "-n64"      # all cores of the node


class WithSitePlugin(Cluster):
    """scontrol update AdminComment= adds words to SystemComment, by a plugin of the site's own."""

    def prepare(self):
        super().prepare()
        with open(self.folder / "etc" / "topiary.conf", "a", encoding="utf-8") as f:
            f.write("TopoVerdicts = system\n")
        shutil.copy(self.build / "tests" / "job_submit_site.so", self.folder / "doors")
        conf = self.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("JobSubmitPlugins=topiary\n", "JobSubmitPlugins=topiary,site\n"))


@pytest.fixture(scope="module")
def site_cluster(folders):
    with WithSitePlugin(folders(), {"big1": "amd-4x16"}, registry=False, conf="""\
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=requeued Nodes=ALL PriorityTier=1
PartitionName=cancelled Nodes=ALL PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF
""") as cluster:
        yield cluster


@pytest.fixture
def cluster(site_cluster):
    yield site_cluster
    end_jobs(site_cluster)
    site_cluster.assert_at_rest()


def write(cluster, number, words):
    cluster.command(["scontrol", "update", f"JobId={number}", f"AdminComment={words}"])


def begin(cluster, *options):
    """A job whose SystemComment is the site's before Topiary sees it."""
    number = submit(cluster, "--hold", *options)
    write(cluster, number, BEFORE)
    assert comment(cluster, number) == BEFORE
    cluster.command(["scontrol", "release", number])
    return number


def start(cluster, *options):
    number = begin(cluster, *options)
    wait_running(cluster, number)
    return number


def comment_in(record):
    """SystemComment with the verdict as its outcome alone: it is more than one word."""
    words = "".join(re.findall(r" SystemComment=(.*?)(?: +[A-Z]\w*=|$)", record)).rstrip()
    return re.sub(r"topiary:1 (\w+) .*? end\b", r"[\1]", words)


def comment(cluster, number):
    return comment_in(jobs(cluster, number)[0])


def becomes(cluster, number, words):
    assert wait_until(lambda: comment(cluster, number) == words, 20, 0.1), jobs(cluster, number)[0]


def run_again(cluster, number):
    """A job that was put back waits a while before it may start; within the second in which its run ended slurmd would
    refuse it."""
    assert wait_until(lambda: cluster.job_state(number) == "PENDING", 20, 0.1)
    cluster.command(["scontrol", "update", f"JobId={number}", "StartTime=now+2"])
    wait_running(cluster, number)


def why(cluster, number):
    return cluster.topiary("why", number).stdout.split("\n")[0].split(", ", 1)[1]


def test_placed_requeued_and_placed_again(cluster):
    number = start(cluster, "-n8")
    assert comment(cluster, number) == f"{BEFORE} [placed]"
    write(cluster, number, AFTER)
    assert comment(cluster, number) == f"{BEFORE} [placed] {AFTER}"
    assert why(cluster, number) == "running: placed by Topiary"
    cluster.command(["scontrol", "requeue", number])
    becomes(cluster, number, f"{BEFORE} {AFTER}")
    run_again(cluster, number)
    assert comment(cluster, number) == f"{BEFORE} {AFTER} [placed]"


def test_left_to_slurm(cluster):
    assert comment(cluster, start(cluster, "-n4", "--overcommit")) == f"{BEFORE} [left]"
    assert comment(cluster, start(cluster, "-n4", "--topo-fit=off")) == f"{BEFORE} [left]"


def test_waits_and_is_placed(cluster):
    first = start(cluster, WHOLE)
    number = begin(cluster, "-n8", "--topo-fit=require", "--topo-level=l3")
    becomes(cluster, number, f"{BEFORE} [waits]")
    write(cluster, number, AFTER)
    assert comment(cluster, number) == f"{BEFORE} [waits] {AFTER}"
    cluster.command(["scancel", first])
    wait_running(cluster, number)
    assert re.fullmatch(rf"{BEFORE} \[placed\] {AFTER}|{BEFORE} {AFTER} \[placed\]", comment(cluster, number))


@pytest.mark.parametrize("fit", ["prefer", "require", "spread"])
@pytest.mark.parametrize("partition, state, left",
                         [("requeued", "PENDING", ""), ("cancelled", "PREEMPTED", " [placed]")],
                         ids=["requeued", "cancelled"])
def test_preempted(cluster, partition, state, left, fit):
    """The lower job's verdict goes with its run, the urgent one has its own, and the lower one has one when it runs
    again."""
    lower = start(cluster, WHOLE, "-p", partition)
    urgent = start(cluster, "-n8", "-p", "urgent", f"--topo-fit={fit}", "--topo-level=l3")
    record = jobs(cluster, lower)[0]
    assert (fields(record)["JobState"], comment_in(record)) == (state, BEFORE + left)
    assert comment(cluster, urgent) == f"{BEFORE} [placed]"
    assert why(cluster, urgent) == "running: placed by Topiary"
    cluster.command(["scancel", urgent])
    if state == "PENDING":
        run_again(cluster, lower)
        assert comment(cluster, lower) == f"{BEFORE} [placed]"
        assert why(cluster, lower) == "running: placed by Topiary"


def test_array(cluster):
    """The rest of an array has the site's words, and no verdict of a task that runs."""
    number = begin(cluster, "-n4", "--array=1-4%2")

    def told():
        return sorted((fields(record)["JobState"], comment_in(record)) for record in jobs(cluster, number))

    rest, runs = ("PENDING", BEFORE), ("RUNNING", f"{BEFORE} [placed]")
    assert wait_until(lambda: told() == [rest, runs, runs], 20, 0.1), told()
    task = next(fields(record)["JobId"] for record in jobs(cluster, number) if fields(record)["JobState"] == "RUNNING")
    cluster.command(["scontrol", "requeue", task])
    assert wait_until(lambda: ("PENDING", BEFORE) in told() and told().count(runs) == 2 and len(told()) == 4, 40,
                      0.1), told()
