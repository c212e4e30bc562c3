# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The machines that start-up is measured on: sysfs snapshots, one of hwloc's corpus and two made with the same files as
Linux has."""
import subprocess
from collections import namedtuple
from pathlib import Path

from rig.paths import CACHE

# cores and threads in all; caches: (level, type, KiB, cores that share one); memory: MiB of a node with CPUs, and of
# one without
Made = namedtuple("Made", "packages nodes far cores threads caches memory far_memory cpuinfo")

KNL = Made(1, 4, 4, 64, 4, ((1, "Data", 32, 1), (1, "Instruction", 32, 1), (2, "Unified", 1024, 2)), 24576, 4096,
           "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 87\nmodel name\t: Intel(R) Xeon Phi(TM) CPU 7210 @ "
           "1.30GHz\nstepping\t: 1\n")
EPYC = Made(2, 8, 0, 128, 2,
            ((1, "Data", 32, 1), (1, "Instruction", 32, 1), (2, "Unified", 512, 1), (3, "Unified", 32768, 8)), 65536, 0,
            "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core Processor\n"
            "stepping\t: 1\n")
MACHINES = {"small": "16amd64-8n2c", "knl": KNL, "epyc": EPYC}
TELL = {"small": "16 PUs, 8 NUMA nodes", "knl": "256 PUs, 4 NUMA nodes of DDR and 4 of MCDRAM",
        "epyc": "256 PUs, 8 NUMA nodes"}


def mask(cpus, width):
    """As sysfs writes it: words of 32 bits."""
    number = sum(1 << cpu for cpu in cpus)
    return ",".join(f"{number >> 32 * word & 0xffffffff:08x}" for word in reversed(range((width + 31) // 32)))


def put(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


class Sysfs:
    """PU t of core c is CPU c + t * cores, as Linux numbers them."""

    def __init__(self, root, made):
        self.root, self.m, self.width = root, made, made.cores * made.threads

    def mask(self, first, count):
        """The PUs of so many cores."""
        return mask([c + t * self.m.cores for c in range(first, first + count) for t in range(self.m.threads)],
                    self.width)

    def group(self, core, size):
        """The same of the group of cores that this core is in."""
        return self.mask(core // size * size, size)

    def write(self):
        for cpu in range(self.width):
            self.write_cpu(self.root / f"sys/devices/system/cpu/cpu{cpu}", cpu % self.m.cores)
        put(self.root / "sys/devices/system/cpu", online=f"0-{self.width - 1}", possible=f"0-{self.width - 1}")
        for node in range(self.m.nodes + self.m.far):
            self.write_node(self.root / f"sys/devices/system/node/node{node}", node)
        put(self.root / "sys/devices/system/node", online=f"0-{self.m.nodes + self.m.far - 1}")
        put(self.root / "proc", cpuinfo="\n".join(f"processor\t: {cpu}\n{self.m.cpuinfo}" for cpu in range(self.width)),
            meminfo=f"MemTotal: {1024 * (self.m.nodes * self.m.memory + self.m.far * self.m.far_memory)} kB")

    def write_cpu(self, folder, core):
        package = self.m.cores // self.m.packages
        put(folder / "topology", core_id=core % package, physical_package_id=core // package, die_id=0,
            cluster_id=65535, core_cpus=self.group(core, 1), thread_siblings=self.group(core, 1),
            die_cpus=self.group(core, package), package_cpus=self.group(core, package),
            core_siblings=self.group(core, package))
        put(folder / "cpufreq", cpuinfo_max_freq=3500000, base_frequency=2450000)
        for index, (level, kind, size, share) in enumerate(self.m.caches):
            put(folder / f"cache/index{index}", level=level, type=kind, size=f"{size}K",
                shared_cpu_map=self.group(core, share), id=core // share, coherency_line_size=64,
                number_of_sets=size * 1024 // 64 // 8, physical_line_partition=1)

    def write_node(self, folder, node):
        near = self.m.cores // self.m.nodes
        size = self.m.memory if node < self.m.nodes else self.m.far_memory
        put(folder, cpumap=self.mask(node * near, near) if node < self.m.nodes else mask([], self.width),
            meminfo=f"Node {node} MemTotal: {size * 1024} kB",
            distance=" ".join(str(self.distance(node, other)) for other in range(self.m.nodes + self.m.far)))
        put(folder / "hugepages/hugepages-2048kB", nr_hugepages=0)

    def distance(self, a, b):
        """Memory without CPUs is beside the node of its turn."""
        if a == b:
            return 10
        if max(a, b) < self.m.nodes:
            return 21 if a * self.m.packages // self.m.nodes != b * self.m.packages // self.m.nodes else 12
        return 31 if a % self.m.nodes == b % self.m.nodes else 41


def snapshot(folder, name):
    """The machine's sysfs, below the folder, and its export, as an agent makes it at boot."""
    root, what = Path(folder) / name, MACHINES[name]
    root.mkdir()
    if isinstance(what, Made):
        Sysfs(root, what).write()
    else:
        found = sorted((CACHE / "src").glob(f"hwloc-*/tests/hwloc/linux/{what}.tar.bz2"))
        if not found:
            raise SystemExit(f"topology.py: hwloc's {what}.tar.bz2 is missing: run packaging/setup")
        subprocess.run(["tar", "xjf", found[-1], "-C", root, "--strip-components=1", "--no-same-owner"], check=True)
    xml = Path(folder) / f"{name}.xml"
    subprocess.run(["lstopo-no-graphics", "--if", "fsroot", "--input", root, "--whole-io", "--of", "xml", "--force",
                    xml], check=True)
    return root, xml
