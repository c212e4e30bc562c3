# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""libtopiary-reorder under each MPI that can be had here: what MPI says of a communicator is right, its neighbours are
nearer, and no program is harmed; and --topo-reorder, with Slurm."""
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rig import mpi
from rig.node import preloaded
from rig.paths import BUILD, ROOT

RANKS, NODES = 8, 2
LIBRARY = BUILD / "libtopiary-reorder.so"
WAYS = ["cart", "kept", "left_out", "sub", "graph", "adjacent", "weighted", "dist", "dist_weighted", "empty",
        "closed"]
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="no mpicc when Topiary was built")


# --- what a way of neighbours.c asks for, and what it costs

def grid(sizes, periods):
    strides = [1] * len(sizes)
    for d in range(len(sizes) - 1, 0, -1):
        strides[d - 1] = strides[d] * sizes[d]
    for cell in range(strides[0] * sizes[0]):
        for size, stride, period in zip(sizes, strides, periods):
            at = cell // stride % size
            if size > 1 and (at + 1 < size or period):
                yield cell, cell + ((at + 1) % size - at) * stride, 1


def graph(weighted=False):
    for v in range(RANKS):
        for to in [(v + RANKS // 2) % RANKS] * 2 + ([(v + 1) % RANKS if v % 3 else v] if v % 5 != 4 else []):
            yield v, to, 1 + (v * 7 + to * 13) % 5 + 100 * (abs(v - to) == RANKS // 2) if weighted else 1


EDGES = {"cart": list(grid([2, RANKS // 2], [1, 0])), "left_out": list(grid([2, 1, RANKS // 2 - 1], [0, 1, 1])),
         "closed": list(grid([RANKS // 2, 2], [0, 1])), "empty": [(0, RANKS - 1, 5)], "ring": list(grid([RANKS], [1])),
         **{way: list(graph("weighted" in way)) for way in ("graph", "adjacent", "weighted", "dist", "dist_weighted")}}


def cost(way, order, distance):
    return sum(weight * distance(order[a], order[b]) for a, b, weight in EDGES[way] if a != b)


def orders(output):
    return {way: [int(word) for word in ranks.split()]
            for way, ranks in re.findall(r"^([a-z_]+):((?: \d+)+)$", output, re.M)}


def check_orders(found, distance, lower=True):
    for way, order in found.items():
        assert len(set(order)) == len(order) and set(order) <= set(range(RANKS)), way
        if way in EDGES:
            before, after = (cost(way, o, distance) for o in (range(RANKS), order))
            assert after < before if lower else after == before, (way, before, after)


# --- programs and libraries

class Lab:
    """An MPI, the program built for it and the library for its handles."""

    def __init__(self, kind, folder, library):
        self.mpi, self.folder, self.library = kind, folder, library
        kind.libs = [*kind.libs, "-pthread"]
        self.program = kind.build(ROOT / "tests/cluster/neighbours.c", folder / "neighbours")

    def run(self, *words, program=None, ranks=RANKS, library=None, **how):
        how = {"LD_PRELOAD": self.library if library is None else library, "TOPIARY_REORDER_SECONDS": 100,
               "TOPIARY_REORDER_COMMAND": BUILD / "topiary", "TOPIARY_CONF": "/dev/null", **how}
        return self.mpi.run(ranks, program or self.program, *words, **how)


@pytest.fixture(scope="module")
def labs(tmp_path_factory):
    return mpi.Labs(tmp_path_factory, "reorder", Lab)


def two_nodes(a, b):
    return 100 if a % NODES != b % NODES else 2


# --- under mpirun, with nodes as the program names them

def test_neighbours_are_right_and_near(lab):
    done = lab.run(f"nodes={NODES}", *WAYS)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found = orders(done.stdout)
    assert set(found) == set(WAYS) - {"sub"} | {"odd", "even"}
    assert found["kept"] == list(range(RANKS)) and sorted(found["odd"] + found["even"]) == found["kept"]
    check_orders(found, two_nodes)


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_wrong_arguments_are_the_mpis(labs, name):
    lab = labs(name)
    done = [lab.run(f"nodes={NODES}", "wrong", **how) for how in ({}, {"library": ""})]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr
    assert done[0].stdout == done[1].stdout != ""


@pytest.mark.parametrize("name", ["openmpi", "mpich", "intel"])
def test_fortran(labs, name):
    lab = labs(name)
    program = lab.mpi.build(ROOT / "tests/cluster/neighbours_fortran.c", lab.folder / "fortran", fortran=True)
    done = lab.run(program=program)
    assert done.returncode == 0, done.stderr
    assert set(orders(done.stdout)) == {"ring"}
    check_orders(orders(done.stdout), two_nodes)


def test_a_thousand_calls_ask_once(openmpi):
    """And the program's own children are all that it waits for."""
    done = openmpi.run("nodes=2", "often", ranks=4, TOPIARY_REORDER="report")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("topiary: ") == 1
    assert sorted(orders(done.stdout)["often"]) == [0, 1, 2, 3] != orders(done.stdout)["often"]


