# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The rank file: made from the matrix, found by a plain mpirun, mpiexec and srun, and each rank is where it says."""
import re
import shutil
from pathlib import Path

import pytest
from rig import mpi
from rig.ask import hwloc_cpus
from rig.cluster import SLURM_RELEASE
from rig.mpi import open_mpi_release
from rig.node import configured
from rig.paths import BUILD, ROOT

# Open MPI finds the map by itself up to release 4; its successors take a file from the command line alone. Where Slurm
# has each srun take what the job's tasks have, Open MPI's daemons would have the cores of one task.
ALL_CORES = "env -u SLURM_CPUS_PER_TASK -u SLURM_TRES_PER_TASK"
MPIRUN = ("mpirun" if open_mpi_release() < 5
          else f"{ALL_CORES} mpirun --map-by rankfile:file=$TOPIARY_RANKFILE --bind-to core:overload-allowed")
# One task that has all of the job's cores on a node, whatever the job's tasks have.
SCRIPT = f"""\
echo FILE; cat $TOPIARY_RANKFILE
for node in $(scontrol show hostnames); do
    {ALL_CORES} srun -N1 -n1 -w $node --overlap sh -c 'echo "XML $SLURMD_NODENAME"; cat $HWLOC_XMLFILE; echo END'
done
echo RANKS; {{mpirun}} {{folder}}/bin/where
"""
SRUN = SCRIPT.replace("{mpirun} {folder}/bin/where", "srun {options} {seat}")
# Where a task is that srun starts, without MPI; the rest is as an MPI program finds it.
SEAT = """\
#!/bin/sh
cpus=$(taskset -cp $$)
echo "rank $SLURM_PROCID host $SLURMD_NODENAME hosts=$SLURM_HOSTFILE layout=$SLURM_DISTRIBUTION cpus ${cpus##*: }"
"""


def numbers(text):
    """(0, 1, 2, 5) of "0-2,5"."""
    runs = [run.partition("-") for run in text.split(",")]
    return tuple(n for first, _, last in runs for n in range(int(first), int(last or first) + 1))


def parse(output):
    """{rank: (host, slots)}, {host: topology}, {rank: (host, cpus)} of a job's output."""
    ranks = {int(r): (h, numbers(s)) for r, h, s in re.findall(r"^rank (\d+)=(\S+) slot=([\d,]+)$", output, re.M)}
    topologies = dict(re.findall(r"^XML (\S+)\n(.*?)^END$", output, re.M | re.S))
    bound = {int(r): (h, numbers(c))
             for r, h, c in re.findall(r"^rank +(\d+) +host (\S+) .* cpus ([\d,-]+)$", output, re.M)}
    return ranks, topologies, bound


def expected(cluster, ranks, topologies):
    """{rank: (host, cpus)} as the rank file has it, through hwloc's own tools on the step's topology."""
    files = {}
    for host, xml in topologies.items():
        files[host] = cluster.folder / "work" / f"{host}.xml"
        files[host].write_text(xml)
    return {rank: (host, tuple(hwloc_cpus(files[host], [f"core:{slot}" for slot in slots])))
            for rank, (host, slots) in ranks.items()}


@pytest.mark.parametrize("nodes, ranks, each",
                         [("cn1,cn2", 8, 4), ("cn1,cn2", 12, None), ("cn5", 2, 2)])
def test_each_rank_is_where_the_file_says(cluster, matrix, nodes, ranks, each):
    options = ["-w", nodes, f"--ntasks={ranks}", f"-N{nodes.count(',') + 1}", f"--topo-matrix={matrix(ranks)}"]
    if each:
        options.append(f"--ntasks-per-node={each}")
    output = cluster.output(SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN), *options)
    said, topologies, bound = parse(output)
    assert sorted(said) == list(range(ranks)), output
    assert len(set(said.values())) == ranks, "two ranks in one place"
    assert bound == expected(cluster, said, topologies), output
    if ranks == 8:
        assert (bound[0][0] == bound[7][0]
                and bound[0][1][0] // 2 == bound[7][1][0] // 2), "ranks 0 and 7 exchange most, and share no L2"


@pytest.mark.parametrize("nodes, ranks, cpus, cores", [
    ("cn1,cn2", 6, 3, 3),
    # A core of two CPUs suffices for a task of two.
    ("cn3", 8, 2, 1),
])
def test_rank_of_several_cpus_has_whole_cores(cluster, matrix, nodes, ranks, cpus, cores):
    hosts = nodes.count(",") + 1
    output = cluster.output(SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN), "-w", nodes, f"-N{hosts}",
                            f"--ntasks={ranks}", f"--cpus-per-task={cpus}",
                            f"--ntasks-per-node={ranks // hosts}", f"--topo-matrix={matrix(ranks)}")
    said = compare(cluster, output, ranks)
    assert {len(slots) for _, slots in said.values()} == {cores}
    seats = [(host, slot) for host, slots in said.values() for slot in slots]
    assert len(set(seats)) == len(seats), "two ranks on one core"


