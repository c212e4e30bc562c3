# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The rank file: made from the matrix, found by a plain mpirun, and each rank is where it says."""
import json
import re
import subprocess

import pytest
from rig.ask import hwloc_cpus

# Open MPI finds the file by itself up to release 4; its successors take one from the command line alone.
RELEASE = int(re.search(r"(\d+)\.", subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout).group(1))
MPIRUN = "mpirun" if RELEASE < 5 else "mpirun --map-by rankfile:file=$TOPIARY_RANKFILE --bind-to :overload-allowed"
SCRIPT = """\
echo FILE; cat $OMPI_MCA_rmaps_rank_file_path
for node in $(scontrol show hostnames); do
    srun -N1 -n1 -w $node --overlap sh -c 'echo "XML $SLURMD_NODENAME"; cat $HWLOC_XMLFILE; echo END'
done
echo RANKS; {mpirun} {folder}/bin/where
"""


def numbers(text):
    """(0, 1, 2, 5) of "0-2,5"."""
    runs = [run.partition("-") for run in text.split(",")]
    return tuple(n for first, _, last in runs for n in range(int(first), int(last or first) + 1))


def parse(output):
    """{rank: (host, slots)}, {host: topology}, {rank: (host, cpus)} of a job's output."""
    ranks = {int(r): (h, numbers(s)) for r, h, s in re.findall(r"^rank (\d+)=(\S+) slot=([\d,]+)$", output, re.M)}
    topologies = dict(re.findall(r"^XML (\S+)\n(.*?)^END$", output, re.M | re.S))
    bound = {int(r): (h, numbers(c)) for r, h, c in re.findall(r"^rank +(\d+) +host (\S+) .* cpus ([\d,-]+)$", output, re.M)}
    return ranks, topologies, bound


def expected(cluster, ranks, topologies):
    """{rank: (host, cpus)} as the rank file has it, through hwloc's own tools on the step's topology."""
    files = {}
    for host, xml in topologies.items():
        files[host] = cluster.folder / "work" / f"{host}.xml"
        files[host].write_text(xml)
    return {rank: (host, tuple(hwloc_cpus(files[host], [f"core:{slot}" for slot in slots]))) for rank, (host, slots) in ranks.items()}


@pytest.mark.parametrize("nodes, ranks, each", [("cn1,cn2", 16, 8), ("cn1,cn2", 8, 4), ("cn1,cn2", 12, None), ("cn5", 2, 2)])
def test_each_rank_is_where_the_file_says(cluster, matrix, nodes, ranks, each):
    options = ["-w", nodes, f"--ntasks={ranks}", f"-N{nodes.count(',') + 1}", f"--topo-matrix={matrix(ranks)}"]
    if each:
        options.append(f"--ntasks-per-node={each}")
    _, state, output = cluster.job(SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN), *options)
    assert state == "COMPLETED", output
    said, topologies, bound = parse(output)
    assert sorted(said) == list(range(ranks)), output
    assert len(set(said.values())) == ranks, "two ranks in one place"
    assert bound == expected(cluster, said, topologies), output


@pytest.mark.parametrize("nodes, ranks, cpus, cores", [
    ("cn1,cn2", 8, 2, 2),
    ("cn1,cn2", 6, 3, 3),
    # A core of two CPUs suffices for a task of two.
    ("cn3", 8, 2, 1),
    ("cn3", 4, 4, 2),
])
def test_rank_of_several_cpus_has_whole_cores(cluster, matrix, nodes, ranks, cpus, cores):
    hosts = nodes.count(",") + 1
    _, state, output = cluster.job(SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN), "-w", nodes, f"-N{hosts}", f"--ntasks={ranks}",
                                   f"--cpus-per-task={cpus}", f"--ntasks-per-node={ranks // hosts}", f"--topo-matrix={matrix(ranks)}")
    assert state == "COMPLETED", output
    said, topologies, bound = parse(output)
    assert sorted(said) == list(range(ranks)), output
    assert {len(slots) for _, slots in said.values()} == {cores}
    seats = [(host, slot) for host, slots in said.values() for slot in slots]
    assert len(set(seats)) == len(seats), "two ranks on one core"
    assert {rank: (host, set(seen)) for rank, (host, seen) in bound.items()} == \
        {rank: (host, set(due)) for rank, (host, due) in expected(cluster, said, topologies).items()}, output