def test_order_that_stays_is_made_without_the_mpis_deadlock(openmpi):
    """In Open MPI 4.1 with threads, the eighth distributed graph of a communicator without reorder."""
    done = openmpi.run("nodes=1", *["dist"] * 10)
    assert done.returncode == 0, done.stderr
    assert [len(found) for found in re.findall("dist:((?: [0-7])+)", done.stdout)] == [2 * RANKS] * 10
    assert set(map(tuple, orders(done.stdout).values())) == {tuple(range(RANKS))}


def test_threads(openmpi):
    done = openmpi.run("nodes=2", "threads", ranks=4)
    assert done.returncode == 0, done.stderr
    assert list(orders(done.stdout)) == ["cart"]


@pytest.mark.parametrize("name", ["openmpi", "mpich-5"])
def test_spawned_ranks_have_an_order_of_their_own(labs, name):
    tcp = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo", "UCX_KEEPALIVE_INTERVAL": "inf",
           "UCX_TLS": "tcp,self"}
    done = labs(name).run("spawn", ranks=2, **tcp)
    assert done.returncode == 0, done.stderr
    assert sorted(orders(done.stdout)["cart"]) == list(range(4))


def test_a_rank_that_dies_ends_the_program(openmpi):
    assert openmpi.run("nodes=2", "dies", timeout=60).returncode == 9


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_library_of_another_mpi_changes_nothing(labs, name):
    lab, other = labs(name), labs("mpich" if name == "openmpi" else "openmpi")
    done = lab.run("nodes=2", "cart", "adjacent", library=other.library)
    assert done.returncode == 0, done.stderr
    assert set(map(tuple, orders(done.stdout).values())) == {tuple(range(RANKS))}
    both = lab.run("nodes=2", "cart", library=f"{other.library}:{lab.library}")
    assert both.returncode == 0, both.stderr
    check_orders(orders(both.stdout), two_nodes)


ANSWER = "printf '9 5\\n'; printf '%s\\n' "


@pytest.mark.parametrize("script, words", [
    ("sleep 1000", "took more than 1 s"), ("kill -KILL $$", "failed"),
    ("echo a warning >&2; echo no memory >&2; exit 1", "failed: no memory"), ("kill $$; sleep 100", "failed"),
    (ANSWER + "0 1 2", "not complete"), (ANSWER + "0 1 2 2", "not complete"), (ANSWER + "0 1 2 4", "not complete"),
    (None, "failed"),
])
def test_mapping_that_fails_costs_the_mapping(openmpi, tmp_path, script, words):
    command = tmp_path / "command"
    if script:
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
    done = openmpi.run("nodes=2", "cart", ranks=4, TOPIARY_REORDER_COMMAND=command, TOPIARY_REORDER="report",
                       TOPIARY_REORDER_SECONDS=1 if "sleep" in str(script) else 100)
    assert done.returncode == 0, done.stderr
    assert orders(done.stdout) == {"cart": list(range(4))}
    (line,) = done.stderr.splitlines()
    assert line.startswith("topiary: MPI_Cart_create: 4 ranks keep their order: ") and words in line