def test_cores_that_tasks_would_have_to_share(cluster, matrix):
    """Slurm gives four tasks of three CPUs six cores of two."""
    _, state, output = cluster.job("cat $TOPIARY_RANKFILE", "-w", "cn3", "--ntasks=4", "--cpus-per-task=3",
                                   f"--topo-matrix={matrix(4)}")
    assert "has no rank file" in output and "4 ranks of 3 CPUs, but the job's cores have only 3 such places" in output


@pytest.mark.parametrize("options, ranks, most", [
    # More cores than tasks: mpirun starts no more on a node than Slurm has tasks there.
    (["-w", "cn1,cn2", "-N2", "--exclusive"], 12, 6),
    # A task is a CPU, and here a core has two: ranks share cores, two by two.
    (["-w", "cn3", "-N1"], 32, 32),
])
def test_plain_mpirun_starts_every_rank(cluster, matrix, options, ranks, most):
    output = cluster.output(f"{MPIRUN} {cluster.folder}/bin/where", *options, f"--ntasks={ranks}",
                            f"--topo-matrix={matrix(ranks)}")
    seats = re.findall(r"^rank +\d+ +host (\S+) .* core (\d+)", output, re.M)
    assert len(seats) == ranks, output
    assert max(seats.count(seat) for seat in seats) == (2 if ranks > 16 else 1)
    hosts = [host for host, _ in seats]
    assert max(hosts.count(host) for host in hosts) <= most


@pytest.mark.parametrize("launch, tag", [
    (f"{MPIRUN} --tag-output", r"\[[^],]*,(\d+)\]<stdout>"), ("srun -l", r"^ *(\d+)"),
], ids=["mpirun", "srun"])
def test_kernel_binds_on_this_very_hardware(cluster, matrix, launch, tag):
    script = f"{launch} grep Cpus_allowed_list /proc/self/status; cat $TOPIARY_RANKFILE"
    output = cluster.output(script, "-w", "cn5", "--ntasks=2", "-N1", f"--topo-matrix={matrix(2)}")
    kernel = {int(r): int(c) for r, c in re.findall(rf"{tag}: ?Cpus_allowed_list:\s*(\d+)$", output, re.M)}
    assert kernel == {int(r): int(s) for r, s in re.findall(r"^rank (\d+)=cn5 slot=(\d+)$", output, re.M)}, output
    assert len(kernel) == 2


@pytest.mark.parametrize("name", ["rmaps_rank_file_path", "orte_rankfile", "rmaps_base_mapping_policy",
                                  "rmaps_base_schedule_policy", "orte_default_hostfile"])
def test_mapping_of_the_user_stays(cluster, matrix, name):
    script = "env | grep -E '^OMPI_MCA_(orte|rmaps)_' | grep -v _oversubscribe="
    _, state, output = cluster.job(script, "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}",
                                   variables={f"OMPI_MCA_{name}": "mine"})
    assert (state, output) == ("COMPLETED", f"OMPI_MCA_{name}=mine\n")


# What spawn.c does, by mpi4py.
SPAWN = """\
import sys
from mpi4py import MPI
parent, world, host = MPI.Comm.Get_parent(), MPI.COMM_WORLD, MPI.Get_processor_name()
word = "child" if parent != MPI.COMM_NULL else "parent"
if word == "parent":
    parent = world.Spawn(sys.executable, [__file__], int(sys.argv[1]))
sys.stdout.write(f"{word} {world.rank} on {host}\\n")
sys.stdout.flush()
parent.Disconnect()
"""


@pytest.mark.skipif(open_mpi_release() >= 5, reason="Open MPI 5 takes a rank file from its command line alone")
@pytest.mark.parametrize("language", ["C", "Python"])
def test_program_that_spawns_is_mapped_and_may_spawn(cluster, matrix, language):
    """Its ranks are where the file says; what they spawn is placed by Open MPI's own rules."""
    program = cluster.folder / "bin" / "spawn"
    if language == "C":
        mpi.openmpi().build(ROOT / "tests" / "cluster" / "spawn.c", program)
    else:
        program = program.with_suffix(".py")
        program.write_text(SPAWN)
        program = f"/usr/bin/python3 {program}"
    output = cluster.output(f"cat $TOPIARY_RANKFILE; mpirun --report-bindings -np 4 {program} 2 2>&1",
                            "-w", "cn1,cn2", "-N2", "--ntasks=8", "--ntasks-per-node=4",
                            f"--topo-matrix={matrix(8)}")
    said, _, _ = parse(output)
    assert ({int(rank): host for rank, host in re.findall(r"^parent (\d) on (\S+)$", output, re.M)}
            == {rank: said[rank][0] for rank in range(4)})
    assert sorted(re.findall(r"^child (\d) on cn[12]$", output, re.M)) == ["0", "1"], output


