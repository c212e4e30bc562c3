# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What is running on the nodes, and a job drawn from all options that users have."""
import re
from dataclasses import dataclass, field

PLACES = ["compact", "scatter", "compact:numa", "compact:l3", "scatter:numa", "scatter:package", "scatter:l3",
          "compact:core", "mem", "gpu", "gpu"]
OVERRIDES = {"cpus-per-gpu": ("-c", "--cpus-per-task"), "mem-per-gpu": ("--mem=", "--mem-per-cpu=")}
MEMBINDS = ["local", "bind", "interleave", "interleave:job", "dram", "hbm", "capacity", "bandwidth"]


@dataclass
class Request:
    """Options as words; components: of each part of a heterogeneous job, else of one. matrix: ranks of one, 0 none.
    defaults: what the partition has for each GPU, by the option that states it."""
    components: list
    srun: list = field(default_factory=list)
    array: int = 0
    matrix: int = 0
    defaults: dict = field(default_factory=dict)

    @property
    def options(self):
        return self.components[0]

    def value(self, name, part=0):
        """The value of --name= or of -x N in a part of the job; None without."""
        for word in self.components[part]:
            if word.startswith(f"--{name}="):
                return word.partition("=")[2]
            if len(name) == 1 and word.startswith(f"-{name}") and not word.startswith("--"):
                return word[2:]
        if name in self.defaults and self.gpus(part) and not any(
                word.startswith(OVERRIDES[name]) for word in self.components[part]):
            return str(self.defaults[name])
        return "" if f"--{name}" in self.components[part] else None

    def gpu_types(self, part=0):
        """{type: how many of it the job asks for}; {} where any will do."""
        words = " ".join(self.components[part])
        return {kind: int(count) for kind, count in re.findall(r"gpu:([\w.]*[a-z][\w.]*):(\d+)", words)}

    def gpus(self, part=0):
        return any(word.startswith(("--gres=", "--gpus")) for word in self.components[part])

    @property
    def task_cpus(self):
        """-c, or what follows from the GPUs of each task."""
        gpus, each = self.value("gpus-per-task"), self.value("cpus-per-gpu")
        return int(self.value("c") or 1) if not gpus or not each else int(gpus) * int(each)

    def step_value(self, name):
        """Of srun itself, or of the job."""
        mine = Request([self.srun]).value(name)
        return mine if mine is not None else self.value(name)

    @property
    def plain(self):
        """Nothing of Topiary is asked."""
        return not self.matrix and not any(word.startswith("--topo") for words in [*self.components, self.srun]
                                           for word in words)

    def words(self):
        sbatch = " : ".join(" ".join(words) for words in self.components)
        return f"sbatch {sbatch}{f' --array=0-{self.array - 1}' if self.array else ''} / srun {' '.join(self.srun)}"

    def stock(self):
        """The same without Topiary."""
        def without(words):
            return [word for word in words if not word.startswith("--topo")]
        return Request([without(words) for words in self.components], without(self.srun), self.array,
                       defaults=self.defaults)


