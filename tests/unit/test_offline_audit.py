# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
topiary audit on made output of scontrol. What is true is found here from the nodes' XML, apart from the command: on
which domains a job is, the least that have as many cores, and the least but for cores of jobs that began before.
"""
import functools
import json
import os
import platform
import random
import re
import resource
import shutil
import subprocess
import time

import pytest
from rig import command
from rig.browser import PROGRAM, Browser
from rig.paths import BUILD, CACHE, ROOT
from whole import machines
from whole.judge import Hardware, least

LEVELS = ["package", "numa", "l3"]
topiary = functools.partial(command.topiary, "audit")


def ranges(numbers):
    """0-3,8"""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


class Node:
    def __init__(self, name, xml, rng):
        self.name, self.hardware = name, Hardware(xml)
        self.cores = len(self.hardware.cores)
        self.threads = len(self.hardware.pu_order) // self.cores
        self.sockets = rng.choice([n for n in (1, 2, 4, len(self.hardware.found["package"])) if n and not
                                   self.cores % n])
        self.jobs = []

    def text(self, oneline):
        allocated = sum(len(job["cores"][self.name]) for job in self.jobs) * self.threads
        lines = [f"NodeName={self.name} Arch=x86_64 CoresPerSocket={self.cores // self.sockets} ",
                 f"CPUAlloc={allocated} CPUEfctv=1 CPUTot={self.cores * self.threads} CPULoad=0.10",
                 "OS=Linux 6.1.0 #1 SMP ", f"RealMemory=1000 AllocMem=0 FreeMem=N/A Sockets={self.sockets} Boards=1",
                 f"State=MIXED ThreadsPerCore={self.threads} TmpDisk=0 Weight=1 Owner=N/A",
                 "BootTime=None"]
        return (" " if oneline else "\n   ").join(lines) + ("\n" if oneline else "\n\n")


def job_text(job, nodes, oneline):
    tasks, each = job["tasks"], job["task_cpus"]
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(job["start"]))
    lines = [f"JobId={job['id']} JobName=a job", "UserId=u(1) GroupId=u(1) MCS_label=N/A",
             "JobState=RUNNING Reason=None Dependency=(null)", f"StartTime={at} EndTime=Unknown Deadline=N/A",
             f"NumNodes={len(job['cores'])} NumCPUs={job['cpus']} NumTasks={tasks} CPUs/Task={each} "
             "ReqB:S:C:T=0:0:*:*", "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*", "JOB_GRES=(null)"]
    for name, cores in job["cores"].items():
        threads = nodes[name].threads
        cpus = ranges(core * threads + i for core in cores for i in range(threads))
        lines.append(f"  Nodes={name} CPU_IDs={cpus} Mem=100 GRES=")
    lines += ["MinCPUsNode=1 MinMemoryCPU=10M", "Command=/x JobState=PENDING"]
    return (" " if oneline else "\n   ").join(lines) + ("\n" if oneline else "\n\n")


def job_json(job, nodes, old):
    """As openapi of 22.05 writes it, or data_parser of 23.11 and later."""
    def shares():
        for name, cores in job["cores"].items():
            of_socket = nodes[name].cores // nodes[name].sockets
            sockets = {}
            for core in sorted(cores):
                sockets.setdefault(core // of_socket, []).append(core % of_socket)
            if old:
                yield {"nodename": name, "memory_allocated": 100, "sockets": {
                    str(s): {"cores": {str(c): "allocated_and_in_use" for c in inner}} for s, inner in sockets.items()}}
            else:
                yield {"name": name, "memory": {"allocated": 100}, "sockets": [
                    {"index": s, "cores": [{"index": c, "status": ["ALLOCATED" if c in inner else "UNALLOCATED"]}
                                           for c in range(of_socket)]} for s, inner in sockets.items()]}

    def amount(n):
        return n if old else {"set": True, "infinite": False, "number": n}
    resources = {"allocated_nodes": list(shares())} if old else {"nodes": {"allocation": list(shares())}}
    return {"job_id": job["id"], "name": "a job", "job_state": "RUNNING" if old else ["RUNNING"],
            "start_time": amount(job["start"]), "tasks": amount(job["tasks"]), "cpus": amount(job["cpus"]),
            "cpus_per_task": amount(job["task_cpus"]), "job_resources": resources}


def drawn(seed):
    """Nodes with jobs on random cores that nobody else has."""
    rng = random.Random(seed)
    kinds = [machines.draw(rng).xml for _ in range(rng.randint(1, 2))]
    nodes = {f"n{i}": Node(f"n{i}", kinds[i % len(kinds)], rng) for i in range(rng.randint(1, 4))}
    usable = {name: set(range(node.cores)) for name, node in nodes.items()}
    jobs = []
    for number in range(1, rng.randint(2, 12)):
        cores = {}
        for name in rng.sample(sorted(nodes), rng.randint(1, len(nodes))):
            n = min(len(usable[name]), rng.choice([1, 2, 3, 4, 6, 8, 12, 16]))
            scattered = rng.sample(sorted(usable[name]), n) if rng.random() < 0.5 else sorted(usable[name])[:n]
            usable[name] -= set(scattered)
            if n:
                cores[name] = frozenset(scattered)
        if not cores:
            continue
        cpus = sum(len(has) * nodes[name].threads for name, has in cores.items())
        each = rng.choice([1, 1, 2, 4, 6])
        job = {"id": number, "cores": cores, "start": 1770000000 + rng.randrange(5), "cpus": cpus,
               "task_cpus": each, "tasks": max(1, cpus // each)}
        jobs.append(job)
        for name in cores:
            nodes[name].jobs.append(job)
    return rng, kinds, nodes, jobs


def true_of(job, nodes, level):
    """What the audit says of a job at a level."""
    on = needs = most = whole = 0
    fits = False
    for name, cores in job["cores"].items():
        node, domains = nodes[name], nodes[name].hardware.partition(level)
        everything = frozenset(range(node.cores))
        held = frozenset().union(*(other["cores"][name] for other in node.jobs if other["start"] < job["start"]))
        on += sum(bool(domain & cores) for domain in domains)
        needs += least(domains, everything, len(cores))
        most += least(domains, everything - held | cores, len(cores))
        whole += sum(len(domain & cores) * node.threads // job["task_cpus"] for domain in domains)
        fits |= any(len(domain) * node.threads >= job["task_cpus"] for domain in domains)
    spans = max(0, job["tasks"] - whole) if fits and job["task_cpus"] > 1 else 0
    return {"on": on, "needs": needs, "free_at_most": most, "tasks_span": spans} if needs else None


@pytest.mark.parametrize("part", range(4))
def test_is_right(tmp_path, part):
    """80 audits in all."""
    wrong = []
    for seed in range(part * 20, part * 20 + 20):
        rng, kinds, nodes, jobs = drawn(seed)
        oneline, form = rng.random() < 0.3, rng.choice(["text", "text", "old", "new"])
        files = {name: tmp_path / f"{seed}.{name}" for name in ("nodes", "jobs")}
        files["nodes"].write_text("".join(node.text(oneline) for node in nodes.values()))
        if form == "text":
            files["jobs"].write_text("".join(job_text(job, nodes, oneline) for job in jobs) or "No jobs in the system")
        else:
            files["jobs"].write_text(json.dumps({"jobs": [job_json(job, nodes, form == "old") for job in jobs]}))
        words = []
        for i, xml in enumerate(kinds):
            (tmp_path / f"{seed}.{i}.xml").write_text(xml)
            words += ["--topology", f"{','.join(list(nodes)[i::len(kinds)])or'none'}={tmp_path}/{seed}.{i}.xml"]
        done = topiary("--json", "--jobs", files["jobs"], "--nodes", files["nodes"], *words, status=0)
        told = json.loads(done.stdout)
        said = {int(job["job"]): job for job in told["jobs"]}
        if len(said) != len(jobs) or told["nodes_with_hidden_jobs"] or told["nodes_with_shared_cores"]:
            wrong.append((seed, "jobs", told["not_audited"], told["nodes_otherwise"]))
            continue
        true = {job["id"]: {level: true_of(job, nodes, level) for level in LEVELS} for job in jobs}
        for level in LEVELS:
            wrong += [(seed, job["id"], level, said[job["id"]].get(level), true[job["id"]][level]) for job in jobs
                      if said[job["id"]].get(level) != true[job["id"]][level]]
            split = [of[level] for of in true.values() if of[level] and of[level]["on"] > of[level]["needs"]]
            forced = [of for of in split if of["free_at_most"] >= of["on"]]
            beyond = [min(of[level]["on"] - of[level]["needs"], 4) for of in true.values() if of[level]]
            here, is_true = told["levels"][level], (len(split), len(forced), 0, [beyond.count(n) for n in range(5)])
            if tuple(here[key] for key in ("split", "none_better_free", "better_was_free", "over")) != is_true:
                wrong.append((seed, level, here, is_true))
    assert not wrong


def lstopo(synthetic):
    return subprocess.run(["lstopo-no-graphics", "-i", synthetic, "--of", "xml"], check=True, capture_output=True,
                          text=True).stdout


def node_text(name="n1", sockets=2, cores=8, threads=1, allocated=0, more=""):
    return (f"NodeName={name} CoresPerSocket={cores}\n   CPUAlloc={allocated} CPUTot=1\n   Sockets={sockets} Boards=1\n"
            f"   State=MIXED ThreadsPerCore={threads} TmpDisk=0\n{more}   BootTime=None\n\n")


def one_job(number, cpus, node="n1", name="a", more="", **told):
    """A record of a job on one node."""
    told = {"start": 1770000000, "tasks": 1, "each": 1, "count": None, "gres": "", "mem": 10,
            "partition": "batch"} | told
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(told["start"]))
    count = told["count"] or sum(int(b or a) - int(a) + 1 for a, _, b in (w.partition("-") for w in cpus.split(",")))
    return (f"JobId={number} JobName={name}\n   UserId=u(1) GroupId=u(1)\n   JobState=RUNNING Reason=None\n"
            f"   StartTime={at} EndTime=Unknown\n   Partition={told['partition']} AllocNode:Sid=x:1\n"
            f"   NumCPUs={count} NumTasks={told['tasks']} CPUs/Task={told['each']} ReqB:S:C:T=0:0:*:*\n"
            f"   Socks/Node=* NtasksPerN:B:S:C=0:0:{told.get('per_socket', '*')}:*\n"
            f"   JOB_GRES=(null)\n     Nodes={node} CPU_IDs={cpus} Mem={told['mem']} GRES={told['gres']}\n"
            f"   MinCPUsNode=1\n   Command=/x\n{more}\n")


@pytest.fixture(name="audit")
def fixture_audit(tmp_path):
    """audit(nodes, jobs, *options): the JSON; the machine of n1 and n2 has 2 packages with 2 L3 caches of 4 cores."""
    (tmp_path / "x.xml").write_text(lstopo("pack:2 [numa(memory=8GiB)] l3:2 core:4 pu:1"))

    def audit(nodes, jobs, *options, xml="n[1-2]", status=0, form="--json"):
        (tmp_path / "nodes").write_text(nodes)
        (tmp_path / "jobs").write_bytes(jobs if isinstance(jobs, bytes) else jobs.encode())
        words = ["--topology", f"{xml}={tmp_path}/x.xml"] if xml else []
        done = topiary(form, "--nodes", tmp_path / "nodes", "--jobs", tmp_path / "jobs", *words, *options,
                       status=status)
        return json.loads(done.stdout) if form == "--json" and not status else done.stdout + done.stderr
    return audit


def reasons(told):
    return {one["finding"]: one["jobs"] for one in told["not_audited"]}


def test_words(audit):
    """The worst, in words; and why a job could not lie better."""
    held = one_job(1, "2-7,10-15", start=1770000000) + one_job(2, "0-1,8-9", start=1770000005, tasks=2, each=2)
    told = audit(node_text(), held)
    assert told["worst"] == ["job 2 (a), 4 cores on 1 node: on 2 packages where 1 can hold them, on 2 NUMA nodes where "
                             "1 can hold them, on 2 L3 caches where 1 can hold them; other jobs held the cores that "
                             "lie on fewer",
                             "job 1 (a), 12 cores on 1 node: on 4 L3 caches where 3 can hold them; whether such cores "
                             "were free when it began is not known"]
    told = audit(node_text(), one_job(3, "3-4", tasks=1, each=2))
    assert "at least 1 of its 1 tasks spans L3 caches" in told["worst"][0] and told["levels"]["l3"]["tasks_span"] == 1
    told = audit(node_text(), one_job(4, "0,8", tasks=2, per_socket=1))
    assert told["spread_by_request"] == 1 and told["levels"]["package"]["split"] == 0 and not told["worst"]
    text = audit(node_text(), held, form="-v")
    assert "2 running jobs, of which 2 audited, on 1 node; 0 without topology" in text and "\nThe worst:\n" in text


def test_memory_is_promised_twice(audit):
    jobs = one_job(1, "0-1", mem=5000) + one_job(2, "2-3", mem=5000) + one_job(3, "8", mem=8192)
    assert audit(node_text(), jobs)["numa_promised_twice"] == 1


def drawn_networks(rng, names):
    """{partition: its nodes}, {partition: leaf switches}: batch has the cluster's, own another, flat none."""
    of = {"batch": set(names), "own": set(rng.sample(names, 9)), "flat": set(names)}
    leaves = {"flat": []}
    for partition in ("batch", "own"):
        shuffled, cuts = rng.sample(names, len(names)), sorted(rng.sample(range(1, len(names)), 3))
        leaves[partition] = [set(shuffled[a:b]) for a, b in zip([0, *cuts], [*cuts, None])]
    return of, leaves


