# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A fixed sample of random cases; `make check-whole N=... SEED=...` runs as many as one likes. And the judge itself: of
a case in which all is true it finds nothing, and each untruth it finds."""
import pytest
from rig.machines import machine

from . import run
from .judge import Case, Conf, Hardware, Record, had, judge
from .requests import Request

WHY = """\
job      7, running: placed by Topiary
asked    the fewest hardware boundaries crossed (fit prefer)
wanted   2 tasks of 2 cores on one node
cores    n1 0-3
touches  1 package, 1 NUMA node, 1 L3 cache
tasks    none is split
GPUs     1, near its cores
leaves   4 free cores left in its package, which was entirely free
choice   1 of 1 node offered by Slurm had room
"""


def true_case():
    """Two packages of eight cores of two threads; GPU 0 is at the first, 1 and 2 at the second."""
    hardware, confs = Hardware(machine("intel-2x8")), {"n1": Conf(2, 16, frozenset(), 3, [], 1000)}
    request = Request([["-n2", "-c4", "--gres=gpu:1"]],
                      ["-c4", "--topo-place=compact:numa", "--topo-membind=bind", "--topo-report=json"])
    case = Case(request, {"n1": hardware}, confs, ["n1"], why=WHY, fate="ran")
    case.records = [Record("JobId=7 NumNodes=1   Nodes=n1 CPU_IDs=0-7 Mem=80 GRES=gpu:1(IDX:0)", confs)]
    step = hardware.pus_of(range(4))
    for rank in (0, 1):
        pus = sorted(hardware.pus_of({2 * rank, 2 * rank + 1}))
        cpus = ",".join(map(str, pus))
        case.tasks.append({"rank": rank, "mode": 2, "mems": "0", "cpus": cpus, "SLURMD_NODENAME": "n1",
                           "step": hex(sum(1 << pu for pu in step))})
        case.reports.append({"rank": rank, "node": "n1", "cpus_os": cpus, "numa": "0", "memory": "bind:0",
                             "cpus_logical": ",".join(str(hardware.logical[pu]) for pu in pus),
                             "nic": None, "gpu": "0 near", "threads": None})
    return case


def test_nothing_is_wrong_with_the_truth():
    assert judge(true_case()) == []


def said(old, new):
    def change(case):
        assert old in case.why
        case.why = case.why.replace(old, new)
    return change


def told(key, value):
    return lambda case: case.reports[0].update({key: value})


def saw(key, value):
    return lambda case: case.tasks[0].update({key: value})


def beside(cpus):
    return lambda case: case.loads.append(Record(f"JobId=6   Nodes=n1 CPU_IDs={cpus} Mem=1 GRES=", case.confs))


def far_gpu(case):
    case.records[0].gpus["n1"] = frozenset([1])


def waits(case):
    case.fate, case.stock = "waits", "ran"


def ends_another(case):
    case.request.options.remove("--gres=gpu:1")
    case.preempted.append(Record("JobId=6   Nodes=n1 CPU_IDs=8-9 Mem=1 GRES=", case.confs))


def asked_nothing(case):
    case.request, case.said = case.request.stock(), ["topiary: a line"]


UNTRUE = {
    "job waits": waits, "job preempted in vain": ends_another, "plain job's output": asked_nothing,
    "cores given twice": beside("6-7"),
    "job's cores far from its GPUs": far_gpu, "why: GPUs": far_gpu, "why: leaves": beside("8-9"),
    "why: leaves, entirely free": beside("0-1"), "why: asked": said("prefer", "spread"),
    "why: number of tasks": said("2 tasks", "4 tasks"), "why: cores of a task": said("of 2 cores", "of 4 cores"),
    "why: cores": said("0-3", "0-4"), "why: touches": said("1 package", "2 packages"),
    "why: split": said("none is split", "1 split between NUMA nodes"), "why: memory": lambda case: (
        case.request.options.append("--mem=80"), said("GPUs ", "memory   part of it may be far\nGPUs ")(case)),
    "why: beside": said("choice ", "beside   n1: the job would use more packages there\nchoice "),
    "report: CPUs": told("cpus_os", "9"), "report: logical CPUs": told("cpus_logical", "31"),
    "report: memory policy": told("memory", "local"), "report: GPU": told("gpu", "0 far"),
    "report: NUMA nodes": told("numa", "1"), "report: threads": told("threads", "2"), "report: ranks": told("rank", 1),
    "no report": lambda case: case.reports.clear(), "ranks overlap": lambda case: case.tasks[0].update(
        cpus=case.tasks[1]["cpus"]), "rank has too few CPUs": saw("cpus", "0"),
    "memory of other nodes": saw("mems", "0,1"), "memory nodes of the cores": saw("mems", ""),
    "memory policy not set and not said": saw("mode", 0), "more threads than CPUs": saw("OMP_NUM_THREADS", "9"),
    "no topology": lambda case: [task.pop("step") for task in case.tasks],
    "topology has cores of others": saw("step", "0xffffffff"),
}


@pytest.mark.parametrize("kind", UNTRUE)
def test_each_untruth_is_found(kind):
    case = true_case()
    UNTRUE[kind](case)
    assert kind in {fault.kind for fault in judge(case)}


@pytest.mark.parametrize("options, can", [
    ("--gres=gpu:b:2 --topo-fit=require", True), ("--gres=gpu:a:2 --topo-fit=require", False),
    ("--topo-fit=spread --topo-mem=require --mem=10", True), ("--topo-fit=spread --topo-mem=require --mem=900", False),
    ("--topo-level=l3 -c32 --topo-mem=require --mem=10", True), ("--topo-fit=require --topo-level=l3 -c32", False),
    ("--gpus=2 --topo-fit=require --topo-level=l3", True)])
def test_which_requirements_can_be_had(options, can):
    """Typed GPUs and spread tasks, too; of one package with 500 MB a preferred level is given up. DefCpuPerGPU=9."""
    case = true_case()
    case.request = Request([["-n1", "-N1", *options.split()]])
    case.confs = {"n1": case.confs["n1"]._replace(types=["a", "b", "b"])}
    case.fate = "waits"
    assert had(case) is can
    case.request.defaults = {"cpus-per-gpu": 9}
    assert had(case) is (can and "--gpus=2" not in options)


def test_sample():
    """The first examples of each kind of fault are printed, with how to see them again."""
    assert not run.run("sample", 200)