def test_network_that_cannot_be_read_is_a_warning(openmpi, tmp_path):
    fabric, config = tmp_path / "fabric", tmp_path / "topiary.conf"
    fabric.write_text("no network\n")
    config.write_text(f"FabricFile={fabric}\nSnapshotFile=/nowhere\n")
    done = openmpi.run("nodes=2", "cart", TOPIARY_CONF=config, TOPIARY_REORDER="report")
    assert done.returncode == 0, done.stderr
    check_orders(orders(done.stdout), two_nodes)
    assert f"{fabric}:" in done.stderr and "mapping without the network" in done.stderr
    assert "topiary: MPI_Cart_create: 8 ranks reordered, " in done.stderr


def test_off_is_off(openmpi):
    done = openmpi.run("nodes=2", "cart", TOPIARY_REORDER="off", TOPIARY_REORDER_COMMAND="/bin/false")
    assert (done.returncode, orders(done.stdout)) == (0, {"cart": list(range(RANKS))})


# --- with Slurm

COSTS = {"Package": 20, "Die": 14, "NUMANode": 12, "L3Cache": 8, "L2Cache": 4, "Core": 2}


def domains_of(xml):
    """[(kind, CPUs)] of a node's XML, the smallest first."""
    found = []
    for one in ElementTree.parse(xml).iter("object"):
        if one.get("type") in COSTS:
            words = one.get("cpuset").split(",")
            found.append((one.get("type"), int("".join(word.removeprefix("0x").zfill(8) for word in words), 16)))
    return sorted(found, key=lambda domain: bin(domain[1]).count("1"))


def between(domains, a, b):
    """The cost between two ranks, each with its node and CPUs: of the first level at which no domain holds both."""
    if a[0] != b[0]:
        return 100
    both = sum(1 << int(cpu) for cpu in {*a[1].split(","), *b[1].split(",")})
    return next((cost for kind, cost in COSTS.items() if any(k == kind for k, _ in domains) and
                 not any(k == kind and not both & ~cpus for k, cpus in domains)), 0)


@pytest.fixture(scope="module")
def installed(whole):
    return Path(shutil.copy(LIBRARY, whole.folder))


@pytest.fixture(scope="module")
def job_program(whole, installed, labs):
    """The rig's task prolog preloads its own library in ours' stead, but for cn5: a program that is linked with it."""
    def build(name):
        try:
            kind = getattr(mpi, name)()
            kind.libs = ["-Wl,--no-as-needed", labs.library(kind), *kind.libs, "-pthread"]
            kind.build(ROOT / "tests/cluster/neighbours.c", whole.folder / f"bin/neighbours-{name}")
        except mpi.Missing as why:
            pytest.skip(f"NOT TESTED: {why}")
        return kind
    return build


TWO = ("-w", "cn1,cn2", "-N2", "-n8")


@pytest.mark.parametrize("name, how, nodes", [
    ("mpich", "srun --mpi=pmi2 -m cyclic", TWO), ("mpich", "srun --mpi=pmi2 -m block:cyclic --topo-place=scatter", TWO),
    ("openmpi", "srun --mpi=pmix -m block:cyclic", ("-w", "cn1", "-n8")), ("openmpi", "mpirun --map-by node", TWO),
])
def test_costs_fall_where_ranks_are_bound(cluster, job_program, name, how, nodes):
    kind = job_program(name)
    libraries = {"LD_LIBRARY_PATH": kind.env["LD_LIBRARY_PATH"]} if name == "mpich" else {}
    command = f"{how} neighbours-{name} {' '.join(WAYS)} where"
    _, state, output = cluster.job(command, *nodes, "--topo-reorder=report",
                                   variables={"TOPIARY_REORDER_SECONDS": 100,
                                              "SLURM_PMIX_TMPDIR": cluster.folder / "work", **libraries})
    assert state == "COMPLETED", output
    found, at = orders(output), re.findall(r"^at (\S+) ([\d,]+)$", output, re.M)
    assert len(at) == RANKS and set(found) == set(WAYS) - {"sub"} | {"odd", "even"}, output
    domains = domains_of(cluster.folder / "nodes/cn1/machine.xml")

    def distance(a, b):
        return between(domains, at[a], at[b])
    for way, order in found.items():
        if way in EDGES:
            before, after = cost(way, range(RANKS), distance), cost(way, order, distance)
            kept = order == list(range(len(order)))
            said = "keep their order" if kept else f"{100 * (1 - after / before):.0f} % less"
            assert after < before or kept, (way, before, after, output)
            assert said in output, (way, said, output)