def draw_loads(rng, group):
    """[options of sbatch] of what runs before; group: {node: (cores, threads of a core in Slurm, GPUs)}."""
    loads = []
    for node, (cores, threads, gpus) in group.items():
        for _ in range(rng.choices([0, 1, 2, 3], [4, 4, 2, 1])[0]):
            n = rng.randint(1, max(1, cores // 3)) * threads
            words = [f"-w{node}", "-N1", f"-n{n}", "--mem-per-cpu=1",
                     rng.choice(["--topo-fit=off", "--topo-fit=prefer"])]
            if gpus and rng.random() < 0.3:
                words.append(f"--gres=gpu:{rng.randint(1, max(1, gpus // 2))}")
            loads.append(words)
    return loads


def tasks_and_cpus(rng, cpus):
    """-n and -c that so many CPUs hold, mostly."""
    each = rng.choices([1, 2, 3, 4, 5, 7, 8, 16], [8, 5, 4, 4, 2, 3, 2, 1])[0]
    each = min(each, max(1, cpus))
    tasks = max(1, min(rng.choice([1, 1, 2, 3, 4, 6, 8, 12, 99]), cpus // each))
    if rng.random() < 0.04:
        tasks *= 4      # more than there is
    return min(tasks, 24), each


def draw_gpus(rng, gpus, tasks):
    want = rng.randint(1, gpus)
    forms = [f"--gres=gpu:{want}", f"--gpus={want}", f"--gpus-per-node={want}",
             f"--gres=gpu:{rng.choice(['a', 'b', '1g.5gb'])}:{max(1, want // 2)}",
             f"--gres=gpu:a:{max(1, want // 2)},gpu:b:1"]
    if want >= tasks:
        forms += [f"--gpus-per-task={want // tasks}"] * 2
    words = [rng.choice(forms)]
    if rng.random() < 0.15:
        words.append(rng.choice(["--gres-flags=enforce-binding", "--gpu-bind=closest", "--mem-per-gpu=100",
                                 "--gres-flags=disable-binding"]))
    return words


def draw_path(rng, cores):
    """So many cores by --topo-request."""
    parts = rng.choice([part for part in (1, 1, 2, 4) if cores % part == 0])
    level = rng.choice(["package", "numa", "l3"])
    outer = "/package=1" if level != "package" and rng.random() < 0.3 else ""
    return f"--topo-request={outer}/{level}={parts}/core={cores // parts}"


def draw_placement(rng, cores, gpus):
    """Options for the cores of the job, of which a node has so many; what is required meets GPUs more often."""
    if rng.random() < (0.1 if gpus else 0.05):
        return [draw_path(rng, cores)]
    words = []
    if rng.random() < (0.5 if gpus else 0.35):
        words.append("--topo-fit=" + rng.choices(["prefer", "require", "spread", "off"],
                                                 [4, 8 if gpus else 4, 3, 2])[0])
    if rng.random() < 0.3:
        words.append("--topo-level=" + rng.choice(["package", "numa", "l3", "l2", "die", "node"]))
    if rng.random() < (0.2 if gpus else 0.1):
        words.append("--topo-mem=" + rng.choice(["prefer", "require", "require", "off"]))
    if "--topo-fit=off" in words:      # the level of nothing is a contradiction, which is refused
        words = ["--topo-fit=off"]
    return words


def draw_step(rng, gpus):
    """Options for the tasks of a step."""
    words = []
    if rng.random() < 0.4:
        words.append("--topo-tasks=auto")
    elif rng.random() < 0.7:
        words.append(f"--topo-place={rng.choice(PLACES if gpus else PLACES[:-2])}")
    if rng.random() < 0.35:
        words.append(f"--topo-membind={rng.choice(MEMBINDS)}")
    if rng.random() < 0.1:
        words.append(f"--topo-mems={rng.choice(['prefer', 'strict'])}")
    if rng.random() < 0.2:
        words.append("--topo-omp=auto")
    if rng.random() < 0.25:
        words.append(f"--topo-nic={rng.choice(['auto', 'one', 'local', 'all', 'one,strict', 'auto,strict'])}")
    if rng.random() < 0.06:
        words.append(f"--cpu-bind={rng.choice(['cores', 'threads', 'none', 'sockets', 'rank', 'ldoms'])}")
    if rng.random() < 0.04:
        words.append(rng.choice(["-mcyclic", "-mblock:cyclic", "-mplane=2", "-m*:fcyclic", "--exact", "--overlap"]))
    return words


def draw(rng, group, idle, defaults):
    """group as above, of it what is left; idle: nodes without a load; defaults: the partition's."""
    nodes = 1 if len(group) == 1 or rng.random() < 0.7 else 2
    cores, threads, gpus = (min(of[i] for of in group.values()) for i in range(3))
    cpus = max(1, int(cores * threads * rng.choice([0.3, 0.6, 0.6, 1])))
    tasks, each = tasks_and_cpus(rng, cpus * nodes)
    tasks = max(tasks, nodes)
    words = [f"-n{tasks}"]
    if nodes > 1 or rng.random() < 0.5:
        words.append(f"-N{nodes}" if nodes == 1 or each > 1 or rng.random() < 0.8 else "-N1-2")
    if each > 1 or rng.random() < 0.1:
        words.append(f"-c{each}")
    if gpus and rng.random() < 0.6:
        words += draw_gpus(rng, gpus, -(-tasks // nodes))
        if rng.random() < (0.3 if each == 1 else 0.03):      # beside -c it is refused
            words.append(f"--cpus-per-gpu={rng.choice([1, 2, 3, 4, 5, 7, 8])}")
    has_gpus = Request([words]).gpus()
    whole = 0.3 if idle == set(group) else 0.15 * (len(idle) >= nodes)
    for chance, more in ((whole, "--exclusive"), (0.12, "-w" + ",".join(rng.sample(sorted(group), nodes))),
                         (0.1, f"--ntasks-per-node={-(-tasks // nodes) + rng.choice([0, 0, 1])}"),
                         (0.05, "--ntasks-per-core=1"), (0.04, "--hint=nomultithread"),
                         (0.03, "--threads-per-core=1"), (0.03, "--contiguous"), (0.02, "--overcommit"),
                         (0.15, f"--mem={rng.choice([0, 10, 500, 2000, 6000])}"),
                         (0.05, f"--mem-per-cpu={rng.choice([10, 100, 300])}"), (0.02, "--spread-job"),
                         (0.02, f"--ntasks-per-socket={rng.randint(1, 4)}"), (0.01, "--sockets-per-node=1"),
                         (0.03, "-m" + rng.choice(["cyclic", "block:cyclic", "block:block", "plane=2"]))):
        if rng.random() < chance and not (more.startswith("--mem") and any(w.startswith("--mem") for w in words)):
            words.append(more)
    request = Request([words], defaults=defaults)
    kind = rng.random()
    if kind < 0.12:
        pass      # a plain job
    else:
        words += draw_placement(rng, -(-(-(-tasks // nodes) * each) // threads), has_gpus)
        if "--topo-mem=require" in words and not any(w.startswith("--mem") for w in words) and rng.random() < 0.8:
            words.append(rng.choice(["--mem=10", "--mem=2000", "--mem-per-cpu=100"]))
        if rng.random() < 0.75:
            request.srun = draw_step(rng, has_gpus)
        if rng.random() < 0.85:
            request.srun.append("--topo-report=json")
    if rng.random() < 0.15:
        request.srun.insert(0, f"-n{rng.randint(1, tasks)}" if nodes == 1 else f"-n{tasks}")
    # Slurm has no cores for a step of several tasks that have an odd number of threads, mostly.
    if each > 1 and rng.random() < (0.1 if tasks > 1 and each > threads and each % threads else 0.8):
        request.srun.insert(0, f"-c{each}")
    if kind > 0.95 and not request.plain:
        request.components.append([f"-n{rng.randint(1, 2)}", "-N1", *rng.choice([
            [], ["-c2"], ["--topo-fit=spread"], ["--topo-level=l3"], ["--topo-fit=off"], ["--gres=gpu:1"][:gpus]])])
        request.srun = [w for w in request.srun if w[:2] not in ("-n", "-c")]
        if rng.random() < 0.5:
            request.srun.insert(0, "--het-group=0,1")
        if rng.random() < 0.3:
            request.components.append(["-n1", "-N1"])
    elif kind > 0.91:
        request.array = rng.choice([2, 2, 3, 5])
    elif 0.12 < kind < 0.2 and tasks > 1:
        request.matrix = tasks
        request.srun = [w for w in request.srun if w.startswith(("--topo-report", "--topo-mem", "--topo-omp",
                                                                 "--topo-nic"))]
    return request
