# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""--topo-capture: what a job's ranks exchange becomes a matrix, the next job maps by it, and no job is harmed."""
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from rig import mpi
from rig.node import own_disk
from rig.paths import BUILD, ROOT
from rig.processes import wait_until

RECORDER = BUILD / "libtopiary-capture.so"
# The nodes of the rig preload a library of their own in its stead; cn5 alone is as on a real machine.
LOADED = "export LD_PRELOAD=$TOPIARY_CAPTURE_PRELOAD:$LD_PRELOAD\n"
# After an abort Debian 12's mpirun now and then waits for itself, in PMIx_server_finalize: the ranks have ended by
# then.
ENDED = "timeout -s KILL 20 "
pytestmark = pytest.mark.skipif(not RECORDER.exists(), reason="no mpicc when Topiary was built")


@pytest.fixture(scope="module")
def mpich(tmp_path_factory):
    """MPICH, the program and the recorder built for it."""
    made = tmp_path_factory.mktemp("mpich")
    try:
        kind = mpi.mpich()
        program = kind.build(ROOT / "tests/cluster/exchange.c", made / "exchange")
    except mpi.Missing as why:
        pytest.skip(str(why))
    subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={made}", f"MPICC=gcc {' '.join(kind.headers)}", "capture"],
                   check=True, capture_output=True)
    return kind, program, made / RECORDER.name


@pytest.fixture(scope="module")
def lab(whole):
    """The program and the recorder where jobs find them, as installed; the folder that jobs write to."""
    mpi.openmpi().build(ROOT / "tests/cluster/exchange.c", whole.folder / "bin/exchange")
    shutil.copy(RECORDER, whole.folder / RECORDER.name)
    return whole.folder / "work"


def said(output):
    return [line for line in output.splitlines() if "topiary" in line]


def capture(cluster, lab, script, *options, **more):
    """(state, output, the file, was the folder of the ranks removed?) of a job, of 8 ranks on two nodes unless told
    otherwise."""
    file = lab / f"m.{time.monotonic_ns()}"
    _, state, output = cluster.job(script, *(options or ("-w", "cn1,cn2", "-N2", "-n8")),
                                   f"--topo-capture={file}", **more)
    return state, output, file, not list(lab.glob(f"{file.name}.*"))


