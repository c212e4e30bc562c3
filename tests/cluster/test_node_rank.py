# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Since 26.05 Slurm numbers the tasks of a step in the order of its topology's blocks: a rank map has its own order."""
import re

import pytest
from rig import Cluster
from rig.cluster import SLURM_RELEASE

from .test_rank_file import MPIRUN, SCRIPT, SRUN, compare, seat  # noqa: F401: a fixture

# The block of the node that comes second by name comes first.
BLOCKS = """\
- topology: blocks
  cluster_default: true
  block:
    block_sizes: [1]
    blocks:
      - {block: first, nodes: cn2}
      - {block: second, nodes: cn1}
"""
JOB = ["-w", "cn1,cn2", "-N2", "-n8", "--ntasks-per-node=4"]

if SLURM_RELEASE >= (26, 5):
    @pytest.fixture(scope="module")
    def whole(folders):
        with Cluster(folders(), {"cn1": "amd-4x16", "cn2": "amd-4x16"}, registry=False,
                     files={"topology.yaml": BLOCKS}) as made:
            yield made

    def test_step_without_a_map_is_numbered_by_slurm(cluster, seat):  # noqa: F811
        output = cluster.output(f"srun {seat}", *JOB)
        hosts = dict(re.findall(r"^rank (\d+) host (\S+)", output, re.M))
        assert [hosts[str(rank)] for rank in range(8)] == ["cn2"] * 4 + ["cn1"] * 4, output

    @pytest.mark.parametrize("starter", ["srun", "mpirun"])
    def test_step_follows_the_map(cluster, matrix, seat, starter):  # noqa: F811
        script = (SRUN.format(options="", seat=seat) if starter == "srun"
                  else SCRIPT.format(folder=cluster.folder, mpirun=MPIRUN))
        output = cluster.output(script, *JOB, f"--topo-matrix={matrix(8)}")
        compare(cluster, output, 8)

    def test_places_within_each_node_are_the_same(cluster):
        script = "srun --topo-place=scatter sh -c 'echo rank $SLURM_LOCALID $SLURMD_NODENAME: $(taskset -cp $$)'"
        output = cluster.output(script, *JOB, "-c4")
        placed = {host: sorted(re.findall(rf"^rank (\d) {host}: .*: (\S+)$", output, re.M)) for host in ("cn1", "cn2")}
        assert placed["cn1"] == placed["cn2"] == [("0", "0-3"), ("1", "8-11"), ("2", "4-7"), ("3", "12-15")], output
