# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""How long a decision takes: a real slurmctld without nodes behind it, with the probe in it that asks both plugins."""
import collections
import itertools
import math
import os
import random
import signal
import tempfile
import time
from contextlib import contextmanager

import sheet as sheets
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
# How slurmctld knows the network, in which it chooses the nodes of a job of several among all that Topiary offers it:
# lines of slurm.conf. topology.yaml (25.05) wins over what these say.
TOPOLOGIES = {"flat": "", "tree": "TopologyPlugin=topology/tree\n", "block": "TopologyPlugin=topology/block\n",
              "yaml": ""}
LEAF, SPINE = 40, 16
# What runs: nodes x cores on each, all as likely.
LOAD = ("1x1", "1x4", "1x8", "1x8", "1x16", "1x24", "1x32", "1x64", "2x16", "2x64", "4x32")
# With GPUs: and of these on each node.
GPU_LOAD = {"1x4": (0, 1), "1x8": (0, 1), "1x16": (0, 1, 2), "1x32": (0, 4), "2x16": (0, 2), "2x64": (0, 4)}
# What is asked for. "whole" is a quarter of the cluster, and waits.
ASKED = {
    "4": ("-n4",), "8": ("-n8",), "12": ("-n3", "-c4"), "32": ("-n32",), "64": ("-n64",),
    "8 with 100 GB": ("-n8", "--mem=100000"),
    "1x8": ("-N1", "-n8"), "1x64": ("-N1", "-n64"),     # one node, whatever may come: since 26.05 Slurm takes the first
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
GOAL = 1.10
Answer = collections.namedtuple("Answer", "rc_ours rc_stock now_ours now_stock same wall_ours wall_stock cpu_ours "
                                "cpu_stock leaves_ours leaves_stock")
Cell = collections.namedtuple("Cell", "nodes load jobs asks mode outcome")


class Controller(Cluster):
    """slurmctld alone, its nodes in its mind only."""

    def __init__(self, folder, nodes, topology="flat", gpus=False):
        files = {"gres.conf": "".join(f"Name=gpu File={folder}/gpu{i} Cores={16 * i}-{16 * i + 15}\n"
                                      for i in range(GPUS))}
        super().__init__(folder, {}, registry=False, files=files if gpus else {},
                         conf=(GPU_NODES_CONF if gpus else NODES_CONF).format(nodes=nodes) + TOPOLOGIES[topology])
        self.nodes, self.topology, self.gpus = nodes, topology, gpus

    def _configure(self):
        super()._configure()
        conf = self.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("SlurmctldDebug=debug", "SlurmctldDebug=info"))
        if self.topology != "flat":
            name = "topology.yaml" if self.topology == "yaml" else "topology.conf"
            conf.with_name(name).write_text(NETWORKS[self.topology](self.nodes))

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
        said = self.answers.readline().strip()
        if said != "ready":
            raise RigError("probe", said or "slurmctld ended", self.folder / "log" / "slurmctld.log")
        self.come_first()
        return self

    def come_first(self):
        """Before all other processes: whatever else runs empties the caches that a decision needs."""
        for thread in os.listdir(f"/proc/{self.daemons['slurmctld'].pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), -20)

    def start_slurmctld(self):
        env = self.env(LD_PRELOAD=str(self.build / "bench" / "select_probe.so"), PROBE_FOLDER=str(self.folder),
                       PROBE_LEAF=str(0 if self.topology == "flat" else LEAF),
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

    def timed(self, mode, name, count, ms):
        yield from self.answers_to(f"time {mode} {job_name(name)} {count} {ms} 1")

    def submitted(self, name, count, comment):
        yield from self.answers_to(f"submit {job_name(name)} {count} {comment}")

    def answers_to(self, order):
        line = self.order(order)
        while line != "done":
            yield Answer(*map(int, line.split()))
            line = self.answer()


def below(part, size, count):
    """"0-15" of the numbers of part `part`."""
    return f"{size * part}-{min(count, size * (part + 1)) - 1}"


def switches(nodes):
    """[(name, "nodes" or "children", which)]: leaves of 40 nodes, spines over 16 leaves each, one switch over these."""
    leaves, spines = math.ceil(nodes / LEAF), math.ceil(nodes / LEAF / SPINE)
    found = [(f"leaf{i}", "nodes", f"n[{LEAF * i + 1}-{min(nodes, LEAF * (i + 1))}]") for i in range(leaves)]
    found += [(f"spine{i}", "children", f"leaf[{below(i, SPINE, leaves)}]") for i in range(spines)]
    return [*found, ("core", "children", f"spine[0-{spines - 1}]")]


def tree(nodes):
    words = {"nodes": "Nodes", "children": "Switches"}
    return "".join(f"SwitchName={name} {words[kind]}={which}\n" for name, kind, which in switches(nodes))


def block(nodes):
    leaves = [switch for switch in switches(nodes) if switch[1] == "nodes"]
    return "".join(f"BlockName={name} Nodes={which}\n" for name, _, which in leaves) + f"BlockSizes={LEAF}\n"


def yaml(nodes):
    lines = [f'      - {{switch: {name}, {kind}: "{which}"}}' for name, kind, which in switches(nodes)]
    return "\n".join(["- topology: net", "  cluster_default: true", "  tree:", "    switches:", *lines, ""])


NETWORKS = {"tree": tree, "block": block, "yaml": yaml}


def job_name(name):
    return f"ask-{name.replace(' ', '-')}"


@contextmanager
def controller(nodes, topology="flat", gpus=False):
    with tempfile.TemporaryDirectory(prefix="tps", dir="/tmp") as folder:
        c = Controller(folder, nodes, topology, gpus)
        try:
            yield c.start()
        finally:
            c.stop()


# --- measuring

GIVES_UP = 1.9e9     # _will_run_test() of cons_tres looks no further after 2 s by the clock


def outcome(a):
    if (a.rc_stock and a.wall_stock > GIVES_UP) or (a.rc_ours and a.wall_ours > GIVES_UP):
        return "given up"
    if a.rc_stock:
        return "never" if a.rc_ours else "differ"
    return "now" if a.now_stock and a.now_ours else "later" if not (a.now_stock or a.now_ours) else "differ"


def measure(nodes, args, tell):
    """{Cell: [Answer]} of one cluster, as the load grows."""
    found = collections.defaultdict(list)
    with controller(nodes, args.topology, args.gpus) as c:
        c.submit_all()
        c.order(f"begin {args.seed}")
        time.sleep(2)       # the plugin has read its snapshot
        for load in sorted(args.loads):
            jobs, cores = map(int, c.order(f"fill {load} {args.placed_by}").split())
            tell(f"{nodes} nodes: {jobs} jobs hold {cores} of {nodes * CORES} cores")
            for mode, name in itertools.product(args.modes, args.asked or (GPU_ASKED if args.gpus else ALL)):
                for answer in c.timed(mode, name, args.count, args.ms):
                    asks = "require" if name in REQUIRED else "prefer"
                    found[Cell(nodes, load, jobs, asks, mode, outcome(answer))].append(answer)
    return found


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


SHARES = (0.5, 0.99)
RESAMPLES = 200


class Times:
    """Of one cell: milliseconds of processor time of the thread that decides; nothing in a decision waits."""

    def __init__(self, answers):
        self.count = len(answers)
        pairs = [(a.cpu_ours / 1e6, a.cpu_stock / 1e6) for a in answers]
        self.ours, self.stock = zip(*(both(pairs, share) for share in SHARES))
        self.ratio = [mine / theirs for mine, theirs in zip(self.ours, self.stock)]
        self.between = [self.interval(pairs, share) for share in SHARES]

    def interval(self, pairs, share):
        """Where the ratio lies with 95 % certainty: the bootstrap (Efron 1979), by pairs."""
        chance = random.Random(self.count)
        ratios = sorted(mine / theirs for mine, theirs in (both(chance.choices(pairs, k=self.count), share)
                                                           for _ in range(RESAMPLES)))
        return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40 - 1]


def both(pairs, share):
    return percentile([mine for mine, _ in pairs], share), percentile([theirs for _, theirs in pairs], share)


# --- telling

HEAD = ("Nodes | Load | Running jobs | Request | Mode | Starts | Times | Slurm p50 | Topiary p50 | Ratio | "
        "Slurm p99 | Topiary p99 | Ratio, 95 % confidence")


def row(cell, t):
    ratios = f"{t.ratio[0]:.2f}", f"{t.ratio[1]:.2f}, {t.between[1][0]:.2f} to {t.between[1][1]:.2f}"
    return (str(cell.nodes), f"{cell.load} %", f"{cell.jobs:,}", cell.asks, MODES[cell.mode], cell.outcome,
            str(t.count),
            *(text for i in (0, 1)
              for text in (f"{sheets.shown(t.stock[i])} ms", f"{sheets.shown(t.ours[i])} ms", ratios[i])))


def named(nodes, topology, gpus):
    words = "" if topology == "flat" else ", topology.yaml" if topology == "yaml" else f", topology/{topology}"
    words += ", GPUs" if gpus else ""
    return f"{nodes} nodes{words}"


def tell_worst(sheet, name, times):
    """The goal is each cell's: the worst one tells, and how many are beyond it by more than chance."""
    for i, share in enumerate(("p50", "p99")):
        cell, t = max(times.items(), key=lambda item: item[1].ratio[i])
        sheet.add(f"{name}: decision time relative to Slurm's, {share}, worst of {len(times)} cases", t.ratio[i],
                  "times Slurm's", goal=f"at most {GOAL:.2f}",
                  beside=f"{MODES[cell.mode]} at {cell.load} %, {cell.outcome}: {sheets.shown(t.ours[i])} ms; "
                         f"95 % confidence: {t.between[i][0]:.2f} to {t.between[i][1]:.2f}")
        sheet.add(f"{name}: cases above {GOAL:.2f} times Slurm's {share} (95 % confidence)",
                  sum(t.between[i][0] > GOAL for t in times.values()), f"of {len(times)}", goal="0")


def tell(sheet, name, found):
    cells = {cell: Times(answers) for cell, answers in sorted(found.items())}
    plain = {cell: t for cell, t in cells.items() if cell.asks == "prefer"
             and cell.outcome not in ("differ", "given up") and t.count >= 20}
    for outcome_, mode in (("now", "run"), ("now", "will"), ("later", "will")):
        most = [(c, t) for c, t in plain.items() if (c.outcome, c.mode) == (outcome_, mode)]
        if most:
            cell, t = most[-1]
            sheet.add(f"{name}, {cell.jobs:,} running jobs: decision time, {MODES[mode]}, job starts {outcome_}, p50",
                      t.ours[0], "ms", beside=f"{t.ratio[0]:.2f} times Slurm's {sheets.shown(t.stock[0])} ms")
    tell_worst(sheet, name, plain)
    answers = [a for cell, some in found.items() if cell.asks == "prefer" for a in some]
    sheet.add(f"{name}: decisions that differ from Slurm's on whether a job starts",
              sum(outcome(a) == "differ" for a in answers), f"of {len(answers)}", goal="0")
    sheet.add(f"{name}: decisions that differ from Slurm's in nodes or cores", sum(not a.same for a in answers),
              f"of {len(answers)}")
    tell_leaves(sheet, name, [a for some in found.values() for a in some if a.leaves_ours and a.leaves_stock])
    return [row(cell, t) for cell, t in cells.items()], plain


def tell_leaves(sheet, name, answers):
    """Of the jobs that both placed, in a network."""
    if answers:
        sheet.add(f"{name}: jobs on more switches or blocks than Slurm's choice",
                  sum(a.leaves_ours > a.leaves_stock for a in answers), f"of {len(answers)}", goal="0")


def run(sheet, args):
    rows, plain = [], {}
    for nodes in args.nodes:
        found = measure(nodes, args, lambda line: sheet.quiet or print(line, flush=True))
        more, times = tell(sheet, named(nodes, args.topology, args.gpus), found)
        rows += more
        plain.update(times)
    text = sheets.lines(HEAD, "---:|---:|---:|---|---|---|---:|---:|---:|---:|---:|---:|---:", rows)
    sheet.add_table(text)
    if not sheet.quiet:
        print(text)
    if args.svg:
        draw(args.svg, plain)
        sheet.add_table(f"![How a decision grows with nodes and jobs]({args.svg})\n")


# --- the picture

COLOURS = {"stock": "#888888", "ours": "#1b7f3b"}
WIDTH, HEIGHT = 320, 220


def round_step(span):
    """The step of 1, 2 or 5 times a power of ten that divides a span into three to seven parts."""
    power = 10 ** math.floor(math.log10(span / 3))
    return power * max(factor for factor in (1, 2, 5) if factor == 1 or factor * power <= span / 3)


class Axis:
    """Where a value lies, as a share of the axis from its first tick to its last: powers of ten, or round numbers from
    0."""

    def __init__(self, values, log):
        self.scale = math.log10 if log else float
        if log:
            first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            self.marks = [10 ** i for i in range(first, max(last, first + 1) + 1)]
        else:
            step = round_step(max(values) or 1)
            self.marks = [round(step * i, 9) for i in range(math.ceil((max(values) or 1) / step) + 1)]
        self.low, self.high = self.marks[0], self.marks[-1]

    def at(self, value):
        return (self.scale(value) - self.scale(self.low)) / (self.scale(self.high) - self.scale(self.low))


def draw(path, plain):
    """Two panels, of WILL_RUN that starts now: by nodes at the highest load, and by running jobs of the largest
    cluster."""
    now = {c: t for c, t in plain.items() if (c.mode, c.outcome) == ("will", "now")}
    load, nodes = max(c.load for c in now), max(c.nodes for c in now)
    by_nodes = sorted((c.nodes, t) for c, t in now.items() if c.load == load)
    by_jobs = sorted((c.jobs, t) for c, t in now.items() if c.nodes == nodes)
    parts = [panel(60, f"nodes, {load} % of their cores allocated", by_nodes, True),
             panel(500, f"running jobs on {nodes:,} nodes", by_jobs, False)]
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="860" height="330" font-family="sans-serif" '
                    'font-size="12">\n'
                    '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n",
                    encoding="utf-8")


