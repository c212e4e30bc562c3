# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A user asks why a job has its cores, or why it waits, and is told what slurmctld decided."""
import datetime
import json
import re
import struct
import time

import pytest
from rig.ask import cores_of, expand, fields, jobs, wait_running
from rig.cluster import JOB_USER
from rig.paths import BUILD
from rig.processes import wait_until

# cn1: 4 packages, each of 2 NUMA nodes with an L3 cache of 8 cores


def why(cluster, *arguments, check=True):
    return cluster.topiary("why", *arguments, user=JOB_USER, check=check)


def told(cluster, number):
    """{heading: words}, and the words of the lines without one below it."""
    rows, head = {}, None
    for line in why(cluster, "-v", number).stdout.rstrip("\n").split("\n"):
        head, words = (re.split("  +", line, maxsplit=1) if not line.startswith(" ") else (head, line.strip()))
        rows[head] = rows[head] + "\n" + words if head in rows else words
    return rows


def placed(cluster, submit, *options):
    number = submit("-w", "cn1", "-N1", *options)
    wait_running(cluster, number)
    return number


def test_placed_job(cluster, submit):
    number = placed(cluster, submit, "-n8", "--topo-level=package", "--topo-level=l3")
    rows = told(cluster, number)
    assert rows["job"] == f"{number}, running: placed by Topiary"
    assert rows["asked"] == "within one L3 cache if possible (fit prefer, level l3)"
    assert rows["wanted"] == "8 tasks of 1 core on one node"
    node, cores = rows["cores"].split()
    assert {node: expand(cores)} == cores_of(cluster, number)
    assert rows["touches"].startswith("1 package, 1 NUMA node, 1 L3 cache")
    assert rows["level"] == "satisfied: all within one L3 cache"
    assert rows["leaves"].startswith("exact fit, no free core left in its ")
    assert rows["choice"] == "1 of 1 node offered by Slurm had room"
    picture = cluster.topiary("show", "cn1", "--svg", "--job", number, user=JOB_USER).stdout
    assert f"Dark green: cores {cores} of job {number}" in picture


def test_best_other_node(cluster, submit):
    number = submit("-N1", "-n8", "-w", "cn1")
    wait_running(cluster, number)
    second = submit("-N1", "-n8", "--exclude=cn3,cn4,cn5")
    wait_running(cluster, second)
    rows = told(cluster, second)
    assert rows["choice"] == "2 of 2 nodes offered by Slurm had room"
    assert {rows["beside"].split()[0].rstrip(":"), rows["cores"].split()[0]} == {"cn1", "cn2"}


def test_waiting_job(cluster, submit):
    placed(cluster, submit, "-n8", "--topo-fit=spread", "--topo-level=l3")
    number = submit("-w", "cn1", "-N1", "-n8", "--topo-fit=require", "--topo-level=l3")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    rows = told(cluster, number)
    assert rows["job"] == f"{number}, pending: waits"
    assert rows["asked"] == "within one L3 cache on each node, otherwise wait (fit require, level l3)"
    assert rows["because"]
    assert rows["choice"] == "0 of 1 node offered by Slurm had room"


def test_waiting_job_that_also_requests_sockets(cluster, submit):
    number = submit("-w", "cn1", "-N1", "-n4", "-B2:2", "--topo-fit=require", "--topo-level=package")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    assert (told(cluster, number)["because"]
            == "it requires 1 node with 4 cores in one package;"
               " within that Slurm decides: the requested sockets, cores or threads")


