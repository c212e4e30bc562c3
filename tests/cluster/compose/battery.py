# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Option sets that users give, and a judge of its own of whether what one requires could be had now. The judge counts in
the machines' XML and in what slurmctld shows; it knows nothing of how Topiary works.
"""
import itertools
import re
import xml.etree.ElementTree as ET

SAMPLE = [
    "-n8", "-n20", "-n200", "-n3 -c5", "-N2 -n9", "-N1-3 -n20", "-N3 -n10 --contiguous", "-N3 -n10 --mem=0",
    "-N3 -n10 --switches=1", "-n8 --ntasks-per-node=3", "--gpus=1 --cpus-per-gpu=4", "-n6 --gpus=6", "--gpus=6",
    "-n8 --gres=gpu:2 --gres-flags=enforce-binding", "-n16 -w mid1 --hint=nomultithread", "-n70 -w big1",
    "-n16 --overcommit", "-n8 --ntasks-per-socket=2", "-N2 -n20 --exclusive", "-N2 -n9 --distribution=cyclic",
]

OPTION_SETS = SAMPLE + [
    # numbers of tasks
    "-n1", "-n2", "-n3", "-n7", "-n9", "-n12", "-n16", "-n17", "-n31", "-n33", "-n48", "-n64", "-n65", "-n100", "-n130",
    "-n256", "-n257",
    # CPUs of a task
    "-c2", "-c8", "-c9", "-c16", "-c17", "-c64", "-c65", "-n2 -c16", "-n4 -c4", "-n5 -c3", "-n2 -c20", "-n12 -c12",
    "-n40 -c3", "-n9 -c8",
    # numbers of nodes
    "-N2", "-N2 -n8", "-N3 -n10", "-N4 -n4", "-N4 -n30", "-N5 -n5", "-N5 -n21", "-N6 -n6", "-N1 -n16", "-N1 -n17",
    "-N1 -n40", "-N2-4 -n17", "-N1-2 -n70", "-N2-5 -n100 -c2", "-N3 -n7 -c5", "-n100 --use-min-nodes",
    "-n20 --spread-job", "-N2-4 -n8 --spread-job",
    # tasks of a node
    "-n3 --ntasks-per-node=1", "-n20 --ntasks-per-node=8", "-N2 --ntasks-per-node=4", "-N2-4 --ntasks-per-node=4",
    "-N3 --ntasks-per-node=17", "-n7 --ntasks-per-node=2 -c4", "-N2 -n7 --ntasks-per-node=5",
    "-n40 --ntasks-per-node=10 --contiguous",
    # GPUs
    "--gpus=2 --cpus-per-gpu=8", "--gpus=3 --cpus-per-gpu=8", "--gpus=5 --cpus-per-gpu=2",
    "-n2 --gpus=4 --cpus-per-gpu=2", "--gpus=9", "--gpus=13", "-n12 --gpus=12", "-n10 --gpus=5", "-N2 -n8 --gpus=8",
    "-N3 -n3 --gpus=3", "-N2 --gpus=7 --cpus-per-gpu=2", "-N2 -n4 --gpus-per-node=2", "-n6 --gpus-per-task=1",
    "-n3 --gpus-per-task=1 --cpus-per-gpu=4", "-n2 --gpus-per-task=2 -c4", "-n8 --gres=gpu:1", "-n16 --gres=gpu:1",
    "-N3 -n12 --gres=gpu:4", "-n4 --gres=gpu:5", "--gpus=2 --mem-per-gpu=100", "--gpus=4 --ntasks-per-gpu=2",
    "--gpus=6 --ntasks-per-gpu=1", "-n8 --gres=gpu:1 --gres-flags=enforce-binding",
    "-n16 --gpus=2 --gres-flags=enforce-binding", "-n2 --gpus=2 -w big2 -c8",
    # memory
    "-n8 --mem=0", "-n65 --mem=0", "-n8 --mem=500", "-n2 --mem=1500", "-n8 --mem-per-cpu=50",
    "-N2 -n20 --mem-per-cpu=100", "-n100 --mem-per-cpu=20",
    # where
    "-n8 -w big1", "-n20 -w big1,big2", "-n8 -w mid1", "-n17 -w mid1", "-n100 -x big1", "-n8 -C wide", "-n20 -C smt",
    "-n150 -C wide", "-N2 -n9 --contiguous", "-n100 --contiguous", "-n100 --switches=1", "-N2 -n2 -w mid2",
    # threads
    "-n16 -C smt --threads-per-core=1", "-n17 -C smt --ntasks-per-core=1", "-n20 -C smt --ntasks-per-core=2",
    "-n9 -c2 -C smt", "-n32 -C smt", "-n33 -C smt --hint=nomultithread", "-n20 -C smt --hint=multithread",
    "-n5 -c3 -C smt", "-n1 --mincpus=8", "-N2 -n2 --mincpus=16",
    # sockets, sharing
    "-n4 --ntasks-per-socket=4", "-n8 --sockets-per-node=2", "-n4 --cores-per-socket=16", "-n8 -B 1:8:1",
    "-n8 --distribution=block:cyclic", "-n16 --distribution=plane=4", "-n300 --overcommit", "-N2 -n9 --overcommit",
    "-n8 --exclusive", "-n8 --exclusive=user", "-n8 --oversubscribe",
]

MANY = 10**9
SHORT = {"-n": "ntasks", "-c": "cpus-per-task", "-N": "nodes", "-w": "nodelist", "-x": "exclude", "-C": "constraint",
         "-B": "extra-node-info"}


def parse(words):
    """{option: value} of a set's words."""
    told, words = {}, iter(words.split())
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            told[name] = value
        else:
            told[SHORT[word[:2]]] = word[2:] or next(words)
    return told