@pytest.mark.parametrize("seed", range(6))
def test_switches_by_partition(audit, tmp_path, seed):
    """A job is judged by the topology of its partition, and by what the partition has of each leaf switch."""
    rng, names = random.Random(seed), [f"n{i}" for i in range(1, 13)]
    of, leaves = drawn_networks(rng, names)
    no = rng.choice(["", "(null)"])
    for partition, some in leaves.items():
        (tmp_path / partition).write_text("".join(
            f"SwitchName=s{i} Level=0 Nodes={','.join(sorted(leaf))} Switches={no}\n" for i, leaf in enumerate(some)) +
            "SwitchName=top Level=1 Nodes=n[1-12] Switches=s[0-3]\n" * bool(some))
    within = {name: [p for p, some in of.items() if name in some] for name in names}
    if seed > 3:        # n1 is in no partition
        within["n1"], of = [], {partition: some - {"n1"} for partition, some in of.items()}
    jobs, true = "", {}
    for number in range(1, 13):
        partition = rng.choice(list(of))
        has = set(rng.sample(sorted(of[partition]), rng.randint(2, 6)))
        jobs += one_job(number, "0-3", node=",".join(sorted(has)), count=4 * len(has), partition=partition)
        if leaves[partition]:
            true[str(number)] = (sum(bool(leaf & has) for leaf in leaves[partition]),
                                 least(leaves[partition], of[partition], len(has)))
    nodes = "".join(node_text(name, more=f"   Partitions={','.join(within[name])} \n" * bool(within[name]))
                    for name in names)
    if seed % 2:
        nodes = json.dumps({"nodes": [{"name": name, "sockets": 2, "cores": 8, "threads": 1,
                                       "partitions": within[name]} for name in names]})
    told = audit(nodes, jobs, "--switches", tmp_path / "batch", "--switches", f"own={tmp_path}/own", "--switches",
                 f"flat,none={tmp_path}/flat", xml="n1")
    said = {job["job"]: job["switch"] for job in told["jobs"] if "switch" in job}
    assert {number: (of["on"], of["needs"]) for number, of in said.items()} == true
    assert told["levels"]["switch"]["split"] == sum(on > needs for on, needs in true.values())


