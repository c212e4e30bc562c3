# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Jobs live through a reconfiguration, a restart of slurmctld, and the change to stock Slurm and back; what runs keeps
its cores."""
import pytest
from rig.ask import fields, given_too_often, jobs, wait_running
from rig.processes import wait_until

from .pair import cores, cuts, fate, running, settled, submit


def all_respond(cluster):
    told = cluster.command(["sinfo", "-h", "-N", "-o", "%T"], check=False)
    return not told.returncode and not any(word in told.stdout for word in ("*", "unknown"))


def reconfigure(cluster):
    """From 23.11 on slurmctld starts anew, and asks its nodes."""
    cluster.command(["scontrol", "reconfigure"])
    assert wait_until(lambda: all_respond(cluster), 20)


def restart(cluster):
    cluster.end("slurmctld")
    cluster.start_slurmctld()
    assert wait_until(lambda: all_respond(cluster), 20)


@pytest.mark.parametrize("shake", [reconfigure, restart])
def test_running_and_waiting_jobs_stay(plain, shake):
    def run(cluster):
        first, had = running(cluster, "-n40", "-N1", "-w", "big1")
        waits = submit(cluster, "-n32", "-N1", "-w", "big1")
        before = fate(cluster, settled(cluster, waits)[0])
        shake(cluster)
        record = settled(cluster, first)[0]
        assert cores(cluster, record) == had
        beside = running(cluster, "-n8", "-N1", "-w", "big2")[1]
        cluster.command(["scancel", first])
        wait_running(cluster, waits)
        return (waits, beside), before, fields(record)["JobState"], fate(cluster, jobs(cluster, waits)[0])

    ours, stock = plain.both(run)
    assert ours[1:] == stock[1:]
    waits, beside = ours[0]
    assert not cuts(beside) and not cuts(cores(plain.ours, jobs(plain.ours, waits)[0]))


def exchange(cluster, old, new):
    """Change one line of slurm.conf and start slurmctld anew."""
    conf = cluster.folder / "etc" / "slurm.conf"
    text = conf.read_text()
    assert text.count(old) == 1
    conf.write_text(text.replace(old, new))
    restart(cluster)


def test_to_stock_and_back_with_running_jobs(plain):
    cluster = plain.ours
    ours, placed = running(cluster, "-n8", "-N1", "-w", "big1")
    topiary = f"PluginDir={cluster.folder}/plugins:"
    exchange(cluster, topiary, "PluginDir=")
    stock, spread = running(cluster, "-n8", "-N1", "-w", "big1")
    assert cuts(spread), "stock Slurm packs by itself: this test proves nothing"
    exchange(cluster, "PluginDir=", topiary)
    again, back = running(cluster, "-n8", "-N1", "-w", "big2")
    _, rest = running(cluster, "-n48", "-N1", "-w", "big1")
    assert not cuts(placed) and not cuts(back)
    assert [fields(jobs(cluster, number)[0])["JobState"] for number in (ours, stock, again)] == ["RUNNING"] * 3
    assert [cores(cluster, jobs(cluster, number)[0]) for number in (ours, stock)] == [placed, spread]
    assert len(rest["big1"]) == 48 and not given_too_often(cluster)


def test_commands_exit_as_with_stock_slurm(plain):
    commands = ("sinfo", "squeue", "sdiag", "scontrol show config", "scontrol show node", "sprio",
                "sstat -j 1", "sshare")
    ended = plain.agree(lambda cluster: {c: cluster.command(c.split(), check=False).returncode for c in commands})
    assert not any(ended[command] for command in commands[:5])


def test_node_counts_equal_stock_slurm(plain):
    def run(cluster):
        running(cluster, "-n8", "-N1", "-w", "big1", "--mem=1000")
        node = fields(cluster.command(["scontrol", "-o", "show", "node", "big1"]).stdout)
        return {name: node[name] for name in ("State", "CPUAlloc", "CPUEfctv", "AllocMem", "CfgTRES", "AllocTRES")}

    assert plain.agree(run)["CPUAlloc"] == "8"
