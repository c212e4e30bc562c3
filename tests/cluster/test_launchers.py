# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Each launcher's own rank file, by the launchers themselves: hosts on one machine, each with a name and, of another
machine's CPUs, those that a cpuset would leave it. Where ranks are is told by the kernel's call, and compared with the
form that programs read through hwloc.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import mpi
from rig.ask import hwloc_cpus
from rig.command import run, topiary
from rig.machines import individual, machine
from rig.paths import BUILD

# A launcher's agent: `agent [options] HOST COMMAND...`.
AGENT = """\
#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
host=$1; shift
exec env $(cat {folder}/$host.env) unshare --uts sh -c 'hostname "$0" && eval "$*"' "$host" "$@"
"""
SEAT = """\
#!/bin/sh
cpus=$(env $(cat {folder}/$(hostname).env) taskset -cp $$)
echo "rank ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} host $(hostname) cpus ${{cpus##*: }}"
"""
NODES = {"h1": ("intel-2x8", "3-6,9-12"), "h2": ("intel-2x8", "3-6,9-12"), "h3": ("amd-4x16", "2-5,40-43")}


@dataclass
class Hosts:
    folder: Path

    def file(self, name):
        return self.folder / name

    def add(self, host, what, cores):
        whole, some = self.file(f"{host}.xml"), self.file(f"{host}.some.xml")
        whole.write_text(individual(machine(what), host))
        cpuset = self.output("hwloc-calc", "-i", whole, *[f"core:{run}" for run in cores.split(",")])
        self.output("lstopo-no-graphics", "-i", whole, "--restrict", cpuset, "--of", "xml", "--force", some)
        cpus = self.output("hwloc-calc", "-i", some, "--po", "-I", "PU", "all")
        self.file(f"{host}.env").write_text(f"LD_PRELOAD={self.folder}/cpus.so RIG_CPUS={cpus} "
                                            f"RIG_CPUS_DIR={self.folder}/cpus "
                                            f"HWLOC_XMLFILE={some} HWLOC_THISSYSTEM=1\n")

    def output(self, *command):
        return run(*command, cwd=self.folder, status=0).stdout.strip()

    def mapped(self, nodes, matrix, *options):
        return topiary("map", "--snapshot=snapshot", f"--nodes={nodes}", f"--matrix={matrix}", *options,
                       cwd=self.folder)

    def map(self, form, nodes, matrix, *options):
        """The files of one format: a rank file and what belongs into the environment."""
        told = self.mapped(";".join(f"{host}={NODES[host][1]}" for host in nodes), matrix, f"--format={form}",
                           "--topology=" + ";".join(f"{host}={host}.xml" for host in nodes), "-o", f"{form}.ranks",
                           "--env", f"{form}.env", *options)
        if told.returncode:
            return None, told.stderr
        return (self.file(f"{form}.ranks"),
                dict(line.split("=", 1) for line in self.file(f"{form}.env").read_text().splitlines()))

    def expected(self, nodes, matrix, *options):
        """{rank: (host, CPUs)} of the plain form, through hwloc's own tools."""
        ranks, _ = self.map("plain", nodes, matrix, *options)
        rows = [line.split() for line in ranks.read_text().splitlines()]
        return {int(rank): (host, hwloc_cpus(self.file(f"{host}.some.xml"),
                                             [f"core:{leaf}" for leaf in leaves.split(",")]))
                for rank, host, leaves in rows}


@pytest.fixture(scope="module")
def hosts():
    assert os.geteuid() == 0, "only root can give a process another host name"
    folder = Path(tempfile.mkdtemp(prefix="topiary_hosts_", dir="/tmp"))
    (folder / "cpus").mkdir()
    shutil.copy(BUILD / "tests/cpus.so", folder)
    made = Hosts(folder)
    for name, text in (("agent", AGENT), ("seat", SEAT)):
        made.file(name).write_text(text.format(folder=folder))
        made.file(name).chmod(0o755)
    for host, (what, cores) in NODES.items():
        made.add(host, what, cores)
    made.output(BUILD / "topiary", "snapshot", "--offline", *[f"{host}={host}.xml" for host in NODES], "-o", "snapshot")
    yield made
    shutil.rmtree(folder)


def matrix(hosts, *heavy, ranks=8):
    """Which rank is whose neighbour decides the order on each node."""
    path = hosts.file(f"matrix.{ranks}." + "-".join(f"{a}.{b}" for a, b in heavy))
    path.write_text(mpi.pairs_of(ranks, *heavy))
    return path


def openmpi_4(hosts, ranks, nodes):
    del ranks
    if mpi.open_mpi_release() != 4:
        raise mpi.Missing(f"Open MPI {mpi.open_mpi_release()} is this machine's")
    return ["mpirun", "--allow-run-as-root", "--host", ",".join(f"{host}:8" for host in nodes), "--mca",
            "plm_rsh_agent", hosts.file("agent"), "--mca", "oob_tcp_if_include", "lo"], {}


def openmpi_5(hosts, ranks, nodes):
    return [mpi.openmpi_5().mpirun[0], "--allow-run-as-root", "--host", ",".join(f"{host}:8" for host in nodes),
            "--prtemca", "plm_ssh_agent", hosts.file("agent"), "--prtemca", "prte_keep_loopback", "1", "--map-by",
            f"rankfile:file={ranks}"], {}


def hydra(kind, hosts):
    return ([kind.mpirun[0], "-launcher", "ssh", "-launcher-exec", hosts.file("agent"), "-localhost", "127.0.0.1"],
            kind.env)


def mpich(hosts, ranks, nodes):
    del ranks, nodes
    return hydra(mpi.mpich(), hosts)


