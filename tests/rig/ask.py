# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What tests ask of Slurm and of hwloc's own tools, and the matrices that they hand in."""
import json
import re
import tempfile
from pathlib import Path

from .cluster import RigError
from .command import run
from .processes import patience, wait_until


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


def jobs(cluster, number=""):
    """Slurm's records of a job, one for each task of an array and each part of a heterogeneous job; of all jobs without
    a number."""
    told = cluster.command(["scontrol", "-d", "-o", "show", "job", str(number)], check=False).stdout
    return [line for line in told.split("\n") if line.startswith("JobId=")]


def fields(record):
    """The fields of a record; of one that comes twice the first."""
    return dict(reversed([word.split("=", 1) for word in record.split() if "=" in word]))


def threads(cluster):
    """{node: hardware threads of a core}"""
    return dict(re.findall(r"NodeName=(\S+).*?ThreadsPerCore=(\d+)",
                           cluster.command(["scontrol", "-o", "show", "node"]).stdout))


def held(cluster, record, threads_of):
    """{node: abstract cores} in a record."""
    cores = {}
    for hosts, cpus in re.findall(r"Nodes=(\S+) CPU_IDs=(\S+)", record):
        names = (cluster.command(["scontrol", "show", "hostnames", hosts]).stdout.split() if set("[,") & set(hosts)
                 else [hosts])
        for node in names:
            cores[node] = sorted({cpu // int(threads_of[node]) for cpu in expand(cpus)})
    return cores


def cores_of(cluster, number):
    """{node: abstract cores} of a job, as Slurm tells them."""
    return held(cluster, "\n".join(jobs(cluster, number)), threads(cluster))


def given_too_often(cluster, times=1):
    """{(node, core): its running jobs} of cores that more than so many have."""
    owners, threads_of = {}, threads(cluster)
    for record in jobs(cluster):
        # A job's name may have a line break.
        if fields(record).get("JobState") == "RUNNING":
            for node, cores in held(cluster, record, threads_of).items():
                for core in cores:
                    owners.setdefault((node, core), []).append(fields(record)["JobId"])
    return {core: numbers for core, numbers in owners.items() if len(numbers) > times}


def reports(text):
    """Of --topo-report=json: what it says of each task, by rank, and the other lines."""
    lines = [line for line in text.split("\n") if line]
    tasks = sorted((json.loads(line) for line in lines if line.startswith("{")), key=lambda task: task["rank"])
    return tasks, [line for line in lines if not line.startswith("{")]


def hwloc_cpus(xml, objects):
    """OS indices of the CPUs below some objects of a topology, as hwloc's own hwloc-calc tells them."""
    told = run("hwloc-calc", "-i", xml, "--po", "-I", "PU", *objects, status=0)
    return sorted(int(i) for i in told.stdout.strip().split(","))


def wait_running(cluster, number, seconds=30):
    if not wait_until(lambda: cluster.job_state(number) == "RUNNING", seconds, 0.1):
        raise RigError("job", f"{number} is {cluster.job_record(number).get('JobState')} after {patience(seconds)} s")


def advised(cluster, node, *options, allocate=(), env=None, user="nobody"):
    """{kind: evidence} that `topiary advise` finds of a step on a whole node, by the directory that Slurm has for its
    job."""
    folder = Path(tempfile.mkdtemp(dir=cluster.folder / "work"))
    folder.chmod(0o777)
    job = cluster.command(["salloc", "-Q", "-w", node, "--exclusive", *allocate, "srun", "-Q", "--topo-monitor=sw",
                           *options, "sh", "-c", "echo $SLURM_JOB_ID"], user=user, cwd=folder,
                          env=cluster.env(**env) if env else None).stdout.split()[0]
    done = cluster.command([cluster.folder / "bin" / "topiary", "advise", f"{job}.0", "--json"], user=user, cwd="/")
    step, = json.loads(done.stdout)["steps"]
    return {check["kind"]: check["evidence"] for check in step["checks"] if check["result"] == "found"}
