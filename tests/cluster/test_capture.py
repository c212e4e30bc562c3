# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What ranks exchange is counted, by Open MPI itself or by the recorder, byte for byte; the next job maps by it; no job is harmed."""
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from rig.paths import BUILD, CACHE, ROOT
from rig.processes import wait_until

LIBRARIES = "usr/lib/x86_64-linux-gnu"
RANKS = 6
QUIET = {"OMPI_MCA_btl": "self,vader", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
         "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
         "OMPI_MCA_mpi_yield_when_idle": "1"}
RECORDER = BUILD / "libtopiary-capture.so"
pytestmark = pytest.mark.skipif(not RECORDER.exists(), reason="no mpicc when Topiary was built")


def run(command, **env):
    return subprocess.run([str(c) for c in command], env={**os.environ, **QUIET, **{k: str(v) for k, v in env.items()}}, capture_output=True,
                          text=True, timeout=60, check=False)


def exchanged(folder, kinds="E"):
    """{(kind, from, to): bytes} of the files of all ranks."""
    told = Counter()
    for file in folder.glob("*.prof"):
        for kind, source, target, count in re.findall(r"^([EISR])\t(\d+)\t(\d+)\t(\d+) bytes", file.read_text(), re.M):
            if kind in kinds and int(count):
                told[kind, int(source), int(target)] += int(count)
    return dict(told)


@pytest.fixture(scope="module")
def exchange(tmp_path_factory):
    program = tmp_path_factory.mktemp("openmpi") / "exchange"
    subprocess.run(["mpicc", "-o", program, ROOT / "tests/cluster/exchange.c"], check=True)
    return program


@pytest.fixture(scope="module")
def mpich(tmp_path_factory):
    """MPICH beside the MPI of this machine: (mpiexec, its environment, the program, our recorder for it)."""
    home = CACHE / "mpich"
    if not (home / "usr/bin/mpiexec.hydra").exists():
        packages = tmp_path_factory.mktemp("packages")
        got = subprocess.run(["apt-get", "-q", "download", "mpich", "libmpich12", "libmpich-dev"], cwd=packages, capture_output=True, check=False)
        if got.returncode or not list(packages.glob("*.deb")):
            pytest.skip("MPICH cannot be downloaded from Debian here")
        for package in packages.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, home], check=True)
    made = tmp_path_factory.mktemp("mpich")
    headers = f"-I{home}/usr/include/x86_64-linux-gnu/mpich"
    subprocess.run(["gcc", "-w", headers, "-o", made / "exchange", ROOT / "tests/cluster/exchange.c", f"-L{home}/{LIBRARIES}", "-lmpich"],
                   check=True)
    subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={made}", f"MPICC=gcc {headers}", "capture"], check=True, capture_output=True)
    env = {"LD_LIBRARY_PATH": home / LIBRARIES}
    if "not found" in run(["ldd", made / "exchange"], **env).stdout:
        pytest.skip("libraries of MPICH are missing here")
    return [home / "usr/bin/mpiexec.hydra", "-launcher", "fork", "-n", RANKS], env, made / "exchange", made / RECORDER.name


def by_monitoring(exchange, folder, way):
    done = run(["mpirun", "-n", RANKS, exchange, way], OMPI_MCA_pml_monitoring_enable=2, OMPI_MCA_pml_monitoring_enable_output=3,
               OMPI_MCA_pml_monitoring_filename=folder / "rank")
    assert done.returncode == 0, done.stderr
    return folder


def by_recorder(exchange, folder, way, *more, **env):
    done = run(["mpirun", "-n", RANKS, exchange, way, *more], LD_PRELOAD=RECORDER, TOPIARY_CAPTURE=folder / "rank", **env)
    assert done.returncode == 0, done.stderr
    return folder