SEGMENTS = """\
import re
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
print(*re.findall(r"/\\S*(?:vader|sm)_segment\\S*", open("/proc/self/maps").read()), sep="\\n")
"""


def test_ranks_share_memory_with_none_of_another_cluster(cluster):
    """Open MPI names a segment after node, user, Slurm's numbers and rank: two clusters on one machine need a folder
    each."""
    program = cluster.folder / "bin" / "segments.py"
    program.write_text(SEGMENTS)
    output = cluster.output(f"srun --mpi=pmix /usr/bin/python3 {program}", "-w", "cn1", "-n2")
    found = [line for line in output.split("\n") if "_segment" in line]
    assert found and all(line.startswith(f"{cluster.folder}/") for line in found), output


@pytest.mark.skipif(open_mpi_release() >= 5, reason="Open MPI 5 takes a rank file from its command line alone")
@pytest.mark.parametrize("options", ["--map-by node", "-npernode 4", "-np 3 --map-by core : -np 5"])
def test_mpirun_with_its_own_mapping_ignores_the_map(cluster, matrix, options):
    job = ["-w", "cn1,cn2", "-N2", "--ntasks=8", "--ntasks-per-node=4"]
    script = (f"mpirun {options.replace(':', cluster.folder.as_posix() + '/bin/where :')} "
              f"{cluster.folder}/bin/where | sort")
    stock = cluster.output(script, *job)
    assert stock.count("rank ") == 8, stock
    _, state, ours = cluster.job(script, *job, f"--topo-matrix={matrix(8)}")
    assert (state, ours) == ("COMPLETED", stock)


@pytest.fixture
def seat(cluster):
    path = cluster.folder / "work" / "seat"
    path.write_text(SEAT)
    path.chmod(0o755)
    return path


def compare(cluster, output, ranks):
    """What the file says, after each rank was found to be there."""
    said, topologies, bound = parse(output)
    assert sorted(said) == list(range(ranks)), output
    places, due = {}, expected(cluster, said, topologies)
    assert {rank: host for rank, (host, _) in bound.items()} == {rank: host for rank, (host, _) in due.items()}, output
    for rank, (host, cpus) in due.items():
        places.setdefault((host, frozenset(cpus)), []).append(set(bound[rank][1]))
    # Ranks that share a core have its threads apart.
    assert all(set().union(*seen) == cpus and sum(map(len, seen)) == len(cpus)
               for (_, cpus), seen in places.items()), output
    return said


@pytest.mark.parametrize("nodes, ranks, options", [
    ("cn1,cn2", 12, ["--exclusive"]),
    ("cn1,cn2", 6, ["--ntasks-per-node=3", "--cpus-per-task=3"]),
    ("cn1,cn3", 8, ["--ntasks-per-node=4", "--cpus-per-task=2"]),
    # Two to a core.
    ("cn3", 32, []),
])
def test_plain_srun_starts_each_rank_where_the_file_says(cluster, matrix, seat, nodes, ranks, options):
    output = cluster.output(SRUN.format(options="", seat=seat), "-w", nodes, f"-N{nodes.count(',') + 1}",
                            f"--ntasks={ranks}", *options, f"--topo-matrix={matrix(ranks)}")
    compare(cluster, output, ranks)
    # What made srun do so is nothing that its tasks would make others do.
    assert len(re.findall(r" hosts= layout= ", output)) == ranks


@pytest.mark.parametrize("given, options", [
    ("-n8 --ntasks-per-node=4", ["--ntasks-per-node=4"]), ("-c $SLURM_CPUS_PER_TASK", ["--cpus-per-task=3"]),
    ("-n8 -N2 --ntasks-per-node=4", ["--ntasks-per-node=4"]), ("--ntasks=8 --nodes=$SLURM_NNODES", []),
])
def test_srun_with_the_jobs_own_options_follows_the_map(cluster, matrix, seat, given, options):
    """From Slurm 23.02 an srun with nodes ends with an error where it is given a map's hosts: it runs without."""
    output = cluster.output(SRUN.format(options=given, seat=seat), "-w", "cn1,cn2", "-N2",
                            "--ntasks=8", *options, f"--topo-matrix={matrix(8)}")
    told = output.partition("RANKS")[2]
    if SLURM_RELEASE >= (23, 2) and re.search("-N|--nodes", given):
        assert told.count("accepts no --nodes beside a rank map: leave it out") == 1, output
        assert len(re.findall("^rank ", told, re.M)) == 8, output
    else:
        assert "does not follow" not in told, output
        compare(cluster, output, 8)


