# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The same done to two clusters, and what became of it."""
import re
from concurrent.futures import ThreadPoolExecutor

from rig.ask import fields, given_too_often, held, jobs, threads, wait_running
from rig.processes import wait_until

UNSETTLED = ("None", "Priority")     # reasons of a job that the scheduler has not looked at yet
COUNTS = ("JobState", "Reason", "NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "TRES", "AllocTRES", "TresPerNode",
          "OverSubscribe", "Partition")
DOMAINS = {"big": (2, 8, 16), "mid": (8,)}     # cores of an L2, an L3 with its NUMA node, a package; of a package


class Pair:
    """Two clusters, ours and stock, to which the same is done at the same time."""

    def __init__(self, ours, stock):
        self.ours, self.stock = ours, stock
        self.complaints = set()      # that a test has failed with: the log of later ones has them, too

    def both(self, do):
        """What do(cluster) gives on ours and on the stock one."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(do, (self.ours, self.stock)))

    def agree(self, do):
        """What do(cluster) gives, which must be the same on both."""
        ours, stock = self.both(do)
        assert ours == stock
        return ours

    def fates(self, submissions, start=False):
        """
        Submit jobs: their records on ours and on the stock one, after they were found to have the same fate. start: all
        of them are to start, though the scheduler may name a reason first.
        """
        def run(cluster):
            numbers = [submit(cluster, *words.split()) for words in submissions]
            for number in numbers if start else ():
                wait_running(cluster, number)
            return settled(cluster, *numbers)

        ours, stock = self.both(run)
        assert [fate(self.ours, r) for r in ours] == [fate(self.stock, r) for r in stock]
        return ours, stock

    def clean(self, times=1):
        """After a test: no core of ours had more jobs than it may, every daemon lives, and without jobs all nodes are
        idle."""
        shared = given_too_often(self.ours, times)
        self.both(end_jobs)
        assert not shared
        new = complaints(self.ours) - complaints(self.stock) - self.complaints
        self.complaints |= new
        assert not new
        for cluster in (self.ours, self.stock):
            cluster.assert_at_rest(0.2)


# After a test has changed slurm.conf; from 25.05 on, when Slurm cannot take what Topiary offers to a job with GPUs
# (admin-guide.md); on a machine under load, where clocks are slow, clients give up and nodes answer late.
HARMLESS = ("different slurm.conf", "failed to satisfy gres-per-job counter", "eval_action not set",
            "calls to gettimeofday()", "Zero Bytes were transmitted", "timed out", "not responding")


def complaints(cluster):
    """The kinds of errors in slurmctld's log."""
    log = (cluster.folder / "log" / "slurmctld.log").read_text(errors="replace")
    lines = log.replace(str(cluster.folder), "").split("\n")
    errors = {re.sub(r"\d+", "N", line.partition("error: ")[2]) for line in lines if "error: " in line}
    return {error for error in errors if not any(text in error for text in HARMLESS)}


def end_jobs(cluster):
    # By number: from 26.05 on scancel takes nobody, who submits some of them, for no user.
    numbers = cluster.command(["squeue", "-h", "-o", "%A"]).stdout.split()
    if numbers:
        cluster.command(["scancel", "--quiet", *numbers], check=False)
    wait_until(lambda: not cluster.command(["squeue", "-h"]).stdout, 30, 0.1)


def submit(cluster, *options, script="exec sleep 300", user="nobody"):
    """Submit a job that stays: its number, or why it is refused."""
    done = cluster.batch(script, "--output=/dev/null", *options, user=user, check=False)
    return done.stdout.strip() or done.stderr.strip()


def settled(cluster, *numbers):
    """The records of jobs once the scheduler has started each or said why not; the refusal of one that it did not
    take."""
    def told():
        return [record for number in numbers for record in (jobs(cluster, number) if number.isdigit() else [number])]

    def known(record):
        job = fields(record)
        return job.get("JobState") != "PENDING" or job["Reason"] not in UNSETTLED

    wait_until(lambda: all(known(record) for record in told()), 20, 0.1)
    return told()


def running(cluster, *options, **how):
    """Submit a job that starts at once: its number and {node: cores}."""
    number = submit(cluster, *options, **how)
    record = settled(cluster, number)[0]
    assert fields(record).get("JobState") == "RUNNING", record
    return number, cores(cluster, record)


def cores(cluster, record):
    return held(cluster, record, threads(cluster))


def fate(cluster, record):
    """What a job got, whichever nodes and cores it was; or why it was refused."""
    job = fields(record)
    if "JobState" not in job:
        return record
    return {**{name: job.get(name) for name in COUNTS}, "cores": sum(map(len, cores(cluster, record).values()))}


def cut(node, taken):
    """[(size, domains)] of the domains of that size that the cores touch more of than they need."""
    return [(size, touched) for size in DOMAINS[node[:3]]
            if (touched := len({core // size for core in taken})) > -(-len(taken) // size)]


def cuts(placed):
    """{node: what its cores cut} of a job's {node: cores}; {} when none does."""
    return {node: found for node, taken in placed.items() if (found := cut(node, taken))}