def by_mpich(mpich, folder, way):
    mpiexec, env, program, recorder = mpich
    done = run([*mpiexec, "-genv", "LD_PRELOAD", recorder, "-genv", "TOPIARY_CAPTURE", folder / "rank", program, way], **env)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def three(tmp_path):
    made = [tmp_path / name for name in ("monitoring", "recorder", "mpich")]
    for folder in made:
        folder.mkdir()
    return made


@pytest.mark.parametrize("way, kinds", [("ways", "E"), ("window", "SR")])
def test_recorder_counts_as_open_mpi_does(exchange, three, way, kinds):
    theirs = exchanged(by_monitoring(exchange, three[0], way), kinds)
    ours = exchanged(by_recorder(exchange, three[1], way), kinds)
    assert ours == theirs and len(ours) == 12


def test_recorder_counts_the_same_in_mpich(exchange, mpich, three):
    for way in ("ways", "window", "often", "groups", "together"):
        assert exchanged(by_mpich(mpich, three[2], way), "EISR") == exchanged(by_recorder(exchange, three[1], way), "EISR")


def test_recorder_counts_what_monitoring_does_not(exchange, three):
    """Starts of persistent requests; a request that took the place of a freed one is no start."""
    often = exchanged(by_recorder(exchange, three[1], "often"))
    assert often == {("E", r, r ^ 1): 3 * 700 + 11 for r in range(RANKS)}
    groups = exchanged(by_recorder(exchange, three[1], "groups"))
    assert groups == {("E", r, 0): 5000 for r in range(1, RANKS, 2)}


def test_recorder_stands_in_where_monitoring_is_not_loaded(exchange, three):
    monitored = {"OMPI_MCA_pml_monitoring_enable": 2, "OMPI_MCA_pml_monitoring_enable_output": 3,
                 "OMPI_MCA_pml_monitoring_filename": three[1] / "rank"}
    by_recorder(exchange, three[1], "often", OMPI_MCA_pml="ob1", **monitored)
    assert exchanged(three[1]) == {("E", r, r ^ 1): 3 * 700 + 11 for r in range(RANKS)}
    # Where it is, its files stay, also over those of a former run.
    by_recorder(exchange, three[1], "often", **monitored)
    assert exchanged(three[1]) == {("E", r, r ^ 1): 11 for r in range(RANKS)}
    assert all("O2A" in file.read_text() for file in three[1].iterdir()) and len(list(three[1].iterdir())) == RANKS


def test_collectives_are_reckoned_by_their_usual_algorithms(exchange, three):
    told = exchanged(by_recorder(exchange, three[1], "together"), "I")
    expected = Counter()

    def add(source, target, count):
        if source != target:
            expected["I", source, target] += count

    for source, target in [(1, 2), (1, 3), (1, 5), (3, 4), (5, 0)]:             # broadcast from 1, 1000 bytes
        add(source, target, 1000)
    for source, target in [(1, 0), (2, 0), (3, 2), (4, 0), (5, 4)]:             # reduce to 0, 400 bytes
        add(source, target, 400)
    for source, target in [(0, 1), (1, 0), (2, 3), (3, 2), (1, 3), (3, 1), (4, 5), (5, 4), (1, 4), (4, 1), (3, 5), (5, 3)]:
        add(source, target, 400)                                                # allreduce: 0 and 2 lend to 1 and 3
    for rank in range(RANKS):
        add(rank, 2, 20)                                                        # gather
        add(0, rank, rank)                                                      # scatterv
        add(rank, (rank + 1) % RANKS, (RANKS - 1) * 10)                         # allgather, a ring
        for other in range(RANKS):
            add(rank, other, 50)                                                # alltoall
            if abs(rank - other) == 1:
                add(rank, other, 7)                                             # neighbours in a line
    assert told == dict(expected)


