# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Machines with several tiers of memory or kinds of core, made from published facts: tests/data/memory.md."""
import functools
import re
import subprocess
from typing import NamedTuple


class Tier(NamedTuple):
    """NUMA nodes by OS index, what hwloc calls them, MB/s and ns from the cores local to them."""
    nodes: range
    subtype: str = ""
    bandwidth: int = 0
    latency: int = 0


class Kind(NamedTuple):
    """PUs by OS index and infos of their kind."""
    pus: range
    infos: dict


SNC4 = ",".join(f"{node},{node + 8}" for node in range(8))
XEON_MAX = (f"Package:2 Group:4 [NUMANode(memory=64GiB indexes={SNC4})] [NUMANode(memory=16GiB)] "
            "L2Cache:14 Core:1 PU:1")
MADE = {
    "knl-flat": ("Package:1 [NUMANode(memory=96GiB)] [NUMANode(memory=16GiB)] L2Cache:34(size=1MiB) Core:2 PU:4",
                 [Tier(range(1), "", 115200, 130), Tier(range(1, 2), "MCDRAM", 460800, 155)]),
    "xeon-max": (XEON_MAX, [Tier(range(8), "DRAM", 76800, 110), Tier(range(8, 16), "HBM", 256000, 130)]),
    "xeon-max-plain": (XEON_MAX, [Tier(range(8), "", 76800, 110), Tier(range(8, 16), "", 256000, 130)]),
    "mi300a": ("Package:4 [NUMANode(memory=128GiB)] L3Cache:3(size=32MiB) L2Cache:8(size=1MiB) Core:1 PU:1", []),
    "gh200": ("Package:1 [NUMANode(memory=480GiB)] [NUMANode(memory=96GiB)] L3Cache:1 L2Cache:72(size=1MiB) Core:1 "
              "PU:1",
              [Tier(range(1), "", 500000, 200), Tier(range(1, 2), "GPUMemory", 450000, 700)]),
    "cxl": ("Package:1 [NUMANode(memory=128GiB)] [NUMANode(memory=256GiB)] Core:16 PU:1",
            [Tier(range(1), "DRAM", 300000, 100), Tier(range(1, 2), "CXL-DRAM", 50000, 250)]),
    "epyc-nps4": ("Package:2 Group:4 [NUMANode(memory=32GiB)] L3Cache:2 Core:4 PU:2", []),
    "hybrid": ("Package:1 [NUMANode(memory=32GiB)] L3Cache:1 Core:16 PU:1", []),
    "big-little": ("Package:1 [NUMANode(memory=16GiB)] L3Cache:1 Core:8 PU:1", []),
}
KINDS = {
    "hybrid": [Kind(range(8, 16), {"CoreType": "IntelAtom", "FrequencyMaxMHz": "4100"}),
               Kind(range(6), {"CoreType": "IntelCore", "FrequencyMaxMHz": "5100"}),
               Kind(range(6, 8), {"CoreType": "IntelCore", "FrequencyMaxMHz": "5200"})],
    "big-little": [Kind(range(4), {"LinuxCapacity": "530"}), Kind(range(4, 8), {"LinuxCapacity": "1024"})],
}
NUMA = re.compile(r'(<object type="NUMANode" os_index="(\d+)" cpuset="([^"]*)"[^>]*gp_index="(\d+)")')
VALUE = '    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="{}" value="{}" initiator_cpuset="{}"/>\n'


def memattr(name, flags, values):
    return f'  <memattr name="{name}" flags="{flags}">\n{"".join(VALUE.format(*v) for v in values)}  </memattr>\n'


def with_tiers(xml, tiers):
    """Subtypes in the objects, and the memory attributes behind them."""
    of = {node: tier for tier in tiers for node in tier.nodes}
    values = [(of[int(node)], gp, near) for _, node, near, gp in NUMA.findall(xml) if int(node) in of]
    if not values:
        return xml
    xml = NUMA.sub(lambda m: m[1] + (f' subtype="{of[int(m[2])].subtype}"' if of[int(m[2])].subtype else ""), xml)
    after = (memattr("Bandwidth", 5, [(gp, tier.bandwidth, near) for tier, gp, near in values])
             + memattr("Latency", 6, [(gp, tier.latency, near) for tier, gp, near in values]))
    return xml.replace("</topology>", f"{after}</topology>")


def with_kinds(xml, kinds):
    texts = []
    for kind in kinds:
        infos = "".join(f'    <info name="{name}" value="{value}"/>\n' for name, value in kind.infos.items())
        texts.append(f'  <cpukind cpuset="0x{sum(1 << pu for pu in kind.pus):08x}">\n{infos}  </cpukind>\n')
    return xml.replace("</topology>", f"{''.join(texts)}</topology>")


@functools.cache
def made_machine(name):
    """The XML of a machine."""
    synthetic, tiers = MADE[name]
    xml = subprocess.run(["lstopo-no-graphics", "-i", synthetic, "--of", "xml", "-"], check=True, timeout=60, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    # What would tell that it was made.
    xml = re.sub(r' +<info name="(?:Backend|SyntheticDescription)"[^>]*/>\n', "", xml)
    return with_kinds(with_tiers(xml, tiers), KINDS.get(name, []))
