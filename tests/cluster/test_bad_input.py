# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Bad input and missing services: one clear error or one warning, and no job, slurmd or slurmctld is harmed."""
import signal
import time

import pytest
from rig.ask import cores_of, wait_running
from rig.processes import wait_until

# --- options

@pytest.mark.parametrize("option, words", [
    ("--topo-fit=strict", ["--topo-fit=strict: ", "require"]),
    ("--topo-level=sockets", ["--topo-level=sockets: ", "package"]),
    ("--topo-request=l3", ["--topo-request=l3: ", "/package=1/l3=2/core=4"]),
    ("--topo-matrix=/nonexistent/matrix", ["/nonexistent/matrix"]),
    ("--topo-matrix=/etc", ["/etc"]),
    ("--topo-matrix=automatic", ["--topo-matrix=automatic: No such file", "; expected a file, auto[:TAG] or off"]),
    ("--topo-order=fabrics", ["--topo-order=fabrics: expected off or fabric"]),
    ("--topo-matrix=AUTO:a-b", ["--topo-matrix=AUTO:a-b: a tag has 1 to 32 letters"]),
])
def test_option_is_refused_at_submission(cluster, option, words):
    refused = cluster.batch("true", option, check=False)
    lines = [line for line in refused.stderr.split("\n") if "error: topiary: " in line]
    assert refused.returncode and len(lines) == 1, refused.stderr
    assert all(word in lines[0] for word in words), lines


@pytest.mark.parametrize("command, variables, words", [
    ("sbatch -H --topo-fit=off --topo-request=/l3=1/core=4 -n4 --wrap=true", {},
     "--topo-fit=off has no effect beside --topo-request=/l3=1/core=4"),
    ("sbatch -H --topo-level=l3 --topo-fit=off -n4 --wrap=true", {},
     "--topo-level=l3 has no effect beside --topo-fit=off"),
    ("sbatch -H --topo-fit=require --topo-request=/l3=1/core=4 -n4 --wrap=true", {}, None),
    ("sbatch -H --topo-request=/l3=1/core=4 -n4 --wrap=true", {"SBATCH_TOPO_FIT": "off"}, None),
    ("sbatch -H --wrap=true", {"SBATCH_TOPO_LEVL": "l3", "SLURM_TOPO_LEVL": "l3"},
     "SBATCH_TOPO_LEVL in the environment names no option of Topiary and is ignored"),
    ("salloc -Q -n1 -w cn1 srun --topo-level=l3 true", {}, "--topo-level has no effect on a step, because the"
     " job's cores are chosen already: give it to sbatch or salloc"),
    ("salloc -Q -n1 -w cn1 --topo-level=l3 srun true", {"SLURM_TOPO_FIT": "prefer"}, None),
])
def test_what_has_no_effect_is_said(cluster, command, variables, words):
    """What was given here, and not by a default of the user's or by the job around."""
    done = cluster.command(command.split(), user="nobody", env=cluster.env(**variables))
    said = [line.partition("topiary: ")[2] for line in done.stderr.split("\n") if "topiary: " in line]
    if done.stdout:
        cluster.command(["scancel", done.stdout.split()[-1]])
    assert said == ([words] if words else [])


@pytest.mark.parametrize("command, option", [("srun", "--topo-matrix=/etc/passwd"),
                                             ("salloc", "--topo-capture=/tmp/capture")])
def test_option_of_batch_jobs_is_refused_by_others(cluster, command, option):
    refused = cluster.command([command, "-w", "cn1", "-n1", option, "true"], user="nobody", check=False)
    lines = [line for line in refused.stderr.split("\n") if "error: topiary: " in line]
    assert refused.returncode and len(lines) == 1, refused.stderr
    assert lines[0].endswith(f"{option.partition('=')[0]} applies to batch jobs only: use it with sbatch")


def test_salloc_in_a_mapped_job_runs(cluster, matrix):
    _, state, output = cluster.job("salloc -Q -w cn3 -n1 echo it ran", "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}")
    assert (state, output) == ("COMPLETED", "it ran\n")


# --- matrices

def test_matrix_of_too_few_ranks_is_refused_at_submission(cluster, matrix):
    path = matrix(2)
    refused = cluster.batch("true", "-w", "cn1", "--ntasks=3", "-N1", f"--topo-matrix={path}", check=False)
    assert (refused.returncode and f"--topo-matrix={path}: the matrix has 2 ranks, but the job has 3 tasks"
            in refused.stderr), refused.stderr


