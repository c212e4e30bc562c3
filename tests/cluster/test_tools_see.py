# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The programs that Debian has for it see the hardware that their step was given, and no other."""
import re
import subprocess

import pytest
from rig import Cluster, os_indexes
from rig.ask import cores_of, hwloc_cpus
from rig.mpi import open_mpi_release
from rig.paths import ROOT

NODE, PACKAGE = "cn1", 16       # amd-4x16: a core has one thread, a package 16 cores
SOME = pytest.param(6, id="in a package")
MANY = pytest.param(20, id="in two packages")


def run(cluster, script, *options):
    number, state, output = cluster.job(script, *options)
    assert state == "COMPLETED", output
    return output, number


def ask(cluster, script, tasks):
    """What a job of so many cores says; the OS indices of its CPUs; the number of cores in each package that it has a
    part of."""
    output, number = run(cluster, script, "-w", NODE, f"--ntasks={tasks}", "-N1")
    cores = cores_of(cluster, number)[NODE]
    packages = [sum(core // PACKAGE == package for core in cores)
                for package in sorted({core // PACKAGE for core in cores})]
    return output, given(cluster, number, NODE), packages


def given(cluster, number, node):
    return hwloc_cpus(cluster.topology_file(node), [f"core:{c}" for c in cores_of(cluster, number)[node]])


@pytest.mark.parametrize("tasks", [SOME, MANY])
def test_lstopo(cluster, tasks):
    output, cpus, packages = ask(cluster, "lstopo-no-graphics --only PU -p; lstopo-no-graphics --only Package", tasks)
    assert [int(i) for i in re.findall(r"PU P#(\d+)", output)] == cpus
    assert output.count("Package") == len(packages)


@pytest.mark.parametrize("tasks", [SOME, MANY])
def test_openmpi(cluster, tasks):
    """mpirun draws the cores that it knows of: release 4 for each rank, [B/././.] for each package; release 5 all of
    the tree."""
    if open_mpi_release() < 5:
        output, _, packages = ask(cluster, "mpirun --bind-to core --map-by core --report-bindings true 2>&1", tasks)
        lines = [line for line in output.split("\n") if "MCW rank" in line]
        drawn = [[len(package.split("/")) for package in re.findall(r"\[([B./]+)\]", line)] for line in lines]
        assert drawn == [packages] * tasks, output
    else:
        output, _, packages = ask(cluster, "mpirun --display topo true 2>&1", tasks)
        assert [package.count("Type: Core") for package in output.split("Type: Package")[1:]] == packages, output


@pytest.mark.parametrize("tasks", [SOME, MANY])
def test_mpich(cluster, tasks):
    """Hydra binds by hwloc, and draws a digit for each CPU that it knows of."""
    script = f"HYDRA_TOPO_DEBUG=1 mpiexec.mpich -launcher fork -bind-to core -n {tasks} true"
    output, cpus, _ = ask(cluster, script, tasks)
    drawn = dict(re.findall(r"process (\d+) binding: ([01]+)", output))
    assert len(drawn) == tasks and {len(digits) for digits in drawn.values()} == {len(cpus)}, output
    assert sorted(digits.index("1") for digits in drawn.values()) == list(range(tasks)), output


@pytest.mark.parametrize("tasks", [SOME, pytest.param(2 * PACKAGE, id="two packages")])
def test_likwid(cluster, tasks):
    """It reads threads, cores and sockets by hwloc, and takes it that CPUs are numbered from 0 without a gap and
    packages alike."""
    output, cpus, packages = ask(cluster, "likwid-topology", tasks)
    assert cpus == list(range(tasks))
    assert [int(cpu) for cpu in re.findall(r"^(\d+)\s+\d+\s+\d+\s+\d+\s+\d+", output, re.M)] == cpus, output
    assert int(re.search(r"Sockets:\s+(\d+)", output).group(1)) == len(packages)


@pytest.fixture(scope="module")
def bound_cluster(folders):
    """One node that is this machine, and whose tasks Slurm binds: the OpenMP runtimes ask the kernel, not hwloc."""
    if len(os_indexes(subprocess.run(["lstopo-no-graphics", "--of", "xml"], capture_output=True, text=True,
                                     check=True).stdout)) < 2:
        pytest.skip("this machine has one CPU, and a part of it would be all of it")
    cluster = Cluster(folders(), {"cn5": None}, registry=False)
    configure = cluster._configure

    def bind():
        configure()
        conf = cluster.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("TaskPlugin=task/none", "TaskPlugin=task/affinity"))

    cluster._configure = bind
    with cluster:
        yield cluster


@pytest.mark.parametrize("compiler, runtime", [("gcc", "libgomp"), ("clang", "libomp")])
def test_openmp(bound_cluster, compiler, runtime):
    """One core of this machine: the step's topology and the runtime agree on its CPUs, threads and places."""
    program = bound_cluster.folder / "bin" / f"omp-{compiler}"
    subprocess.run([compiler, "-fopenmp", ROOT / "tests" / "cluster" / "omp.c", "-o", program], check=True)
    assert runtime in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    output, number = run(bound_cluster, f"srun -n1 sh -c 'cat $HWLOC_XMLFILE; OMP_PLACES=threads {program}'",
                         "-w", "cn5", "-n1")
    xml, told = output.rsplit("</topology>\n", 1)
    cpus = os_indexes(xml)
    assert (cpus == given(bound_cluster, number, "cn5")
            and len(cpus) < len(os_indexes(bound_cluster.topology_file("cn5").read_text())))
    assert [int(n) for n in told.split()] == [len(cpus)] * 3


def test_likwid_elsewhere(bound_cluster):
    """Without the step's topology it lists all CPUs, and marks those that the job may use."""
    first = bound_cluster.batch("sleep 60", "-w", "cn5", "-n1").stdout.strip()
    output, number = run(bound_cluster, "srun -n1 env -u HWLOC_XMLFILE likwid-topology", "-w", "cn5", "-n1")
    bound_cluster.command(["scancel", first])
    available = re.findall(r"^(\d+)\s+\d+\s+\d+\s+\d+\s+\d+\s+\*", output, re.M)
    assert [int(cpu) for cpu in available] == given(bound_cluster, number, "cn5") != [0], output