def test_recorder_of_another_mpi_changes_nothing(exchange, mpich, three):
    mpiexec, env, program, recorder = mpich
    for way in ("ways", "together", "window", "often", "groups"):
        done = run(["mpirun", "-n", RANKS, exchange, way], LD_PRELOAD=recorder, TOPIARY_CAPTURE=three[0] / "rank")
        assert (done.returncode, done.stderr) == (0, "")
        done = run([*mpiexec, "-genv", "LD_PRELOAD", RECORDER, "-genv", "TOPIARY_CAPTURE", three[0] / "rank", program, way], **env)
        assert (done.returncode, done.stderr) == (0, "")
    assert not list(three[0].iterdir())
    # Each finds its own when both are there.
    by_recorder(exchange, three[1], "ways")
    done = run(["mpirun", "-n", RANKS, exchange, "ways"], LD_PRELOAD=f"{recorder}:{RECORDER}", TOPIARY_CAPTURE=three[0] / "rank")
    assert done.returncode == 0 and exchanged(three[0]) == exchanged(three[1])


def test_recorder_needs_no_mpi():
    told = run(["readelf", "-d", RECORDER]).stdout
    assert "libc.so" in told and "libmpi" not in told
    assert run(["true"], LD_PRELOAD=RECORDER, LD_BIND_NOW=1, TOPIARY_CAPTURE="/tmp/x").returncode == 0


@pytest.mark.parametrize("prefix", ["/nonexistent/rank", "/dev/full/rank", "/dev/full", "", "/" + "x" * 5000])
def test_what_cannot_be_written_does_not_end_the_program(exchange, prefix):
    done = run(["mpirun", "-n", RANKS, exchange, "ways"], LD_PRELOAD=RECORDER, TOPIARY_CAPTURE=prefix)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("end, status", [("fail", 7), ("abort", 3)])
def test_program_ends_as_it_would(exchange, three, end, status):
    done = run(["mpirun", "-n", RANKS, exchange, "ways", end], LD_PRELOAD=RECORDER, TOPIARY_CAPTURE=three[1] / "rank")
    assert done.returncode == status
    assert len(list(three[1].iterdir())) == (RANKS if end == "fail" else 0)


@pytest.fixture
def full_disk():
    """A small file system of its own, in which everybody may write and nothing has room; one file, "full", is on it."""
    disk = Path(tempfile.mkdtemp(prefix="topiary_disk_", dir="/tmp"))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=1777", "none", disk], capture_output=True, check=False).returncode:
        disk.rmdir()
        pytest.skip("nothing can be mounted here")
    (disk / "full").write_bytes(bytes(8192))
    yield disk
    subprocess.run(["umount", disk], check=True)
    disk.rmdir()


def test_full_disk_leaves_nothing_behind(exchange, full_disk):
    done = run(["mpirun", "-n", RANKS, exchange, "ways"], LD_PRELOAD=RECORDER, TOPIARY_CAPTURE=full_disk / "rank")
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in full_disk.iterdir()] == ["full"]


# --- in a job

@pytest.fixture(scope="module")
def lab(whole_cluster, exchange):
    """The program and the recorder where jobs find them, as installed; the folder that jobs write to."""
    shutil.copy(exchange, whole_cluster.folder / "bin/exchange")
    shutil.copy(RECORDER, whole_cluster.folder / RECORDER.name)
    return whole_cluster.folder / "work"


def said(output):
    return [line for line in output.splitlines() if "topiary" in line]


def capture(cluster, lab, script, *options):
    """(state, output, the file, was the folder of the ranks removed?) of a job, of 8 ranks on two nodes unless told otherwise."""
    file = lab / f"m.{time.monotonic_ns()}"
    _, state, output = cluster.job(script, *(options or ("-w", "cn1,cn2", "-N2", "-n8")), f"--topo-capture={file}")
    return state, output, file, not list(lab.glob(f"{file.name}.*"))