def test_job_left_to_slurm(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n4", "--overcommit"))
    assert rows["job"].endswith(", running: left to Slurm")
    assert rows["because"]


def test_comment_changed_to_an_unknown_option(cluster, submit):
    number = submit("-w", "cn1", "-n4", "--hold")
    cluster.command(["scontrol", "update", f"job={number}", "comment=topo-fit=maybe"])
    cluster.command(["scontrol", "release", number])
    wait_running(cluster, number)
    assert (told(cluster, number)["because"]
            == "unknown Topiary option, or value of one, in --comment or the environment of the job")


def test_whole_node_is_within_no_domain(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n4", "--exclusive", "--topo-fit=require", "--topo-level=l3"))
    assert rows["touches"].startswith("4 packages")
    assert rows["wanted"] == "4 tasks of 1 core on one node; whole nodes"
    assert rows["level"] == "not considered: the job has all cores of its nodes"


def test_path_of_a_job_with_whole_nodes(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n8", "--exclusive", "--topo-request=/l3=1/core=4"))
    assert rows["job"].endswith(", running: placed by Topiary")
    assert rows["wanted"].endswith("on one node; whole nodes")


def test_json(cluster, submit):
    number = placed(cluster, submit, "-n8")
    job, = json.loads(why(cluster, number, "--json").stdout)["jobs"]
    assert (job["job"], job["state"], job["error"]) == (number, "running", None)
    verdict = job["verdict"]
    assert ((verdict["outcome"], verdict["fit"], verdict["level"], verdict["tasks_per_node"])
            == ("placed", "prefer", "node", 8))
    assert {part["nodes"]: expand(part["cores"]) for part in verdict["cores"]} == cores_of(cluster, number)
    assert verdict["counts"]["touched"]["l3"] == 1


def test_array(cluster, submit):
    number = submit("-w", "cn1", "-N1", "-n4", "--array=1-4%2")
    assert wait_until(lambda: not why(cluster, f"{number}_2", check=False).returncode, 30)
    rows = [line.split() for line in why(cluster, number).stdout.split("\n")[1:-1]]
    assert [row[:3] for row in rows[:2]] == [[f"{number}_1", "running", "placed"], [f"{number}_2", "running", "placed"]]
    assert ["topiary:" in record for record in sorted(jobs(cluster, number), key=lambda r: "[" in r
                                                      or "ArrayTaskId=3-4" in r)] == [True, True, False]
    assert rows[2][:4] == [f"{number}_[3-4%2]", "pending", "-", "-"], "the verdict of another task"
    assert why(cluster, f"{number}_3", check=False).returncode == 1
    assert told(cluster, f"{number}_2")["job"] == f"{number}_2, running: placed by Topiary"
    refused = why(cluster, f"{number}_7", check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and f"job {number}_7: " in refused.stderr


def test_heterogeneous_job(cluster, submit):
    number = submit("-w", "cn1", "-n4", ":", "-w", "cn2", "-n8")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    assert [line.split()[0] for line in why(cluster, number).stdout.split("\n")[1:-1]] == [f"{number}+0", f"{number}+1"]
    assert told(cluster, f"{number}+1")["wanted"] == "8 tasks of 1 core on one node"
    assert why(cluster, f"{number}+2", check=False).returncode == 1


def test_job_without_a_verdict(cluster, submit):
    number = submit("--hold", "-n1")
    refused = why(cluster, number, check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert f"job {number}: no verdict: it is pending" in refused.stderr


def test_job_that_slurmctld_does_not_know(cluster):
    refused = why(cluster, "999999", check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert refused.stderr.endswith("job 999999: slurmctld does not know this job, or no longer, and neither does"
                                   " accounting: Slurm accounting storage is disabled\n"), refused.stderr


@pytest.mark.parametrize("options, admin, words", [
    (["--begin=now+1hour"], None, r"its time to begin has not come; it may begin at \S+; a verdict"),
    (["--hold"], None, r"its user holds it: scontrol release; a verdict"),
    (["-n1"], "requeuehold", r"Slurm says 'job requeued in held state'; a verdict"),
    (["--begin=now+1hour"], "hold", r"an administrator holds it; a verdict"),
])
def test_why_a_job_does_not_begin(cluster, submit, options, admin, words):
    number = submit(*options)
    if admin == "requeuehold":
        wait_running(cluster, number)
    if admin:
        cluster.command(["scontrol", admin, number])
    assert wait_until(lambda: re.search(words, why(cluster, number, check=False).stderr), 30), why(
        cluster, number, check=False).stderr


def test_request_that_cannot_be_met_any_more(cluster, submit):
    number = submit("--hold", "-w", "cn1", "-N1", "-n8", "--topo-fit=require", "--topo-level=l3")
    cluster.command(["scontrol", "update", f"jobid={number}", "NumTasks=40", "NumCPUs=40"])
    cluster.command(["scontrol", "release", number])
    assert wait_until(lambda: cluster.job_record(number).get("Reason") == "BadConstraints", 30)
    assert told(cluster, number)["queue"].startswith("Slurm cannot meet its request, and holds it: "), number
    cluster.command(["scontrol", "update", f"jobid={number}", "NumTasks=8", "NumCPUs=8"])
    cluster.command(["scontrol", "release", number])
    wait_running(cluster, number)


def test_job_with_fit_off(cluster, submit):
    rows = told(cluster, placed(cluster, submit, "-n8", "--topo-fit=off"))
    assert rows["job"].endswith(", running: left to Slurm") and rows["because"] == "topo-fit is off"
    assert rows["wanted"] == "8 tasks of 1 core on one node"


def test_job_that_ended_before_it_started(cluster, submit):
    number = submit("--hold", "-n1")
    cluster.command(["scancel", number])
    refused = why(cluster, number, check=False)
    assert refused.returncode == 1 and refused.stderr.endswith("no verdict: it ended before it started\n"), refused
    waits = submit("-w", "cn1", "-N1", "-n4", "-B2:2", "--topo-fit=require", "--topo-level=package")
    assert wait_until(lambda: not why(cluster, waits, check=False).returncode, 30)
    assert told(cluster, waits)["choice"] == "1 of 1 node offered by Slurm had room"
    cluster.command(["scancel", waits])
    assert told(cluster, waits)["job"] == f"{waits}, ended: waited"


def test_named_node_is_not_compared_with_others(cluster, submit):
    """The other one is: it is what was chosen."""
    number = submit("-w", "cn2", "-N2", "-n16", "--exclude=cn3,cn4,cn5")
    wait_running(cluster, number)
    assert "beside" not in told(cluster, number)


@pytest.mark.parametrize("words", [[], ["x"], ["12.0"], ["0"], ["-1"], ["12_"], ["12+"], ["12_3+1"], ["1", "2"],
                                   ["99999999999"]], ids=str)
def test_usage_errors(cluster, words):
    refused = why(cluster, *words, check=False)
    assert refused.returncode == 64, refused.stderr


# --- what it cost, what it waits for: against Slurm's records, in words of their own

def seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def test_what_a_job_cost(cluster, submit):
    number = placed(cluster, submit, "-n5", "--begin=now")
    rows = told(cluster, number)
    record = cluster.job_record(number)
    found = re.fullmatch(r"waited (\d+) s, has had (\d+) CPUs for (\d+) s: ([0-9.]+) CPU hours", rows["cost"])
    waited, cpus, ran, hours = found.groups()
    assert cpus == record["NumCPUs"]
    eligible = max(seconds(record["SubmitTime"]), seconds(record["EligibleTime"]))
    assert int(waited) == seconds(record["StartTime"]) - eligible
    assert int(ran) <= time.time() - seconds(record["StartTime"])
    assert abs(int(ran) * int(cpus) / 3600 - float(hours)) < .006
    assert len(why(cluster, number).stdout.split("\n")) <= 11, "ten lines"


def test_job_that_was_resized(cluster, submit):
    """The verdict is of its start; of nodes that it gave up, or got, nothing is said as if it had them so."""
    number = submit("-w", "cn[1-2]", "-N2", "-n16")
    wait_running(cluster, number)
    assert "resized" not in told(cluster, number)
    cluster.command(["scontrol", "update", f"jobid={number}", "NumNodes=1"])
    kept, = cores_of(cluster, number)
    rows = told(cluster, number)
    assert rows["resized"] == f"to {kept}: all else describes its start" and "cost" not in rows, rows
    cluster.command(["scancel", number])
    assert wait_until(lambda: cluster.job_state(number) == "CANCELLED", 30)
    assert told(cluster, number)["resized"] == rows["resized"]


def first_l3(cluster, numbers, node="cn1", size=8):
    """{first core: (when it is free by the limits of jobs, the jobs until then)} of the L3 caches of a node."""
    ends, owner = {}, {}
    for number in numbers:
        ends[number] = seconds(cluster.job_record(number)["EndTime"])
        owner |= {core: number for core in cores_of(cluster, number)[node]}
    found = {}
    for first in range(0, 64, size):
        held = sorted({owner[core] for core in range(first, first + size) if core in owner}, key=ends.get)
        found[first] = (ends[held[-1]] if held else 0, held)
    return found


def test_what_a_waiting_job_waits_for(cluster, submit):
    limits = [50, 40, 30, 20, 45, 35, 25, 55]
    holders = [placed(cluster, submit, f"-n{cores}", f"--time={limit}", "--topo-fit=require", "--topo-level=l3")
               for limit, cores in zip(limits, [5, 6, 7, 5, 6, 7, 5, 8])]
    number = submit("-w", "cn1", "-N1", "-n8", "--topo-fit=require", "--topo-level=l3")
    assert wait_until(lambda: not why(cluster, number, check=False).returncode, 30)
    rows = told(cluster, number)
    caches = first_l3(cluster, holders)
    when, held = min(caches.values())
    first, = [first for first, (at, _) in caches.items() if at == when]
    assert rows["waits for"] == "one L3 cache with 8 free cores"
    clock = datetime.datetime.fromtimestamp(when)
    assert re.fullmatch(rf"L3 cache {first // 8} of cn1 \(cores {first}-{first + 7}\) has 8 free cores at "
                        rf"(\S+T)?{clock:%H:%M:%S} at the latest", rows["first"]), rows
    assert re.findall(r"job (\d+) of (\w+) until", rows["held by"]) == [(job, JOB_USER) for job in held], rows
    assert rows["queue"].startswith(("what it needs is not available now", "jobs with a higher priority",
                                     "Slurm has not"))
    # By the clock of slurmctld, whatever that of the host of the command is.
    ahead = cluster.folder / "work" / "ahead"
    ahead.write_bytes(struct.pack("q", 3 * 86400))
    by_other = cluster.command(["env", f"SET_CLOCK={ahead}", f"LD_PRELOAD={BUILD}/tests/set_clock.so",
                                cluster.folder / "bin/topiary", "why", "-v", number]).stdout
    assert re.search(rf"has 8 free cores at \S+T{clock:%H:%M:%S} at the latest", by_other), by_other
    later = submit("-w", "cn1", "-N1", "-n64", "--topo-fit=prefer")
    words = {"Resources": "what it needs is not available now", "Priority": "jobs with a higher priority are first"}
    assert wait_until(lambda: cluster.job_record(later).get("Reason") in words, 30)
    pending = json.loads(why(cluster, "--pending", "--json").stdout)["pending"]
    assert {job["job"] for job in pending} >= {number, later}
    by_job = {job["job"]: job for job in pending}
    assert by_job[number]["held by"] == rows["held by"] and by_job[number]["first"] == rows["first"]
    # Slurm changes its reason from one round to the next.
    assert by_job[later]["queue"].startswith((*words.values(), "nodes that it needs", "Slurm ")), by_job[later]
    assert "waits for" not in by_job[later]
    table = why(cluster, "--pending").stdout
    assert rows["first"] in table and f"held by {rows['held by']}" in table


def test_waiting_for_tasks_that_are_not_divided_evenly(cluster, submit):
    """8 and 7 tasks: cn1 has 7 free cores in an L3 cache, so the job waits for cn2 alone."""
    for cores in (1, 5, 5, 5, 5, 5, 5, 5):
        placed(cluster, submit, f"-n{cores}", "--time=50", "--topo-fit=require", "--topo-level=l3")
    holder = submit("-w", "cn2", "-N1", "--exclusive", "--time=20")
    wait_running(cluster, holder)
    number = submit("-w", "cn2", "-N1", "-n1", "--topo-fit=require", "--topo-level=l3")
    assert wait_until(lambda: "waits for" in why(cluster, number, check=False).stdout, 30)
    rows = told(cluster, number)
    assert rows["waits for"] == "one L3 cache with 1 free core" and " has 1 free core at " in rows["first"], rows
    cluster.command(["scancel", number])
    number = submit("-w", "cn[1-2]", "-N2", "-n15", "--topo-fit=require", "--topo-level=l3")
    assert wait_until(lambda: "waits for" in why(cluster, number, check=False).stdout, 30)
    rows = told(cluster, number)
    assert rows["waits for"] == "15 free cores on 2 nodes, those of each node in one L3 cache", rows
    clock = datetime.datetime.fromisoformat(cluster.job_record(holder)["EndTime"])
    assert re.fullmatch(rf"cn\[1-2\] have them at (\S+T)?{clock:%H:%M:%S} at the latest", rows["first"]), rows
    assert re.findall(r"job (\d+) of", rows["held by"]) == [holder], rows
    cluster.command(["scancel", holder])
    wait_running(cluster, number)
    assert sorted(map(len, cores_of(cluster, number).values())) == [7, 8]


def test_cores_of_a_suspended_job_are_free(cluster, submit):
    """Slurm gives them to others."""
    number = placed(cluster, submit, "-n12")
    free = json.loads(cluster.topiary("fragmentation", "--nodes=cn2", "--json").stdout)["levels"]

    def levels():
        return json.loads(cluster.topiary("fragmentation", "--nodes=cn1", "--json").stdout)["levels"]

    assert levels()["l3"]["free"] == 6
    cluster.command(["scontrol", "suspend", number])
    assert levels() == free
    whole = placed(cluster, submit, "-n64")
    assert levels()["l3"] == {"all": 8, "free": 0, "partly": 0}
    audited = json.loads(cluster.topiary("audit", "--json").stdout)
    assert number not in {job["job"] for job in audited["jobs"]} and not audited["nodes_with_shared_cores"], audited
    cluster.command(["scancel", whole, number])


def test_what_is_whole(cluster, submit):
    numbers = [placed(cluster, submit, "-n5"), placed(cluster, submit, "-n16", "--topo-level=package")]
    taken = {core for number in numbers for core in cores_of(cluster, number)["cn1"]}
    told_now = json.loads(cluster.topiary("fragmentation", "--nodes=cn1", "--json", user=JOB_USER).stdout)
    for level, size in (("node", 64), ("package", 16), ("numa", 8), ("l3", 8)):
        used = [len(taken & set(range(first, first + size))) for first in range(0, 64, size)]
        assert told_now["levels"][level] == {"all": len(used), "free": used.count(0),
                                             "partly": sum(0 < n < size for n in used)}, level
    drawn = told_now["drawn"]["cn1"]
    assert [i for i, core in enumerate(drawn.replace("|", "").replace(" ", "")) if core == "#"] == sorted(taken)
    assert [len(package.replace(" ", "")) for package in drawn.split("|")] == [16] * 4
    printed = cluster.topiary("fragmentation", user=JOB_USER).stdout
    assert re.search(rf"^cn1 +{re.escape(drawn)}$", printed, re.MULTILINE) and "cn3 " not in printed, printed


def test_what_if(cluster, submit):
    """Nothing is submitted; a required L3 cache is there when the first of the jobs in the way ends."""
    holders = [placed(cluster, submit, "-n5", f"--time={limit}", "--topo-fit=require", "--topo-level=l3")
               for limit in (50, 40, 30, 20, 45, 35, 25, 55)]
    last = max(map(int, holders))
    line = ["sbatch", "-w", "cn1", "-N1", "-n8", "--time=5", "--topo-level=l3", "--topo-f=off", "--wrap=true"]
    answers = {answer["fit"]: answer for answer in
               json.loads(cluster.topiary("whatif", "--json", *line, user=JOB_USER).stdout)["whatif"]}
    now = time.time()
    assert [answers[fit]["nodes"] for fit in ("prefer", "require", "off")] == ["cn1"] * 3, answers
    assert seconds(answers["prefer"]["start"]) <= now + 60 >= seconds(answers["off"]["start"]), answers
    free = min(at for at, _ in first_l3(cluster, holders).values())
    assert 0 <= seconds(answers["require"]["start"]) - free <= 90, (answers, free)
    assert max(map(int, (job["JobId"] for job in map(fields, jobs(cluster))))) <= last + 3
    assert not cluster.command(["squeue", "-h", "-t", "PD"]).stdout
    never = cluster.topiary("whatif", "sbatch", "-w", "cn1", "-N1", "-n99", user=JOB_USER, check=False)
    assert never.returncode == 1 and never.stdout.count("not at all:") == 3 and "START is" not in never.stdout, never


def test_what_if_of_a_heterogeneous_job(cluster, submit):
    """One line for both components, each with the fit of the row: the second would cross L3 caches."""
    line = ["sbatch", "-w", "cn1", "-n4", "--time=5", ":", "-w", "cn2", "-n9", "--topo-level=l3", "--wrap=true"]
    answers = {answer["fit"]: answer for answer in
               json.loads(cluster.topiary("whatif", "--json", *line, user=JOB_USER).stdout)["whatif"]}
    assert (answers["prefer"]["nodes"], answers["prefer"]["cpus"]) == ("cn[1-2]", 13), answers
    assert answers["off"]["nodes"] == "cn[1-2]" and not answers["require"]["start"], answers


def test_jobs_that_the_user_may_not_see(cluster, submit):
    """With PrivateData nothing is said of their nodes."""
    conf = cluster.folder / "etc" / "slurm.conf"
    before = conf.read_text()
    placed(cluster, submit, "-n5")
    try:
        conf.write_text(before + "PrivateData=jobs\n")
        cluster.command(["scontrol", "reconfigure"])

        def counts():
            return json.loads(cluster.topiary("fragmentation", "--nodes=cn[1-2]", "--json", user="daemon").stdout)
        assert wait_until(lambda: counts()["hidden"] == 1, 20), counts()
        told_now = counts()
        assert told_now["nodes"] == 1 and told_now["levels"]["l3"] == {"all": 8, "free": 8, "partly": 0}, told_now
        printed = cluster.topiary("fragmentation", "--nodes=cn[1-2]", user="daemon").stdout
        assert "1 node; without 1 with jobs that you may not see" in printed and "cn1 " not in printed
    finally:
        conf.write_text(before)
        cluster.command(["scontrol", "reconfigure"])
