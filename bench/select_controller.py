# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The whole controller beside stock's: one trace on both at the same time, the time of a submission's RPC and
slurmctld's CPU time."""
import os
import re
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from rig.cluster import JOB_USER, Cluster, RigError, as_user
from rig.processes import wait_until
from select_judge import Machine
from select_trace import make_trace, synthetic

MACHINE = Machine(2, 4, 2, 4)
CLUSTERS = {"Slurm": {"stock": True}, "Topiary": {}}
SLURMD_NODES = 4 * 10**5      # slurmds x nodes in slurm.conf: a slurmd needs 5 MB with 1,000 of them, 20 MB with 10,000
GOAL = 1.05
FIGURES = {"submission RPC, mean": "ms", "slurmctld's CPU time": "s", "scheduler cycle, mean": "ms",
           "backfill cycle, mean": "ms"}
SUBMIT = r"REQUEST_SUBMIT_BATCH_JOB\s+\(\s*\d+\)\s+count:(\d+)\s+ave_time:(\d+)"
TICKS = os.sysconf("SC_CLK_TCK")


def slurmds_for(nodes):
    """As many of the nodes have a slurmd as one machine can run; the others are DOWN."""
    return min(nodes, SLURMD_NODES // nodes)


class Controlled(Cluster):
    """Nodes of one kind."""

    def __init__(self, folder, nodes, machine_xml, **how):
        self.count, self.machine_xml = nodes, machine_xml
        names = [f"n{i}" for i in range(1, slurmds_for(nodes) + 1)]
        down = f"NodeName=n[{len(names) + 1}-{nodes}] {self.words_of(28000)} State=DOWN\n" if nodes > len(names) else ""
        super().__init__(folder, dict.fromkeys(names, machine_xml), registry=False,
                         conf=f"{down}SlurmdTimeout=3600\nTreeWidth=65533\n", **how)

    @staticmethod
    def words_of(port):
        return (f"NodeAddr=127.0.0.1 Port={port} Sockets=2 CoresPerSocket={MACHINE.cores // 2} ThreadsPerCore=1 "
                "RealMemory=64000")

    def node_line(self, node):
        return f"NodeName={node} NodeHostname={node} {self.words_of(self.ports[node])}"

    def _configure(self):
        super()._configure()
        conf = self.folder / "etc" / "slurm.conf"
        text = re.sub(r"(Slurm(?:ctld|d)Debug)=debug", r"\1=info",
                      conf.read_text()).replace("bf_interval=5", "bf_interval=1")
        conf.write_text(text + "SlurmdParameters=config_overrides\n")

    def write_offline(self):
        self.snapshot_file.write_text(f"topiary-snapshot 1\nshape E {MACHINE.text}\nnodes n[1-{self.count}] E\nend\n")

    def knows_hardware(self):
        return (self.stock or f"snapshot: {self.count} nodes of"
                in (self.folder / "log" / "slurmctld.log").read_text(errors="replace"))

    def run_daemon(self, name, command, **how):
        """slurmctld before all other processes: on a busy machine an RPC takes several times as long."""
        return super().run_daemon(name, ["nice", "-n", "-20" if name == "slurmctld" else "10", *command], **how)

    def start_slurm(self):
        for node in self.xml:
            self.start_slurmd(node)
        self.start_slurmctld()
        if not wait_until(lambda: self.idle() == len(self.xml) and self.knows_hardware(), 300, 1):
            raise RigError("slurmctld", f"{self.idle()} of {len(self.xml)} nodes are idle",
                           self.folder / "log" / "slurmctld.log")

    def save(self):
        """Nobody attaches to this cluster: with a thousand daemons its state would be written a thousand times."""

    def idle(self):
        return int(self.command(["sinfo", "-h", "-t", "idle", "-o", "%D"], check=False).stdout.split("\n")[0] or 0)

    def wait_quiet(self, seconds=5):
        """After its start slurmctld asks every node for a registration, those that are DOWN too: minutes with 10,000
        nodes."""
        def is_quiet():
            spent = self.cpu_seconds()
            time.sleep(seconds)
            return self.cpu_seconds() - spent < 0.01 * seconds
        if not wait_until(is_quiet, 300):
            raise RigError("slurmctld", "does not come to rest", self.folder / "log" / "slurmctld.log")

    def run(self, trace):
        """Submit each job at its time, wait for the last to end: what sdiag and the kernel count meanwhile."""
        script = self.folder / "work" / "sleep"
        script.write_text('#!/bin/sh\nexec sleep "$1"\n')
        self.wait_quiet()
        self.command(["sdiag", "-r"])
        began, spent = time.time(), self.cpu_seconds()
        for job in trace:
            time.sleep(max(0, began + job.at - time.time()))
            command = ["sbatch", "-Q", "-J", job.name, "-t", "1", "-D", "/", "-o", "/dev/null", "-N", str(job.nodes),
                       f"--ntasks-per-node={job.tasks}", "-c", str(job.task_cpus), str(script), str(job.run)]
            subprocess.run(as_user(JOB_USER, command), env=self.env(), check=True, stdout=subprocess.DEVNULL)
        if not wait_until(lambda: not self.command(["squeue", "-h", "-o", "%i"]).stdout, 300, 1):
            raise RigError("trace", "jobs are left", self.folder / "log" / "slurmctld.log")
        return self.told(len(trace), self.cpu_seconds() - spent)

    def told(self, jobs, cpu):
        told = self.command(["sdiag"]).stdout
        count, mean = map(int, re.search(SUBMIT, told).groups())
        if count != jobs:
            raise RigError("trace", f"slurmctld counted {count} of {jobs} submissions",
                           self.folder / "log" / "slurmctld.log")
        cycles = [int(n) / 1e3 for n in re.findall(r"Mean cycle:\s+(\d+)", told)]
        return dict(zip(FIGURES, (mean / 1e3, cpu, *cycles, 0.0, 0.0)))

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.daemons['slurmctld'].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def run_both(nodes, trace, machine_xml):
    """{cluster: its figures}, of two that run at the same time and so disturb each other alike."""
    found, failures = {}, []

    def one(name, cluster):
        try:
            found[name] = cluster.run(trace)
        except Exception as e:      # reported by the thread that waits
            failures.append(e)
    with ExitStack() as stack:
        threads = []
        for name, how in CLUSTERS.items():
            # In memory: slurmctld writes each job's script while it has the locks.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tpc", dir="/dev/shm"))
            cluster = stack.enter_context(Controlled(folder, nodes, machine_xml, **how))
            threads.append(threading.Thread(target=one, args=(name, cluster)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return found


def jobs_for(nodes, args):
    """The trace of `make_trace` on 12 nodes, with jobs of as many more nodes as the cluster has more."""
    wider = max(1, slurmds_for(nodes) // 12)
    return [job._replace(nodes=job.nodes * wider) for job in make_trace(args.jobs, args.load, args.run, args.seed)]


def run(sheet, args):
    machine_xml = synthetic(MACHINE)
    for nodes in args.nodes:
        repeats = [run_both(nodes, jobs_for(nodes, args), machine_xml) for _ in range(args.repeat)]
        sheet.of = f"{nodes} nodes, {args.jobs} jobs: "
        for figure, unit in FIGURES.items():
            ours, stock = ([r[name][figure] for r in repeats] for name in ("Topiary", "Slurm"))
            ratios = [mine / theirs for mine, theirs in zip(ours, stock) if theirs]
            beside = f"{statistics.median(stock):.2f} {unit} Slurm"
            sheet.add(figure, statistics.median(ours), unit, beside=beside)
            if ratios and "cycle" not in figure:
                spread = f"{len(ratios)} runs: {min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else ""
                sheet.add(f"{figure}, relative to Slurm's", statistics.median(ratios), "times", goal=f"at most {GOAL}",
                          beside=spread)