@pytest.mark.parametrize("words, finding", [
    ({"sockets": 4, "cores": 4}, "slurm.conf has 4 sockets, the hardware 2 packages: as many as L3 caches "
                                 "(l3cache_as_socket)"),
    ({"sockets": 1, "cores": 16}, "slurm.conf has 1 sockets, the hardware 2 packages"),
    ({"threads": 2}, "slurm.conf has 2 threads per core, the hardware 1"),
    ({"sockets": 1}, "slurm.conf has 1 x 8 cores, the hardware 16: jobs are not audited"),
    ({"more": "   CoreSpecCount=1 CPUSpecList=15\n"}, "1 core reserved (CoreSpecCount)"),
    ({"more": "   Reason=gres/gpu GRES core affinity 8-9 on node n1 doesn't match socket boundaries. [root@x]\n"},
     "drained: cores of a GPU do not match the boundaries of sockets"),
])
def test_what_slurm_conf_says_otherwise(audit, words, finding):
    told = audit(node_text(**words), one_job(1, "0-1"))
    assert told["nodes_otherwise"] == [{"finding": finding, "count": 1, "nodes": "n1"}]
    assert told["audited"] == ("not audited" not in finding)


@pytest.mark.parametrize("reserved, cores", [("0,4,8,12", "1-3,5"), ("0-11", "0-3,8")])
def test_reserved_cores_are_not_missed(audit, reserved, cores):
    """Four cores need two L3 caches where each has one that is reserved; cores may be reserved since the job began."""
    told = audit(node_text(more=f"   CPUSpecList={reserved}\n"), one_job(1, cores))
    assert told["levels"]["l3"] == {"jobs": 1, "split": 0, "none_better_free": 0, "better_was_free": 0, "unknown": 0,
                                    "tasks_span": 0, "noun": "L3 caches", "over": [1, 0, 0, 0, 0]}


