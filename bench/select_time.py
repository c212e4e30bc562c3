# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""How long a decision takes: a real slurmctld without nodes behind it, with the probe in it that asks both plugins."""
import collections
import itertools
import math
import os
import random
import signal
import statistics
import tempfile
import time
from contextlib import contextmanager

from common import Part, percentile, shown
from rig.cluster import STOCK_PLUGINS, Cluster, RigError
from rig.processes import wait_until

# Two processors of 64 cores, four memories each, caches of 8 cores.
SHAPE = "Package:2 Group:4 [NUMANode(memory=64GB)] L3Cache:2 Core:8 PU:1"
CORES = 128
NODES_CONF = """\
NodeName=DEFAULT Sockets=2 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=512000 State=DOWN
NodeName=n[1-{nodes}] NodeAddr=127.0.0.1 NodeHostname=n[1-{nodes}]
MaxJobCount=1000000
MaxArraySize=100001
"""
# With GPUs: eight a node, one for each NUMA node, which is a socket of Slurm's as at sites. slurmctld reads gres.conf
# itself only for cloud nodes; other nodes register their GPUs.
GPUS = 8
GPU_NODES_CONF = NODES_CONF.replace("Sockets=2 CoresPerSocket=64", f"Gres=gpu:{GPUS} Sockets=8 CoresPerSocket=16"
                                    ).replace("State=DOWN", "State=CLOUD") + """\
GresTypes=gpu
ResumeProgram=/bin/true
SuspendProgram=/bin/true
"""
# What runs: nodes x cores on each, all as likely.
LOAD = ("1x1", "1x4", "1x8", "1x8", "1x16", "1x24", "1x32", "1x64", "2x16", "2x64", "4x32")
# With GPUs: and of these on each node.
GPU_LOAD = {"1x4": (0, 1), "1x8": (0, 1), "1x16": (0, 1, 2), "1x32": (0, 4), "2x16": (0, 2), "2x64": (0, 4)}
# What is asked for. "whole" is a quarter of the cluster, and waits.
ASKED = {
    "4": ("-n4",), "8": ("-n8",), "12": ("-n3", "-c4"), "32": ("-n32",), "64": ("-n64",),
    "8 with 100 GB": ("-n8", "--mem=100000"),
    "1x8": ("-N1", "-n8"),      # one node, whatever may come: since 26.05 Slurm takes the first
    "2x16": ("-N2", "--ntasks-per-node=16"), "4x32": ("-N4", "--ntasks-per-node=32"),
    "whole": ("-N{quarter}", f"--ntasks-per-node={CORES}"),
}
REQUIRED = {
    "8 in an L3": ("-n8", "--comment=topo-fit=require topo-level=l3"),
    "32 in a package": ("-n32", "--comment=topo-fit=require topo-level=package"),
}
GPU_ASKED = {
    "8 and a GPU": ("-N1", "-n8", "--gpus=1"), "4x4 and 4 GPUs": ("-N1", "-n4", "-c4", "--gpus-per-task=1"),
    "4 and 4 GPUs": ("-n4", "--gpus=4"), "2x32 and 2x4 GPUs": ("-N2", "--ntasks-per-node=32", "--gpus-per-node=4"),
    "8 beside GPUs": ("-n8",),
    "whole with GPUs": ("-N{quarter}", f"--ntasks-per-node={CORES}", f"--gpus-per-node={GPUS}"),
}
ALL = {**ASKED, **REQUIRED}
MODES = {"run": "RUN_NOW", "will": "WILL_RUN", "test": "TEST_ONLY"}
NUMBERS = {"run": 0, "test": 1, "will": 2}      # of Slurm's SELECT_MODE_*
GOAL, HOSTILE_GOAL = 1.10, 2.0
GIVES_UP = 1.9e9     # _will_run_test() of cons_tres looks no further after 2 s by the clock
Answer = collections.namedtuple("Answer", "rc_ours rc_stock now_ours now_stock wall_ours wall_stock cpu_ours "
                                "cpu_stock")
Case = collections.namedtuple("Case", "nodes load jobs asks mode outcome")