def domains(xml, level):
    """[[core]] of each domain of a level (hwloc's type), cores counted in hwloc's order; a level that is not there is
    no domain."""
    found, count = [], itertools.count()

    def walk(thing):
        if thing.get("type") == "Core":
            return [next(count)]
        cores = [core for child in thing if child.tag == "object" for core in walk(child)]
        if thing.get("type") == level:
            found.append(cores)
        return cores

    walk(ET.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", xml)).find("object"))
    return found


class Node:
    """What is free on a node: cores of each domain, GPUs, MB."""

    def __init__(self, name, told, taken, found):
        words = dict(re.findall(r"(\w+)=(\S*)", told))
        gpus = re.search(r"\bGres=gpu:(?:\(null\):)?(\d+)", told), re.search(r"GresUsed=gpu:(?:\(null\):)?(\d+)", told)
        self.name, self.threads, self.features = (name, int(words["ThreadsPerCore"]),
                                                  words["AvailableFeatures"].split(","))
        self.memory = int(words["RealMemory"]) - int(words["AllocMem"])
        self.idle = not int(words["CPUAlloc"])
        self.gpus = int(gpus[0][1]) - int(gpus[1][1]) if gpus[0] else 0
        self.free = max((len(set(domain) - taken) for domain in found), default=0)
        self.bound = 1      # GPUs near to one domain: each package has one


class Wish:
    """What an option set asks of its nodes."""

    def __init__(self, words):
        told = self.told = parse(words)
        first, _, last = told.get("nodes", "").partition("-")
        gpus = int(told.get("gpus", 0))
        self.cpus = int(told.get("cpus-per-task", 1))
        self.each = int(told.get("ntasks-per-node", 0))
        self.least = int(first or 1)
        self.most = int(last or first or MANY)
        self.tasks = (int(told.get("ntasks", 0)) or self.each * self.least or gpus * int(told.get("ntasks-per-gpu", 0))
                      or self.least)
        self.gpus = gpus or self.tasks * int(told.get("gpus-per-task", 0))
        self.node_gpus = int(told.get("gpus-per-node", 0) or told.get("gres", "gpu:0")[len("gpu:"):])

    def threads(self, node):
        """CPUs that a core of the node gives."""
        told = self.told
        if told.get("hint") == "nomultithread" or told.get("threads-per-core") == "1":
            return 1
        per_core = int(told.get("ntasks-per-core", 0))
        return min(node.threads, per_core * self.cpus) if per_core else node.threads

    def room(self, node):
        """(tasks, GPUs) that one domain of the node holds, or None when it may not be of the job."""
        told, threads = self.told, self.threads(node)
        cores, tasks, gpus = node.free, node.free, node.gpus
        if (node.name in told.get("exclude", "").split(",")
            or told.get("constraint", node.features[0]) not in node.features):
            return None
        if (told.get("mem") == "0" and not node.idle or int(told.get("mem", 0)) > node.memory
            or node.gpus < self.node_gpus):
            return None
        if int(told.get("sockets-per-node", 1)) > 1 or int(told.get("cores-per-socket", 0)) > cores:
            return None     # so many free cores of one package must be offered
        if -(-int(told.get("mincpus", 0)) // threads) > cores or not cores:
            return None
        tasks = cores // -(-self.cpus // threads) if self.cpus > threads else cores * threads // self.cpus
        if "overcommit" in told:
            tasks = MANY
        if "mem-per-cpu" in told:
            # Where a core is given, so are its threads: the memory of all is counted.
            tasks = min(tasks, node.memory // int(told["mem-per-cpu"]) // threads * threads // self.cpus)
        if "mem-per-gpu" in told:
            gpus = min(gpus, node.memory // int(told["mem-per-gpu"]))
        if "gres-flags" in told:
            gpus = min(gpus, node.bound)
            if gpus < self.node_gpus:
                return None
        if "cpus-per-gpu" in told:
            gpus = min(gpus, cores * threads // int(told["cpus-per-gpu"]))
        if "gpus-per-task" in told:
            tasks = min(tasks, gpus // int(told["gpus-per-task"]))
        if "ntasks-per-socket" in told:
            tasks = min(tasks, int(told["ntasks-per-socket"]))
        if self.tasks > 1 and tasks < max(self.each, int(told.get("ntasks-per-socket", 0))):
            return None     # Slurm wants CPUs for all of them of each node, though the last has fewer tasks
        return min(tasks, self.each or MANY), gpus

    def may_be(self, nodes):
        """Whether some of the nodes, with one domain of each, hold the job: all choices are tried."""
        if "exclusive" in self.told and not self.told["exclusive"]:
            return True     # of whole nodes no domain is required
        rooms = [self.room(node) for node in nodes]
        named = {node for node in self.told.get("nodelist", "").split(",") if node}
        # no node without a GPU of the job's
        for count in range(self.least, min(self.most, self.gpus or MANY, len(nodes)) + 1):
            for chosen in itertools.combinations(range(len(nodes)), count):
                if any(not rooms[i] or not rooms[i][0] for i in chosen) or named - {nodes[i].name for i in chosen}:
                    continue
                if "contiguous" in self.told and chosen[-1] - chosen[0] != count - 1:
                    continue
                tasks, gpus = (sum(rooms[i][what] for i in chosen) for what in (0, 1))
                if tasks >= self.tasks >= (count if not self.gpus else 0) and gpus >= self.gpus:
                    return True
        return False