def test_without_topology(audit):
    """Counted and named, with what would measure them; one XML is of its kind, not of others."""
    nodes = node_text() + node_text("n2") + node_text("n3", 1, 4) + node_text("n4", 1, 4)
    told = audit(nodes, one_job(1, "0-1") + one_job(2, "0-1", node="n[2-3]", count=4), xml="n1")
    assert told["nodes_without_topology"] == 2 and told["kinds_without_topology"] == [
        {"sockets": 1, "cores": 4, "threads": 1, "count": 2, "nodes": "n[3-4]", "one": "n4",
         "several_topologies": False}]
    assert reasons(told) == {"a node of it has no topology, or slurm.conf describes it otherwise": "2"}
    text = audit(nodes, one_job(1, "0-1"), xml=None, form="-v")
    assert "  2 with 1 x 4 cores and 1 thread each: n[3-4]\n    srun -N1 -n1 -t5 -w n4 lstopo-no-graphics" in text


def test_topology_of_none_of_the_nodes(audit, tmp_path):
    """A typing error does not pass for nodes without topology."""
    (tmp_path / "empty").mkdir()
    given = ["--topology", f"m[1-2]={tmp_path}/x.xml", "--topology", tmp_path / "empty"]
    text = audit(node_text(), one_job(1, "0-1"), *given, xml="n1", form="-v")
    assert f"--topology m[1-2]={tmp_path}/x.xml: scontrol shows none of these nodes" in text
    assert f"--topology {tmp_path}/empty: no file is called NODE.xml after a node" in text
    assert text.count("topiary: --topology ") == 2


def test_a_kind_with_two_topologies(audit, tmp_path):
    (tmp_path / "y.xml").write_text(lstopo("pack:2 l3:1 core:8 pu:1"))
    told = audit("".join(map(node_text, ("n1", "n2", "n3"))), one_job(1, "0-1", node="n3"), "--topology",
                 f"n2={tmp_path}/y.xml", xml="n1")
    assert told["audited"] == 0 and told["kinds_without_topology"][0]["several_topologies"] is True


@pytest.mark.parametrize("end", ["CoresPerSocket=1", "CPUAlloc=", "Sockets=", "TmpDisk", "Partitions=a", "   BootT"])
def test_a_node_whose_record_is_cut_short(audit, end):
    """Its numbers may be cut, too: nothing is said of slurm.conf by them, nor of its jobs."""
    second = node_text("n2", 1, 16, more="   Partitions=a,b \n")
    told = audit(node_text() + second[:second.index(end) + len(end)], one_job(1, "0-1") + one_job(2, "0-1", node="n2"))
    assert (told["node_records_refused"], told["nodes_otherwise"], told["audited"]) == (1, [], 1)
    assert reasons(told) == {"it has a node that scontrol does not show": "2"}