def test_options_of_another_plugin_leave_the_map(cluster, matrix, seat):
    stack = cluster.folder / "etc" / "plugstack.conf"
    before = stack.read_text()
    stack.write_text(f"{before}optional {BUILD}/tests/spank_project.so\n")
    given = ["--project p", "--project=p", "--project-free", "--project-share", "--project-share=7", "-l --project-f"]
    output = cluster.output("".join(f"srun {options} {seat} -n 5 --multi-prog\n" for options in given),
                            "-w", "cn1,cn2", "-N2", "--ntasks=8", f"--topo-matrix={matrix(8)}")
    stack.write_text(before)
    assert "does not follow" not in output and output.count("rank 7 ") == len(given), output


@pytest.mark.parametrize("node, given", [("cn1", ""), ("cn3", "-c2")])
def test_rank_of_the_map_has_the_threads_of_its_cpus(cluster, matrix, node, given):
    """Of two cores, or of one with two CPUs; Slurm 22.05 does not hand -c on to srun."""
    _, state, output = cluster.job(f"srun {given} sh -c 'echo threads $OMP_NUM_THREADS'", "-w", node, "-N1",
                                   "--ntasks=4", "--cpus-per-task=2", "--topo-omp=auto", f"--topo-matrix={matrix(4)}")
    assert (state, output) == ("COMPLETED", 4 * "threads 2\n")


def test_order_of_ranks_is_each_nodes_own(cluster, matrix, seat):
    text = mpi.pairs_of(8, (4, 7), (3, 0), (6, 1), (5, 2))
    for script in (SRUN.format(options="", seat=seat), SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN)):
        output = cluster.output(script, "-w", "cn1,cn2", "-N2", "--ntasks=8", "--ntasks-per-node=4",
                                f"--topo-matrix={matrix(text=text)}")
        said = compare(cluster, output, 8)
        order = {host: [slots for at, slots in said.values() if at == host] for host in ("cn1", "cn2")}
        assert [len(seats) for seats in order.values()] == [4, 4]
        assert order["cn1"] != order["cn2"] or any(seats != sorted(seats) for seats in order.values())


@pytest.mark.parametrize("how, why", [
    ("srun --multi-prog {folder}/work/programs", "--multi-prog changes the layout of the tasks"),
    ("SLURM_DISTRIBUTION=cyclic srun {seat}", "SLURM_DISTRIBUTION is set, for example by --distribution of the job"),
    ("SLURM_NTASKS=2 SLURM_NPROCS=2 srun {seat}", "SLURM_NTASKS=2, but the rank map has 4 ranks"),
    ("printf 'cn2\\ncn1\\ncn1\\ncn1\\n' >mine; SLURM_HOSTFILE=mine SLURM_NTASKS=4 SLURM_NPROCS=4 srun {seat}",
     "SLURM_HOSTFILE is set"),
    ("srun -n1 srun --overlap {seat}", "--ntasks=1, but the job has 4"),
])
def test_srun_with_other_options_ignores_the_map(cluster, matrix, seat, how, why):
    (cluster.folder / "work" / "programs").write_text(f"0-3 {seat}\n")
    command = how.format(seat=seat, folder=cluster.folder) + " 2>&1 | sort"
    job = ["-w", "cn1,cn2", "-N2", "--ntasks=4", "--ntasks-per-node=2"]
    _, _, stock = cluster.job(command, *job)
    ours = cluster.output(command, *job, f"--topo-matrix={matrix(4)}")
    assert re.search(r"^(\d: )?rank 0 ", ours, re.M), ours
    said = re.findall(r"^.*topiary: srun does not follow the job's rank map: (.*)\n", ours, re.M)
    assert [line for line in said if line != "it runs inside another step"] == [why], ours

    def plain(text):
        text = re.sub(r"^(srun: (Job \d+ step creation|Step created)|.*topiary: srun does not follow).*\n", "",
                      text, flags=re.M)
        return re.sub(r"hosts=\S*/", "hosts=", text)
    assert plain(ours) == plain(stock)


def test_map_that_cannot_be_read_is_reported(cluster, matrix, seat):
    script = f"export TOPIARY_HOSTFILE=/none/$SLURM_JOB_ID.batch/hosts; srun {seat}"
    output = cluster.output(script, "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}")
    assert re.search(r"not follow the job's rank map: /none/\d+\.batch/hosts: No such file or directory$", output, re.M)


def test_heterogeneous_job_reports_that_srun_follows_no_map(cluster, matrix, seat):
    output = cluster.output(f"test -s $TOPIARY_HOSTFILE && srun {seat}", "-w", "cn1", "-n2",
                            f"--topo-matrix={matrix(2)}", ":", "-w", "cn2", "-n2")
    assert len(re.findall("^rank ", output, re.M)) == 2, output
    assert output.count("topiary: srun does not follow the job's rank map: the job is heterogeneous") == 1, output
    assert len(re.findall(r"topiary: job \d+: the rank map has only the first component of this heterogeneous job",
                          output)) == 1, output


