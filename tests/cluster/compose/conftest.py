# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Topiary's cluster and a stock one of the same hardware and slurm.conf, side by side: what Slurm does is the measure
of what we may do."""
from concurrent.futures import ThreadPoolExecutor

import pytest
from rig import Cluster
from rig.cluster import SLURM_RELEASE

pytest.register_assert_rewrite(f"{__package__}.pair")

from .pair import Pair  # noqa: E402 (after the line above)


@pytest.fixture(scope="session")
def pairs(folders):
    """Starts a pair: pairs(machines, **more) as Cluster takes them. All end with the session."""
    running = []

    def start(machines, kind=Cluster, **more):
        clusters = [kind(folders(), machines, stock=stock, registry=False, **more) for stock in (False, True)]
        running.extend(clusters)
        pair = Pair(*clusters)
        pair.both(Cluster.start)
        return pair

    yield start
    with ThreadPoolExecutor() as pool:
        list(pool.map(Cluster.stop, running))


def a_pair(name, machines, **more):
    """Two fixtures: a pair that is started once, and the same for one test, which leaves nothing on it."""
    @pytest.fixture(scope="session", name=f"{name}_pair")
    def for_all(pairs):
        return pairs(machines, **more)

    @pytest.fixture(name=name)
    def for_one(request):
        pair = request.getfixturevalue(f"{name}_pair")
        yield pair
        pair.clean()

    return for_all, for_one


# --- nodes of several kinds, partitions of several rules

PLAIN_NODES = {"big1": "amd-4x16", "big2": "amd-4x16", "mid1": "intel-2x8", "mid2": "intel-2x8"}
PLAIN = {
    "nodes": {"big1": "RealMemory=16000 Feature=wide", "big2": "RealMemory=4000 Feature=wide",
              "mid1": "RealMemory=2000 Feature=smt", "mid2": "RealMemory=2000 Feature=smt Weight=10"},
    "conf": """\
PartitionName=weighed Nodes=big2,mid2
PartitionName=hungry Nodes=ALL DefMemPerCPU=500
PartitionName=forced Nodes=big1 OverSubscribe=FORCE:2
PartitionName=shared Nodes=big1 OverSubscribe=YES:2
PartitionName=whole Nodes=ALL OverSubscribe=EXCLUSIVE
PartitionName=own Nodes=mid1 ExclusiveUser=YES
PartitionName=capped Nodes=ALL MaxCPUsPerNode=8
""",
}
plain_pair, plain = a_pair("plain", PLAIN_NODES, **PLAIN)


# --- devices and other countable things, partitions that give way, specialised cores

GPUS = 4      # one to each package of a big machine


class WithGpus(Cluster):
    """The machines' XML has no GPUs: the snapshot is told of them, as a person may write it. at: where GPU i is, in
    parts of `beside` cores."""
    beside, at = 16, range(GPUS)

    def write_offline(self):
        super().write_offline()
        devices = " ".join(f"GPU{i}@{self.beside * at}-{self.beside * (at + 1) - 1}" for i, at in enumerate(self.at))
        lines = [line for line in self.snapshot_file.read_text().split("\n") if line and line != "sealed"
                 and not line.startswith("end")]
        told = [f"{line} + {devices}" if line.startswith("shape") and "PU:1" in line else line for line in lines]
        written = self.snapshot_file.with_suffix(".new")        # slurmctld reads it whenever it changes
        written.write_text("\n".join([*told, "end", ""]))
        written.rename(self.snapshot_file)


RICH_NODES = {"big1": "amd-4x16", "big2": "amd-4x16", "mid1": "intel-2x8", "mid2": "intel-2x8"}
RICH = {
    "nodes": {"big1": f"Gres=gpu:{GPUS},widget:8", "big2": f"Gres=gpu:{GPUS}", "mid1": "Gres=widget:2",
              "mid2": "CoreSpecCount=2"},
    "files": {"gres.conf": "".join(
        f"NodeName=big1 Name=gpu File={{folder}}/gpu1.{i} Cores={16 * i}-{16 * i + 15}\n"
        f"NodeName=big2 Name=gpu File={{folder}}/gpu2.{i}\n" for i in range(GPUS))
        + "NodeName=big1 Name=widget Count=8\nNodeName=mid1 Name=widget Count=2\n"},
    "conf": """\
