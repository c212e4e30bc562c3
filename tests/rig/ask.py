# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What tests ask of Slurm and of hwloc's own tools, and the matrices that they hand in."""
import re
import subprocess

from .cluster import RigError
from .processes import wait_until


def ring(ranks):
    def weight(a, b):
        return 1000 if {a, b} == {0, ranks - 1} else int(abs(a - b) == 1)
    return "".join(" ".join(str(weight(a, b)) for b in range(ranks)) + "\n" for a in range(ranks))


def expand(text):
    """Numbers of a list such as 0-3,8."""
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def cores_of(cluster, number):
    """{node: abstract cores} of a job, as Slurm tells them."""
    record = cluster.command(["scontrol", "-d", "-o", "show", "job", str(number)]).stdout
    cores = {}
    for hosts, cpus in re.findall(r"Nodes=(\S+) CPU_IDs=(\S+)", record):
        for node in cluster.command(["scontrol", "show", "hostnames", hosts]).stdout.split():
            threads = int(re.search(r"ThreadsPerCore=(\d+)", cluster.command(["scontrol", "show", "node", node]).stdout).group(1))
            cores[node] = sorted({cpu // threads for cpu in expand(cpus)})
    return cores


def hwloc_cpus(xml, objects):
    """OS indices of the CPUs below some objects of a topology, as hwloc's own hwloc-calc tells them."""
    told = subprocess.run(["hwloc-calc", "-i", str(xml), "--po", "-I", "PU", *objects], capture_output=True, text=True, check=True)
    return sorted(int(i) for i in told.stdout.strip().split(","))


def wait_running(cluster, number, seconds=30):
    if not wait_until(lambda: cluster.job_state(number) == "RUNNING", seconds, 0.1):
        raise RigError("job", f"{number} is {cluster.job_record(number).get('JobState')} after {seconds} s")