def test_launchers_srun_and_a_manual_map_print_nothing(cluster, matrix, seat):
    script = f"mpirun true; SLURM_HOSTFILE=$TOPIARY_HOSTFILE srun -n4 {seat}"
    output = cluster.output(script, "-w", "cn1,cn2", "-N2", "--ntasks=4", "--ntasks-per-node=2",
                            f"--topo-matrix={matrix(4)}")
    assert output.count("rank ") == 4 and "topiary" not in output, output


def test_binding_of_the_user_stays(cluster, matrix, seat):
    output = cluster.output(SRUN.format(options="--cpu-bind=none", seat=seat), "-w", "cn1,cn2", "-N2",
                            "--ntasks=8", "--ntasks-per-node=4", f"--topo-matrix={matrix(8)}")
    said, _, bound = parse(output)
    assert {rank: host for rank, (host, _) in bound.items()} == {rank: host for rank, (host, _) in said.items()}
    assert {len(cpus) for _, cpus in bound.values()} == {64}, "srun was told to bind to nothing"


@pytest.mark.parametrize("options, how", [
    (["--ntasks-per-node=4"], "srun --exact"),
    # 48 of the 64 cores of each node.
    (["--ntasks-per-node=4", "--exclusive"], "SRUN_CPUS_PER_TASK=12 SLURM_CPUS_PER_TASK=12 srun"),
])
def test_step_that_has_not_the_whole_nodes_but_the_cores_of_the_map(cluster, matrix, seat, options, how):
    output = cluster.output(SRUN.format(options="", seat=seat).replace("RANKS; srun", f"RANKS; {how}"),
                            "-w", "cn1,cn2", "-N2", "--ntasks=8", *options, f"--topo-matrix={matrix(8)}")
    compare(cluster, output, 8)


def test_step_without_the_cores_of_the_map(cluster, matrix, seat):
    """Another step has the first cores of each node; the nodes are still those of the map."""
    script = SRUN.format(options="--exact", seat=seat).replace("echo RANKS;",
                                                               "srun -n4 -N2 --exact sleep 10 & sleep 2;")
    _, _, output = cluster.job(script, "-w", "cn1,cn2", "-N2", "--ntasks=8", "--exclusive",
                               f"--topo-matrix={matrix(8)}")
    said, _, bound = parse(output)
    assert {rank: host for rank, (host, _) in bound.items()} == {rank: host for rank, (host, _) in said.items()}
    assert len(said) == 8
    assert len(re.findall("not bound by it on this node: the step does not have all cores", output)) == 2, output


def test_job_submitted_from_a_mapped_one_does_not_follow_its_map(cluster, matrix, seat):
    script = f"sbatch -W -w cn3 -n2 -o inner --wrap 'env | grep ^TOPIARY_; srun {seat}' >said; cat inner"
    number, state, output = cluster.job(script, "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}")
    assert state == "COMPLETED", output
    assert f"/{number}.batch/" not in output and "/cn1/" not in output, output
    assert re.search("^rank 0 host cn3 ", output, re.M) and re.search("^rank 1 host cn3 ", output, re.M), output


# --- mpiexec of MPICH and of Intel MPI, which numbers ranks node after node

HYDRA_SEAT = """\
#!/bin/sh
cpus=$(taskset -cp $$)
echo "rank $PMI_RANK host $(hostname) of mpiexec cpus ${cpus##*: }"
"""
# Proxies find mpiexec by this machine's loopback, as nodes of the rig have no addresses.
HYDRA = "export HYDRA_IFACE=lo I_MPI_HYDRA_IFACE=lo PATH={home}:$PATH\n" + \
    SCRIPT.replace("$TOPIARY_RANKFILE", "$TOPIARY_BLOCK_RANKFILE") \
          .replace("{mpirun} {folder}/bin/where", "{how} {home}/seat")


HYDRAS = ["mpich", "mpich_5", "intel"]


def hydra_home(cluster, name):
    """That of mpi.hydra_in, with HYDRA_SEAT."""
    home = mpi.hydra_in(cluster.folder, name)
    (home / "seat").write_text(HYDRA_SEAT)
    (home / "seat").chmod(0o755)
    return home


# Hydra's own two releases differ in how they are found and told, and Intel's in its variables, too.
EACH_HYDRA = pytest.mark.parametrize("hydra", HYDRAS, indirect=True)
BOTH_MAKERS = pytest.mark.parametrize("hydra", ["mpich", "intel"], indirect=True)


