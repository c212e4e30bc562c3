# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary audit of a cluster that runs, from text and from JSON of this Slurm. What is true is found from the nodes'
XML and from the cores that the jobs have."""
import json

from rig.ask import cores_of, wait_running
from whole.judge import Hardware, least


def test_is_right(cluster, submit, tmp_path):
    nodes = ("cn1", "cn3")
    xml = {node: cluster.topology_file(node) for node in nodes}
    hardware = {node: Hardware(xml[node].read_text()) for node in nodes}
    # A job that has ended but is still shown, memory, two nodes, names that are hostile; of the last, text is in doubt.
    wanted = (["-N1", "-n3"], ["-N1", "-n5", "-c2", "--mem=10"], ["-N1", "-n7"], ["-N2", "-n6"], ["-N1", "-n1"],
              ["-N1", "-n2", "-J", "x UserId=root(0)"])
    jobs = [submit("-w", ",".join(nodes[:int(words[0][2:])]), "--topo-fit=off", "-J", "a\x1b[2Jb", *words)
            for words in wanted]
    for number in jobs:
        wait_running(cluster, number)
    cluster.command(["scancel", jobs[0]])
    cluster.wait_job(jobs[0])
    assert cores_of(cluster, jobs.pop(0)), "slurmctld does not show the cores of a job that has ended"
    true = {number: cores_of(cluster, number) for number in jobs}
    words = [word for node in nodes for word in ("--topology", f"{node}={xml[node]}")]
    (tmp_path / "nodes").write_text(cluster.command(["scontrol", "-a", "show", "node"]).stdout)
    forms = [[]]
    for form, options in {"text": [], "json": ["--json"]}.items():
        done = cluster.command(["scontrol", *options, "-a", "-d", "show", "job"], check=not options)
        if done.returncode == 0 and done.stdout:
            (tmp_path / form).write_text(done.stdout)
            forms.append(["--nodes", tmp_path / "nodes", "--jobs", tmp_path / form])
    for files in forms:
        done = cluster.topiary("audit", "--json", *map(str, files), *map(str, words))
        assert not done.stderr, "of this cluster without a topology scontrol says so on stderr"
        told = json.loads(done.stdout)
        said = {job["job"]: job for job in told["jobs"]}
        doubtful = [of["jobs"] for of in told["not_audited"] if "its name may imitate it" in of["finding"]]
        assert doubtful == ([] if "json" in str(files) else jobs[-1:]), (files, told["not_audited"])
        for number, cores in true.items():
            if number in doubtful:
                continue
            for level in ("package", "numa", "l3"):
                parts = {node: hardware[node].partition(level) for node in cores}
                on = sum(bool(part & set(cores[node])) for node in cores for part in parts[node])
                needs = sum(least(parts[node], frozenset().union(*parts[node]), len(cores[node])) for node in cores)
                one = said[number].get(level, {"on": on, "needs": needs}) if all(parts.values()) else None
                assert not one or (one["on"], one["needs"]) == (on, needs), (files, number, level, one, on, needs)
        assert (told["nodes_with_hidden_jobs"], told["nodes_with_shared_cores"]) == (len(doubtful), 0)
        assert "\x1b" not in json.dumps(told["worst"], ensure_ascii=False)
    assert len(forms) > 1


def test_without_jobs_there_is_no_empty_table(cluster, tmp_path):
    (tmp_path / "jobs").write_text("No jobs in the system\n")
    (tmp_path / "nodes").write_text(cluster.command(["scontrol", "-a", "show", "node"]).stdout)
    files = ["--jobs", str(tmp_path / "jobs"), "--nodes", str(tmp_path / "nodes"), "--snapshot", str(
        cluster.snapshot_file)]
    assert cluster.topiary("audit", *files).stdout.split("\n\n")[1] == \
        "No job is running, so that there is nothing to audit.\n"
    assert json.loads(cluster.topiary("audit", "--json", *files).stdout)["running"] == 0
    assert cluster.topiary("why", "--pending").stdout == "No job is pending.\n"


def test_a_job_on_nodes_without_topology_is_no_empty_table(cluster, submit, tmp_path):
    wait_running(cluster, submit("-n1"))
    for what, options in (("job", ["-d"]), ("node", [])):
        (tmp_path / what).write_text(cluster.command(["scontrol", "-a", *options, "show", what]).stdout)
    done = cluster.topiary("audit", "--jobs", str(tmp_path / "job"), "--nodes", str(tmp_path / "node"))
    assert "LEVEL" not in done.stdout, done
    assert "topology\n\nNo job was audited: what is missing is below.\n" in done.stdout, done