GresTypes=gpu,widget
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MaxNodeCount=8
TreeWidth=65533
PartitionName=requeued Nodes=ALL PriorityTier=1
PartitionName=cancelled Nodes=ALL PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF
""",
}
rich_pair, rich = a_pair("rich", RICH_NODES, kind=WithGpus, **RICH)


# --- GPUs at NUMA nodes: two to each package of a big machine

FINE_GPUS = 8
FINE_AT = [6, 7, 2, 3, 0, 1, 5, 4]      # the NUMA node of each GPU: as on many a machine, not in order


class WithFineGpus(WithGpus):
    beside, at = 8, FINE_AT


def fine_line(node, gpu):
    near = f" Cores={8 * FINE_AT[gpu]}-{8 * FINE_AT[gpu] + 7}" if node == "fine1" and SLURM_RELEASE < (24, 11) else ""
    return f"NodeName={node} Name=gpu File={{folder}}/{node}.{gpu}{near}\n"


FINE_NODES = {"fine1": "amd-4x16", "fine2": "amd-4x16", "mid1": "intel-2x8"}
FINE = {
    "nodes": {node: f"Gres=gpu:{FINE_GPUS} Feature=fine" for node in ("fine1", "fine2")},
    "files": {"gres.conf": "".join(fine_line(node, gpu) for node in ("fine1", "fine2") for gpu in range(FINE_GPUS))},
    "conf": "GresTypes=gpu\n",
}
fine_pair, fine = a_pair("fine", FINE_NODES, kind=WithFineGpus, **FINE)


# --- nodes with GPUs of different types

TYPED = {
    "nodes": {"old1": "Gres=gpu:old:2", "young1": "Gres=gpu:young:2", "both1": "Gres=gpu:old:2,gpu:young:2"},
    "files": {"gres.conf": "".join(f"NodeName={node} Name=gpu Type={kind} File={{folder}}/{node}.{kind}.{i}\n"
                                   for kind in ("old", "young") for node in (f"{kind}1", "both1") for i in (0, 1))},
    "conf": "GresTypes=gpu\n",
}
typed_pair, typed = a_pair("typed", dict.fromkeys(("old1", "young1", "both1"), "amd-4x16"), kind=WithGpus, **TYPED)


# --- cores that are kept for jobs with GPUs: the first two of each package

KEPT = 2
RESTRICTED = {
    "nodes": {"big1": f"Gres=gpu:{GPUS} RestrictedCoresPerGPU={KEPT}"},
    "files": {"gres.conf": "".join(f"NodeName=big1 Name=gpu File={{folder}}/gpu.{i} Cores={16 * i}-{16 * i + 15}\n"
                                   for i in range(GPUS))},
    "conf": "GresTypes=gpu\n",
}
restricted_pair, restricted = a_pair("restricted", {"big1": "amd-4x16"}, kind=WithGpus, **RESTRICTED)


# --- for the battery of option sets: 256 CPUs on nodes of two kinds

BATTERY_NODES = {"big1": "amd-4x16", "big2": "amd-4x16", "big3": "amd-4x16", "mid1": "intel-2x8", "mid2": "intel-2x8"}
BATTERY = {
    "nodes": {**{f"big{i}": f"RealMemory=16000 Gres=gpu:{GPUS} Feature=wide" for i in (1, 2, 3)},
              **{f"mid{i}": "RealMemory=2000 Feature=smt" for i in (1, 2)}},
    "files": {"gres.conf": "".join(f"NodeName=big{node} Name=gpu File={{folder}}/gpu{node}.{i} "
                                   f"Cores={16 * i}-{16 * i + 15}\n"
                                   for node in (1, 2, 3) for i in range(GPUS))},
    "conf": "GresTypes=gpu\n",
}


@pytest.fixture(scope="session")
def battery_pair(pairs):
    return pairs(BATTERY_NODES, kind=WithGpus, **BATTERY)


# --- a network that Slurm knows, told in each way that it has

NETWORK_NODES = {f"mid{i}": "intel-2x8" for i in range(1, 6)}
TREE = "SwitchName=leaf1 Nodes=mid[1-2]\nSwitchName=leaf2 Nodes=mid[3-5]\nSwitchName=top Switches=leaf[1-2]\n"
BLOCK = "BlockName=leaf1 Nodes=mid[1-2]\nBlockName=leaf2 Nodes=mid[3-5]\nBlockSizes=2\n"
YAML_TREE = """\
- topology: net
  cluster_default: %s
  tree:
    switches:
      - {switch: top, children: "leaf[1-2]"}
      - {switch: leaf1, nodes: "mid[1-2]"}
      - {switch: leaf2, nodes: "mid[3-5]"}