class Controller(Cluster):
    """slurmctld alone, its nodes in its mind only."""

    def __init__(self, folder, nodes, topology="flat", gpus=False, does="on"):
        files = {"gres.conf": "".join(f"Name=gpu File={folder}/gpu{i} Cores={16 * i}-{16 * i + 15}\n"
                                      for i in range(GPUS))} if gpus else {}
        conf = (GPU_NODES_CONF if gpus else NODES_CONF).format(nodes=nodes)
        if topology == "tree":
            files["topology.conf"], conf = tree(nodes), conf + "TopologyPlugin=topology/tree\n"
        super().__init__(folder, {}, registry=False, files=files, conf=conf)
        self.nodes, self.gpus, self.does = nodes, gpus, does

    def _configure(self):
        super()._configure()
        conf = self.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("SlurmctldDebug=debug", "SlurmctldDebug=info"))
        with open(self.folder / "etc" / "topiary.conf", "a", encoding="utf-8") as ours:
            ours.write(f"TopoMode={self.does}\nObserveFile={self.folder}/observed\n")

    def start(self):
        self.prepare()
        self.start_munge()
        self.snapshot_file.write_text(f"topiary-snapshot 1\nshape E {SHAPE}\nnodes n[1-{self.nodes}] E\nend\n")
        for name in ("orders", "answers"):
            os.mkfifo(self.folder / name)
        self.start_slurmctld()
        if not wait_until(lambda: "UP" in self.command(["scontrol", "ping"], check=False).stdout, 60):
            raise RigError("slurmctld", "does not answer", self.folder / "log" / "slurmctld.log")
        self.orders, self.answers = open(self.folder / "orders", "w"), open(self.folder / "answers")
        if (said := self.answer()) != "ready":
            raise RigError("probe", said, self.folder / "log" / "slurmctld.log")
        # Before all other processes: whatever else runs empties the caches that a decision needs.
        for thread in os.listdir(f"/proc/{self.daemons['slurmctld'].pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), -20)
        return self

    def start_slurmctld(self):
        env = self.env(LD_PRELOAD=str(self.build / "bench" / "select_probe.so"), PROBE_FOLDER=str(self.folder),
                       PROBE_OURS=f"{self.folder}/plugins/select_cons_tres.so",
                       PROBE_STOCK=f"{STOCK_PLUGINS}/select_cons_tres.so")
        self.run_daemon("slurmctld", ["slurmctld", "-D", "-f", f"{self.folder}/etc/slurm.conf"], env=env,
                        log=self.folder / "log" / "slurmctld.out")

    def stop(self):
        """Its nodes would not answer, and its locks are held: SIGKILL."""
        self.end("slurmctld", signal.SIGKILL)
        super().stop()

    def submit_all(self):
        load = [(k, n) for k, some in GPU_LOAD.items() for n in some] if self.gpus else [(k, 0) for k in LOAD]
        for kind, gpus in load:
            nodes, cores = kind.split("x")
            self.batch("sleep 1\n", "-H", "-J", f"fill-{kind}-{gpus}", f"--array=0-{2 * self.nodes + 600}",
                       "-t", "1440", "-N", nodes, f"--ntasks-per-node={cores}",
                       *([f"--gpus-per-node={gpus}"] if gpus else []))
        for name, options in (GPU_ASKED if self.gpus else ALL).items():
            self.batch("sleep 1\n", "-H", "-J", job_name(name), "-t", "60",
                       *(o.format(quarter=self.nodes // 4) for o in options))

    def order(self, text):
        self.orders.write(text + "\n")
        self.orders.flush()
        return self.answer()

    def answer(self):
        line = self.answers.readline().strip()
        if not line:
            raise RigError("probe", "slurmctld ended", self.folder / "log" / "slurmctld.log")
        return line

    def fill(self, load):
        """So many percent of the cores are held: the number of jobs."""
        jobs, cores = map(int, self.order(f"fill {load}").split())
        print(f"{self.nodes} nodes: {jobs} jobs hold {cores} of {self.nodes * CORES} cores", flush=True)
        return jobs

    def timed(self, mode, name, count, ms):
        line = self.order(f"time {NUMBERS[mode]} {job_name(name)} {count} {ms}")
        while line != "done":
            yield Answer(*map(int, line.split()))
            line = self.answer()


def tree(nodes):
    """Leaves of 40 nodes, spines over 16 leaves each, one switch over these."""
    leaves, spines = math.ceil(nodes / 40), math.ceil(nodes / 640)
    lines = [f"leaf{i} Nodes=n[{40 * i + 1}-{min(nodes, 40 * (i + 1))}]" for i in range(leaves)]
    lines += [f"spine{i} Switches=leaf[{16 * i}-{min(leaves, 16 * (i + 1)) - 1}]" for i in range(spines)]
    return "".join(f"SwitchName={line}\n" for line in (*lines, f"core Switches=spine[0-{spines - 1}]"))


def job_name(name):
    return f"ask-{name.replace(' ', '-')}"


@contextmanager
def controller(*how):
    with tempfile.TemporaryDirectory(prefix="tps", dir="/tmp") as folder:
        c = Controller(folder, *how)
        try:
            yield c.start()
        finally:
            c.stop()


def begin(c, seed):
    c.order(f"begin {seed}")
    time.sleep(2)       # the plugin has read its snapshot


# --- time: all cases of a cluster, as the load grows

def outcome(a):
    if (a.rc_stock and a.wall_stock > GIVES_UP) or (a.rc_ours and a.wall_ours > GIVES_UP):
        return "given up"
    if a.rc_stock:
        return "never" if a.rc_ours else "differ"
    return "now" if a.now_stock and a.now_ours else "later" if not (a.now_stock or a.now_ours) else "differ"


def measure(nodes, args):
    """{Case: [Answer]}"""
    found = collections.defaultdict(list)
    with controller(nodes, args.topology, args.gpus, args.does) as c:
        c.submit_all()
        begin(c, args.seed)
        for load in sorted(args.loads):
            jobs = c.fill(load)
            asked = args.asked if args.asked != [""] else (GPU_ASKED if args.gpus else ALL)
            for mode, name in itertools.product(args.modes, asked):
                for answer in c.timed(mode, name, args.count, args.ms):
                    asks = "require" if name in REQUIRED else "prefer"
                    found[Case(nodes, load, jobs, asks, mode, outcome(answer))].append(answer)
    return found


class Times:
    """Of one case: milliseconds of CPU time of the thread that decides; nothing in a decision waits."""

    def __init__(self, answers):
        self.count = len(answers)
        pairs = [(a.cpu_ours / 1e6, a.cpu_stock / 1e6) for a in answers]
        self.ours, self.stock = zip(*(both(pairs, share) for share in (0.5, 0.99)))
        self.ratio = [mine / theirs for mine, theirs in zip(self.ours, self.stock)]
        self.between = [self.interval(pairs, share) for share in (0.5, 0.99)]

    def interval(self, pairs, share):
        """Where the ratio lies with 95 % certainty: the bootstrap (Efron 1979), by pairs."""
        chance = random.Random(self.count)
        ratios = sorted(mine / theirs for mine, theirs in (both(chance.choices(pairs, k=self.count), share)
                                                           for _ in range(200)))
        return ratios[5], ratios[-6]


def both(pairs, share):
    return percentile([mine for mine, _ in pairs], share), percentile([theirs for _, theirs in pairs], share)


HEAD = ("Case", "times", "Slurm p50, ms", "Topiary p50, ms", "p50 ratio", "Slurm p99, ms", "Topiary p99, ms",
        "p99 ratio", "p99 ratio, 95 % confidence")


def row(c, t):
    return (f"{c.nodes} nodes, {c.load} %, {c.jobs:,} jobs, {c.asks}, {MODES[c.mode]}, {c.outcome}", t.count,
            t.stock[0], t.ours[0], t.ratio[0], t.stock[1], t.ours[1], t.ratio[1],
            f"{t.between[1][0]:.2f} to {t.between[1][1]:.2f}")


def tell(sheet, name, found):
    """The goal is each case's: the worst one is printed, and how many are beyond it by more than chance."""
    times = {case: Times(answers) for case, answers in sorted(found.items())}
    plain = {case: t for case, t in times.items() if case.asks == "prefer"
             and case.outcome not in ("differ", "given up") and t.count >= 20}
    for outcome_, mode in (("now", "run"), ("now", "will"), ("later", "will")):
        most = [(c, t) for c, t in plain.items() if (c.outcome, c.mode) == (outcome_, mode)]
        if most:
            case, t = most[-1]
            sheet.add(f"{name}, {case.jobs:,} running jobs: decision time, {MODES[mode]}, job starts {outcome_}, p50",
                      t.ours[0], "ms", beside=f"{t.ratio[0]:.2f} times Slurm's {shown(t.stock[0])} ms")
    for i, share in enumerate(("p50", "p99") if plain else ()):
        case, t = max(plain.items(), key=lambda item, i=i: item[1].ratio[i])
        sheet.add(f"{name}: decision time relative to Slurm's, {share}, worst of {len(plain)} cases", t.ratio[i],
                  "times Slurm's", f"at most {GOAL:.2f}",
                  f"{MODES[case.mode]} at {case.load} %, {case.outcome}: {shown(t.ours[i])} ms; "
                  f"95 % confidence: {t.between[i][0]:.2f} to {t.between[i][1]:.2f}")
    answers = [a for case, some in found.items() if case.asks == "prefer" for a in some]
    sheet.add(f"{name}: decisions that differ from Slurm's on whether a job starts",
              sum(outcome(a) == "differ" for a in answers), f"of {len(answers)}", "0")
    sheet.table(HEAD, [row(*item) for item in times.items()])


def run(sheet, args):
    for nodes in args.nodes:
        kind = ((", topology/tree" if args.topology == "tree" else "") + (", GPUs" if args.gpus else "") +
                (", TopoMode=observe" if args.does == "observe" else ""))
        tell(sheet, f"{nodes} nodes{kind}", measure(nodes, args))


# --- hostile: requests at the edges of what there is, and beyond

WORDS = ("", "topo-fit=prefer", "topo-fit=prefer topo-level=l3", "topo-fit=require topo-level=l3",
         "topo-fit=require topo-level=numa", "topo-fit=require topo-level=package", "topo-fit=spread",
         "topo-fit=spread topo-level=package", "topo-request=/core=1", "topo-request=/l3=2/core=1",
         "topo-request=/package=2/l3=1/core=4", "topo-request=/package=1/core=64")
OTHER = ("", "", "", "", "", "--contiguous", "--overcommit", "--exclusive", "--mem=0", "--spread-job", "-w n1",
         "-x n[1-9]", "--mincpus=17", "--ntasks-per-node=1", "--ntasks-per-core=1", "--switches=1")


def hostile_requests(nodes, count, seed):
    """So many command lines, the same for a seed."""
    chance = random.Random(seed)
    for i in range(count):
        least = chance.choice((1, 1, 1, 2, nodes // 2, nodes - 1, nodes))
        most = chance.choice((least, nodes, nodes, 500000))
        tasks = chance.choice((1, 7, nodes + 1, 40 * nodes + 1, 40 * nodes + 1, CORES * nodes - 1, CORES * nodes,
                               2 ** 31 - 1))
        cpus = chance.choice((1, 1, 1, 2, 3, 17, 64, 65533))
        yield (f"-N{least}-{max(least, most)}", f"-n{max(tasks, least)}", f"-c{cpus}", *chance.choice(OTHER).split(),
               f"--comment={WORDS[i % len(WORDS)]}")


def hostile(sheet, args):
    """The goal is a ratio to Slurm's time for the same request, or for its median one where that is longer: requests
    that Slurm rejects at once are no measure."""
    for nodes in args.nodes:
        costs = []
        with controller(nodes) as c:
            c.submit_all()
            taken = {f"h{i}": words for i, words in enumerate(hostile_requests(nodes, args.requests, args.seed))
                     if not c.command(["sbatch", "-H", "-J", f"ask-h{i}", "-t", "60", "-o", "/dev/null", *words,
                                       "--wrap=true"], check=False).returncode}
            begin(c, args.seed)
            c.fill(args.load)
            for name, mode in itertools.product(taken, MODES):
                answers = list(c.timed(mode, name, 3, 0))
                costs.append((*(statistics.median(getattr(a, f"cpu_{who}") for a in answers) / 1e6
                                for who in ("ours", "stock")), f"{MODES[mode]} {' '.join(taken[name])}"))
        usual = statistics.median(stock for _, stock, _ in costs)
        ratios = sorted(((ours / max(stock, usual), ours, what) for ours, stock, what in costs), reverse=True)
        sheet.add(f"{nodes} nodes: decisions of hostile requests above {HOSTILE_GOAL:.2f} times Slurm's",
                  sum(ratio > HOSTILE_GOAL for ratio, *_ in ratios), f"of {len(costs)}", "0",
                  f"the highest {ratios[0][0]:.2f}: {shown(ratios[0][1])} ms, {ratios[0][2]}")
        sheet.table(("Request", "ratio", "Topiary, ms"), [(what, ratio, ours) for ratio, ours, what in ratios[:5]])


NODES = ([100, 1000, 10000], "clusters of so many nodes")
SEED = (1, "of all that is drawn")
PARTS = {
    "time": Part(run, "how long a decision takes, ours and Slurm's own side by side", {
        "nodes": NODES, "loads": ([0, 50, 80, 95], "percent of the cores that jobs hold"),
        "ms": (3000, "milliseconds for each mode and job, at most but for ten decisions"),
        "count": (1000, "at most so many decisions about each"), "modes": (list(MODES), "which decisions", MODES),
        "asked": ([""], "about which jobs; without this, about all that fit the nodes",
                  {"": None, **ALL, **GPU_ASKED}),
        "topology": ("flat", "how Slurm knows the network: not, or by topology/tree", ("flat", "tree")),
        "does": ("on", "TopoMode", ("on", "observe")),
        "gpus": (False, "nodes have GPUs, jobs that run have some, and other jobs are asked about"), "seed": SEED}),
    "hostile": Part(hostile, "how long decisions about hostile requests take", {
        "nodes": ([1000, 10000], NODES[1]), "load": (80, "percent of the cores that jobs hold"),
        "requests": (500, "only the first so many"), "seed": SEED}),
}