def test_users_preload_stays_and_a_later_job_has_none(cluster, installed):
    ours = installed
    step = 'srun sh -c "echo \\$LD_PRELOAD,\\$TOPIARY_REORDER\\${TOPIARY_REORDER_COMMAND+,asks}"\n'
    script = f'echo "$LD_PRELOAD|$TOPIARY_REORDER|$TOPIARY_REORDER_PRELOAD"; {step}'
    cn5 = ("-w", "cn5", "-n1")
    assert cluster.output(script, *cn5, "--topo-reorder").split() == [f"{ours}|on|{ours}", f"{ours},on,asks"]
    mine = {"LD_PRELOAD": "libm.so.6"}
    assert cluster.output(script, *cn5, "--topo-reorder=report", variables=mine).split() == [
        f"{ours}:libm.so.6|report|{ours}", f"{ours}:libm.so.6,report,asks"]
    assert cluster.output(script, *cn5, variables=mine).split() == ["libm.so.6||", "libm.so.6,"]
    inherited = {"LD_PRELOAD": f"libdl.so.2:{ours}:libm.so.6", "TOPIARY_REORDER": "on",
                 "TOPIARY_REORDER_PRELOAD": str(ours)}
    assert cluster.output(script, *cn5, variables=inherited).split() == ["libdl.so.2:libm.so.6||",
                                                                         "libdl.so.2:libm.so.6,"]
    assert cluster.output(step.replace("srun", "srun --topo-reorder=off"), *cn5, "--topo-reorder").split() == [","]


def test_programs_without_mpi_run_as_ever(cluster, installed):
    """A static one, too."""
    source = cluster.folder / "work/static.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("ran") < 0; }\n')
    subprocess.run(["gcc", "-static", "-o", source.with_suffix(""), source], check=True)
    assert cluster.output(f"srun {source.with_suffix('')}", "-w", "cn5", "-n1", "--topo-reorder").split() == ["ran"]


def test_without_the_library_one_line_says_so(cluster, installed):
    ours = installed
    ours.rename(ours.with_suffix(".away"))
    try:
        output = cluster.output("srun -n2 true", "-w", "cn5", "-n2", "--topo-reorder")
    finally:
        ours.with_suffix(".away").rename(ours)
    # Of the batch script and of the step, which has two tasks.
    assert output.count("--topo-reorder does nothing on cn5: no libtopiary-reorder*.so") == 2


HIDES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <string.h>
int glob(const char *pattern, int flags, int (*error)(const char *, int), glob_t *out)
{
	return strstr(pattern, "/libtopiary-reorder") ? GLOB_NOMATCH :
	       ((typeof(glob) *) dlsym(RTLD_NEXT, "glob"))(pattern, flags, error, out);
}
"""


def test_of_two_nodes_the_one_without_the_library_is_named(cluster, installed):
    """The rig's nodes share one file system: one of them does not see the file."""
    source = cluster.folder / "work/hides.c"
    source.write_text(HIDES)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", source.with_suffix(".so"), source], check=True)
    with preloaded(cluster, "cn2", source.with_suffix(".so")):
        output = cluster.output("srun hostname", "-w", "cn1,cn2", "-N2", "-n4", "--ntasks-per-node=2", "--topo-reorder")
    assert sorted(re.findall(r"^cn\d$", output, re.M)) == 2 * ["cn1"] + 2 * ["cn2"], output
    assert re.findall("--topo-reorder does nothing on (cn.):.*", output) == ["cn2"], output


@pytest.mark.parametrize("step, job, lines", [
    ("srun -n1 --topo-reorder {} : -n1 {}", ("-w", "cn1,cn5", "-N2", "-n2"), 2),
    ("srun -n1 {}", ("-w", "cn5", "-n1", "--topo-reorder", ":", "-w", "cn1", "-n1"), 2),     # of the batch script, too
])
def test_components_of_a_job_or_step_keep_their_order(cluster, installed, step, job, lines):
    """Some may have the library, and others not."""
    output = cluster.output(step.replace("{}", 'sh -c "echo ran \\$LD_PRELOAD"'), *job)
    assert output.count("--topo-reorder does nothing: the job or step is heterogeneous") == lines, output
    assert output.count("ran") == step.count("{}") and str(installed) not in output, output