def test_matrix_of_more_ranks_is_accepted(cluster, matrix):
    output = cluster.output("echo file=$TOPIARY_RANKFILE", "-w", "cn1", "-n2", f"--topo-matrix={matrix(4)}")
    assert "/rankfile" in output, output
    assert output.count("the matrix has 4 ranks, the job 2 tasks: only the first 2 are mapped") == 1, output


@pytest.mark.parametrize("text", ["#include <stdio.h>\nint main(void) { return 0; }\n", "\0\1\2"],
                         ids=["source", "bytes"])
def test_file_that_is_no_matrix_is_refused_at_submission(cluster, matrix, text):
    path = matrix(text=text)
    refused = cluster.batch("true", "-w", "cn1", "-n4", f"--topo-matrix={path}", check=False)
    assert refused.returncode and not refused.stdout, refused
    assert refused.stderr.count(f"--topo-matrix={path}: not a communication matrix: ") == 1, refused.stderr


def test_matrix_that_changes_after_submission_is_one_warning(cluster, matrix):
    path, output = matrix(4), cluster.folder / "work" / "changed.out"
    script = f"echo file=$TOPIARY_RANKFILE$OMPI_MCA_orte_default_hostfile; mpirun {cluster.folder}/bin/where | wc -l"
    number = cluster.batch(script, "-H", "-w", "cn1", "-n4", f"--topo-matrix={path}",
                           f"--output={output}").stdout.strip()
    path.write_text("hello\n")
    cluster.command(["scontrol", "release", number])
    assert cluster.wait_job(number) == "COMPLETED"
    said = output.read_text()
    assert said.count(str(path)) == 1 and "file=\n4\n" in said, said


def test_deleted_matrix_is_one_warning(cluster, matrix):
    """It was there when the job was submitted. Its srun, and the one by which mpirun reaches the other node, run all
    the same."""
    path, output = matrix(4), cluster.folder / "work" / "went.out"
    script = f"mpirun {cluster.folder}/bin/where | wc -l; srun -Q echo step"
    number = cluster.batch(script, "-H", "-w", "cn1,cn2", "-N2", "-n4", f"--topo-matrix={path}",
                           f"--output={output}").stdout.strip()
    path.unlink()
    cluster.command(["scontrol", "release", number])
    assert cluster.wait_job(number) == "COMPLETED"
    said = output.read_text()
    assert said.count(str(path)) == 1 and said.splitlines()[-5:] == ["4", *4 * ["step"]], said


# --- the snapshot