@pytest.fixture(scope="module")
def hydra(request, whole):
    return hydra_home(whole, getattr(request, "param", "mpich"))


PAIRS = (0, 3), (1, 2), (4, 6), (5, 7)


def mpiexec(cluster, hydra, matrix, how, *options, ranks=8):
    return cluster.output(HYDRA.format(home=hydra, how=how), f"--ntasks={ranks}",
                          f"--topo-matrix={matrix(text=mpi.pairs_of(ranks, *PAIRS))}", *options)


TWO = ["-w", "cn1,cn2", "-N2", "--ntasks-per-node=4"]


# --- options that are for one task

FOR_A_TASK = ["--topo-membind=local", "--topo-omp=auto", "--topo-hugepages=thp",
              "--topo-report"]
FOUND = ("sh -c 'echo rank on $(hostname): $(env | grep -E \"^(OMP|GOMP|KMP|UCX|FI|HFI|PSM.|GLIBC)_\" | "
         "grep -v BACKTRACE | sort | tr \"\\n\" \" \")'")


@pytest.fixture(params=["openmpi", "openmpi_5", *HYDRAS])
def launcher(request, cluster):
    """The command of an mpirun, and the daemon by which it starts ranks."""
    if request.param in HYDRAS:
        home = hydra_home(cluster, request.param)
        daemon = "hydra_bstrap_proxy" if (home / "hydra_bstrap_proxy").exists() else "hydra_pmi_proxy"
        return f"export HYDRA_IFACE=lo I_MPI_HYDRA_IFACE=lo PATH={home}:$PATH; mpiexec", daemon
    try:
        kind = getattr(mpi, request.param)()
    except mpi.Missing as why:
        pytest.skip(f"NOT TESTED: {why}")
    if kind.name == "openmpi":
        return "mpirun", "orted"
    return f"export PRTE_MCA_prte_keep_loopback=1; {ALL_CORES} {kind.mpirun[0]}", "prted"


WAY = "to apply them use srun, or mpirun ... topiary bind PROGRAM"


@pytest.mark.parametrize("site, options, refused", [
    ("TopoNic = one,strict\n", FOR_A_TASK, "--topo-membind, --topo-omp, --topo-hugepages, --topo-report"),
    ("TopoOmp = auto\nTopoPlace = compact\nTopoMembind = bind\nTopoNic = one,strict\n", [], None),
], ids=["user", "site"])
def test_ranks_do_not_inherit_settings_of_a_task(cluster, launcher, site, options, refused):
    """Neither those beside mpirun nor those below a daemon; and who asked is told so, once."""
    mpirun, daemon = launcher
    with configured(cluster, site):
        output = cluster.output(f"{mpirun} -n 8 {FOUND}", "-n8", *TWO, *options)
    ranks = re.findall(r"^rank on (cn[12]): *(.*)$", output, re.M)
    assert sorted(ranks) == 4 * [("cn1", "")] + 4 * [("cn2", "")], output
    lines = [line for line in output.split("\n") if "topiary" in line]
    assert [line.partition("topiary: ")[2] for line in lines] == ([] if not refused else [
        f"not applied to the ranks that {daemon} starts: {refused}; {WAY}"]), output


# --- places for the ranks of mpirun, without a matrix

PLACED = """\
#!/bin/sh
cpus=$(taskset -cp $$)
echo "seat $(hostname) ${cpus##*: }" \
    "$(hwloc-bind --get --membind --nodeset --taskset)" $OMP_NUM_THREADS $OMP_PLACES
"""


def seats(output):
    return sorted(line for line in output.split("\n") if line.startswith("seat "))


@pytest.mark.parametrize("nodes", [["-w", "cn1", "-N1", "-n4"], TWO, ["-w", "cn1", "-n2", "-c4"], ["-w", "cn3", "-n3"]],
                         ids=["one node", "two nodes", "several CPUs", "cores shared out"])
@pytest.mark.parametrize("options", [["--topo-place=scatter:l3", "--topo-membind=bind", "--topo-omp=auto"],
                                     ["--topo-tasks=auto"]], ids=["place", "tasks"])
def test_ranks_of_mpirun_have_the_places_of_tasks(cluster, submit, launcher, nodes, options):
    """Of srun's, on each node: cores, memory policy and threads. MPICH's are told how."""
    mpirun, daemon = launcher
    submit("-w", "cn2", "-n3")      # so that the job's cores on its nodes differ
    script = cluster.folder / "placed"
    script.write_text(PLACED)
    script.chmod(0o755)
    tasks = next(word[2:] for word in ["-n8", *nodes][::-1] if word.startswith("-n"))
    output = cluster.output(f"{mpirun} -n {tasks} {script}", f"-n{tasks}", *nodes, *options)
    due = cluster.output(f"srun -n {tasks} $(test -z $SLURM_CPUS_PER_TASK || echo -c $SLURM_CPUS_PER_TASK) {script}",
                         f"-n{tasks}", *nodes, *options)
    assert len(seats(due)) == int(tasks), due
    asked = ", ".join(word.partition("=")[0] for word in options)
    if daemon == "hydra_pmi_proxy":
        assert re.findall("topiary: .*", output) == [
            f"topiary: not applied to the ranks that {daemon} starts: {asked}; {WAY}"], output
    else:
        assert "topiary: " not in output
        assert seats(output) == seats(due)