def test_cores_that_tasks_would_have_to_share(cluster, matrix):
    """Slurm gives four tasks of three CPUs six cores of two."""
    _, state, output = cluster.job("cat $OMPI_MCA_rmaps_rank_file_path", "-w", "cn3", "--ntasks=4", "--cpus-per-task=3",
                                   f"--topo-matrix={matrix(4)}")
    assert "has no rank file" in output and "4 ranks of 3 CPUs, but the job's cores make only 3 such places" in output


@pytest.mark.parametrize("options, ranks, most", [
    # More cores than tasks: mpirun starts no more on a node than Slurm has tasks there.
    (["-w", "cn1,cn2", "-N2", "--exclusive"], 12, 6),
    # A task is a CPU, and here a core has two: ranks share cores, two by two.
    (["-w", "cn3", "-N1"], 32, 32),
])
def test_plain_mpirun_starts_every_rank(cluster, matrix, options, ranks, most):
    _, state, output = cluster.job(f"{MPIRUN} {cluster.folder}/bin/where", *options, f"--ntasks={ranks}",
                                   f"--topo-matrix={matrix(ranks)}")
    assert state == "COMPLETED", output
    seats = re.findall(r"^rank +\d+ +host (\S+) .* core (\d+)", output, re.M)
    assert len(seats) == ranks, output
    assert max(seats.count(seat) for seat in seats) == (2 if ranks > 16 else 1)
    hosts = [host for host, _ in seats]
    assert max(hosts.count(host) for host in hosts) <= most


def test_heavy_pair_shares_a_cache(cluster, matrix):
    _, state, output = cluster.job(SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN), "-w", "cn1,cn2", "-N2", "--ntasks=8", "--ntasks-per-node=4",
                                   f"--topo-matrix={matrix(8)}")
    _, _, bound = parse(output)
    assert state == "COMPLETED", output
    assert bound[0][0] == bound[7][0] and bound[0][1][0] // 2 == bound[7][1][0] // 2, "ranks 0 and 7 exchange most, and share no L2"


def test_kernel_binds_on_this_very_hardware(cluster, matrix):
    script = f"{MPIRUN} --tag-output grep Cpus_allowed_list /proc/self/status; cat $OMPI_MCA_rmaps_rank_file_path"
    _, state, output = cluster.job(script, "-w", "cn5", "--ntasks=2", "-N1", f"--topo-matrix={matrix(2)}")
    assert state == "COMPLETED", output
    kernel = {int(r): int(c) for r, c in re.findall(r"^\[[^,]*,(\d+)\]<stdout>: ?Cpus_allowed_list:\s*(\d+)$", output, re.M)}
    assert kernel == {int(r): int(s) for r, s in re.findall(r"^rank (\d+)=cn5 slot=(\d+)$", output, re.M)}
    assert len(kernel) == 2


def test_mapping_is_never_worse_than_block_or_cyclic(cluster, matrix):
    script = f"topiary map --matrix {matrix(16)} --explain=json 2>&1 >/dev/null"
    _, state, output = cluster.job(script, "-w", "cn1,cn2", "-N2", "--ntasks=16", "--ntasks-per-node=8")
    costs = json.loads(output)
    assert state == "COMPLETED"
    assert costs["cost"] <= min(costs["block"], costs["cyclic"])


def test_rank_file_of_the_user_stays(cluster, matrix):
    script = "echo $OMPI_MCA_rmaps_rank_file_path"
    _, state, output = cluster.job(script, "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}",
                                   "--export=OMPI_MCA_rmaps_rank_file_path=/etc/mine,PATH")
    assert (state, output) == ("COMPLETED", "/etc/mine\n")
