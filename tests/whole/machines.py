# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Machines drawn at random: hwloc's XML, what slurm.conf says of the node, and its devices in gres.conf."""
import os
import xml.etree.ElementTree as ET
from typing import NamedTuple

GIB = 1 << 30
MAX_CORES, MAX_PUS = 48, 128


class Drawn(NamedTuple):
    """xml; words of the NodeName line, {} for what slurmd -C says; GPUs as core lists for gres.conf, None for no
    Cores=; their types, "" without; of each the driver's GPU that it is, or is a slice of; and what it is, in words."""
    xml: str
    words: dict
    gpus: list
    types: list
    parents: list
    what: str


def hex_set(bits):
    words = []
    while bits or not words:
        words.append(bits & 0xffffffff)
        bits >>= 32
    return ",".join(f"0x{word:08x}" for word in reversed(words))


class Maker:
    """One machine. Objects are XML elements from the start; their sets are filled in at the end."""

    def __init__(self, rng):
        self.rng, self.gp, self.numa, self.words, self.notes = rng, 0, [], {}, []

    def thing(self, parent, kind, /, **attributes):
        self.gp += 1
        told = {"type": kind, **{name: str(value) for name, value in attributes.items()}, "gp_index": str(self.gp)}
        return ET.Element("object", told) if parent is None else ET.SubElement(parent, "object", told)

    def cache(self, parent, level, size):
        return self.thing(parent, f"L{level}Cache", cache_size=size, depth=level, cache_linesize=64,
                          cache_associativity=16, cache_type=0)

    def memory(self, parent, gib, subtype=None):
        """A NUMA node; its number comes later, when all are there."""
        more = {"subtype": subtype} if subtype else {}
        node = self.thing(parent, "NUMANode", os_index="", **more, local_memory=gib * GIB)
        ET.SubElement(node, "page_type", size="4096", count=str(gib * GIB >> 12))
        self.numa.append(node)
        return node

    # --- cores

    def draw_sizes(self):
        rng = self.rng
        while True:
            self.smt = rng.choices([1, 2, 4, 8], [5, 6, 2, 1])[0]
            self.packages = rng.choices([1, 2, 4], [3, 5, 1])[0]
            self.per_package = rng.choices([1, 2, 4], [5, 3, 2])[0]      # NUMA nodes: NPS, SNC
            self.l3s = rng.choices([0, 1, 2, 3], [1, 6, 3, 1])[0]        # in a NUMA node
            self.in_l3 = rng.choice([1, 2, 3, 4, 4, 6, 8])               # cores
            self.in_l2 = rng.choice([1, 1, 1, 2]) if self.in_l3 % 2 == 0 else 1
            cores = self.packages * self.per_package * max(self.l3s, 1) * self.in_l3
            if 2 <= cores <= MAX_CORES and cores * self.smt <= MAX_PUS:
                return

    def make_cores(self):
        rng = self.rng
        self.machine = self.thing(None, "Machine", os_index=0)
        wide = self.packages > 1 and rng.random() < 0.08      # NUMA nodes across packages
        above = self.machine
        self.at = []      # objects that have memory and devices
        self.cores = []
        for package in range(self.packages):
            if wide and self.packages == 4 and package % 2 == 0:
                above = self.thing(self.machine, "Group", kind=0, subkind=0)
                self.at.append(above)
            body = self.thing(above, "Package", os_index=package)
            for _ in range(self.per_package):
                part = body if self.per_package == 1 else self.thing(body, "Group", kind=0, subkind=0)
                if not wide:
                    self.at.append(part)
                for _ in range(max(self.l3s, 1)):
                    under = self.cache(part, 3, 16 << 20) if self.l3s else part
                    for core in range(self.in_l3):
                        if core % self.in_l2 == 0:
                            l2 = self.cache(under, 2, 1 << 20)
                        one = self.thing(l2, "Core", os_index=len(self.cores))
                        self.cores.append((package, one))
        if wide:
            self.at = self.at or [self.machine]
            self.notes.append("NUMA nodes across packages")
        if self.smt == 2 and self.packages == self.per_package == 1 and rng.random() < 0.25:
            self.efficient = set(range(len(self.cores) // 2, len(self.cores)))
            self.notes.append("P and E cores")
        else:
            self.efficient = set()

    def number(self):
        """Operating systems number PUs in several ways."""
        rng, n = self.rng, len(self.cores)
        how = rng.choices(["cores first", "siblings together", "round robin", "sparse"], [5, 3, 2, 1])[0]
        each = n // self.packages
        self.pus = []
        for index, (package, core) in enumerate(self.cores):
            threads = 1 if index in self.efficient else self.smt
            turn = (index - package * each) * self.packages + package if how == "round robin" else index
            for thread in range(threads):
                number = turn * self.smt + thread if how in ("siblings together", "sparse") else thread * n + turn
                number *= 2 if how == "sparse" else 1
                self.pus.append((index, thread, number, self.thing(core, "PU", os_index=number)))
        self.notes.append(f"PUs {how}")
        # The host's own CPUs are there, if only offline: what runs on a node sees them.
        self.offline = (1 << os.cpu_count()) - 1
        if rng.random() < 0.12 and self.in_l3 > 1 and not self.efficient:
            gone = rng.randrange(n)
            whole = rng.random() < 0.5 or self.smt == 1
            for index, thread, number, pu in [*self.pus]:
                if index == gone and (whole or thread == self.smt - 1):
                    self.offline |= 1 << number
                    self.cores[index][1].remove(pu)
            if whole:
                l2 = self.parent_of(self.cores[gone][1])
                l2.remove(self.cores[gone][1])
                if not len(l2):
                    self.parent_of(l2).remove(l2)
            self.notes.append("a core offline" if whole else "a PU offline")
            self.uneven = True
            self.gone = gone if whole else None
        else:
            self.uneven, self.gone = False, None

    def parent_of(self, child):
        return next(thing for thing in self.machine.iter("object") if child in list(thing))

    # --- memory

    def make_memory(self):
        rng, gib = self.rng, self.rng.choice([4, 8, 16])
        odd = rng.choices(["", "without memory", "without CPUs", "same cores", "two tiers", "uneven"],
                          [10, 2, 2, 2, 2, 2])[0]
        for nth, part in enumerate(self.at):
            if odd == "without memory" and nth == len(self.at) - 1 and len(self.at) > 1:
                self.memory(part, 0)
                continue
            self.memory(part, gib * (nth % 2 + 1) if odd == "uneven" else gib,
                        "DRAM" if odd == "two tiers" else None)
            if odd == "same cores":
                self.memory(part, gib)
            elif odd == "two tiers":
                self.memory(part, max(gib // 4, 1), "HBM")
        if odd == "without CPUs":
            self.memory(self.thing(self.machine, "Group", kind=1001, subkind=0), gib)
        if odd:
            self.notes.append(f"NUMA nodes {odd}")
        numbers = rng.choices([list(range(len(self.numa))), [n * 8 for n in range(len(self.numa))]], [6, 1])[0]
        if rng.random() < 0.1:
            numbers.reverse()
        for node, number in zip(self.numa, numbers):
            node.set("os_index", str(number))

    # --- devices

    def make_devices(self):
        """GPUs and NICs behind bridges of their own or a common switch, their bus numbers in no order of cores."""
        rng = self.rng
        ngpus = rng.choices([0, 1, 2, 3, 4, 6, 8], [8, 1, 3, 2, 5, 1, 4])[0]
        nnics = rng.choices([0, 1, 2, 4, 8], [5, 3, 3, 2, 1])[0]
        how = rng.choice(["in order", "reversed", "shuffled", "at one", "at packages"])
        packages = list(self.machine.iter("object"))
        packages = [thing for thing in packages if thing.get("type") == "Package"]
        sites = packages if how == "at packages" else self.at[:1] if how == "at one" else self.at
        places = [sites[i * len(sites) // max(ngpus, 1)] for i in range(ngpus)]
        if how == "reversed":
            places.reverse()
        elif how == "shuffled":
            rng.shuffle(places)
        maker = rng.choice(["nvml", "nvml", "rsmi", ""])
        self.gpus = []
        buses = list(range(2, 2 + ngpus + nnics))
        beside = rng.random() < 0.5      # a NIC shares a switch with a GPU
        switches = {}
        for nth, place in enumerate(places):
            port = self.bridge(place, buses[nth] * 8, rng.randrange(3))
            switches[nth] = port
            kind = "1002:740c" if maker == "rsmi" else "10de:20b0"
            device = self.thing(port, "PCIDev", pci_busid=f"0000:{buses[nth] * 8 + 4:02x}:00.0",
                                pci_type=f"0302 [{kind}] [{kind}] a1", pci_link_speed="31.5")
            self.gpus.append((nth, device, place))
        numbers = list(range(ngpus))
        if maker == "rsmi" and rng.random() < 0.3:
            rng.shuffle(numbers)
        for nth, device, _ in self.gpus:
            if maker:
                self.thing(device, "OSDev", name=f"{maker}{numbers[nth]}", subtype=maker.upper(), osdev_type=1)
        for nth in range(nnics):
            bus = buses[ngpus + nth] * 8
            with_gpu = beside and nth < ngpus
            at = switches[nth] if with_gpu else self.bridge(rng.choice(self.at), bus, rng.randrange(2))
            busid = f"0000:{buses[nth] * 8 + 5:02x}:00.0" if with_gpu else f"0000:{bus + 4:02x}:00.0"
            nic = self.thing(at, "PCIDev", pci_busid=busid, pci_type="0207 [15b3:101b] [15b3:0007] 00",
                             pci_link_speed="31.5")
            self.thing(nic, "OSDev", name=f"ib{nth}", osdev_type=2)
            adapter = self.thing(nic, "OSDev", name=f"mlx5_{nth}", osdev_type=3)
            for name, value in (("Port1State", 4), ("Port1LID", f"0x{nth + 1:x}"),
                                ("Port1GID0", f"fe80:0000:0000:0000:0002:c903:0001:{nth:04x}")):
                ET.SubElement(adapter, "info", name=name, value=str(value))
        # In the order of the driver's numbers, as /dev/nvidia0 and Slurm's index have them.
        self.gpu_places = [place for _, _, place in sorted(self.gpus, key=lambda gpu: numbers[gpu[0]])]
        if ngpus or nnics:
            self.notes.append(f"{ngpus} GPUs {how} {maker or 'without driver'}, {nnics} NICs")

    def bridge(self, place, bus, switches):
        at = self.thing(place, "Bridge", bridge_type="0-1", depth=0, bridge_pci=f"0000:[{bus:02x}-{bus + 7:02x}]")
        for nth in range(switches + 1):
            at = self.thing(at, "Bridge", bridge_type="1-1", depth=nth + 1,
                            bridge_pci=f"0000:[{bus + nth + 1:02x}-{bus + 7:02x}]",
                            pci_busid=f"0000:{bus + nth:02x}:01.0", pci_type="0604 [10b5:9797] [10b5:9797] aa",
                            pci_link_speed="31.5")
        return at

    # --- sets, order, text

    def fill(self, thing, nodes_above):
        """cpuset of the thing; its nodeset is of the NUMA nodes inside and of those around it."""
        inside = [child for child in thing if child.tag == "object"]
        memory = [child for child in inside if child.get("type") == "NUMANode"]
        normal = [child for child in inside if child.get("type") not in ("NUMANode", "Bridge", "PCIDev", "OSDev")]
        own = 0
        for node in memory:
            own |= 1 << int(node.get("os_index"))
        cpus, nodes = 0, own
        if thing.get("type") == "PU":
            cpus = 1 << int(thing.get("os_index"))
        for child in normal:
            below, more = self.fill(child, nodes_above | own)
            cpus |= below
            nodes |= more
        self.sets(thing, cpus, nodes_above | nodes)
        for node in memory:
            self.sets(node, cpus, 1 << int(node.get("os_index")))
        io = [child for child in inside if child not in memory and child not in normal]
        normal.sort(key=lambda child: int(child.get("first")))
        thing.set("first", str((cpus & -cpus).bit_length() or MAX_PUS * 8))
        others = [child for child in thing if child not in inside]
        for child in list(thing):
            thing.remove(child)
        thing.extend([*others, *memory, *normal, *io])
        return cpus, nodes

    def sets(self, thing, cpus, nodes):
        for name, bits in (("cpuset", cpus), ("complete_cpuset", cpus | (self.offline if thing is self.machine else 0)),
                           ("nodeset", nodes), ("complete_nodeset", nodes)):
            thing.set(name, hex_set(bits))
        if thing is self.machine:
            thing.set("allowed_cpuset", hex_set(cpus))
            thing.set("allowed_nodeset", hex_set(nodes))

    def kinds(self):
        if not self.efficient:
            return ""
        sets = {False: 0, True: 0}
        for index, _, number, _ in self.pus:
            sets[index in self.efficient] |= 1 << number
        return "".join(f'<cpukind cpuset="{hex_set(sets[small])}" forced_efficiency="{int(not small)}">'
                       f'<info name="CoreType" value="{"IntelAtom" if small else "IntelCore"}"/></cpukind>'
                       for small in (True, False))

    def text(self):
        self.fill(self.machine, 0)
        for thing in self.machine.iter("object"):
            thing.attrib.pop("first", None)
        return ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
                f'<topology version="2.0">\n{ET.tostring(self.machine, encoding="unicode")}\n'
                f'{self.kinds()}</topology>\n')

    # --- slurm.conf, gres.conf

    def say_less(self):
        """slurm.conf where slurmd -C cannot describe the machine, or says more than the site wants."""
        rng, n = self.rng, len(self.cores) - (self.gone is not None)
        if self.efficient or self.uneven:
            even = self.gone is None and n % self.packages == 0
            self.words = {"Sockets": self.packages if even else 1,
                          "CoresPerSocket": n // self.packages if even else n, "ThreadsPerCore": 1}
            self.notes.append("ThreadsPerCore=1")
            return
        how = rng.choices(["", "threads", "spec", "fewer"], [14, 4, 2, 2])[0]
        if how == "threads" and self.smt > 1:
            self.words = {"ThreadsPerCore": rng.choice([threads for threads in (1, 2, 4) if threads < self.smt])}
        elif how == "spec" and n > 3:
            self.words = ({"CoreSpecCount": rng.choice([1, 2])} if rng.random() < 0.5 else
                          {"CpuSpecList": rng.choice(["0", "1", f"0,{n - 1}"])})
        elif how == "fewer" and n > 3 * self.packages:
            self.words = {"CoresPerSocket": n // self.packages - 1}
        self.notes += [f"{name}={value}" for name, value in self.words.items()]

    def near(self, place):
        """Cores of a place, by hwloc's order."""
        order = [thing for thing in self.machine.iter("object") if thing.get("type") == "Core"]
        below = {id(thing) for thing in place.iter("object")}
        return [index for index, core in enumerate(order) if id(core) in below]

    def drawn(self):
        rng = self.rng
        for step in (self.draw_sizes, self.make_cores, self.number, self.make_memory, self.make_devices, self.say_less):
            step()
        xml = self.text()
        told = rng.random() < 0.4 and not self.words
        count, a = len(self.gpu_places), rng.randrange(len(self.gpu_places) + 1)
        types, parents = ["a"] * a + ["b"] * (count - a) if rng.random() < 0.2 else [""] * count, list(range(count))
        if any(types) and rng.random() < 0.3:      # the last ones are cut into slices, as MIG cuts them
            parents = [gpu for gpu in range(count) for _ in range(1 if types[gpu] == "a" else 3)]
            types = [types[gpu].replace("b", "1g.5gb") for gpu in parents]
        gpus = [self.near(self.gpu_places[gpu]) if told else None for gpu in parents]
        what = (f"{self.packages} packages x {self.per_package} NUMA nodes x {self.l3s} L3 x {self.in_l3} cores x "
                f"{self.smt} threads, L2 of {self.in_l2}; " + "; ".join(self.notes) + ("; Cores=" if told else "") +
                (f"; GPU types {' '.join(types)}" if any(types) else ""))
        return Drawn(xml, self.words, gpus, types, parents, what)


def draw(rng):
    return Maker(rng).drawn()