FORGED = "x\n   JOB_GRES=(null)\n     Nodes=n1 CPU_IDs=0-15 Mem=1 GRES=\n   MinCPUsNode=1"


@pytest.mark.parametrize("jobs, expected", [
    (one_job(1, "0-1")[:-60], {"its record is cut short": "1"}),
    (one_job(1, "0-1", name="x\n   JobState=PENDING"),
     {"its record has a word of scontrol's twice: its name may imitate it": "1"}),
    (one_job(1, "0-1", name="x\nJobId=1 JobName=y"), {"two records have its number": "1,1"}),
    (one_job(1, "0-99"), {"its CPU_IDs are not CPUs of its node (22.05 prints 127 bytes of them: use --json)": "1"}),
    (one_job(1, "0-1", count=9), {"it has fewer CPU_IDs than CPUs (22.05 prints 127 bytes of them: use --json)": "1"}),
    (one_job(1, "0-1", node="m1"), {"it has a node that scontrol does not show": "1"}),
    (one_job(1, "0-1", node="n[1-"), {"its Nodes are not a host list": "1"}),
    (one_job(1, "0-1").replace("     Nodes=n1 CPU_IDs=0-1 Mem=10 GRES=\n", ""),
     {"its cores are not shown: run scontrol with -d": "1"}),
])
def test_a_record_that_is_not_read(audit, jobs, expected):
    told = audit(node_text(), jobs + "\n\n" + one_job(2, "8-9"))
    assert {text: names for text, names in reasons(told).items() if names != "2"} == expected or \
        reasons(told) == expected
    assert told["levels"]["package"]["split"] == 0


@pytest.mark.parametrize("oneline", [False, True])
def test_a_name_with_blanks_is_whole(audit, oneline):
    """What looks like the word behind it makes the record doubtful; that is tested below."""
    record = one_job(1, "0,8", name="a  job of UserIds= ours")
    told = audit(node_text(), re.sub("\n +", " ", record) if oneline else record)
    assert told["worst"][0].startswith("job 1 (a  job of UserIds= ours), "), told["worst"]


@pytest.mark.parametrize("priority, running", [(0, 1), (5, 2)])
def test_suspended_job_without_priority_has_no_cores(audit, priority, running):
    """scontrol suspend; gang scheduling, whose jobs keep their priority, lets them have their cores."""
    halted = one_job(1, "0-7").replace("JobState=RUNNING", f"Priority={priority} JobState=SUSPENDED").replace(
        "EndTime=Unknown", "EndTime=Unknown SuspendTime=2026-02-02T03:00:00")
    told = audit(node_text(), halted + one_job(2, "0-3", start=1780000000))
    assert (told["running"], told["nodes_with_shared_cores"]) == (running, running - 1)


def test_a_name_that_imitates_scontrol(audit):
    told = audit(node_text(), one_job(1, "0-1", name=FORGED))
    assert told["audited"] <= 1 and not told["worst"]


def test_hidden_jobs(audit):
    """PrivateData: slurmctld has more CPUs allocated than the jobs that it shows have."""
    assert audit(node_text(allocated=6), one_job(1, "0-1"))["nodes_with_hidden_jobs"] == 1
    assert audit(node_text(allocated=2), one_job(1, "0-1"))["nodes_with_hidden_jobs"] == 0
    assert "\n1 node with more CPUs allocated" in audit(node_text(allocated=6), one_job(1, "0-1"), form="-v")
    assert audit(node_text(), "No jobs in the system\n")["running"] == 0


@pytest.mark.parametrize("nodes, jobs, words", [
    ("", "", "no nodes: is it the output of scontrol show node?"),
    ("slurm_load_node error: Unable to contact", "", "no nodes"),
    (node_text(), "nothing", "no jobs: is it the output of scontrol -d show job?"),
    ('{"nodes": [', "", "invalid JSON in line 1"),
    ('{"nodes": 1}', "", "JSON without a list of nodes"),
    (node_text(), '{"jobs": {}}', "JSON without a list of jobs"),
])
def test_what_is_no_output_of_scontrol(audit, nodes, jobs, words):
    assert words in audit(nodes, jobs, status=1)


@pytest.mark.parametrize("switches, words", [
    (b"SwitchName=s1 Nodes=n[0-999999999]\n", "Nodes of a switch are not a host list"),
    (b"SwitchName=s1 Nodes=n[1-\n", "Nodes of a switch are not a host list"),
    (b"SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n[1-2]\n", None),      # n1 is on two leaf switches
    (b"SwitchName=s1 Nodes=n[1-2] Switches=s3\nSwitchName=s2 Nodes=(null)\nSwitchName=s3 Nodes= Level=0\n", None),
    (b"\0SwitchName=\x1b[2J\xff Nodes=\n#SwitchName=s1 Nodes=n1\n# SwitchName=s2 Nodes=n2\n" * 9999, None),
    (b"", None),
], ids=["many", "cut", "twice", "no leaves", "bytes", "empty"])
def test_hostile_switches(audit, tmp_path, switches, words):
    """Refused, or nothing is said of them."""
    (tmp_path / "switches").write_bytes(switches)
    told = audit(node_text() + node_text("n2"), one_job(1, "0", node="n[1-2]", count=2), "--switches",
                 tmp_path / "switches", status=int(words is not None))
    assert words in told if words else told["audited"] == 1 and told["levels"]["switch"]["jobs"] == 0