def panel(left, title, points, log):
    across = Axis([x for x, _ in points], log)
    up = Axis([value for _, t in points for value in (*t.ours, *t.stock)], log)

    def place(x, y):
        return f"{left + WIDTH * across.at(x):.1f},{45 + HEIGHT * (1 - up.at(y)):.1f}"
    text = [f'<text x="{left}" y="25">a decision, ms, by {title}</text>',
            f'<path d="M{left} 45 v{HEIGHT} h{WIDTH}" fill="none" stroke="black"/>']
    text += [f'<text x="{left - 8}" y="{49 + HEIGHT * (1 - up.at(y)):.0f}" text-anchor="end">{y:,.4g}</text>'
             for y in up.marks]
    text += [f'<text x="{left + WIDTH * across.at(x):.0f}" y="{63 + HEIGHT}" text-anchor="middle">{x:,.0f}</text>'
             for x in across.marks]
    for name, colour in COLOURS.items():
        for share, dash in ((0, "none"), (1, "4 3")):
            line = " ".join(place(x, getattr(t, name)[share]) for x, t in points)
            text.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" '
                        f'stroke-dasharray="{dash}"/>')
    text.append(f'<text x="{left}" y="315" fill="{COLOURS["stock"]}">Slurm</text>'
                f'<text x="{left + 50}" y="315" fill="{COLOURS["ours"]}">Topiary before Slurm</text>'
                f'<text x="{left + 190}" y="315">median, and p99 dashed</text>')
    return "\n".join(text)