def mpich_5(hosts, ranks, nodes):
    del ranks, nodes
    return hydra(mpi.mpich_5(), hosts)


def intel(hosts, ranks, nodes):
    del nodes
    command, env = hydra(mpi.intel(), hosts)
    return [*command, "-machinefile", ranks], env


LAUNCHERS = {"openmpi-4": (openmpi_4, "openmpi"), "openmpi-5": (openmpi_5, "openmpi5"), "mpich": (mpich, "mpich"),
             "mpich-5": (mpich_5, "mpich"), "intel": (intel, "intelmpi")}


def launch(hosts, launcher, nodes, weights, *options):
    """{rank: (host, CPUs)} as the ranks themselves find it."""
    start, form = LAUNCHERS[launcher]
    ranks, told = hosts.map(form, nodes, weights, *options)
    assert ranks, told
    try:
        command, env = start(hosts, ranks, nodes)
    except mpi.Missing as why:
        warnings.warn(f"NOT TESTED with {launcher}: {why}")
        pytest.skip(f"NOT TESTED: {why}")
    count = ["-n", str(len(hosts.expected(nodes, weights, *options)))] if launcher != "openmpi-5" else []
    ran = run(*command, *count, hosts.file("seat"), env={**os.environ, **env, **told}, stdin=subprocess.DEVNULL,
              timeout=300)
    found = re.findall(r"^rank (\d+) host (\S+) cpus (\S+)$", ran.stdout, re.M)
    print(ran.stdout, ran.stderr, file=sys.stderr)
    assert ran.returncode == 0
    return {int(rank): (host, [n for run in cpus.split(",")
                               for n in range(int(run.split("-")[0]), int(run.split("-")[-1]) + 1)])
            for rank, host, cpus in found}


CASES = {
    # Cores of two CPUs each, with other ranks side by side on each node.
    "two nodes": (["h1", "h2"], [(0, 7), (1, 4), (2, 5), (3, 6)], ["--cpus-per-task=2", "--tasks-per-node=4(x2)"]),
    "two makes": (["h1", "h3"], [(0, 5), (1, 2), (3, 7), (4, 6)], ["--tasks-per-node=3,5"]),
    "several cores": (["h3", "h1"], [(0, 3), (1, 2)], ["--cpus-per-task=4", "--tasks-per-node=2(x2)", "--ranks=4"]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("launcher", [name for name in LAUNCHERS if name != "intel"])
def test_each_rank_is_where_the_map_says(hosts, launcher, case):
    nodes, heavy, options = CASES[case]
    weights = matrix(hosts, *heavy)
    due = hosts.expected(nodes, weights, *options)
    assert len(due) == (4 if "--ranks=4" in options else 8)
    assert launch(hosts, launcher, nodes, weights, *options) == due


@pytest.mark.parametrize("cpus, domains", [(2, {"0x100010", "0x80008"}), (4, {"0x600060", "0x180018"})])
def test_intel_mpi_where_one_list_serves_both_hosts(hosts, cpus, domains):
    nodes, options = ["h1", "h2"], [f"--cpus-per-task={cpus}", "--tasks-per-node=2(x2)"]
    weights = matrix(hosts, (0, 3), (1, 2), ranks=4)
    ranks, told = hosts.map("intelmpi", nodes, weights, *options)
    assert ranks.read_text() == "h1:1\nh2:2\nh1:1\n"
    # Which pair gets which of them costs the same.
    assert set(told["I_MPI_PIN_DOMAIN"].strip("[]").split(",")) == domains and len(told) == 1
    assert launch(hosts, "intel", nodes, weights, *options) == hosts.expected(nodes, weights, *options)


@pytest.mark.parametrize("form", ["intelmpi", "mvapich2"])
def test_one_list_that_cannot_serve_both_hosts_is_an_error(hosts, form):
    weights = matrix(hosts, (0, 7), (1, 4), (2, 5), (3, 6))
    hosts.file(f"{form}.ranks").unlink(missing_ok=True)
    ranks, told = hosts.map(form, ["h1", "h3"], weights, "--tasks-per-node=4(x2)")
    assert ranks is None and f"{form}: one list of CPUs serves all hosts, but rank" in told
    assert not hosts.file(f"{form}.ranks").exists()


def test_several_formats_at_once(hosts):
    weights = matrix(hosts, (0, 7), (1, 4))
    done = hosts.mapped("h1;h3", weights, "--format=plain,openmpi,srun", "-o", "all", "--env=all.env")
    assert done.returncode == 0, done.stderr
    plain = [line.split() for line in hosts.file("all.plain").read_text().splitlines()]
    assert ([f"rank {rank}={host} slot={leaves}" for rank, host, leaves in plain]
            == hosts.file("all.openmpi").read_text().splitlines())
    assert [host for _, host, _ in plain] == hosts.file("all.srun").read_text().splitlines()
    assert f"OMPI_MCA_rmaps_rank_file_path={hosts.folder}/all.openmpi\n" in hosts.file("all.env").read_text()


@pytest.mark.parametrize("options, says", [
    (["--format=lam"], "lam: unknown rank file format"),
    (["--format=plain,openmpi"], "more than one format requires -o FILE"),
    (["--env=e"], "--env requires -o FILE"),
    (["--format=mpich", "--topology=h1"], "'h1': expected HOSTS=FILE"),
    (["--format=mpich", "--topology=h1=/nonexistent"], "/nonexistent"),
    (["--format=mpich", "--url=http://127.0.0.1:9"], "h1: no topology with its OS CPU numbers"),
])
def test_what_cannot_be_written(hosts, options, says):
    told = hosts.mapped("h1", matrix(hosts, (0, 7)), *options)
    assert told.returncode and says in told.stderr