@pytest.mark.parametrize("nodes, jobs", [
    (None, [1, None, [], "x", {"job_id": {"set": True, "number": "x"}, "job_resources": [1], "gres_detail": 3}]),
    (None, [{"job_id": 1, "job_state": ["RUNNING"], "job_resources": {"nodes": {"allocation": [None, {"name": 7}]}}}]),
    (None, [{"job_id": 1, "job_state": [["RUNNING"]], "partition": 9, "name": None, "cpus": -1}] * 2),
    ([1, {"name": "n1", "sockets": 2, "cores": 8, "threads": 1, "partitions": [None, 3, {}]}, {"name": 4}], []),
    ([{"name": "n1", "sockets": "x", "cores": 1e9, "threads": [1], "alloc_cpus": -3}], []),
])
def test_json_of_an_unknown_form(audit, nodes, jobs):
    """Of a release to come, or hostile: nothing is taken for something else."""
    told = audit(json.dumps({"nodes": nodes}) if nodes else node_text(), json.dumps({"jobs": jobs}))
    assert told["audited"] == 0 and not told["worst"]


def test_hostile_lines(audit, tmp_path):
    """10^5 lines, names with control characters: each is counted, and none controls the terminal."""
    rng = random.Random(1)
    words = ["Nodes=n[1-2]", "CPU_IDs=0-99999999", "JobId=", "JobName=\x1b[2J", "Nodes=n[0-999999]", "GRES=gpu(IDX:0-9",
             "JOB_GRES=gpu", "MinCPUsNode=1", "JobState=RUNNING", "=", "\n", "\0", "\u202e", "StartTime=x", "NumCPUs="]
    lines = "\n".join(rng.choice(["", "   ", "JobId=%d " % i]) + " ".join(rng.choices(words, k=4))
                      for i in range(100000))
    text = audit(node_text() + node_text("n2"), one_job(1, "0,8", name="\x1b[2Jclear") + lines, form="-v")
    assert "\x1b" not in text and "\u202e" not in text and "1 audited" in text and "(?[2Jclear)" in text
    told = audit("\n".join("NodeName=n%s CoresPerSocket=%s BootTime=None" % (rng.choice("1\x1b[]9"), rng.choice("x1-"))
                           for _ in range(100000)), one_job(1, "0,8"))
    assert told["audited"] == 0


def test_the_wrong_xml(audit, tmp_path):
    (tmp_path / "bad.xml").write_text("<topology")
    assert "bad.xml" in audit(node_text(), one_job(1, "0"), "--topology", f"n1={tmp_path}/bad.xml", xml=None, status=1)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "n1.xml").write_text("<topology")
    told = audit(node_text(), one_job(1, "0"), "--topology", folder, xml=None)
    assert told["nodes_without_topology"] == 1


def test_a_large_cluster(tmp_path):
    """5,000 nodes, 20,000 jobs: seconds and MB are printed; a whole machine may be ten times slower."""
    rng = random.Random(2)
    (tmp_path / "x.xml").write_text(lstopo("pack:2 [numa(memory=64GiB)] l3:8 core:8 pu:2"))
    with open(tmp_path / "nodes", "w", encoding="utf-8") as out:
        out.writelines(node_text(f"n{i}", 2, 64, 2) for i in range(5000))
    free = [list(range(128)) for _ in range(5000)]
    with open(tmp_path / "jobs", "w", encoding="utf-8") as out:
        for number in range(20000):
            node, n = rng.randrange(5000), rng.choice([1, 2, 4, 8, 16])
            mine, free[node] = sorted(free[node][:n]), free[node][n:]
            if mine:
                cpus = ranges(core * 2 + i for core in mine for i in (0, 1))
                out.write(one_job(number, cpus, node=f"n{node}", start=1770000000 + number))
    begun = time.monotonic()
    done = topiary("--json", "--nodes", tmp_path / "nodes", "--jobs", tmp_path / "jobs", "--topology",
                   f"n0={tmp_path}/x.xml", status=0)
    took = time.monotonic() - begun
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    told = json.loads(done.stdout)
    print(f"audit of 5,000 nodes and {told['audited']} jobs: {took:.1f} s, {most:.0f} MB")
    assert told["audited"] == told["running"] > 19000 and told["nodes_without_topology"] == 0
    assert took < 100 and most < 500


SNAPSHOT = "topiary-snapshot 1\nshape s Package:2 [NUMANode] L3Cache:2 Core:4 PU:1\nnodes n[1-2] s\nend\n"
SACCT = "JobID|Submit|Start|End|NNodes|NCPUS|ReqMem|Timelimit|NodeList|Comment\n" + "".join(
    f"{i}|2026-11-20T10:0{i % 10}:00|2026-11-20T11:00:00|2026-11-20T12:0{i % 7}:00|1|{i % 9 + 1}||02:00:00|"
    f"n{i % 3 + 1}|\n" for i in range(60))
OBSERVED = "".join(f"observed=1 time={1770000000 + i} partition=p{i % 2} outcome=other passed=0 "
                   f"touched=2,2,2/1,1,{i % 3 + 1} opened=0,0,1/0,0,0 opened_nodes=1/0\n" for i in range(9))