def cut(text):
    return text[:len(text) // 2]


def corrupt(text):
    return text.replace("Core:2", "Core:3", 1)


def said_of_snapshot(cluster):
    """What slurmctld logged of the snapshot file so far."""
    log = (cluster.folder / "log" / "slurmctld.log").read_text()
    return [line for line in log.split("\n") if f"topiary: {cluster.snapshot_file}:" in line]


@pytest.fixture
def snapshot(cluster):
    """Replaces the snapshot (None: removes it) and waits until slurmctld, if there is one, has a line about it; the
    right one is back after the test. topiaryd, which would write it anew, is away meanwhile."""
    path = cluster.snapshot_file
    cluster.end("topiaryd")
    right = path.read_text()

    def replace(text):
        log = cluster.folder / "log" / "slurmctld.log"
        size, before = log.stat().st_size, path.read_text() if path.exists() else None
        if text is None:
            path.unlink()
        else:
            new = path.with_name("snapshot.new")
            new.write_text(text)
            new.rename(path)
        if text != before and "slurmctld" in cluster.daemons:
            assert wait_until(lambda: f"{path}:".encode() in log.read_bytes()[size:], 10, 0.1)

    yield replace, right
    replace(right)
    cluster.start_topiaryd()


@pytest.mark.parametrize("damage, words", [
    (cut, ": truncated"), (lambda text: None, ": No such file"),
], ids=["cut in half", "absent"])
def test_bad_snapshot_harms_no_job(cluster, snapshot, damage, words):
    replace, right = snapshot
    before = len(said_of_snapshot(cluster))
    replace(damage(right))
    said = said_of_snapshot(cluster)[before:]
    assert len(said) == 1 and words in said[0] and said[0].endswith("; the last good snapshot remains in use"), said
    number, state, output = cluster.job("echo ran", "-w", "cn1", "-n8")
    assert (state, output) == ("COMPLETED", "ran\n")
    assert len({core // 8 for core in cores_of(cluster, number)["cn1"]}) == 1, "the last good snapshot is forgotten"


def test_start_without_a_good_snapshot_is_stock(cluster, snapshot):
    replace, right = snapshot
    cluster.end("slurmctld")
    before = len(said_of_snapshot(cluster))
    replace(corrupt(right))
    cluster.start_slurmctld()
    assert wait_until(cluster.nodes_idle, 30)
    number, state, _ = cluster.job("true", "-w", "cn1", "-n8")
    assert state == "COMPLETED"
    assert len({core // 8 for core in cores_of(cluster, number)["cn1"]}) > 1
    said = said_of_snapshot(cluster)[before:]
    assert len(said) == 1 and said[0].endswith("; jobs are placed as without one"), said
    replace(right)
    number, _, _ = cluster.job("true", "-w", "cn1", "-n8")
    assert len({core // 8 for core in cores_of(cluster, number)["cn1"]}) == 1, "a good snapshot is not taken up"


def test_snapshot_that_disagrees_with_slurm_is_ignored(cluster, snapshot):
    replace, _ = snapshot
    replace("topiary-snapshot 1\nshape odd Package:2 Core:5 PU:1\nnodes cn1 odd\nend\n")
    number, state, _ = cluster.job("true", "-w", "cn1", "-n8")
    assert state == "COMPLETED"
    assert len(cores_of(cluster, number)["cn1"]) == 8


def test_requirement_waits_for_nodes_missing_in_the_snapshot(cluster, snapshot):
    """A node that has not exported yet may have what a job requires: that is not the same as never. It is told of, and
    the job runs."""
    replace, right = snapshot
    replace("topiary-snapshot 1\nshape small Package:2 [NUMANode] Core:6 PU:1\nnodes cn4 small\nend\n")
    number = cluster.batch("true", "-w", "cn1", "-n8", "--topo-fit=require", "--topo-level=l3",
                           "--output=/dev/null").stdout.strip()
    assert cluster.job_record(number)["JobState"] == "PENDING"
    replace(right)
    assert cluster.wait_job(number) == "COMPLETED"
    assert len({core // 8 for core in cores_of(cluster, number)["cn1"]}) == 1
    refused = cluster.batch("true", "-w", "cn1", "-n65", "--topo-fit=require", "--topo-level=package", check=False)
    assert refused.returncode and "largest package has 16 cores" in refused.stderr, refused


# --- services

@pytest.fixture
def running_job(cluster, matrix):
    """A job with all of Topiary's wishes, running before the test and asked to end well after it."""
    go = cluster.folder / "work" / "go"
    output = cluster.folder / "work" / "running.out"
    go.unlink(missing_ok=True)
    output.unlink(missing_ok=True)
    script = f"while ! test -e {go}; do sleep 0.1; done; mpirun {cluster.folder}/bin/where"
    number = cluster.batch(script, "-w", "cn1,cn2", "-N2", "-n8", "--ntasks-per-node=4", f"--topo-matrix={matrix(8)}",
                           f"--output={output}").stdout.strip()
    wait_running(cluster, number)
    yield number
    go.touch()
    state = cluster.wait_job(number)
    assert state == "COMPLETED", output.read_text()
    assert output.read_text().count("rank") == 8


@pytest.mark.parametrize("service", ["topiaryd", "postgres"])
def test_jobs_need_no_registry(cluster, running_job, service):
    cluster.end(service, signal.SIGKILL if service == "topiaryd" else signal.SIGINT)
    try:
        _, state, output = cluster.job("test -s $HWLOC_XMLFILE && echo ran", "-w", "cn3", "-n4")
        assert (state, output) == ("COMPLETED", "ran\n")
    finally:
        cluster.start_topiaryd() if service == "topiaryd" else cluster.start_postgres()
    assert wait_until(lambda: not cluster.topiary("nodes", check=False).returncode,
                      30), "the registry does not come back"


def test_running_job_survives_munge(cluster, running_job):
    cluster.end("munged")
    time.sleep(1)
    cluster.start_munge()


# --- a node's own file

@pytest.mark.parametrize("content", [None, '<?xml version="1.0"?>\n<topology version="2.0">\n</topology>\n'],
                         ids=["absent", "hollow"])
def test_broken_topology_file_harms_no_step(cluster, content):
    path = cluster.topology_file("cn3")
    right = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_text(content)
    try:
        output = cluster.output("echo batch; srun echo step", "-w", "cn3", "-n1")
    finally:
        path.write_bytes(right)
    assert [line for line in output.split("\n") if line in ("batch", "step")] == ["batch", "step"]