def test_ranks_that_the_user_binds_stay(cluster, launcher):
    """MPICH's are not placed, which is said."""
    mpirun, daemon = launcher
    own = "-n 2 --bind-to core" if daemon != "hydra_bstrap_proxy" else "-n 2 -genv I_MPI_PIN_PROCESSOR_LIST 3,1"
    script = f"{mpirun} {own} sh -c 'taskset -cp $$'"
    nodes = ["-w", "cn1", "-N1", "-n4"]
    output = cluster.output(script, *nodes, "--topo-place=scatter")
    found = [sorted(re.findall("list: (.*)", said)) for said in (output, cluster.output(script, *nodes))]
    assert found[0] == found[1], output
    assert re.findall("topiary: .*", output) == [
        "topiary: rank 0: sh runs as it was started: the process was bound already, by its launcher "
        "or by numactl or taskset" if daemon != "hydra_pmi_proxy" else
        f"topiary: not applied to the ranks that {daemon} starts: --topo-place; {WAY}"]


OWN_COMMAND = {"OMPI_MCA_orte_fork_agent": "/usr/bin/env", "PRTE_MCA_odls_base_exec_agent": "/usr/bin/env",
               "I_MPI_GTOOL": "/usr/bin/env:all"}


@pytest.mark.parametrize("case", ["no topiary", "container", "failure", "command of the user's"])
def test_ranks_that_are_not_placed_are_bound_as_ever(cluster, launcher, case):
    """But where the plugin finds out too late, Open MPI's are unbound."""
    mpirun, daemon = launcher
    topiary = {"no topiary": Path("/nonexistent/topiary"), "container": cluster.folder / "work" / "topiary"}.get(case)
    ranks = "-n 8 sh -c 'echo seat $(hostname) \"$1\" $(taskset -cp $$ | grep -o list.*)' x 'two  words'"
    before, late, own = "", case in ("container", "failure"), OWN_COMMAND if case.startswith("command") else None
    if case == "container":
        topiary.touch()
        topiary.chmod(0o755)
        shutil.chown(topiary, "nobody")
        before = f"rm {topiary}; "
    with configured(cluster, f"TopiaryCommand = {topiary}\n" if topiary else ""):
        output = cluster.job(f"{before}{mpirun} {ranks}", "-n8", *TWO, "--topo-place=" +
                             ("scatter:die" if case == "failure" else "compact"), variables=own)[2]
    unbound = "--bind-to none " if late and daemon in ("orted", "prted") else ""
    due = seats(cluster.job(f"{mpirun} {unbound}{ranks}", "-n8", *TWO, variables=own)[2])
    assert len(due) == 8 and seats(output) == due, output
    assert output.count(" two  words list: ") == 8, output
    if case == "failure" and daemon != "hydra_pmi_proxy":
        said = re.findall("topiary: rank 0: sh runs (.*?):", output)
        assert said == 2 * ["unbound" if unbound else "as it was started"], output


def test_a_job_that_a_job_submits_places_its_own_ranks(cluster):
    inner = "env | grep -cE '^(TOPIARY_BIND|I_MPI_GTOOL|(OMPI|PRTE)_MCA_(orte_fork|odls_base_exec|hwloc).*)='"
    output = cluster.output(f"{inner}; env -u SLURM_TOPO_PLACE sbatch -Q --wait -w cn2 -o $PWD/inner-%j "
                            f"--topo-place=off --wrap \"{inner}\"; cat $PWD/inner-*", "-w", "cn1",
                            "--topo-place=compact")
    assert re.findall(r"^\d+$", output, re.M) == ["6", "0"], output


@pytest.mark.parametrize("cpus, used", [("4", True), ("65536", True), ("65537", False), ("2 x", False)])
def test_cpus_that_are_no_number_reach_no_command(cluster, cpus, used):
    """An error of the command would end each rank."""
    output = cluster.output(f"srun -n1 --export='ALL,SLURM_CPUS_PER_TASK={cpus}' mpirun -n 1 /usr/bin/env",
                            "-w", "cn1", "-n1", "--topo-place=compact")
    output = "".join(re.findall("I_MPI_GTOOL=.*", output))
    assert re.findall(r"--job(.*?)\$\{IFS\}\"", output) == ["${IFS}-c" + cpus if used else ""], output