@pytest.fixture(name="past")
def fixture_past(tmp_path, audit):
    """past(*options): an audit with jobs of the past; those on n3, of which no topology is known, are left out."""
    for name, text in {"snapshot": SNAPSHOT, "sacct": SACCT, "observed": OBSERVED,
                       "topiary.conf": f"ObserveFile={tmp_path}/observed\n"}.items():
        (tmp_path / name).write_text(text)
    return lambda *options, jobs="No jobs in the system\n", **how: audit(
        "".join(map(node_text, ("n1", "n2"))) + node_text("n3", 1, 4), jobs, "--config", tmp_path / "topiary.conf",
        "--snapshot", tmp_path / "snapshot", "--sacct", tmp_path / "sacct", *options, xml=None, **how)


def test_past_jobs_are_replayed(past, tmp_path):
    """As by topiary replay, of the jobs on known nodes."""
    told = past()["past"]
    known = "".join(line for line in SACCT.splitlines(True) if "|n3|" not in line)
    (tmp_path / "known").write_text(known)
    own = json.loads(command.topiary("replay", "--json", "--snapshot", tmp_path / "snapshot", tmp_path / "known",
                                     status=0).stdout)
    assert (own["jobs"], own.pop("elsewhere"), told.pop("elsewhere")) == (40, 0, 20) and told == own
    assert "40 jobs on 2 nodes with 32 cores; 20 left out" in past(form="-v")


def test_observed(past, tmp_path):
    told = past("--observed")["observed"]
    assert told == json.loads(command.topiary("observed", "--json", "--file", tmp_path / "observed", status=0).stdout)
    assert (told["compared"], told["better"], told["either"]) == (9, 6, 3)
    assert "no start that was compared in these days" in past("--observed", "--days=1", status=1)


@pytest.mark.parametrize("words, option", [
    ("audit --jobs=gone --nodes=gone", "--html="), ("matrix gone", "-o"), ("fabric show gone", "-o"),
    ("show --xml gone", "-o"),
    ("map --matrix=gone --arch=gone", "-o"), ("map --matrix=gone --arch=gone -omap", "--env="),
    ("map --matrix=gone --arch=gone --format=openmpi,srun", "-o")])
def test_file_that_cannot_be_written_is_said_before_the_work(tmp_path, words, option):
    """In the place of what else is wrong."""
    (tmp_path / "folder.openmpi").mkdir()
    (tmp_path / "folder").mkdir()
    for file, why in (("nowhere/x", "No such file or directory"), ("folder", "Is a directory")):
        done = command.topiary(*words.split(), f"{option}{tmp_path}/{file}", status=1, cwd=tmp_path)
        assert f"{tmp_path}/{file}" in done.stderr and done.stderr.endswith(f": {why}\n") and not done.stdout, done


