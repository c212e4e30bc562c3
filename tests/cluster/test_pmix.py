# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Ranks ask PMIx for the topology: they see their step's cores, also where its server shares its own
(PMIxShareServerTopology)."""
from rig import Cluster
from rig.cluster import SLURM_RELEASE

# The cores in the topology that PMIx gives a rank; 2 is HWLOC_OBJ_CORE.
PROGRAM = """\
import ctypes
class Topology(ctypes.Structure):
    _fields_ = [("source", ctypes.c_char_p), ("topology", ctypes.c_void_p)]
pmix, hwloc = ctypes.CDLL("libpmix.so.2"), ctypes.CDLL("libhwloc.so.15")
me, seen = ctypes.create_string_buffer(1024), Topology()
assert not pmix.PMIx_Init(me, None, 0)
assert not pmix.PMIx_Load_topology(ctypes.byref(seen))
hwloc.hwloc_get_nbobjs_by_depth.argtypes = [ctypes.c_void_p, ctypes.c_int]
hwloc.hwloc_get_type_depth.argtypes = [ctypes.c_void_p, ctypes.c_int]
print("cores", hwloc.hwloc_get_nbobjs_by_depth(seen.topology, hwloc.hwloc_get_type_depth(seen.topology, 2)))
pmix.PMIx_Finalize(None, 0)
"""


def cores_seen(folders, conf):
    """What each rank of a step of 4 and of a step of 24 says."""
    with Cluster(folders(), {"cn1": "amd-4x16"}, registry=False, files={"mpi.conf": conf}) as cluster:
        program = cluster.folder / "work" / "seen.py"
        program.write_text(PROGRAM)
        for tasks in (4, 24):
            output = cluster.output(f"srun --mpi=pmix /usr/bin/python3 {program}", "-w", "cn1", f"-n{tasks}")
            lines = output.splitlines()
            assert len(lines) == tasks and len(set(lines)) == 1, output
            yield lines[0]


def test_rank_sees_the_cores_of_its_step(folders):
    assert list(cores_seen(folders, "")) == ["cores 4", "cores 24"]


if SLURM_RELEASE >= (25, 11):
    def test_shared_topology_is_the_servers(folders):
        """PMIx's client prefers its server's to HWLOC_XMLFILE, and slurmstepd's is the node's; topiary doctor reports
        the setting."""
        assert list(cores_seen(folders, "PMIxShareServerTopology=true\n")) == ["cores 64"] * 2
