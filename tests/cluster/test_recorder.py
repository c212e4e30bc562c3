# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The recorder under each MPI that can be had here: what ranks exchange is counted byte for byte, and no program is
harmed."""
import os
import re
import subprocess
from collections import Counter

import pytest
from rig import mpi
from rig.command import topiary
from rig.paths import BUILD, ROOT

RANKS = 6
ODD, EVEN = [1, 3, 5], [0, 2, 4]
RECORDER = BUILD / "libtopiary-capture.so"
pytestmark = pytest.mark.skipif(not RECORDER.exists(), reason="no mpicc when Topiary was built")


# --- what the ways of exchange.c send: {(kind, from, to): bytes}

class Sent(Counter):
    """Adds up; what a rank sends to itself is no exchange."""

    def add(self, kind, source, target, count):
        if source != target and count:
            self[kind, source, target] += count

    def down(self, count, ranks):
        """The tree of a broadcast from the first of them."""
        for n in range(1, len(ranks)):
            self.add("I", ranks[n & (n - 1)], ranks[n], count)

    def up(self, count, ranks):
        for n in range(1, len(ranks)):
            self.add("I", ranks[n], ranks[n & (n - 1)], count)


def ring(first=0):
    return [(first + n) % RANKS for n in range(RANKS)]


def ways(sent):
    for rank in range(RANKS):
        sent.add("E", rank, (rank + 1) % RANKS, 19 * 1000 + 6)
        sent.add("E", rank, (rank - 2) % RANKS, 19 * 300 + 6)


def often(sent):
    for rank in range(RANKS):
        sent.add("E", rank, rank ^ 1, 3 * 700 + 11)


def groups(sent):
    for rank in ODD:
        sent.add("E", rank, 0, 5000)


def window(sent):
    for rank in range(RANKS):
        sent.add("S", rank, (rank + 1) % RANKS, 600 + 240)
        sent.add("R", rank, (rank + 2) % RANKS, 70)


def window_back(sent):
    for rank in range(RANKS):
        both = 20 * 4 + 7 * 4 + 4 + 4
        sent.add("S", rank, (rank + 1) % RANKS, 500 + 50 * 4 + both)
        sent.add("R", rank, (rank + 1) % RANKS, 30 + both)


def to_all(sent):
    """What together and together_later have in common."""
    sent.down(1000, ring(1))
    sent.up(400, ring())
    for source, target in [(0, 1), (2, 3), (1, 3), (4, 5), (1, 4), (3, 5)]:     # allreduce: 0 and 2 lend to 1 and 3
        sent.add("I", source, target, 400)
        sent.add("I", target, source, 400)
    for rank in range(RANKS):
        sent.add("I", rank, 2, 20)                                              # gather
        sent.add("I", 0, rank, rank)                                            # scatterv
        sent.add("I", rank, (rank + 1) % RANKS, (RANKS - 1) * 10)               # allgather
        for other in range(RANKS):
            sent.add("I", rank, other, 50)                                      # alltoall


def together(sent):
    to_all(sent)
    for rank in range(RANKS - 1):
        sent.add("I", rank, rank + 1, 7)
        sent.add("I", rank + 1, rank, 7)


def together_later(sent):
    to_all(sent)
    for rank in range(RANKS):
        sent.add("I", rank, (rank + 1) % RANKS, 70 + 7)


def together_across(sent):
    sent.add("I", 0, 1, 1000)                                                   # broadcast
    sent.down(1000, ODD)
    sent.up(400, ODD)                                                           # reduce
    sent.add("I", 1, 0, 400)
    for ours, theirs in ((ODD, EVEN), (EVEN, ODD)):
        sent.up(40, ours)                                                       # allreduce
        sent.add("I", ours[0], theirs[0], 40)
        sent.down(40, ours)
        for rank in ours:
            sent.add("I", rank, ours[0], 5)                                     # allgather
            for other in theirs:
                sent.add("I", rank, other, 50)                                  # alltoall
        sent.add("I", ours[0], theirs[0], 15)
        sent.down(15, ours)
    for rank in ODD:
        sent.add("I", 0, rank, 30)                                              # scatter
        sent.add("I", rank, 0, 3)                                               # gather


def together_often(sent):
    sent.down(2 * 1000, ring())
    for rank in range(RANKS):
        sent.add("E", rank, (rank + 1) % RANKS, 3 * 5 * 64)
        for other in range(RANKS):
            sent.add("I", rank, other, 2 * 50)


def large(sent):
    sent.down(1000, ring(1))
    for rank in range(RANKS):
        sent.add("E", rank, (rank + 1) % RANKS, 4000 + 400 + 80 + 6 + 1 + 2 * 9)
        sent.add("S", rank, (rank + 1) % RANKS, 600)
        sent.add("I", 0, rank, rank)
        for other in range(RANKS):
            sent.add("I", rank, other, 50)


def expected(*which):
    sent = Sent()
    for way in which:
        way(sent)
    return dict(sent)


def names(which):
    return [way.__name__.replace("_", "-") for way in which]


STANDING, LARGE = {"openmpi-5", "mpich", "mpich-5", "standard", "intel"}, {"mpich", "mpich-5", "standard", "intel"}
TABLE = [((ways, often, groups), None), ((window, window_back), None),
         ((together, together_later, together_across), None),
         ((together_often,), STANDING), ((large,), LARGE)]


# --- programs and recorders

def exchanged(folder, kinds="EISR"):
    told = Counter()
    for file in folder.glob("*.prof"):
        for kind, source, target, count in re.findall(r"^([EISR])\t(\d+)\t(\d+)\t(\d+) bytes", file.read_text(), re.M):
            if kind in kinds and int(count):
                told[kind, int(source), int(target)] += int(count)
    return dict(told)


class Lab:
    """An MPI with the programs built for it and the recorder for its handles."""

    def __init__(self, kind, folder, recorder):
        self.mpi, self.folder, self.recorder = kind, folder, recorder
        self.exchange = kind.build(ROOT / "tests/cluster/exchange.c", folder / "exchange")

    def run(self, folder, *words, program=None, **how):
        return self.mpi.run(RANKS, program or self.exchange, *words, LD_PRELOAD=self.recorder,
                            TOPIARY_CAPTURE=folder / "rank", **how)

    def sent(self, folder, *words, **how):
        done = self.run(folder, *words, **how)
        assert done.returncode == 0, done.stderr
        return exchanged(folder)


@pytest.fixture(scope="module")
def labs(tmp_path_factory):
    return mpi.Labs(tmp_path_factory, "capture", Lab)


@pytest.fixture
def other(tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    return folder


def monitored(folder):
    return {"OMPI_MCA_pml_monitoring_enable": 2, "OMPI_MCA_pml_monitoring_enable_output": 3,
            "OMPI_MCA_pml_monitoring_filename": folder / "rank"}


# --- what is counted

@pytest.mark.parametrize("which, where", TABLE, ids=lambda v: v[0].__name__ if isinstance(v, tuple) else "")
def test_every_byte_is_counted(lab, tmp_path, which, where):
    if where and lab.mpi.name not in where:
        assert lab.run(tmp_path, *names(which)).returncode == 77
        return
    assert lab.sent(tmp_path, *names(which)) == expected(*which)
    assert len(list(tmp_path.iterdir())) == RANKS


@pytest.mark.parametrize("name", ["openmpi", "openmpi-5"])
def test_counts_as_open_mpi_itself_does(labs, name, tmp_path):
    lab = labs(name)
    for way in (ways, window, window_back):
        folder = tmp_path / way.__name__
        folder.mkdir()
        done = lab.mpi.run(RANKS, lab.exchange, *names([way]), **monitored(folder))
        assert done.returncode == 0, done.stderr
        assert exchanged(folder, "ESR") == expected(way)


def test_more_bytes_than_an_int_counts(openmpi, tmp_path):
    assert openmpi.sent(tmp_path, "great") == {("E", 0, 1): 50000 << 16}


def over_tcp(lab, folder):
    """For what spawns: UCX gives up ranks that a busy machine lets wait, and shared memory."""
    if lab.mpi.recorder == "openmpi":
        return {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo", **monitored(folder)}
    return {"UCX_KEEPALIVE_INTERVAL": "inf", "UCX_TLS": "tcp,self"}


# Open MPI's own monitoring would die of it, which counts where Fortran may send.
@pytest.mark.parametrize("name, fortran", [("openmpi", False), ("openmpi", True), ("mpich-5", False),
                                           ("standard", False)])
def test_spawned_ranks_are_no_ranks_of_the_job(labs, name, fortran, tmp_path):
    lab = labs(name)
    program = lab.mpi.build(ROOT / "tests/cluster/exchange.c", lab.folder / "spawn", fortran=fortran)
    done = lab.run(tmp_path, "spawn", program=program, **over_tcp(lab, tmp_path))
    assert done.returncode == 0, done.stderr
    assert exchanged(tmp_path) == {("E", rank, rank ^ 1): 400 for rank in range(RANKS)}
    assert len(list(tmp_path.iterdir())) == RANKS


THREADS = """
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
enum { MESSAGES = 20000 };
static int rank;
static void *exchange(void *tag)
{
	for (int i = 0; i < MESSAGES; i++)
		MPI_Sendrecv(&(char){0}, 1, MPI_CHAR, rank, (long) tag, &(char){0}, 1, MPI_CHAR, rank, (long) tag,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return NULL;
}
int main(int argc, char **argv)
{
	int level, threads = atoi(argv[1]);
	pthread_t thread[threads];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, exchange, (void *) i);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	MPI_Finalize();
	return level != MPI_THREAD_MULTIPLE;
}
"""


def build_threads(lab):
    source = lab.folder / "threads.c"
    source.write_text(THREADS)
    return lab.mpi.build(source, lab.folder / "threads")


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_messages_of_many_threads_at_once_are_all_counted(labs, name, tmp_path):
    lab = labs(name)
    done = lab.mpi.run(1, build_threads(lab), 6, LD_PRELOAD=lab.recorder, TOPIARY_CAPTURE=tmp_path / "rank")
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("rank.*.prof")
    assert "E\t0\t0\t120000 bytes\t120000 msgs sent\n" in file.read_text()


SPAWNS = "it starts processes by MPI_Comm_spawn, which a matrix of its ranks does not contain"
MAY_SPAWN = ("it or a library of its refers to MPI_Comm_spawn, in which Open MPI's monitoring crashes, and nothing "
             "else counts the messages of Fortran")
STORM = "more than 4 threads of one rank have sent, and a rank has one place"


def build_with_fortran(lab):
    return lab.mpi.build(ROOT / "tests/cluster/exchange.c", lab.folder / "spawn", fortran=True)


@pytest.mark.parametrize("name, program, words, why", [
    ("openmpi", build_with_fortran, ["far"], MAY_SPAWN), ("openmpi", None, ["far"], None),
    ("openmpi", None, ["spawn"], SPAWNS), ("mpich-5", None, ["spawn"], SPAWNS),
    ("openmpi", build_threads, [4], None), ("openmpi", build_threads, [5], STORM),
    ("mpich", build_threads, [4], None), ("mpich", build_threads, [5], STORM),
])
def test_what_a_matrix_does_not_describe_is_not_learned(labs, name, program, words, why, tmp_path):
    lab = labs(name)
    program = program(lab) if program else lab.exchange
    how = over_tcp(lab, tmp_path) if words[0] in ("spawn", "far") else {}
    done = lab.run(tmp_path, *words, program=program, TOPIARY_LEARN="", **how)
    assert done.returncode == 0, done.stderr
    kept = {**os.environ, "TOPIARY_MATRICES": str(tmp_path / "kept")}
    done = topiary("matrix", "learn", tmp_path, status=0, env=kept)
    assert done.stderr == (f"topiary: {program}: not learned: {why}\n" if why else "")


@pytest.mark.parametrize("name, by_monitoring", [("openmpi", True), ("mpich", False), ("intel", False)])
def test_fortran(labs, name, by_monitoring, tmp_path):
    lab = labs(name)
    program = lab.mpi.build(ROOT / "tests/cluster/exchange_fortran.c", lab.folder / "fortran", fortran=True)
    for _ in range(2):
        done = lab.mpi.run(RANKS, program, LD_PRELOAD=lab.recorder, TOPIARY_CAPTURE=tmp_path / "rank",
                           **(monitored(tmp_path) if by_monitoring else {}))
        assert done.returncode == 0, done.stderr
    assert exchanged(tmp_path, "E") == {("E", rank, rank ^ 1): 2 * 700 for rank in range(RANKS)}


# --- several runs; runs that end badly

def test_runs_add_up(lab, tmp_path):
    for _ in range(2):
        assert lab.run(tmp_path, "often").returncode == 0
    assert exchanged(tmp_path) == expected(often, often)
    assert len(list(tmp_path.iterdir())) == 2 * RANKS


def test_runs_beside_each_other_add_up(openmpi, tmp_path):
    run = f"mpirun -n {RANKS} {openmpi.exchange} often"
    script = f"{run} & {run} & wait"
    done = subprocess.run(["env", *(f"{n}={v}" for n, v in {**openmpi.mpi.env, **monitored(tmp_path),
                                                            "LD_PRELOAD": openmpi.recorder,
                                                             "TOPIARY_CAPTURE": tmp_path / "rank"}.items()), "sh",
                           "-c", script],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert exchanged(tmp_path) == expected(often, often)


def test_monitoring_counts_only_where_fortran_may_send(openmpi, tmp_path, other):
    """Its files tell the order of magnitude of messages, too."""
    fortran = openmpi.mpi.build(ROOT / "tests/cluster/exchange_fortran.c", openmpi.folder / "by-fortran", fortran=True)

    def by_monitoring(folder, program, *words, **how):
        done = openmpi.mpi.run(RANKS, program, *words, LD_PRELOAD=openmpi.recorder, TOPIARY_CAPTURE=folder / "rank",
                               **monitored(folder), **how)
        assert done.returncode == 0, done.stderr
        told = [file.read_text() for file in folder.glob("*.prof")]
        assert len(told) == RANKS
        return {"O2A" in text for text in told}
    assert by_monitoring(tmp_path, fortran) == {True}
    assert by_monitoring(other, openmpi.exchange, "often") == {False}
    assert exchanged(other) == expected(often)


def test_replaces_monitoring_that_is_not_loaded(openmpi, tmp_path):
    assert openmpi.sent(tmp_path, "often", OMPI_MCA_pml="ob1", **monitored(tmp_path)) == expected(often)


def test_killed_program_leaves_at_least_half(lab, tmp_path):
    assert lab.run(tmp_path, "long", "kill").returncode
    told = exchanged(tmp_path, "E")
    assert set(told) == {("E", rank, rank ^ 1) for rank in range(RANKS)}
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize("words, status, files", [(["often", "fail"], 7, RANKS), (["often", "exit"], 5, 1)])
def test_program_ends_as_without_recorder(openmpi, tmp_path, words, status, files):
    assert openmpi.run(tmp_path, *words).returncode == status
    assert len(list(tmp_path.glob("*.prof"))) >= files


@pytest.mark.parametrize("words", [["often", "abort"], ["abort"]])
def test_program_aborts_as_without_recorder(lab, tmp_path, words):
    """Open MPI's mpirun, 4.1 and 5.0, may crash or hang in PMIx_server_finalize when the ranks are gone, recorder or
    not: what it said counts."""
    done = lab.run(tmp_path, *words, timeout=20)
    assert done.returncode == 3 or re.search(r"errorcode:? 3\b|ORTE_ERROR_LOG", done.stdout + done.stderr, re.I)
    assert list(tmp_path.glob("*.prof"))


# --- what the recorder leaves alone

def test_recorder_of_another_mpi_changes_nothing(labs, tmp_path, other):
    all_ways = names([ways, together, window, often, groups])
    have = [labs(name) for name in ("openmpi", "mpich", "standard")]
    for lab in have:
        for stranger in have:
            if stranger is not lab:
                done = lab.mpi.run(RANKS, lab.exchange, *all_ways, LD_PRELOAD=stranger.recorder,
                                   TOPIARY_CAPTURE=tmp_path / "rank")
                assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.glob("rank*"))
    # Each finds its own when all are there.
    for lab in have:
        folder = other / lab.mpi.name
        folder.mkdir()
        done = lab.mpi.run(RANKS, lab.exchange, "ways", LD_PRELOAD=":".join(str(one.recorder) for one in have),
                           TOPIARY_CAPTURE=folder / "rank")
        assert done.returncode == 0 and exchanged(folder) == expected(ways)


def test_recorder_needs_no_mpi():
    told = subprocess.run(["readelf", "-d", RECORDER], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in told and "libmpi" not in told
    assert subprocess.run(["true"], env={"LD_PRELOAD": str(RECORDER), "LD_BIND_NOW": "1", "TOPIARY_CAPTURE": "/tmp/x"},
                          check=False).returncode == 0


@pytest.mark.parametrize("prefix", ["/nonexistent/rank", "/dev/full/rank", "/dev/full", "", "/" + "x" * 5000])
def test_write_error_does_not_end_the_program(openmpi, prefix):
    done = openmpi.mpi.run(RANKS, openmpi.exchange, "ways", LD_PRELOAD=RECORDER, TOPIARY_CAPTURE=prefix)
    assert (done.returncode, done.stderr) == (0, "")


def test_full_disk_leaves_nothing_behind(openmpi, full_disk):
    assert openmpi.sent(full_disk, "ways", "long") == {}
    assert [path.name for path in full_disk.iterdir()] == ["full"]