def test_page(past, tmp_path):
    """Everything in one file, at home on a telephone and a wall, in the light and the dark; names are text."""
    if not PROGRAM:
        pytest.skip("no chromium here")
    hostile = "</script><img/src=x/onerror=document.title='hit'>"
    told = past("--observed", "--html", tmp_path / "page.html", jobs=one_job(1, "0-3,8-11", name=hostile))
    browser = Browser(tmp_path / "browser")
    try:
        for width in (400, 1600):
            for scheme in ("light", "dark"):
                browser.call("Emulation.setDeviceMetricsOverride", browser.session, width=width, height=900,
                             deviceScaleFactor=1, mobile=False)
                browser.call("Emulation.setEmulatedMedia", browser.session,
                             features=[{"name": "prefers-color-scheme", "value": scheme}])
                browser.open(f"file://{tmp_path}/page.html")
                assert not [m for m in browser.messages if m["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
                assert [m["params"]["request"]["url"] for m in browser.messages
                        if m["method"] == "Network.requestWillBeSent"] == [f"file://{tmp_path}/page.html"]
                assert browser.run("document.documentElement.scrollWidth") <= width
        text = browser.run("document.body.innerText")
        assert browser.run("document.title") == "Topiary audit" and f"job 1 ({hostile[:40]})" in text
        for words in ("packages: 1 of 1 job on more", "Kinds of nodes", "40 jobs of sacct", "66.7 % of 9 starts better",
                      "1 node of 1 × 4 cores", f"prefer: {told['past']['policies'][2]['dominated_percent']:.0f}"):
            assert words in text, words
        assert browser.run("document.querySelectorAll('rect').length") > 20
    finally:
        browser.close()


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    """site(nodes, jobs, *options): an audit that runs the commands of a site, whose arguments are then in `ran`."""
    (tmp_path / "x.xml").write_text(lstopo("pack:2 l3:2 core:4 pu:1"))
    (tmp_path / "sacct.out").write_text(SACCT)
    answers = {
        "scontrol": 'case "$*" in *config) printf "x\\nMinJobAge = 300\\n";; *node) cat nodes;; *job) cat jobs;; '
                    '*topology) echo "SwitchName=s1 Nodes=n[1-";; esac',
        "srun": 'case "$*" in *m1*) exit 1;; esac; cat x.xml', "sacct": "cat sacct.out"}
    (tmp_path / "bin").mkdir()
    for name, script in answers.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >>ran\n{script}\n')
        (tmp_path / "bin" / name).chmod(0o755)

    def site(nodes, jobs, *options, **how):
        (tmp_path / "nodes").write_text(nodes)
        (tmp_path / "jobs").write_text(jobs)
        return topiary("--json", *options, cwd=tmp_path, **how,
                       env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    return site


def test_collects_one_xml_of_a_kind(site, tmp_path):
    """A kind of which lstopo cannot be run stays without, and is named."""
    done = site(node_text() + node_text("n2") + node_text("m1", 1, 4), one_job(1, "0-3", node="n2"), "--collect",
                "--days=7", status=0)
    told = json.loads(done.stdout)
    assert (told["audited"], told["nodes_without_topology"], told["past"]["jobs"]) == (1, 1, 40)
    assert (tmp_path / "n1.xml").exists() and "lstopo on m1: srun ended with status 1" in done.stderr
    assert "Nodes of a switch are not a host list; switches of the cluster are not counted" in done.stderr
    ran = (tmp_path / "ran").read_text().split("\n")
    assert sum(line.startswith("srun") for line in ran) == 2
    assert [line for line in ran if "-S now-7days" in line and line.startswith("sacct -aXP")]
    (tmp_path / "bin" / "sacct").write_text("#!/bin/sh\nexit 1\n")
    done = site(node_text(), one_job(1, "0-3"), "--topology", "n1=x.xml", "--days=7", status=0)
    assert "past jobs are not replayed: sacct ended with status 1" in done.stderr and "past" not in done.stdout


@pytest.mark.parametrize("held, began, level, shown", [
    ("0-3", 20, "better_was_free", True), ("0-5,10-15", 20, "none_better_free", True),
    ("0-5,10-15", 2000, "unknown", True), ("0-3", 20, "unknown", False),
])
def test_jobs_that_ended_are_known_for_min_job_age(site, held, began, level, shown):
    """Job 2 is on two L3 caches; job 1 has ended since."""
    now = int(time.time())
    ended = one_job(1, held, start=now - began - 50).replace("RUNNING", "COMPLETED").replace(
        "EndTime=Unknown", time.strftime("EndTime=%Y-%m-%dT%H:%M:%S", time.localtime(now - 5)))
    if not shown:
        ended = "".join(line for line in ended.splitlines(True) if "CPU_IDs" not in line)
    told = json.loads(site(node_text(), ended + one_job(2, "6-9", start=now - began), "--topology", "n1=x.xml",
                           status=0).stdout)
    assert (told["running"], told["levels"]["l3"]["split"], told["levels"]["l3"][level]) == (1, 1, 1)


def test_xml_of_another_node(audit, tmp_path):
    """Of other hardware it is refused by its cores, and a node that is given twice has its first."""
    (tmp_path / "y.xml").write_text(lstopo("pack:1 l3:3 core:4 pu:1"))
    told = audit(node_text(), one_job(1, "0-3"), "--topology", f"n1={tmp_path}/y.xml", xml=None)
    assert told["nodes_otherwise"][0]["finding"] == \
        "slurm.conf has 2 x 8 cores, the hardware 12: jobs are not audited" and told["audited"] == 0
    assert audit(node_text(), one_job(1, "0-3"), "--topology", f"n1={tmp_path}/y.xml")["audited"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"] if os.environ.get("TOPIARY_BATTERY") else [platform.machine()])
def test_one_file_to_carry(tmp_path, arch):
    """It needs nothing of the host that it is copied to, and its audit is that of the whole command."""
    emulator = [] if platform.machine() == arch else [shutil.which(f"qemu-{arch}-static")]
    if os.geteuid() or emulator == [None] or not shutil.which(f"{arch}-linux-gnu-gcc"):
        pytest.skip(f"needs root, and a compiler and an emulator of {arch}")
    command.run("make", "tool", f"TOOL_ARCH={arch}", f"CACHE={CACHE}", f"BUILD={BUILD}", cwd=ROOT, status=0,
                timeout=1800)
    made = BUILD / "tool" / arch / f"topiary-{arch}"
    assert made.stat().st_size <= 6 << 20
    assert "INTERP" not in command.run("readelf", "-lW", made, status=0).stdout
    (tmp_path / "nodes").write_text(node_text() + node_text("n2"))
    (tmp_path / "jobs").write_text(one_job(1, "2-7,10-15") + one_job(2, "0-1,8-9", tasks=2, each=2))
    (tmp_path / "x.xml").write_text(lstopo("pack:2 [numa(memory=8GiB)] l3:2 core:4 pu:1"))
    for file in [made, *emulator]:
        shutil.copy(file, tmp_path)
    words = ["--nodes", "nodes", "--jobs", "jobs", "--topology", "n1=x.xml"]
    inside = ["chroot", tmp_path, *(f"/{os.path.basename(file)}" for file in [*emulator, made])]
    for form in ("-v", "--json"):
        assert command.run(*inside, "audit", form, *words, status=0).stdout == \
            topiary(form, *words, cwd=tmp_path, status=0).stdout
    assert "without a client of the registry" in command.run(*inside, "fabric", "history", status=1).stderr