def test_next_job_maps_by_what_this_one_exchanged(cluster, lab):
    state, output, file, clean = capture(cluster, lab, "mpirun exchange often")
    assert (state, output, clean) == ("COMPLETED", "", True)
    assert file.owner() == "nobody"
    text = cluster.topiary("matrix", file, "--format", "dense").stdout
    heavy = [max(range(8), key=lambda c, row=row: row[c]) for row in [[float(w) for w in line.split()] for line in text.splitlines()]]
    assert heavy == [r ^ 1 for r in range(8)]
    _, state, output = cluster.job("cat $OMPI_MCA_rmaps_rank_file_path", "-w", "cn1,cn2", "-N2", "-n8", f"--topo-matrix={file}")
    seats = [(host, int(slot) // 2) for host, slot in re.findall(r"^rank \d+=(\S+) slot=(\d+)$", output, re.M)]
    assert state == "COMPLETED" and len(seats) == 8
    assert all(seats[r] == seats[r ^ 1] for r in range(8)), "two that exchange share no L2"


def test_recorder_stands_in_where_monitoring_is_off(cluster, lab):
    script = "unset OMPI_MCA_pml_monitoring_enable\nexport LD_PRELOAD=$TOPIARY_CAPTURE_PRELOAD:$LD_PRELOAD\nmpirun exchange often\n"
    state, output, file, clean = capture(cluster, lab, script, "-w", "cn1", "-n8")
    assert (state, output, clean) == ("COMPLETED", "", True)
    assert file.read_text() == "%%MatrixMarket matrix coordinate real symmetric\n8 8 4\n" + "".join(
        f"{r + 2} {r + 1} {3 * 700 + 11}\n" for r in range(0, 8, 2))


def test_recorder_is_loaded_and_the_users_own_stays(cluster, lab):
    script = "echo $LD_PRELOAD; echo $OMPI_MCA_pml_monitoring_filename\n"
    _, output, _, _ = capture(cluster, lab, script, "-w", "cn5", "-n1")
    assert output.split()[0] == str(cluster.folder / RECORDER.name)
    _, output, _, _ = capture(cluster, lab, script, "-w", "cn5", "-n1",
                              "--export=ALL,LD_PRELOAD=libm.so.6,OMPI_MCA_pml_monitoring_filename=/tmp/mine")
    assert output.split()[:2] == [f"{cluster.folder / RECORDER.name}:libm.so.6", "/tmp/mine"]


def test_job_of_another_mpi_is_captured(cluster, lab, mpich):
    """As a site has it: a recorder for each MPI, and nothing that the job must say."""
    mpiexec, env, program, recorder = mpich
    home = cluster.folder / "mpich"
    home.mkdir(exist_ok=True)
    for file in (mpiexec[0], mpiexec[0].parent / "hydra_pmi_proxy", env["LD_LIBRARY_PATH"] / "libmpich.so.12", program):
        shutil.copy(file, home)
    second = shutil.copy(recorder, cluster.folder / "libtopiary-capture-mpich.so")
    state, output, file, clean = capture(
        cluster, lab, f"export LD_LIBRARY_PATH={home}\n{home}/mpiexec.hydra -launcher fork -n 2 {home}/exchange often\n", "-w", "cn5", "-n2")
    Path(second).unlink()
    assert (state, output, clean) == ("COMPLETED", "", True)
    assert file.read_text().splitlines()[1:] == ["2 2 1", f"2 1 {3 * 700 + 11}"]


@pytest.mark.parametrize("script, state, words", [
    ("exit 3", "FAILED", "no rank told what it sent"),
    ("mpirun exchange ways fail", "FAILED", None),
    ("mpirun -n 2 exchange ways; mpirun exchange often; mpirun -n 4 exchange ways", "COMPLETED", "4 file(s) of smaller runs do not count"),
    ("echo x > ${TOPIARY_CAPTURE}.0.prof", "COMPLETED", "rank.0.prof:1: not a number"),
    ("rm -r $(dirname $TOPIARY_CAPTURE)", "COMPLETED", None),
])
def test_job_ends_as_it_would(cluster, lab, script, state, words):
    ended, output, file, _ = capture(cluster, lab, script)
    assert ended == state, output
    lines = [line for line in said(output) if "mpirun" not in line]
    assert len(lines) == bool(words) or "smaller runs" in output, output
    assert not words or words in output
    assert file.exists() == (words is None and "rm" not in script or "smaller" in (words or ""))


def test_folder_that_went_is_one_warning(cluster, lab):
    folder = lab / f"gone.{time.monotonic_ns()}"
    folder.mkdir()
    shutil.chown(folder, "nobody")
    output = lab / f"{folder.name}.out"
    number = cluster.batch("mpirun exchange ways", "-H", "-n2", f"--output={output}", f"--topo-capture={folder}/m").stdout.strip()
    folder.rmdir()
    cluster.command(["scontrol", "release", number])
    assert cluster.wait_job(number) == "COMPLETED"
    assert output.read_text() == f"topiary: job {number} is not captured: {folder}/m.{number}: No such file or directory\n"


def test_full_disk_is_one_warning(cluster, lab, full_disk):
    _, state, output = cluster.job("mpirun exchange ways; echo it ran", "-w", "cn1", "-n2", f"--topo-capture={full_disk}/m")
    assert state == "COMPLETED" and "it ran" in output
    assert len(said(output)) == 1 and "rank.0.prof: empty" in output, output
    assert not (full_disk / "m").exists()


def test_killed_job_leaves_no_file_and_no_folder(cluster, lab):
    file = lab / f"killed.{time.monotonic_ns()}"
    number = cluster.batch("sleep 60", "-n2", f"--topo-capture={file}", f"--output={file}.out").stdout.strip()
    assert wait_until(lambda: Path(f"{file}.{number}").is_dir(), 20)
    cluster.command(["scancel", number])
    assert cluster.wait_job(number) == "CANCELLED"
    assert wait_until(lambda: not Path(f"{file}.{number}").exists(), 20)
    assert not file.exists()


@pytest.mark.parametrize("value, words", [
    ("/nonexistent/m", "No such file or directory"), ("/root/m", "Permission denied"), ("folder", "s a directory"), ("/tmp/..", "not a file's name"),
    ("", "not a file's name"), ("/tmp/" + "x" * 300, "File name too long"), ("/tmp/" + "x" * 4200, "File name too long"),
])
def test_file_that_cannot_be_is_refused_at_submission(cluster, value, words):
    (cluster.folder / "work/folder").mkdir(exist_ok=True)
    done = cluster.batch("true", f"--topo-capture={value}", check=False)
    assert done.returncode and words in done.stderr and "--topo-capture=" in done.stderr


def test_job_submitted_by_a_captured_one_is_not_captured(cluster, lab):
    inner = lab / f"inner.{time.monotonic_ns()}"
    state, output, _, _ = capture(cluster, lab, f"unset LD_PRELOAD; export LD_PRELOAD=$TOPIARY_CAPTURE_PRELOAD\n"
                                  "env -u _SLURM_SPANK_OPTION_topiary_topo_capture -u SLURM_SPANK__SLURM_SPANK_OPTION_topiary_topo_capture "
                                  f"sbatch --wait -w cn5 -n1 --output={inner} --wrap 'env'")
    assert state == "COMPLETED", output
    names = {line.split("=")[0] for line in inner.read_text().splitlines()}
    assert "SLURM_JOB_ID" in names and not names & {"TOPIARY_CAPTURE", "TOPIARY_CAPTURE_PRELOAD", "LD_PRELOAD", "OMPI_MCA_pml_monitoring_filename",
                                                    "OMPI_MCA_pml_monitoring_enable"}


def test_relative_file_is_that_of_the_submission(cluster, lab):
    name = f"here.{time.monotonic_ns()}"
    _, state, output = cluster.job("cd /; mpirun exchange often", "-w", "cn1", "-n2", f"--topo-capture={name}")
    assert (state, output) == ("COMPLETED", "") and (lab / name).exists()
