# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
What is true of a job, found apart from the code under test: from the nodes' XML, what slurmctld shows, and what the
tasks saw. Each check yields faults: a kind, what was seen, what is true.
"""
import itertools
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import NamedTuple

from rig.ask import expand, fields

from .requests import Request

LEVELS = {"package": "Package", "die": "Die", "l3": "L3Cache", "l2": "L2Cache"}
NOUNS = {"package": "package", "die": "die", "NUMA node": "numa", "L3 cache": "l3", "L2 cache": "l2", "node": "node"}
NOUN = r"(package|die|NUMA node|L3 cache|L2 cache|node)s?"
IO = {"Bridge", "PCIDev", "OSDev"}
PREFERRED, BIND, INTERLEAVE, LOCAL, PREFERRED_MANY = 1, 2, 3, 4, 5
POLICIES = {"preferred": {PREFERRED, PREFERRED_MANY}, "bind": {BIND}, "interleave": {INTERLEAVE}, "local": {LOCAL},
            "default": {0}}


class Fault(NamedTuple):
    kind: str
    seen: str
    true: str


def bits(text):
    """The members of a hwloc set."""
    value = int("".join(word[2:].zfill(8) for word in text.split(",")), 16)
    return frozenset(i for i in range(value.bit_length()) if value >> i & 1)


def numbers(text):
    return frozenset(expand(text)) if text else frozenset()


class Memory(NamedTuple):
    number: int
    pus: frozenset
    bytes: int
    subtype: str


class Hardware:
    """A node by its XML: cores by hwloc's order, each a set of the operating system's PU numbers."""

    def __init__(self, xml):
        top = ET.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", xml))
        root, self.kinds = top.find("object"), [bits(kind.get("cpuset")) for kind in top.findall("cpukind")]
        self.cores, self.memory, self.nics, self.pu_order = [], [], {}, []
        self.found = {level: [] for level in LEVELS}
        driver, cards = {}, []

        def walk(thing, near, busid):
            kind = thing.get("type")
            mine = bits(thing.get("cpuset")) if kind not in IO else near
            if kind == "Core":
                self.cores.append(mine)
            elif kind == "PU":
                self.pu_order.append(int(thing.get("os_index")))
            elif kind == "NUMANode":
                self.memory.append(Memory(int(thing.get("os_index")), mine, int(thing.get("local_memory", 0)),
                                          thing.get("subtype", "")))
            elif kind == "PCIDev":
                busid = thing.get("pci_busid")
                if thing.get("pci_type").startswith("03") and not re.search(r"\[(1a03|102b):", thing.get("pci_type")):
                    cards.append((busid, mine))
            elif kind == "OSDev":
                number = re.fullmatch(r"(?:nvml|rsmi|ze)(\d+)", thing.get("name"))
                if number:
                    driver[int(number[1])] = mine
                if thing.get("osdev_type") == "3":
                    self.nics[thing.get("name")] = mine
            for level, name in LEVELS.items():
                if kind == name:
                    self.found[level].append(mine)
            for child in thing:
                if child.tag == "object":
                    walk(child, mine, busid)

        walk(root, bits(root.get("cpuset")), None)
        self.gpus = self.reported = driver or dict(enumerate(near for _, near in sorted(cards)))
        self.core_of = {pu: core for core, pus in enumerate(self.cores) for pu in pus}
        self.logical = {pu: i for i, pu in enumerate(self.pu_order)}
        self.found["numa"] = list(dict.fromkeys(node.pus for node in self.memory if node.pus))
        self.found["node"] = [bits(root.get("cpuset"))]

    def slice(self, parents, cores):
        """Slurm's GPUs are these of the driver's, or slices of them: near which cores is known only of Cores=."""
        if len(parents) > len(self.gpus):
            self.gpus = {nth: self.gpus[gpu] for nth, gpu in enumerate(parents) if cores[nth]}
            self.reported = {}

    def domains(self, level):
        """The domains of a level as sets of cores; [] where the node does not have it."""
        return [self.cores_of(pus) for pus in self.found[level]]

    def cores_of(self, pus):
        return frozenset(self.core_of[pu] for pu in pus if pu in self.core_of)

    def pus_of(self, cores):
        return frozenset(pu for core in cores if core < len(self.cores) for pu in self.cores[core])

    def touched(self, level, cores):
        return [domain for domain in self.domains(level) if domain & cores]

    def partition(self, level):
        """Its domains if together they have each core once, else none."""
        found = self.domains(level)
        return found if sum(map(len, found)) == len(self.cores) == len(frozenset().union(*found)) else []

    def near(self, gpus):
        """Cores near any of these GPUs; None when one is unknown."""
        if any(gpu not in self.gpus for gpu in gpus):
            return None
        return frozenset().union(*(self.cores_of(self.gpus[gpu]) for gpu in gpus)) if gpus else frozenset()

    def memory_of(self, pus):
        """NUMA nodes with memory that are local to any of the PUs; PUs without such have the nearest, but HBM."""
        has = [node for node in self.memory if node.bytes]
        found = {node for node in has if node.pus & pus}
        for pu in pus - frozenset().union(*(node.pus for node in has)):
            near = [[node for node in has if node.pus & domain and node.subtype != "HBM"]
                    for level in ("die", "package", "node") for domain in self.found[level] if pu in domain]
            found.update(next(filter(None, near), ()))
        return [node for node in has if node in found]


def least(domains, usable, cores):
    """The fewest of the domains that have so many of the usable cores."""
    for n in range(1, len(domains) + 1):
        if len(domains) > 10:       # too many to try: the fullest are best
            some = [sorted(domains, key=lambda domain: -len(domain & usable))[:n]]
        else:
            some = itertools.combinations(domains, n)
        if any(len(frozenset().union(*chosen) & usable) >= cores for chosen in some):
            return n
    return 0


class Conf(NamedTuple):
    """What slurmctld has of a node."""
    threads: int
    cores: int
    reserved: frozenset
    gpus: int
    types: list = []      # of GPUs, as gres.conf has them
    memory: int = 0       # MB


def conf_of(record):
    told = fields(record)
    threads = int(told["ThreadsPerCore"])
    spec = told.get("CPUSpecList", "")
    gpus = re.findall(r"\bgpu(?::[\w.]*[a-z][\w.]*)?:(\d+)", told.get("Gres", ""))
    return Conf(threads, int(told["Sockets"]) * int(told["CoresPerSocket"]),
                frozenset(cpu // threads for cpu in expand(spec)) if re.match(r"\d", spec) else frozenset(),
                sum(map(int, gpus)), [], int(told["RealMemory"]))


def hosts(text):
    """n[1-3,5],m1"""
    found = []
    for name, inner in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", text):
        found += [f"{name}{i}" for i in expand(inner)] if inner else [name]
    return found


class Record:
    """A job as slurmctld shows it: {node: cores}, {node: GPUs}."""

    def __init__(self, line, confs):
        self.line, self.told = line, fields(line)
        self.cores, self.gpus = {}, {}
        for names, cpus, more in re.findall(r"Nodes=(\S+) CPU_IDs=(\S+) Mem=\d+ GRES=(\S*)", line):
            for node in hosts(names):
                self.cores[node] = frozenset(cpu // confs[node].threads for cpu in expand(cpus))
                self.gpus[node] = frozenset().union(*map(numbers, re.findall(
                    r"gpu(?::[\w.]+)?:\d+\(IDX:([\d,-]+)\)", more)))


@dataclass
class Case:
    """All that was seen of a case."""
    request: object
    hardware: dict
    confs: dict
    order: list                                     # the group's nodes as Slurm orders them
    loads: list = field(default_factory=list)       # records
    preempted: list = field(default_factory=list)   # of the load, too, until this job started
    forced: bool = False                            # jobs share cores (OverSubscribe=FORCE)
    records: list = field(default_factory=list)
    why: str = ""
    tasks: list = field(default_factory=list)       # what each saw
    reports: list = field(default_factory=list)
    said: list = field(default_factory=list)        # other lines on stderr
    fate: str = ""
    stock: str = ""                                 # the fate under stock Slurm; "": not tried

    def reason(self):
        """Why it did not run: what was said, or what why says that it waits for."""
        waits = re.search(r"because +(.*(?:\n .*)*)", self.why)
        return re.sub(r"\s+", " ", waits[1] if waits else " / ".join(self.said[-3:]))

    def used(self, node):
        return frozenset().union(*(load.cores.get(node, frozenset()) for load in self.loads))

    def differs(self, node):
        """Slurm's cores are none of the hardware's that are known: Topiary does not choose among them."""
        conf, cores = self.confs[node], self.hardware[node].cores
        return conf.cores > len(cores) or conf.cores < len(cores) and any(len(pus) != conf.threads for pus in cores)

    def counts_memory(self, node, dram):
        """By NUMA node: where each has memory and several cores, of those that slurm.conf has."""
        cores = frozenset(range(self.confs[node].cores))
        return all(one.bytes and len(self.hardware[node].cores_of(one.pus) & cores) > 1 for one in dram)

    def free(self, node):
        conf = self.confs[node]
        return frozenset(range(conf.cores)) - self.used(node) - conf.reserved

    def free_gpus(self, node):
        return frozenset(range(self.confs[node].gpus)) - frozenset().union(
            *(load.gpus.get(node, frozenset()) for load in self.loads))


def judge(case):
    faults = []
    for check in (fate, preemption, plain, allocation, gpus_of_job, why, step, report, memory, threads, network):
        faults += check(case)
    return faults


# --- the job

def requires(request):
    return any(request.value("topo-fit", part) == "require" or request.value("topo-mem", part) == "require"
               or request.value("topo-request", part) for part in range(len(request.components)))


def fate(case):
    if case.fate == "ran" or case.stock.startswith((case.fate, "refused")):
        return
    each = int(step_cpus(case.request) or 1)
    if case.fate == "late" and each > 1 and case.records and int(case.request.step_value("n")) > sum(
            len(cores) // -(-each // case.confs[node].threads) for node, cores in case.records[0].cores.items()):
        return      # Slurm gives a step's tasks whole cores, which the job does not have
    if case.stock == "ran" and re.search("BadConstraints|JobHeld", " ".join(case.said)):
        yield Fault("job held", " / ".join(case.said[-2:]), "under stock Slurm it ran")
    elif case.stock == "ran" and not requires(case.request):
        yield Fault(f"job {case.fate}", case.fate + ": " + " / ".join(case.said[-3:]), "under stock Slurm it ran")
    elif requires(case.request) and case.fate in ("waits", "refused") and had(case):
        yield Fault(f"required placement {case.fate}", " / ".join(case.said[-2:]), "nodes hold its tasks as required")
    elif case.fate == "refused" and not re.search("--topo|node .* cannot meet the requirement", " ".join(case.said)):
        yield Fault("refused without a reason", " / ".join(case.said), "under stock Slurm it was not")


# From a level outwards: a level that a node lacks counts as the next one.
OUTWARDS = ["l2", "l3", "numa", "die", "package", "node"]


def domains_within(hardware, level):
    """Of each domain of a level its cores; where others share a cache of it, a core without one is alone."""
    found, left = [], frozenset(range(len(hardware.cores)))
    for at in OUTWARDS[OUTWARDS.index(level):]:
        for domain in sorted(hardware.domains(at), key=len):
            found += [domain & left] * bool(domain & left)
            left -= domain
        if found and at in ("l2", "l3"):
            return found + [frozenset([core]) for core in left]
    return found


def path_fits(hardware, steps, free, within):
    (level, count), *inner = steps
    if level == "core":
        return len(within & free) >= count
    if level in ("l2", "l3") and not hardware.domains(level):
        return False
    return count <= sum(path_fits(hardware, inner, free, domain) for domain in domains_within(hardware, level)
                        if domain <= within)


def gpus_there(request, tasks, count):
    """GPUs of a job on one of so many nodes with so many tasks: the fewest and the most."""
    each, total = request.value("gpus-per-task"), request.value("gpus")
    there = request.value("gpus-per-node") or sum(
        int(one.rpartition(":")[2]) for one in (request.value("gres") or ":0").split(","))
    if each or there:
        return (int(there or int(each) * tasks),) * 2
    return (1 if count > 1 else int(total), int(total) - count + 1) if total else (0, 0)


def memory_near(case, request, node, free, cores, gpus, surely):
    """Whether so many of the free cores can be chosen so that their NUMA nodes have the memory, as is required."""
    hardware, conf, each = case.hardware[node], case.confs[node], request.value("mem-per-cpu")
    dram = [one for one in hardware.memory if one.subtype != "HBM"]
    places = {one.pus for one in dram}
    if request.value("topo-mem") != "require" or len(places) < 2:
        return True
    if request.value("mem") == "0" or len(dram) < len(hardware.memory) or not case.counts_memory(node, dram):
        return not surely
    cpus = cores * conf.threads if surely else cores * threads_used(request, conf)
    wanted = int(request.value("mem") or gpus * int(request.value("mem-per-gpu") or 0) or int(each or 10) * cpus)
    room, has = 0, sum(one.bytes for one in dram)
    for pus in places:
        own = conf.memory * sum(one.bytes for one in dram if one.pus == pus) / has
        own = own * 0.98 - 200 if surely else own * 1.02 + 1
        room += min(len(hardware.cores_of(pus) & free), int(max(own, 0) * cores / max(wanted, 1)))
    return room >= cores


def tasks_held(case, request, node, free, count, surely):
    """The numbers of tasks that one of so many nodes holds as is required, among these cores: surely, else perhaps."""
    conf, hardware, most = case.confs[node], case.hardware[node], int(request.value("n"))
    if case.differs(node):
        return [] if surely else range(1, most + 1)
    path = [(level, int(number)) for level, number in re.findall(r"/(\w+)=(\d+)", request.value("topo-request") or "")]
    each, threads, per_node = request.task_cpus, threads_used(request, conf), int(request.value("ntasks-per-node") or 0)
    exact = path and math.prod(number for _, number in path)
    level = request.value("topo-level") if request.value("topo-fit") == "require" else None
    room = max(len(domain & free) for domain in domains_within(hardware, level or "node"))
    kinds = request.gpu_types()
    gpus = case.free_gpus(node) if case.fate == "waits" else range(conf.gpus)
    has_gpus = len([gpu for gpu in gpus if not kinds or conf.types[gpu] in kinds])
    if any(sum(conf.types[gpu] == kind for gpu in gpus) < n for kind, n in kinds.items()):
        return []
    if path and not path_fits(hardware, path, free, frozenset(range(len(hardware.cores)))):
        return []

    def holds(tasks):
        few, many = gpus_there(request, tasks, count)
        if (many if surely else few) > has_gpus:
            return False
        # Slurm has cores for as many tasks as are stated for a node, but for a single one.
        there = max(tasks, per_node if most > 1 else 0)
        per_gpu = int(request.value("cpus-per-gpu") or 0)
        least = -(-max(tasks * each, few * per_gpu) // threads)
        whole = there * -(-each // threads) if each > threads else -(-there * each // threads)
        whole = max(whole, -(-many * per_gpu // threads))
        near = (many if surely else few, surely)
        if path:
            return (least == whole == exact if surely else least <= exact <= whole) and memory_near(
                case, request, node, free, exact, *near)
        return any(cores <= room and memory_near(case, request, node, free, cores, *near)
                   for cores in ([whole] if surely else range(least, whole + 1)))
    return [tasks for tasks in range(1, min(most, per_node or most) + 1) if holds(tasks)]


def can_hold(case, request, cores, surely):
    """Whether any nodes hold all tasks, each at least one, by trying all; cores: {node: those it may have}."""
    least, _, most = (request.value("N") or f"1-{len(case.order)}").partition("-")
    named = (request.value("w") or "").split(",") if request.value("w") else []
    for count in range(int(least), min(int(most or least), len(case.order)) + 1):
        for nodes in itertools.combinations(case.order, count):
            sums = {0}
            for node in nodes:
                sums = {a + b for a in sums for b in tasks_held(case, request, node, cores[node], count, surely)}
            if int(request.value("n")) in sums and set(named) <= set(nodes):
                return True
    return False


def had(case):
    """Of a required placement that waits or is refused: whether it can be had now, or on empty nodes; None: unknown.
    And why a refusal by an option that rules requirements out is right."""
    said = " ".join(case.said)
    part = re.search(r"error: (\d): --topo", said)
    request = Request([case.request.components[int(part[1]) if part else 0]], defaults=case.request.defaults)
    if "jobs may share cores" in said:
        return not case.forced
    ruled_out = re.search("cannot be met: (--[a-z-]+|the requested (?:sockets|distribution))", said)
    if ruled_out:
        by = {"the requested sockets": ("--ntasks-per-socket", "--sockets"), "the requested distribution": ("-m",)}
        return None if not any(word.startswith(by.get(ruled_out[1], ruled_out[1]))
                               for word in request.options) else False
    if len(case.request.components) > 1 and not part or any(
            request.value(name) is not None for name in ("overcommit", "exclusive")):
        return None
    cores = {node: case.free(node) if case.fate == "waits" else frozenset(range(case.confs[node].cores)) -
             case.confs[node].reserved for node in case.order}
    if not can_hold(case, request, cores, False):
        return False
    simple = ("-n", "-N", "-c", "-w", "--topo-fit", "--topo-level", "--topo-request", "--topo-mem", "--mem",
              "--ntasks-per-node", "--cpus-per-gpu", "--gpus", "--gres=gpu")
    # Of several nodes Slurm decides how many GPUs each has.
    if request.value("gpus") and request.value("N") != "1":
        return None
    return True if "--mem=0" not in request.options and all(
        word.startswith(simple) for word in request.options) and can_hold(
        case, request, cores, True) else None


def preemption(case):
    """No job is ended for one that has room beside it. One of another node has ended for a job of the load."""
    request, mine = case.request, {node for record in case.records for node in record.cores}
    preempted = [load for load in case.preempted if mine & set(load.cores)]
    if not preempted or len(request.components) > 1 or request.array or requires(request):
        return
    others = {node: case.used(node) | frozenset().union(*(load.cores.get(node, frozenset()) for load in preempted))
              for node in case.order}
    simple = ("-n", "-N", "-c", "-w", "--topo-fit", "--topo-level")
    if all(word.startswith(simple) for word in request.options) and can_hold(
            case, request, {node: case.free(node) - others[node] for node in case.order}, True):
        yield Fault("job preempted in vain", str([load.line[:80] for load in preempted]), "there was room beside")


def plain(case):
    """Nothing is said in the output of a job that asked for nothing."""
    told = [line for line in case.said if "topiary" in line]
    if case.request.plain and case.fate == "ran" and (told or case.reports):
        yield Fault("plain job's output", " / ".join(told), "it asked for nothing")


def allocation(case):
    for part, record in enumerate(case.records):
        for node, cores in record.cores.items():
            taken = cores & (frozenset() if case.forced else case.used(node) | case.confs[node].reserved)
            if taken:
                yield Fault("cores given twice", f"{node}: {sorted(taken)}", "they are another job's or reserved")
        request = case.request
        index = 0 if request.array else part
        level = request.value("topo-level", index)
        path = re.findall(r"/(\w+)=(\d+)", request.value("topo-request", index) or "")
        for node, cores in record.cores.items() if path and request.value("exclusive", index) is None else ():
            within = 1
            for name, number in path:
                within *= int(number)
                found = len(cores) if name == "core" else len(case.hardware[node].touched(name, cores))
                if found != within:
                    yield Fault("requirement broken", f"{node}: {sorted(cores)} in {found} {name}", str(path))
        exclusive = request.value("exclusive", index) is not None
        if request.value("topo-fit", index) != "require" or exclusive or level in (None, "node"):
            continue
        for node, cores in record.cores.items():
            if len(case.hardware[node].touched(level, cores)) > 1:
                yield Fault("requirement broken", f"{node}: {sorted(cores)} in "
                            f"{len(case.hardware[node].touched(level, cores))} {level}", "one was required")


def gpus_of_job(case):
    """Of all sets of free GPUs and free cores of its node, the job has one that is as near as any."""
    request = case.request
    if len(case.records) != 1 or case.preempted or case.forced or request.array or request.value(
            "cpus-per-gpu") or request.value("exclusive") is not None or request.value("topo-fit") in (
            "off", "spread", "require") or any(
            request.value(f"topo-{name}") for name in ("level", "request", "mem")) or any(word.startswith((
                "--gres-flags", "--overcommit", "--spread-job", "--ntasks-per-socket",
                "--sockets-per-node", "-m")) for word in request.options):
        return
    record = case.records[0]
    for node, granted in record.gpus.items():
        hardware, cores, free = case.hardware[node], record.cores[node], case.free(node)
        if not granted or len(record.cores) > 1 or hardware.near(granted) is None or case.differs(node):
            continue
        kinds, types = request.gpu_types(), case.confs[node].types
        mine_of = {gpu for gpu in range(case.confs[node].gpus) if not kinds or types[gpu] in kinds}
        if any(sum(types[gpu] == kind for gpu in granted) != n for kind, n in kinds.items()):
            yield Fault("GPUs of another type", f"{node}: {sorted(granted)}", f"{kinds} of {types}")
        # Tasks of several cores stay whole: of the cores near a GPU as many as hold whole ones count.
        each, threads = request.task_cpus, threads_used(request, case.confs[node])
        each = -(-each // threads) * threads if request.value("ntasks-per-core") else each
        whole = each > threads and int(request.value("n")) > 1

        def cost(which, near, have):
            there = len(near & have)
            there = -(-(there * threads // each * each) // threads) if whole and there < len(cores) else there
            far = len(have) if not which else max(0, len(cores) - there)
            return far, sum(not hardware.near([gpu]) & have for gpu in which) if len(cores) >= len(which) else 0

        mine = (len(cores - hardware.near(granted)),
                sum(not hardware.near([gpu]) & cores for gpu in granted) if len(cores) >= len(granted) else 0)
        if any(gpu not in hardware.gpus for gpu in case.free_gpus(node)) or (
                types and len({types[gpu] for gpu in granted}) > 1):
            continue
        best = min((cost(which, hardware.near(which), free), which)
                   for which in itertools.combinations(sorted(case.free_gpus(node) & mine_of), len(granted))
                   if not types or {types[gpu] for gpu in which} == {types[gpu] for gpu in granted})
        if mine[0] > best[0][0]:
            yield Fault("job's cores far from its GPUs", f"{node}: {mine[0]} of cores {sorted(cores)} are far from "
                        f"GPUs {sorted(granted)}", f"with free GPUs {best[1]} "
                        f"{best[0][0]} would be; free {sorted(free)}")


# --- topiary why

def why(case):
    if case.fate != "ran" or len(case.records) != 1 or not case.why:
        return
    record, request = case.records[0], case.request
    rows, head = {}, ""
    for line in case.why.splitlines():
        label = re.match(r"(\w+) {2,}(.*)|(\w+) (.*)", line)
        if line.startswith(" "):
            rows.setdefault(head, []).append(line.strip())
        elif label:
            head = label[1] or label[3]
            rows.setdefault(head, []).append(label[2] or label[4])
    told = {name: " ".join(lines) for name, lines in rows.items()}
    for check in (why_asked, why_wanted, why_because, why_cores, why_touches, why_level, why_tasks, why_gpus,
                  why_leaves, why_choice, why_memory):
        for fault in check(case, record, request, told) or ():
            yield Fault(f"why: {fault.kind}", fault.seen, fault.true)


def why_asked(case, record, request, told):
    found = re.search(r"\(fit (\w+)(?:, level (\w+))?\)", told.get("asked", ""))
    fit, level = request.value("topo-fit") or "prefer", request.value("topo-level")
    if found and (found[1] != fit or (found[2] or "node") != (level or "node")):
        yield Fault("asked", told["asked"], f"fit {fit}, level {level}")


def threads_used(request, conf):
    """CPUs that a core of the node gives the job."""
    each = request.task_cpus
    if request.value("threads-per-core") == "1":
        return 1
    if request.value("ntasks-per-core"):      # sbatch ignores --hint beside it
        return min(conf.threads, int(request.value("ntasks-per-core")) * each)
    if request.value("hint") == "nomultithread":
        return 1
    return conf.threads


def why_wanted(case, record, request, told):
    found = re.match(r"(\d+) tasks?(?: of (\d+) cores?)? on (?:one|(\d+)) nodes?(?:, (at most )?(\d+) on each)?"
                     r"(?:; they share (\d+) cores?)?", told.get("wanted", ""))
    if not found:
        return
    tasks, nodes = int(found[1]), int(found[3] or 1)
    if nodes != len(record.cores) and "placed" in told.get("job", ""):
        yield Fault("number of nodes", told["wanted"], f"it has {len(record.cores)}")
    elif tasks != int(request.value("n")):
        yield Fault("number of tasks", told["wanted"], f"{request.value('n')} tasks")
    elif found[5] and not (tasks <= int(found[5]) * nodes and int(found[5]) <= tasks - nodes + 1
                           and (found[4] or int(found[5]) * nodes == tasks)):
        yield Fault("tasks on each node", told["wanted"], f"{tasks} tasks in all")
    for node, own in record.cores.items():
        each = request.task_cpus
        need = -(-each // threads_used(request, case.confs[node]))
        if request.value("cpus-per-gpu"):      # with --gpus-per-task that is a -c
            if found[2] and not request.value("gpus-per-task"):
                yield Fault("cores of a task", told["wanted"], "the job's cores follow from its GPUs")
        elif found[2] and int(found[2]) != need and request.value("topo-fit") != "spread" and nodes == 1:
            yield Fault("cores of a task", told["wanted"], f"-c{each} are {need} cores of {node}")
        if found[6] and int(found[6]) != len(own) and nodes == 1:
            yield Fault("cores of the job", told["wanted"], f"{node}: {sorted(own)}")


def why_because(case, record, request, told):
    """A job that is alone on its nodes, and asked for nothing odd, can have a placement when Slurm starts it."""
    if "no topology-aware placement can start now" in told.get("because", ""):
        odd = [w for w in request.options if not w.startswith(("-n", "-N", "-c", "-w", "--topo-fit", "--topo-level"))]
        unlike = re.search(r"node (\S+) (?:is not in the snapshot|has .* in slurm.conf, but)", told["because"])
        if unlike and case.differs(unlike[1]):
            return
        if not odd or unlike:
            yield Fault("no placement can start", told["because"], "the job started, so it could have its cores")


def why_cores(case, record, request, told):
    said = {}
    for item in re.findall(r"(\S+) ([\d,-]+)(?= |$)", told.get("cores", "")):
        said.update({node: numbers(item[1]) for node in hosts(item[0])})
    if said and said != record.cores and "..." not in told["cores"]:
        yield Fault("cores", told["cores"], str({n: sorted(c) for n, c in record.cores.items()}))


def why_touches(case, record, request, told):
    counts = {NOUNS[noun]: int(count) for count, noun in re.findall(rf"(\d+) {NOUN}", told.get("touches", ""))}
    for level, count in counts.items():
        true = {len(case.hardware[node].touched(level, cores)) for node, cores in record.cores.items()}
        if level == "node" or count in true:
            continue
        if 0 in true:
            yield Fault("level that the node does not have", told["touches"], f"no {level} there")
        else:
            yield Fault("touches", told["touches"], f"{level}: {sorted(true)}")


def why_level(case, record, request, told):
    line = told.get("level", "")
    for node, cores in record.cores.items() if len(record.cores) == 1 else ():
        one = re.match(rf"satisfied: all within one {NOUN}", line)
        many = re.match(rf"not satisfied: in (\d+) {NOUN}", line)
        own = re.match(rf"each task has its own {NOUN}", line)
        level = NOUNS[(one or own or many)[2 if many else 1]] if one or own or many else None
        found = len(case.hardware[node].touched(level, cores)) if level else 0
        if one and found > 1 or many and found and found != int(many[1]):
            yield Fault("level", line, f"{node}: {sorted(cores)} are in {found} {level}")
        if own and found and found < int(request.value("n")):
            yield Fault("level", line, f"{node}: {request.value('n')} tasks in {found} {level}")
        if level and not found and level != "node":
            yield Fault("level that the node does not have", line, f"{node} has no {level}")


def why_tasks(case, record, request, told):
    line = told.get("tasks", "")
    if len(record.cores) != 1 or request.value("overcommit") is not None:
        return
    (node, cores), = record.cores.items()
    cpus, threads = request.task_cpus, threads_used(request, case.confs[node])
    each = -(-cpus // threads)
    for level, noun in (("numa", "NUMA nodes"), ("l3", "L3 caches")):
        domains = [domain for domain in case.hardware[node].domains(level) if len(domain) >= each]
        room = sum(len(domain & cores) // each for domain in domains)
        if noun in line and room >= int(request.value("n")) and cpus % threads == 0:
            yield Fault("split", line, f"{node}: {sorted(cores)}: the {level} domains hold {room} tasks")
        if line == "none is split" and domains and room < int(request.value("n")) and each > 1:
            yield Fault("none is split", f"{node}: {sorted(cores)}", f"{request.value('n')} tasks of {each} cores, but "
                        f"the {level} domains hold {room}")
            return


def why_gpus(case, record, request, told):
    line = told.get("GPUs", "")
    far = cores_far = count = 0
    for node, granted in record.gpus.items():
        near = case.hardware[node].near(granted)
        if near is None or "it is not known" in line:
            return
        count += len(granted)
        far += sum(not case.hardware[node].near([gpu]) & record.cores[node] for gpu in granted)
        cores_far += len(record.cores[node] - near) if granted else 0
    said = re.match(r"(\d+), near its cores", line)
    said_far, said_cores = re.search(r"(\d+) of (\d+) (?:is|are) far", line), re.search(r"(\d+) of its cores", line)
    if line and ((said and (far or cores_far or int(said[1]) != count)) or (not said and (
            far != int(said_far[1] if said_far else 0) or cores_far != int(said_cores[1] if said_cores else 0)))):
        yield Fault("GPUs", line, f"{ {n: sorted(g) for n, g in record.gpus.items()} }: {far} of {count} are far,"
                    f" {cores_far} cores are far from all")


def why_leaves(case, record, request, told):
    line = told.get("leaves", "")
    if len(record.cores) != 1 or not line or case.preempted or request.array or request.value("exclusive") is not None:
        return
    (node, cores), = record.cores.items()
    hardware = case.hardware[node]
    used = re.match(rf"(\d+|no) cores? of its {NOUN} (?:is|are) used or reserved by others", line)
    if used and hardware.touched(NOUNS[used[2]], cores):
        others = case.used(node) | case.confs[node].reserved
        true = len(frozenset().union(*hardware.touched(NOUNS[used[2]], cores)) & others)
        if true != int(used[1] if used[1] != "no" else 0):
            yield Fault("leaves, used by others", line, f"{true}; reserved: {sorted(case.confs[node].reserved)}")
    left = re.match(rf"(?:exact fit, no free|(\d+) free) cores? left in its {NOUN}(, which was entirely free)?", line)
    if not left or not hardware.touched(NOUNS[left[2]], cores):
        return
    domains = hardware.touched(NOUNS[left[2]], cores)
    true = len(frozenset().union(*domains) & case.free(node) - cores)
    if true != int(left[1] or 0):
        yield Fault("leaves", line, f"{true} are free in {[sorted(d) for d in domains]}, the job has {sorted(cores)}")
    elif left[3] and any(domain & (case.used(node) | case.confs[node].reserved) for domain in domains):
        yield Fault("leaves, entirely free", line, f"in use before: {sorted(case.used(node))}")


def why_choice(case, record, request, told):
    found = re.match(r"(\d+) of (\d+) nodes? offered by Slurm had room", told.get("choice", ""))
    named = request.value("w")
    if found and int(found[2]) > len(case.order):
        yield Fault("choice", told["choice"], f"the partition has {case.order}")
    beside = re.match(r"(\S+?):? ", told.get("beside", ""))
    if beside and (beside[1] not in case.order or beside[1] in record.cores):
        yield Fault("beside", told["beside"], f"the job has {list(record.cores)} of {case.order}")
    elif beside and "first node in Slurm's order" in told["beside"]:
        if named:
            yield Fault("first in Slurm's order", told["beside"], f"the job names {named}")
        elif len(record.cores) == 1 and case.order.index(beside[1]) < case.order.index(*record.cores):
            yield Fault("first in Slurm's order", told["beside"], f"the order is {case.order}")
    elif beside:
        own, other = list(map(case.confs.get, record.cores)), case.confs[beside[1]]
        gpus = case.free_gpus(beside[1]) and not all(map(case.free_gpus, record.cores)) or case.preempted
        if "free GPUs, more cores or more memory" in told["beside"] and not gpus and not any(
                mine.cores < other.cores or mine.memory < other.memory for mine in own):
            yield Fault("beside: larger", told["beside"], f"{other} is no larger than all of {own}")
        # Earlier tasks of an array may have had cores of the node.
        if "may need its free cores more" in told["beside"] and not request.array and len(record.cores) == 1 and len(
                case.free(beside[1])) <= min(len(case.free(node)) for node in record.cores):
            yield Fault("beside: free", told["beside"], f"{len(case.free(beside[1]))} cores are free there")


def why_memory(case, record, request, told):
    """Each core has as much of the job's memory; what Slurm may allocate is where the node's DRAM is."""
    (node, cores), *others = record.cores.items()
    hardware, asked = case.hardware[node], request.value("mem") or request.value("mem-per-cpu")
    dram = [one for one in hardware.memory if one.subtype != "HBM"]
    wanted = int(re.search(r"CPU_IDs=\S+ Mem=(\d+)", record.line)[1])
    if (others or not asked or int(asked) == 0 or request.value("exclusive") is not None or "placed" not in told["job"]
            or not case.counts_memory(node, dram)):
        return
    has, real = sum(one.bytes for one in hardware.memory), case.confs[node].memory
    real = real if real <= sum(one.bytes for one in dram) >> 20 else real * sum(one.bytes for one in dram) / has
    near, short = 0, False
    for pus in {one.pus for one in dram}:
        own = real * sum(one.bytes for one in dram if one.pus == pus) / sum(one.bytes for one in dram)
        mine = len(hardware.cores_of(pus) & cores)
        near += own if mine else 0
        short |= wanted * mine / len(cores) > own * 1.02 + 1
    # Of an array, other tasks may have had memory there.
    if "may be far" in told.get("memory", "") and not request.array and wanted < near * 0.98 - 200:
        yield Fault("memory", told["memory"], f"{node}: {wanted} MB, the NUMA nodes of {sorted(cores)} have {near:.0f}")
    elif short and "memory" not in told and request.value("topo-mem") != "off" and request.value("topo-fit") != "off":
        yield Fault("memory is far and not said", str(told), f"{node}: {wanted} MB, {sorted(cores)}, {near:.0f} there")


# --- the step

class On(NamedTuple):
    """The tasks of a step on a node, in the order of ranks; cores of the step there."""
    node: str
    hardware: Hardware
    tasks: list
    cores: frozenset
    cpus: int          # -c; 0: none


def steps(case):
    """The tasks by node."""
    if case.fate != "ran":
        return []
    mine = {}
    for task in case.tasks:
        mine.setdefault(task["SLURMD_NODENAME"], []).append(task)
    each = case.request.step_value("c") if case.request.matrix else step_cpus(case.request)
    found = []
    for node, tasks in mine.items():
        hardware = case.hardware[node]
        handed = next((bits(task["step"]) for task in tasks if task.get("step")), None)
        own = frozenset().union(*(record.cores.get(node, frozenset()) for record in case.records))
        found.append(On(node, hardware, sorted(tasks, key=lambda task: task["rank"]),
                        own if handed is None else hardware.cores_of(handed), int(each or 0)))
    return found


def step_cpus(request):
    """-c of srun; from 22.05 on srun has one CPU where sbatch alone has -c."""
    return Request([request.srun]).value("c") or request.value("c") and "1"


def placing(case):
    """The placement that is asked of the step; None when the user's own binding comes first."""
    request = case.request
    if request.matrix:
        return "map"
    if request.step_value("cpu-bind"):
        return None
    place = request.step_value("topo-place")
    if not place and request.step_value("topo-tasks") == "auto":
        place = "auto"
        if any(request.value(name) is not None for name in ("hint", "threads-per-core")):
            return None
    return None if place == "off" else place


