# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Traces of real clusters, for `topiary replay`. None is kept here: each is fetched by git into CACHE/traces once, at
one commit, and its SHA-256 is compared. Its terms are those of its repository. Clusters are smaller than they were,
since the samples are a part of what ran; jobs of more than half of the nodes of the commonest kind are left out."""
import collections
import csv
import hashlib
import itertools
import math
import random

from common import git_at
from rig.paths import CACHE

# kinds: (shape, its PUs, how many nodes); jobs: rows of a file to Jobs, submitted so long after the first.
Trace = collections.namedtuple("Trace", "repository commit path sha256 kinds jobs")
Job = collections.namedtuple("Job", "submit run limit nodes tasks memory gpus allocated", defaults=[0, 0, ""])


def swf(lines):
    """With the node of each CPU behind the 18 values of the format."""
    rows = [line.split() for line in lines if not line.startswith(";")]
    for row in rows:
        yield Job(float(row[1]) - float(rows[0][1]), float(row[3]), float(row[8]), len(set(row[18].split(","))),
                  int(row[4]), allocated=row[18])


def generated(cpus_for):
    """The tables of Gen-Parallel-Workloads; a wall time of 0 is unknown. cpus_for: of a row without CPUs."""
    def read(lines):
        at = 0
        for row in csv.DictReader(lines):
            nodes, gpus, at = int(row["node_num"]), int(row["gpu_num"]), at + float(row["interval"])
            yield Job(at, float(row["run_time"]), float(row["wall_time"]), nodes,
                      max(nodes, int(row["cpu_num"]) or cpus_for(nodes, gpus)), gpus=math.ceil(gpus / nodes))
    return read


def sdsc(lines):
    """Processors alone: on as few nodes of 16 as have them."""
    at = 0
    for row in csv.DictReader(lines):
        at, cpus = at + float(row["Interval"]), int(row["Number_of_Allocated_Processors"])
        yield Job(at, float(row["Run_Time"]), 0, math.ceil(cpus / 16), cpus)


def pods(lines):
    """A share of a GPU counts as one."""
    rows = sorted((row for row in csv.DictReader(lines) if row["scheduled_time"]),
                  key=lambda row: int(row["creation_time"]))
    for row in rows:
        yield Job(int(row["creation_time"]), int(row["deletion_time"]) - int(row["scheduled_time"]), 0, 1,
                  max(1, math.ceil(int(row["cpu_milli"]) / 1000)), int(row["memory_mib"]), int(row["num_gpu"]))


def gpu_node(packages, cores, threads, gpus, memory="", count=1):
    near = [f"GPU@{p * cores}-{(p + 1) * cores - 1}" for p in range(packages) for _ in range(gpus // packages)]
    return (f"Package:{packages} [NUMANode{memory}] L3Cache:1 Core:{cores} PU:{threads} + " + " ".join(near),
            packages * cores * threads, count)


GENERATED = "DIR-LAB/Gen-Parallel-Workloads", "c1b61aa993df914b57e7be002e649c3718386e65"
TRACES = {
    "MetaCentrum 2013": Trace(
        "aleasimulator/alea", "a3315f00d9e0c9e984b6094624703230dd8bf7cb", "Alea/data-set/wagap-2013.swf",
        "bf5c1cc69915f2d5d26c579f69e206513ceff9bd60e6c4b112182da0c6183ed7",
        [("Package:8 [NUMANode] L3Cache:1 Core:10 PU:1", 80, 20),
         ("Package:2 [NUMANode] L3Cache:1 Core:6 PU:1", 12, 48)], swf),
    "Blue Waters": Trace(
        *GENERATED, "BW/training_data/blue_waters_data_training.csv",
        "79c909a7b64843e7385b3379a58ab7b56eacce6a63866eb2ab4f40b0325e3983",
        [("Package:2 Group:2 [NUMANode] L3Cache:1 Core:8 PU:1", 32, 256),
         ("Package:1 Group:2 [NUMANode] L3Cache:1 Core:8 PU:1 + GPU@0-15", 16, 128)],
        generated(lambda nodes, gpus: 16 * nodes)),
    "Theta": Trace(
        *GENERATED, "Theta/training_data/theta_data_training.csv",
        "182d1604b3ecadadb6682c2a75cb704ebfbb19765e029e7b46a281f62e21f4d7",
        [("Package:1 [NUMANode] L2Cache:32 Core:2 PU:1", 64, 512)], generated(lambda nodes, gpus: 64 * nodes)),
    "Philly": Trace(
        *GENERATED, "Philly/training_data/philly_data_training.csv",
        "98d2ca0f525309a4d2a3d6b9996cf9b79f3e656e8c47bdc94a7d12b4a7a192c0",
        [gpu_node(2, 12, 1, 8, count=24), gpu_node(2, 6, 1, 2, count=24)], generated(lambda nodes, gpus: 3 * gpus)),
    "Helios": Trace(
        *GENERATED, "Helios/training_data/helios_data_training.csv",
        "042b2648eb850b8fbfa9a686a743e7dbe0ea7dbab1e4e0887bb39c755f7e44fa",
        [gpu_node(2, 24, 1, 8, count=40)], generated(lambda nodes, gpus: nodes)),
    "SDSC 1995": Trace(
        *GENERATED, "SDSC-95/training_data/SDSC_95.csv",
        "78efca8b270e441cff3eeff65664457cb214fa77c78ada8e8eb86ee2c3987578",
        [("Package:2 [NUMANode] L3Cache:1 Core:8 PU:1", 16, 25)], sdsc),
    "Alibaba GPU 2023": Trace(
        "alibaba/clusterdata", "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
        "cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv",
        "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        [gpu_node(2, 24, 2, 8, "(memory=192GiB)", count=16), gpu_node(2, 26, 2, 2, "(memory=256GiB)", count=10),
         gpu_node(2, 16, 2, 4, "(memory=64GiB)", count=2)], pods),
}


def file_of(name):
    """Where a trace is, or would be."""
    return CACHE / "traces" / f"{name.replace(' ', '-')}-{TRACES[name].sha256[:12]}"


def fetch(name):
    """Fetches a trace that is not there. RuntimeError: it cannot be had, or is another file."""
    trace, file = TRACES[name], file_of(name)
    if file.exists():
        return file
    repository = file.with_name(trace.repository.replace("/", "+"))
    text = git_at(repository, trace.repository, trace.commit, "show", f"{trace.commit}:{trace.path}")
    if hashlib.sha256(text).hexdigest() != trace.sha256:
        raise RuntimeError(f"{trace.path} of {trace.repository} is not the file of {trace.commit}")
    part = file.with_suffix(".part")
    part.write_bytes(text)
    part.replace(file)
    return file


def snapshot(kinds):
    text, first = "topiary-snapshot 1\n", 1
    for nth, (shape, _, nodes) in enumerate(kinds):
        text += f"shape k{nth} {shape}\nnodes cn[{first:03}-{first + nodes - 1:03}] k{nth}\n"
        first += nodes
    return text + "end\n"


def samples(name, jobs, load, copies):
    """One part of so many jobs after another, of those that the cluster can hold, and again in further copies with
    submissions up to ten minutes earlier or later. Submissions are closer together or wider apart than they were, so
    that a part asks for `load` percent of the cluster's PUs, or of its GPUs where it asks for more of these. For
    `topiary replay`."""
    kinds, chance = TRACES[name].kinds, random.Random(0)
    with open(file_of(name), encoding="utf-8") as file:
        found = [job for job in TRACES[name].jobs(file)
                 if job.run > 0 and job.nodes <= max(nodes for *_, nodes in kinds) // 2]
    pus = sum(each * nodes for _, each, nodes in kinds)
    gpus = sum(shape.count("GPU@") * nodes for shape, _, nodes in kinds)
    for copy, first in itertools.product(range(copies), range(0, len(found) - jobs + 1, jobs)):
        part = found[first:first + jobs]
        span = max(sum(job.tasks * job.run for job in part) / pus,
                   sum(job.nodes * job.gpus * job.run for job in part) / max(1, gpus)) / load * 100
        begin, end = part[0].submit, part[-1].submit
        rows = sorted((max(0, (job.submit - begin) / (end - begin) * span + (chance.uniform(-600, 600) if copy else 0)),
                       nth, job) for nth, job in enumerate(part))
        if part[0].allocated:      # as it is, but for the times
            yield "".join(f"{nth} {at:.0f} 0 {job.run:.0f} {job.tasks} -1 -1 {job.tasks} {job.limit:.0f}{' -1' * 9} "
                          f"{job.allocated}\n" for at, nth, job in rows)
        else:
            yield "job submit start end nodes tasks limit memory gpus\n" + "".join(
                f"{nth} {at:.1f} {at:.1f} {at + job.run:.1f} {job.nodes} {job.tasks} {job.limit:.0f} "
                f"{job.memory or '-'} {job.gpus}\n" for at, nth, job in rows)