@pytest.mark.parametrize("script, options, unused", [
    ("mpirun -n 2 true", ["--topo-omp=auto", "--topo-nic=one"], "--topo-omp, --topo-nic"),
    ("mpirun -n 2 true", ["--topo-omp=off"], None),
    ("mpirun -n 2 true; srun true", ["--topo-omp=auto"], None),
    ("srun mpirun true", ["--topo-omp=auto"], "--topo-omp"),
], ids=["mpirun", "off", "srun", "srun of a launcher"])
def test_options_that_no_task_had_are_reported(cluster, script, options, unused):
    """On one node mpirun starts its ranks without srun."""
    with configured(cluster, "TopoMembind = bind\n"):
        _, _, output = cluster.job(script, "-w", "cn1", "-n2", *options)
    found = re.findall(r"topiary: job \d+: not applied: (.*); they apply to tasks that srun starts", output)
    assert found == ([unused] if unused else []), output


@EACH_HYDRA
def test_plain_mpiexec_starts_each_rank_where_the_file_says(cluster, matrix, hydra):
    said = compare(cluster, mpiexec(cluster, hydra, matrix, "mpiexec", *TWO), 8)
    assert [host for host, _ in said.values()] == sorted(host for host, _ in said.values())
    assert all(said[a][1][0] // 2 == said[b][1][0] // 2 for a, b in PAIRS), "two that exchange share no L2"
    assert {slots for host, slots in said.values()} == {(n,) for n in range(4)}


@pytest.mark.parametrize("options, ranks", [
    # 7 on the first node, as Slurm has it; a place for ranks is none for what starts them.
    (["-w", "cn1,cn2", "-N2", "--topo-place=compact"], 8),
    # A core has two CPUs, and two ranks.
    (["-w", "cn3", "-N1"], 32),
])
def test_ranks_of_uneven_nodes_and_of_shared_cores(cluster, matrix, hydra, options, ranks):
    said = compare(cluster, mpiexec(cluster, hydra, matrix, "mpiexec", *options, ranks=ranks), ranks)
    assert [host for host, _ in said.values()] == sorted(host for host, _ in said.values())


@BOTH_MAKERS
def test_launched_ranks_do_not_inherit_the_place_of_a_task(cluster, hydra):
    """Without a map, too: the ranks of a node are not all on the first core of a place."""
    script = f"export HYDRA_IFACE=lo I_MPI_HYDRA_IFACE=lo PATH={hydra}:$PATH; mpiexec {hydra}/seat"
    output = cluster.output(script, "-n8", *TWO, "--topo-place=compact")
    _, _, bound = parse(output)
    assert len(bound) == 8, output
    assert all(len({cpu for at, cpus in bound.values() if at == host for cpu in cpus}) >= 4
               for host in ("cn1", "cn2")), output


@BOTH_MAKERS
def test_ranks_of_several_cpus(cluster, matrix, hydra):
    # Intel MPI makes domains of SLURM_CPUS_PER_TASK by itself.
    output = mpiexec(cluster, hydra, matrix, "env -u SLURM_CPUS_PER_TASK mpiexec", "-w", "cn1,cn3", "-N2",
                     "--ntasks-per-node=4", "--cpus-per-task=2")
    assert {len(slots) for _, slots in compare(cluster, output, 8).values()} == {1, 2}


def test_fewer_ranks_are_the_first_of_the_map(cluster, matrix, hydra):
    said, topologies, bound = parse(mpiexec(cluster, hydra, matrix, "mpiexec -n 4", *TWO))
    due = expected(cluster, said, topologies)
    assert bound == {rank: due[rank] for rank in range(4)}


@BOTH_MAKERS
@pytest.mark.parametrize("how", [
    "env HYDRA_BINDING=none I_MPI_PIN=0 mpiexec",
    # Without that Intel MPI's would go by ssh.
    "env I_MPI_HYDRA_BOOTSTRAP=slurm mpiexec -hosts cn2 -n 2",
    "mpiexec -n 11",
])
def test_mpiexec_with_other_options_ignores_the_map(cluster, matrix, hydra, how):
    script = f"export HYDRA_IFACE=lo I_MPI_HYDRA_IFACE=lo PATH={hydra}:$PATH; {how} {hydra}/seat | sort"
    stock = cluster.output(script, "-n8", *TWO)
    ours = mpiexec(cluster, hydra, matrix, how, *TWO)
    _, _, stock = parse(stock)
    _, _, ours = parse(ours)
    assert {rank: host for rank, (host, _) in ours.items()} == {rank: host for rank, (host, _) in stock.items()}
    # More ranks than the map has: the others are bound as ever.
    assert "-n 11" in how or ours == stock