"""
YAML_FLAT = "- topology: plain\n  cluster_default: true\n  flat: true\n"
# {id: (since which release, lines of slurm.conf, {file: text})}; where topology.yaml is, TopologyPlugin says nothing of
# it.
NETWORKS = {
    "tree": ((0, 0), "TopologyPlugin=topology/tree\n", {"topology.conf": TREE}),
    "block": ((23, 11), "TopologyPlugin=topology/block\n", {"topology.conf": BLOCK}),
    "topology.yaml": ((25, 5), "", {"topology.yaml": YAML_TREE % "true"}),
    "partition's own": ((25, 5), "PartitionName=main Nodes=ALL Default=YES State=UP Topology=net\n",
                        {"topology.yaml": YAML_FLAT + YAML_TREE % "false"}),
}


@pytest.fixture(scope="session", params=[name for name, (since, *_) in NETWORKS.items() if SLURM_RELEASE >= since])
def network_pair(request, pairs):
    _, conf, files = NETWORKS[request.param]
    return pairs(NETWORK_NODES, conf=conf, files=files)


@pytest.fixture
def network(network_pair):
    yield network_pair
    network_pair.clean()


# A topology for each partition: the cluster's tree for those that name none, a tree across that one's leaves, and none
# at all.
TOPOLOGIES = YAML_TREE % "true" + """\
- topology: crossed
  cluster_default: false
  tree:
    switches:
      - {switch: crossed, children: "row[1-2]"}
      - {switch: row1, nodes: "mid[1,4]"}
      - {switch: row2, nodes: "mid[2-3,5]"}
- topology: plain
  cluster_default: false
  flat: true
"""
TOPOLOGIES_CONF = "PartitionName=crossed Nodes=ALL Topology=crossed\nPartitionName=plain Nodes=ALL Topology=plain\n"
topologies_pair, topologies = a_pair("topologies", NETWORK_NODES, conf=TOPOLOGIES_CONF,
                                     files={"topology.yaml": TOPOLOGIES})


# Networks that ask more of a job than few switches, each as a partition's own: segments in blocks, rings, a torus,
# blocks not shared.
SHAPED_NODES = {f"mid{i}": "intel-2x8" for i in range(1, 9)}
SHAPED_BLOCKS = """\
- topology: %s
  cluster_default: %s
  block:
    block_sizes: [2, 4, 8]
    blocks:
      - {block: "%s1", nodes: "mid[1,5]"}
      - {block: "%s2", nodes: "mid[2,6]"}
      - {block: "%s3", nodes: "mid[3,7]"}
      - {block: "%s4", nodes: "mid[4,8]"}
"""
SHAPED_RINGS = """\
- topology: rings
  cluster_default: false
  ring:
    rings:
      - {ring: odd, nodes: "mid1,mid3,mid5,mid7"}
      - {ring: even, nodes: "mid2,mid4,mid6,mid8"}
- topology: torus
  cluster_default: false
  torus3d:
    toruses:
      - name: torus
        dims: {x: 2, y: 2, z: 2}
        nodes: "mid[1-8]"
        placements:
          - dims: {x: 1, y: 1, z: 1}
          - dims: {x: 2, y: 1, z: 1}
          - dims: {x: 1, y: 2, z: 1}
          - dims: {x: 1, y: 1, z: 2}
          - dims: {x: 2, y: 2, z: 1}
"""
SHAPED = SHAPED_BLOCKS % ("blocks", "true", *"bbbb") + (SHAPED_RINGS if SLURM_RELEASE >= (26, 5) else "")
SHAPED_PARTITIONS = ["rings", "torus"] if SLURM_RELEASE >= (26, 5) else []
SHAPED_CONF = "".join(f"PartitionName={name} Nodes=ALL Topology={name}\n" for name in SHAPED_PARTITIONS) + \
    f"PartitionName=unshared Nodes=ALL {'Exclusive=TOPO' if SLURM_RELEASE >= (26, 5) else 'ExclusiveTopo=YES'}\n"
shaped_pair, shaped = a_pair("shaped", SHAPED_NODES, conf=SHAPED_CONF, files={"topology.yaml": SHAPED})


# --- jobs that take turns

GANG = """\
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
SchedulerTimeSlice=5
PartitionName=patient Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=urgent Nodes=ALL PriorityTier=10 OverSubscribe=FORCE:1 PreemptMode=OFF
PartitionName=turns Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:2
"""
gang_pair, gang = a_pair("gang", {"big1": "amd-4x16"}, conf=GANG)