def step(case):
    place = placing(case)
    for on in steps(case):
        job = frozenset().union(*(record.cores.get(on.node, frozenset()) for record in case.records))
        if any(task.get("step") for task in on.tasks) and on.cores - job:
            yield Fault("topology has cores of others", f"{on.node}: {sorted(on.cores)}", f"the job has {sorted(job)}")
        if not any(task.get("step") for task in on.tasks):
            yield Fault("no topology", f"{on.node}: HWLOC_XMLFILE is not set", f"hardware {sorted(on.cores)}")
            continue
        if not place:
            continue
        masks = [numbers(task["cpus"]) for task in on.tasks]
        allowed = on.hardware.pus_of(on.cores)
        if not all(mask <= allowed for mask in masks):
            if not case.said:
                yield Fault("placement not done and not said", f"{on.node}: {[sorted(m) for m in masks][:2]}",
                            f"--topo-place={place} within {sorted(allowed)}")
            continue
        yield from shares(case, on, place, masks, allowed)
        if place in ("gpu", "auto"):
            yield from gpus_of_tasks(case, on, masks)


def shares(case, on, place, masks, allowed):
    """Ranks are disjoint and have what -c asked, where the step holds that."""
    n, each = len(masks), on.cpus or 1
    overlap = any(a & b for a, b in itertools.combinations(masks, 2))
    sharing = place in ("mem", "auto", "gpu") and not on.cpus
    where = f"{on.node}, {place}: {[','.join(map(str, sorted(m))) for m in masks][:6]}"
    # A CPU of Slurm is a core, or a thread where the step has too few cores, or where memory comes first.
    how, _, level = place.partition(":")
    whole = n * each <= len(on.cores) and level not in ("core", "pu") and (
        place not in ("mem", "auto", "map") or case.confs[on.node].threads == 1)
    # Slots within domains come first, of threads too.
    domains = [domain & on.cores for domain in on.hardware.domains(level or "numa")] if how in (
        "compact", "scatter") and (level or how == "scatter") and level not in ("core", "pu") else []
    whole = whole and (not domains or sum(len(of) // each for of in domains) >= n or sum(
        len(on.hardware.pus_of(of)) // each for of in domains) < n)
    size = [len(on.hardware.cores_of(mask)) if whole else len(mask) for mask in masks]
    if n * each > (len(on.cores) if case.confs[on.node].threads == 1 else len(allowed)):
        return
    if overlap and not sharing and not case.said:
        yield Fault("ranks overlap", where, f"{n} tasks of {each} CPUs, PUs {sorted(allowed)}")
    if min(size) < each and not case.said:
        yield Fault(f"rank has too few {'cores' if whole else 'CPUs'}", where, f"{each} each, PUs {sorted(allowed)}")
    # mem has SMT siblings only where cores do not suffice (mpibind's rule), but a core that is one CPU of Slurm whole.
    # A task has cores of one kind, and may be the only one.
    used = frozenset().union(*masks)
    here = allowed & frozenset().union(*([kind for kind in on.hardware.kinds if kind & used] or [allowed]))
    if not on.cpus and place == "mem" and not case.said and (
            used != here if case.confs[on.node].threads == 1 else on.hardware.cores_of(used) !=
            on.hardware.cores_of(here)):
        yield Fault("allocation not used", where, f"the step has {sorted(allowed)}")
    if not level or level not in on.hardware.found or n * each > len(on.cores):
        return
    domains = [domain for domain in domains if domain]
    room = [len(domain) // each for domain in domains]
    if how == "compact" and sum(room) >= n and any(
            not any(on.hardware.cores_of(mask) <= domain for domain in domains) for mask in masks):
        yield Fault("compact crosses a boundary", where, f"the {level} domains {[sorted(d) for d in domains]} hold {n} "
                    f"tasks of {each} cores")
    if how == "scatter" and domains and min(room) >= -(-n // len(domains)):
        count = [sum(on.hardware.cores_of(mask) <= domain for mask in masks) for domain in domains]
        if max(count) - min(count) > 1:
            yield Fault("scatter is uneven", where, f"{level} domains {list(map(sorted, domains))} have {count} tasks")


def gpus_of_task(task):
    told = task.get("CUDA_VISIBLE_DEVICES") or task.get("ROCR_VISIBLE_DEVICES") or ""
    return [int(one) for one in told.split(",") if one.isdigit()]


def gpus_of_tasks(case, on, masks):
    """As many tasks as can be are near all their GPUs."""
    granted = [gpus_of_task(task) for task in on.tasks]
    every = sorted({gpu for mine in granted for gpu in mine})
    n, each = len(masks), on.cpus or 1
    if not every or not set(every) <= set(on.hardware.reported) or case.said or n * each > len(on.cores):
        return
    cores = [on.hardware.cores_of(mask) for mask in masks]
    near = sum(bool(mine) and own <= on.hardware.near(mine) for own, mine in zip(cores, granted))
    if len(every) != n or any(len(mine) != 1 for mine in granted):
        if len(every) > n > 1 and all(mine == every for mine in granted):
            yield Fault("GPUs not divided", f"{on.node}: {granted}", f"{n} tasks and GPUs {every}")
        return
    room, best = {}, 0
    for gpu in every:
        room.setdefault(on.hardware.near([gpu]), []).append(gpu)
    if any(a & b for a, b in itertools.combinations(room, 2)):
        return
    for domain, some in room.items():
        best += min(len(some), len(domain & on.cores) // each)
    if near < best:
        yield Fault("tasks far from their GPUs", f"{on.node}: {list(zip(map(sorted, cores), granted))}",
                    f"{best} of {n} can be near, {near} are; cores {sorted(on.cores)}, near: "
                    f"{ {g: sorted(on.hardware.near([g])) for g in every} }")


# --- --topo-report

def report(case):
    if case.fate != "ran" or not case.reports:
        if case.fate == "ran" and case.tasks and case.request.step_value("topo-report") and not case.said:
            yield Fault("no report", "nothing", "it was asked")
        return
    tasks = {task["rank"]: task for task in case.tasks}
    ranks = sorted(line["rank"] for line in case.reports)
    if ranks != sorted(tasks):
        yield Fault("report: ranks", str(ranks), str(sorted(tasks)))
        return
    for line in case.reports:
        task = tasks[line["rank"]]
        for kind, true in report_line(case, line, task):
            yield Fault(f"report: {kind}", str(line), true)


def nearness(hardware, pus, cores):
    near = len(hardware.cores_of(pus) & cores)
    return " far" if not near else " near" if near == len(cores) else f" near {near} of {len(cores)} cores"


def report_line(case, line, task):
    node = task["SLURMD_NODENAME"]
    hardware, mask = case.hardware[node], numbers(task["cpus"])
    cores = hardware.cores_of(mask)
    if line["node"] != node:
        yield "node", node
        return
    if numbers(line["cpus_os"]) != mask:
        yield "CPUs", task["cpus"]
    if numbers(line["cpus_logical"] or "") != frozenset(hardware.logical[pu] for pu in mask if pu in hardware.logical):
        yield "logical CPUs", f"of {sorted(mask)}"
    local = frozenset(node.number for node in hardware.memory if node.pus & mask)
    if not numbers(line["numa"] or "") <= local or not numbers(line["numa"] or ""):
        yield "NUMA nodes", str(sorted(local))
    word, _, nodes = (line["memory"] or "").split(" ")[0].partition(":")
    if word in POLICIES and (task["mode"] not in POLICIES[word] or nodes and numbers(nodes) != numbers(task["mems"])):
        yield "memory policy", f"mode {task['mode']}, nodes {task['mems']}"
    if str(line["threads"] or "") != task.get("OMP_NUM_THREADS", ""):
        yield "threads", task.get("OMP_NUM_THREADS", "none")
    for one in (line["gpu"] or "").split(","):
        number, blank, rest = one.partition(" ")
        if number.isdigit() and int(number) in hardware.reported and blank:
            true = nearness(hardware, hardware.reported[int(number)], cores)
            if blank + rest != true:
                yield "GPU", f"{number}{true}"
    for one in (line["nic"] or "").split(","):
        name, blank, rest = one.partition(" ")
        if name in hardware.nics and blank and blank + rest != nearness(hardware, hardware.nics[name], cores):
            yield "NIC", name + nearness(hardware, hardware.nics[name], cores)


# --- memory, threads, network devices

def memory(case):
    asked = case.request.step_value("topo-membind") or ""
    how, _, scope = asked.partition(":")
    for on in steps(case):
        job = on.hardware.pus_of(frozenset().union(*(r.cores.get(on.node, frozenset()) for r in case.records)))
        usable = {node.number for node in on.hardware.memory_of(job)}
        for task in on.tasks:
            nodes = (numbers(task["mems"]) if task["mode"] in (PREFERRED, BIND, INTERLEAVE, PREFERRED_MANY)
                     else frozenset())
            if nodes - usable - {node.number for node in on.hardware.memory if node.pus & job}:
                yield Fault("memory of other nodes", f"{on.node}: mode {task['mode']}, {sorted(nodes)}", str(usable))
            elif nodes - usable:
                yield Fault("memory node without memory", f"{on.node}: {task['mode']}, {sorted(nodes)}", str(usable))
            mask = numbers(task["cpus"])
            if how in ("bind", "interleave") and task["mode"] in (BIND, INTERLEAVE):
                within = on.hardware.pus_of(on.cores)
                pus = within if scope == "job" else mask & within
                local = on.hardware.memory_of(pus)
                normal = [node.number for node in local if node.subtype != "HBM"]
                if nodes != frozenset(normal):
                    yield Fault("memory nodes of the cores", f"{on.node}: mode {task['mode']}, {sorted(nodes)}",
                                f"{sorted(normal)} are local to {sorted(pus)}")
            if how and not task["mode"] and not case.said:
                yield Fault("memory policy not set and not said", f"{on.node}: {asked}", "a line, or a policy")


def threads(case):
    for on in steps(case):
        for task in on.tasks:
            mask, count = numbers(task["cpus"]), task.get("OMP_NUM_THREADS")
            places = numbers(re.sub(r"[{}]", "", task.get("OMP_PLACES", ""))
                             if re.fullmatch(r"[\d,{}-]*", task.get("OMP_PLACES", "")) else "")
            if places - mask:
                yield Fault("OMP_PLACES outside of the task", f"{on.node}: {task['OMP_PLACES']}", str(sorted(mask)))
            if count and int(count) > max(len(mask), 1):
                yield Fault("more threads than CPUs", f"{on.node}: {count}", str(sorted(mask)))


def network(case):
    """A device that is named is as near as any, unless the task's GPU decides."""
    if not (case.request.step_value("topo-nic") or "").startswith(("one", "auto", "local")):
        return
    tasks = {task["rank"]: task for task in case.tasks}
    for line in case.reports:
        task = tasks.get(line["rank"])
        if not task or not line["nic"] or gpus_of_task(task):
            continue
        hardware = case.hardware[task["SLURMD_NODENAME"]]
        mask = numbers(task["cpus"])
        near = [name for name, pus in hardware.nics.items() if pus & mask and pus != hardware.found["node"][0]]
        names = [one.partition(" ")[0] for one in line["nic"].split(",")]
        if near and not any(name in near for name in names) and all(name in hardware.nics for name in names):
            pus = [hardware.nics[name] for name in names]
            if not any(hardware.found["node"][0] == some for some in pus):
                yield Fault("NIC is far", f"{task['SLURMD_NODENAME']}: {line['nic']} for {sorted(mask)}",
                            f"{near} are near")