def test_next_job_is_mapped_by_the_captured_matrix(cluster, lab):
    state, output, file, clean = capture(cluster, lab, "mpirun exchange often")
    assert (state, output, clean) == ("COMPLETED", "", True)
    assert file.owner() == "nobody"
    text = cluster.topiary("matrix", file, "--format", "dense").stdout
    heavy = [max(range(8), key=lambda c, row=row: row[c])
             for row in [[float(w) for w in line.split()] for line in text.splitlines()]]
    assert heavy == [r ^ 1 for r in range(8)]
    output = cluster.output("cat $TOPIARY_RANKFILE", "-w", "cn1,cn2", "-N2", "-n8", f"--topo-matrix={file}")
    seats = [(host, int(slot) // 2) for host, slot in re.findall(r"^rank \d+=(\S+) slot=(\d+)$", output, re.M)]
    assert len(seats) == 8
    assert all(seats[r] == seats[r ^ 1] for r in range(8)), "two that exchange share no L2"


def test_recorder_is_loaded_and_the_users_own_stays(cluster, lab):
    script = "echo $LD_PRELOAD; echo $OMPI_MCA_pml_monitoring_filename\n"
    _, output, _, _ = capture(cluster, lab, script, "-w", "cn5", "-n1")
    assert output.split()[0] == str(cluster.folder / RECORDER.name)
    _, output, _, _ = capture(cluster, lab, script, "-w", "cn5", "-n1",
                              variables={"LD_PRELOAD": "libm.so.6", "OMPI_MCA_pml_monitoring_filename": "/tmp/mine"})
    assert output.split()[:2] == [f"{cluster.folder / RECORDER.name}:libm.so.6", "/tmp/mine"]


def test_job_of_another_mpi_is_captured(cluster, lab, mpich):
    """As a site has it: a recorder for each MPI, and nothing that the job must say."""
    kind, program, recorder = mpich
    home = cluster.folder / "mpich"
    home.mkdir(exist_ok=True)
    for file in (kind.mpirun[0], kind.mpirun[0].parent / "hydra_pmi_proxy",
                 Path(kind.env["LD_LIBRARY_PATH"]) / "libmpich.so.12", program):
        shutil.copy(file, home)
    second = shutil.copy(recorder, cluster.folder / "libtopiary-capture-mpich.so")
    state, output, file, clean = capture(
        cluster, lab,
        f"export LD_LIBRARY_PATH={home}\n{home}/mpiexec.hydra -launcher fork -n 2 {home}/exchange often\n",
        "-w", "cn5", "-n2")
    Path(second).unlink()
    assert (state, output, clean) == ("COMPLETED", "", True)
    text = cluster.topiary("matrix", file).stdout
    assert text.splitlines()[1:] == ["2 2 1", f"2 1 {3 * 700 + 11}"]


@pytest.mark.parametrize("script, state, words", [
    ("exit 3", "FAILED", "no .prof file in this directory"),
    ("mpirun exchange ways fail", "FAILED", None),
    (LOADED + "mpirun -n 2 exchange ways; mpirun exchange often; mpirun -n 4 exchange ways", "COMPLETED",
     "ignored 6 files of smaller runs"),
    (LOADED + ENDED + "mpirun exchange long abort", "FAILED", None),
    (LOADED + ENDED + "mpirun exchange long kill", "FAILED", None),
    # Slurm 25.05 leaves SIGCHLD blocked in a step, and dash's wait needs it.
    (LOADED + "bash -c 'mpirun exchange ways & mpirun exchange ways & wait'", "COMPLETED", None),
    ("echo x > ${TOPIARY_CAPTURE}.0.prof", "COMPLETED", "rank.0.prof:1: not a number"),
])
def test_job_ends_as_without_capture(cluster, lab, script, state, words):
    ended, output, file, _ = capture(cluster, lab, script, *(("-w", "cn1", "-n8") if script.startswith(LOADED) else ()))
    assert ended == state, output
    lines = [line for line in said(output) if "mpirun" not in line]
    assert len(lines) == bool(words) or "smaller runs" in output, output
    assert not words or words in output
    assert file.exists() == (words is None and "rm" not in script or "smaller" in (words or ""))


def test_killed_job_keeps_what_it_recorded(cluster, lab):
    file = lab / f"late.{time.monotonic_ns()}"
    number = cluster.batch(LOADED + "mpirun exchange " + 20 * " long", "-w", "cn1", "-n4", f"--topo-capture={file}",
                           f"--output={file}.out").stdout.strip()
    assert wait_until(lambda: len(list(lab.glob(f"{file.name}.{number}/*.prof"))) == 4, 30)
    cluster.command(["scancel", number])
    assert cluster.wait_job(number) == "CANCELLED"
    assert wait_until(lambda: not Path(f"{file}.{number}").exists(), 20)
    text = cluster.topiary("matrix", file).stdout
    assert {tuple(line.split()[:2]) for line in text.splitlines()[2:]} >= {("2", "1"), ("4", "3")}


@pytest.mark.parametrize("owner, words", [("nobody", None), ("root", "Permission denied")])
def test_matrix_is_read_as_the_user(cluster, lab, owner, words):
    """Readable by its owner alone: the user's own is found, root's is not, not even for the daemon's child that
    maps."""
    file = lab / f"own.{owner}"
    file.write_text("0 1\n1 0\n")
    # Readable when the job is submitted, which looks whether it is there.
    file.chmod(0o644)
    number = cluster.batch("echo file:$TOPIARY_RANKFILE", "-H", "-w", "cn1", "-n2", f"--topo-matrix={file}",
                           f"--output={file}.out").stdout.strip()
    shutil.chown(file, owner)
    file.chmod(0o600)
    cluster.command(["scontrol", "release", number])
    assert cluster.wait_job(number) == "COMPLETED"
    output = Path(f"{file}.out").read_text()
    assert ("file:/" in output) == (words is None), output
    warnings = [line for line in output.splitlines() if line.startswith("topiary:")]
    assert warnings == [] if words is None else len(warnings) == 1 and f"{file}: {words}" in warnings[0], output


@pytest.mark.parametrize("script, words", [
    ("rm -r {0}", "No such file or directory"), ("mv {0} {0}.old; ln -s {0}.old {0}", "Not a directory"),
    ("chmod 777 {0}", "all users may write to the directory"),
], ids=["removed", "link", "writable by all"])
def test_folder_that_the_job_replaces_is_one_warning(cluster, lab, script, words):
    file = lab / f"replaced.{time.monotonic_ns()}"
    output = cluster.output(f"mpirun exchange ways; {script.format(f'{file}.$SLURM_JOB_ID')}", "-w", "cn1",
                            "-n2", f"--topo-capture={file}")
    assert len(said(output)) == 1, output
    assert f"{file} was not written: {file}." in output and words in output
    assert not file.exists()


def test_full_disk_is_one_warning(cluster, lab, full_disk):
    output = cluster.output("mpirun exchange ways; echo it ran", "-w", "cn1", "-n2", f"--topo-capture={full_disk}/m")
    assert "it ran" in output
    why = r"/m was not written, its file system is full: .*/rank\.[^/]*\.prof: empty"
    assert len(said(output)) == 1 and re.search(why, output), output
    assert not (full_disk / "m").exists()


def test_disk_without_a_size_is_not_full(cluster, lab):
    folder = lab / "unlimited"
    folder.mkdir()
    folder.chmod(0o777)
    with own_disk(folder, "0"):
        output = cluster.output("echo x > ${TOPIARY_CAPTURE}.0.prof", "-w", "cn1", "-n2", f"--topo-capture={folder}/m")
    assert f"{folder}/m was not written: " in output and "not a number" in output, output


def test_killed_job_leaves_no_file_and_no_folder(cluster, lab):
    file = lab / f"killed.{time.monotonic_ns()}"
    number = cluster.batch("sleep 60", "-n2", f"--topo-capture={file}", f"--output={file}.out").stdout.strip()
    assert wait_until(lambda: Path(f"{file}.{number}").is_dir(), 20)
    cluster.command(["scancel", number])
    assert cluster.wait_job(number) == "CANCELLED"
    assert wait_until(lambda: not Path(f"{file}.{number}").exists(), 20)
    assert not file.exists()


@pytest.mark.parametrize("value, words", [
    ("/nonexistent/m", "No such file or directory"), ("/root/m", "Permission denied"), ("folder", "s a directory"),
    ("/tmp/..", "not a file name"),
    ("", "not a file name"), ("/tmp/" + "x" * 300, "File name too long"), ("/tmp/" + "x" * 4200, "File name too long"),
])
def test_impossible_file_is_refused_at_submission(cluster, value, words):
    (cluster.folder / "work/folder").mkdir(exist_ok=True)
    done = cluster.batch("true", f"--topo-capture={value}", check=False)
    assert done.returncode and words in done.stderr and "--topo-capture=" in done.stderr


def test_job_submitted_by_a_captured_one_is_not_captured(cluster, lab):
    inner = lab / f"inner.{time.monotonic_ns()}"
    state, output, _, _ = capture(cluster, lab, f"unset LD_PRELOAD; export LD_PRELOAD=$TOPIARY_CAPTURE_PRELOAD\n"
                                  "env -u _SLURM_SPANK_OPTION_topiary_topo_capture -u "
                                  "SLURM_SPANK__SLURM_SPANK_OPTION_topiary_topo_capture "
                                  f"sbatch --wait -w cn5 -n1 --output={inner} --wrap 'env'")
    assert state == "COMPLETED", output
    names = {line.split("=")[0] for line in inner.read_text().splitlines()}
    assert "SLURM_JOB_ID" in names and not names & {"TOPIARY_CAPTURE", "TOPIARY_CAPTURE_PRELOAD", "LD_PRELOAD",
                                                    "OMPI_MCA_pml_monitoring_filename",
                                                    "OMPI_MCA_pml_monitoring_enable"}


def test_relative_file_is_that_of_the_submission(cluster, lab):
    name = f"here.{time.monotonic_ns()}"
    _, state, output = cluster.job("cd /; mpirun exchange often", "-w", "cn1", "-n2", f"--topo-capture={name}")
    assert (state, output) == ("COMPLETED", "") and (lab / name).exists()
