# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""One cluster for all tests of this folder, checked after each of them."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from rig import Cluster, mpi
from rig.ask import cores_of, given_too_often, ring, wait_running

NODES = {"cn1": "amd-4x16", "cn2": "amd-4x16", "cn3": "intel-2x8", "cn4": "uneven-2x6", "cn5": None}


@pytest.fixture(scope="session")
def folders():
    """Makes folders for clusters: short paths that every user may enter. Kept when a test failed, for their logs."""
    made = []

    def make():
        made.append(Path(tempfile.mkdtemp(prefix="topiary_test_", dir="/tmp")))
        return made[-1]

    before = failures()
    yield make
    if failures() > before:
        print("\nlogs are kept in " + " ".join(str(folder / "log") for folder in made))
        return
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


failed_tests = []


def failures():
    return len(failed_tests)


def pytest_runtest_logreport(report):
    if report.outcome == "failed":
        failed_tests.append(report.nodeid)


@pytest.fixture(params=list(mpi.ALL))
def lab(request, labs):
    """Of each MPI what a file's labs, an mpi.Labs, makes."""
    return labs(request.param)


@pytest.fixture
def openmpi(labs):
    return labs("openmpi")


@pytest.fixture(scope="session")
def whole(folders):
    """A file that needs a cluster of its own has a fixture of this name."""
    assert os.geteuid() == 0, "only root can start a cluster with daemons and jobs of several users"
    with Cluster(folders(), NODES) as cluster:
        yield cluster


@pytest.fixture
def cluster(whole):
    """The cluster; whatever the test did to it, every daemon of Slurm lives and every node is free again."""
    yield whole
    whole.assert_at_rest()


@pytest.fixture
def submit(cluster):
    """Submits jobs that stay until the test ends, and never share a core: their numbers."""
    started = []

    def one(*options):
        started.append(cluster.batch("exec sleep 300", "--output=/dev/null", *options).stdout.strip())
        return started[-1]

    yield one
    shared = given_too_often(cluster)
    if started:
        cluster.command(["scancel", "--quiet", *started])
    assert not shared


@pytest.fixture
def place(cluster, submit):
    """Submits such a job, which is to start: its cores on its only node."""
    def one(*options):
        number = submit(*options)
        wait_running(cluster, number)
        (cores,) = cores_of(cluster, number).values()
        return cores
    return one


@pytest.fixture
def matrix(cluster):
    """Writes a matrix file: matrix(ranks) is a ring with a heavy pair (0, ranks - 1); matrix(text=...) is as given."""
    def write(ranks=0, text=None):
        path = cluster.folder / "work" / f"matrix.{ranks}.{abs(hash(text)):x}"
        path.write_text(text if text is not None else ring(ranks))
        return path
    return write


@pytest.fixture
def full_disk():
    """A small file system of its own, in which everybody may write and nothing has room; one file, "full", is on it."""
    disk = Path(tempfile.mkdtemp(prefix="topiary_disk_", dir="/tmp"))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=1777", "none", disk], capture_output=True,
                      check=False).returncode:
        disk.rmdir()
        pytest.skip("nothing can be mounted here")
    (disk / "full").write_bytes(bytes(8192))
    yield disk
    subprocess.run(["umount", disk], check=True)
    disk.rmdir()
