#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The figures of recording in BENCHMARKS.md: traces and their display, what topiary-monitor takes of a node, what a
step's start costs, and how soon topiary top of a job shows what happens on its nodes."""
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Part, cpu_of_children, main
from rig import Cluster
from rig.cluster import as_user
from rig.event_to_screen import delays as display_delays
from rig.paths import BUILD, ROOT
from rig.processes import wait_until
from rig.terminal import Terminal

USER = "nobody"
GOALS = {1: 0.002, 10: 0.02, 100: 0.1}
EVENT = "migrations"        # few in what else runs here
MANY = 500                  # a second
HOOKS = ("slurm_spank_init", "slurm_spank_init_post_opt", "slurm_spank_task_init")
NODE = "[numa] Package:2 L3:16 Core:4 PU:2"
PUS, COUNTERS = 256, 6


# --- traces

def make(path, ticks):
    subprocess.run([BUILD / "tests" / "trace_make", path, NODE, str(ticks)], check=True, stdout=subprocess.DEVNULL)


def size(sheet, args):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        make(path, args.ticks)
        each = path.stat().st_size / (args.ticks * PUS)
    sheet.add("size of a made trace of six counters per PU and tick", round(each, 2), "B", "<= 8",
              f"{COUNTERS * 8 / each:.1f} times counters of 8 bytes")
    recorded_size(sheet)


def recorded_size(sheet):
    """Of tools/lint, which starts hundreds of processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        subprocess.run([BUILD / "topiary", "record", "-r", "20", "-o", path, ROOT / "tools" / "lint"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = json.loads(subprocess.run([BUILD / "topiary", "trace", "summary", path, "--level=PU", "--json"],
                                          check=True, stdout=subprocess.PIPE).stdout)
        head = 40 + int.from_bytes(path.read_bytes()[16:20], "little")
        values = found["ticks"] * len(found["metrics"])
        each = COUNTERS * (path.stat().st_size - head) / values
    sheet.add("size of six values of a recorded trace, without its head", round(each, 2), "B", "<= 8",
              f"{found['ticks']} ticks at 20 Hz of tools/lint, {COUNTERS * 8 / each:.1f} times counters of 8 bytes")


def trace_seconds(*command):
    begun = time.perf_counter()
    subprocess.run([BUILD / "topiary", "trace", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def summary(sheet, args):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        make(path, args.ticks)
        seconds = min(trace_seconds("summary", path) for _ in range(args.runs))
    sheet.add(f"summary of {args.ticks} ticks of 256 PUs and six counters, by machine", round(seconds, 2), "s",
              "<= 5 for 86400")


# On a line of its input: 50,000 page faults, and 300 times to sleep.
BUSY = """import mmap, time
print("ready", flush=True)
input()
pages = mmap.mmap(-1, 4096 * 50000)
pages.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(50000):
    pages[4096 * i] = 1
for _ in range(300):
    time.sleep(1e-3)
print("done", flush=True)
input()
"""


def totals(sheet, _):
    """What perf stat and topiary record count of one process at the same time."""
    if not shutil.which("perf"):
        print("perf is not installed: not measured")
        return
    names = {"task-clock": "busy", "minor-faults": "minor_faults", "context-switches": "context_switches"}
    with tempfile.TemporaryDirectory() as folder, \
            subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True) as process:
        process.stdout.readline()
        recorders = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in (
            ["perf", "stat", "-x,", "-o", f"{folder}/perf", "-e", ",".join(names), "-p", str(process.pid)],
            [BUILD / "topiary", "record", "-r", "10", "-o", f"{folder}/trace", "-p", str(process.pid)])]
        time.sleep(1)
        print("go", file=process.stdin, flush=True)
        process.stdout.readline()
        time.sleep(0.3)
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
        process.kill()
        rows = [line.split(",") for line in Path(folder, "perf").read_text().splitlines() if "," in line]
        perf = {names[row[2].partition(":")[0]]: float(row[0]) for row in rows if not row[0].startswith("<")}
        done = subprocess.run([BUILD / "topiary", "trace", "summary", f"{folder}/trace", "--json"], check=True,
                              stdout=subprocess.PIPE)
    ours = {m["metric"]: m["total"] for m in json.loads(done.stdout)["metrics"]}
    perf["busy"] *= 1e6     # milliseconds
    for name in names.values():
        sheet.add(f"{name} of a process by topiary record, relative to perf stat of the same time",
                  f"{100 * (ours[name] / perf[name] - 1):+.4f}", "%", "<= 0.1",
                  beside=f"{ours[name]:,} and {perf[name]:,.0f}")


def display(sheet, args):
    """The end of a trace as it is recorded: from an event to the screen, and what the screen costs; and a trace as a
    page."""
    for hz in (1, 10):
        times = display_delays(hz, args.events)
        sheet.add(f"from an event to the screen of `topiary top` at {hz} Hz, p95",
                  round(times[int(0.95 * (args.events - 1))], 2), "s", f"<= {1 / hz + 0.5:.1f}: the period and 0.5 s",
                  beside=f"of {args.events}, median {statistics.median(times):.2f}")
    before = cpu_of_children()
    screen = Terminal(BUILD / "topiary", "top", "--hz=10", "sleep", "10")
    screen.end()
    spent = cpu_of_children() - before
    sheet.add("CPU time of `topiary top` at 10 Hz, recorder and screen, beside a program that sleeps",
              round(10 * spent, 2), "% of one PU")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        make(path, args.ticks)
        seconds = min(trace_seconds("html", path) for _ in range(args.runs))
        page = subprocess.run([BUILD / "topiary", "trace", "html", path], check=True, stdout=subprocess.PIPE).stdout
    of = f"{args.ticks} ticks of 256 PUs and six counters"
    sheet.add(f"page of {of}, all metrics: time to write it", round(seconds, 2), "s")
    sheet.add(f"page of {of}, all metrics: size", round(len(page) / 1e6, 2), "MB", "<= 5")


# --- recorded jobs

# Between "move" and "rest" on its input it goes from one PU to another, some thousand times a second.
MOVES = """import os, select, time
pus = sorted(os.sched_getaffinity(0))[:2]
os.nice(-15)
moves = False
print("ready", flush=True)
while True:
    if not moves or select.select([0], [], [], 0)[0]:
        moves = os.read(0, 99).endswith(b"move")
    elif moves:
        for pu in pus:
            os.sched_setaffinity(0, {pu})
        time.sleep(2e-4)
"""


class Nodes:
    """So many nodes that all are this machine, each with a topiary-monitor of its own."""

    def __init__(self, n):
        self.names = [f"cn{i + 1}" for i in range(n)]
        self.folder = Path(tempfile.mkdtemp(prefix="topiary_bench_", dir="/tmp"))
        self.cluster = Cluster(self.folder / "c", dict.fromkeys(self.names), registry=False)

    def __enter__(self):
        self.folder.chmod(0o755)
        self.cluster.start()
        program = shutil.copy(BUILD / "topiary-monitor", self.cluster.folder / "bin")
        for node in self.names:
            self.cluster.run_daemon(f"monitor.{node}", self.cluster.on_node(node, [
                program, "--config", self.cluster.folder / "etc" / "topiary.conf"]))
        self.own = self.cluster.folder / "work" / "own"
        self.own.mkdir()
        self.own.chmod(0o777)
        return self

    def __exit__(self, *_):
        self.cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command):
        return self.cluster.command(command, user=USER, cwd=self.own).stdout.strip()

    def clock(self):
        """The file that a plugin around ours writes what its hooks take into, of all steps from now on."""
        etc, file = self.cluster.folder / "etc", self.own / "clock"
        shutil.copy(BUILD / "bench" / "topology_clock.so", self.cluster.folder / "bin")
        file.write_text("")
        file.chmod(0o666)
        (etc / "plugstack.conf").write_text(
            f"optional {self.cluster.folder}/bin/topology_clock.so {self.cluster.folder}/plugins/spank_topiary.so "
            f"{file} config={etc}/topiary.conf\n")
        return file

    def monitor_seconds(self):
        """CPU time of the first node's topiary-monitor."""
        pid = self.cluster.daemons[f"monitor.{self.names[0]}"].pid
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9

    def pages(self, step):
        return sum((self.cluster.folder / "nodes" / node / "run" / step / "monitor.live").exists()
                   for node in self.names)


def cost(sheet, args):
    for hz, goal in GOALS.items():
        shares, slowed = [], False
        for _ in range(args.runs):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([BUILD / "bench" / "monitor_tick", folder, str(hz), str(args.seconds)],
                                      check=True, capture_output=True, text=True)
            shares.append(float(done.stdout))
            slowed |= "costs too much" in done.stderr
        sheet.add(f"CPU time of topiary-monitor at {hz} Hz, 256 PUs, set sw, of the node", f"{min(shares):.4f}", "%",
                  f"<= {goal}", beside=f"least of {args.runs}" + ("; it has doubled the interval" if slowed else ""))


def trimmed(values, part=0.1):
    cut = int(len(values) * part)
    return statistics.mean(sorted(values)[cut:len(values) - cut])


def beside(sheet, args):
    """Many short pairs: the wall's clock and the CPU time of one pair vary by some percent where others share the
    hardware. What the recording takes itself is no estimate."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([BUILD / "bench" / "monitor_beside", folder, "10", str(args.slices), "500"], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ratios, own = zip(*(map(float, line.split()) for line in done.stdout.splitlines()))
    ratios = [math.log(x) for x in ratios if math.isfinite(x) and x > 0]
    again = sorted(trimmed(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    low, high = (math.exp(again[int(len(again) * x)]) for x in (0.025, 0.975))
    sheet.add("CPU time of a program that waits for memory, for the same work, recorded at 10 Hz relative to without",
              f"{math.exp(trimmed(ratios)):.4f}", "times", "<= 1.001", beside=f"95 % interval {low:.4f} to {high:.4f}; "
              f"trimmed mean of {len(ratios)} pairs of 0.5 s, one process on each PU")
    sheet.add("CPU time that the recording takes meanwhile, of the program's PUs",
              f"{100 * statistics.mean(own):.3f}", "%", "<= 0.1: the run time if it is all taken from the program",
              beside=f"of {os.cpu_count()} PUs, standard error {100 * statistics.stdev(own) / len(own) ** 0.5:.4f}")


def cpu_of(*command, seconds):
    """CPU seconds of a recorder that is ended after so long, without its first second."""
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    spent = []
    for wait in (1, seconds):
        time.sleep(wait)
        if recorder.poll() is None:
            spent.append(sum(int(Path(f"/proc/{recorder.pid}/task/{task}/schedstat").read_text().split()[0])
                             for task in os.listdir(f"/proc/{recorder.pid}/task")) / 1e9)
    ended = recorder.poll() is not None
    recorder.terminate()
    said = recorder.communicate()[1].strip().splitlines()
    return (None, said[-1] if said else "it ended") if ended else (spent[1] - spent[0], "")


def collector_files(folder, hz):
    """cc-metric-collector's, for what the set sw has."""
    files = {"sinks": {"out": {"type": "stdout"}}, "receivers": {}, "router": {},
             "collectors": {name: {} for name in ("cpustat", "memstat", "numastats", "diskstat", "netstat")}}
    config = {f"{name}-file": str(folder / f"{name}.json") for name in files}
    config["main"] = {"interval": f"{1000 // hz}ms", "duration": f"{1000 // hz}ms"}
    for name, value in (*files.items(), ("config", config)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder / "config.json"


def peers(sheet, args):
    """Recorders of all PUs of this machine, beside each other. The sets of values are alike, not the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for hz in (1, 10):
            done = subprocess.run([BUILD / "bench" / "monitor_tick", folder, str(hz), str(args.seconds), "here"],
                                  check=True, capture_output=True, text=True)
            sheet.add(f"CPU time of topiary-monitor at {hz} Hz, the {os.cpu_count()} PUs of this machine, set sw",
                      f"{float(done.stdout) * os.cpu_count():.3f}", "% of one PU")
            for what, *command in (
                    ("perf stat -a -A -I, the same four events", "perf", "stat", "-a", "-A", "-I", str(1000 // hz),
                     "-o", folder / "perf", "-e", "context-switches,migrations,minor-faults,major-faults"),
                    ("cc-metric-collector, cpustat, memstat, numastats, diskstat, netstat", "cc-metric-collector",
                     "-config", collector_files(folder, hz)),
                    ("likwid-perfctr -t", "likwid-perfctr", "-c", "0", "-g", "CLOCK", "-t", f"{1000 // hz}ms", "sleep",
                     str(args.seconds + 9))):
                spent, why = cpu_of(*map(str, command), seconds=args.seconds) if shutil.which(command[0]) else \
                    (None, "it is not installed")
                sheet.add(f"CPU time of {what}, at {hz} Hz",
                          None if spent is None else f"{100 * spent / args.seconds:.3f}", "% of one PU",
                          beside=f"not measured: {why}" if spent is None else "")


def start(sheet, args):
    with Nodes(1) as nodes:
        clock = nodes.clock()
        step = ["srun", "-Q", "--overlap", "-n1", "true"]
        script = nodes.own / "pairs.py"
        script.write_text(f"""import subprocess, time
step = {step}
def seconds(*more):
    begun = time.perf_counter()
    subprocess.run([*step[:-1], *more, "true"], check=True)
    return time.perf_counter() - begun
seconds(), seconds("--topo-monitor=sw")
for turn in range({args.pairs}):
    how = [["--topo-monitor=sw"], ["--topo-monitor=off"]][::-1 if turn % 2 else 1]
    times = [seconds(*more) for more in how][::-1 if turn % 2 else 1]
    print(times[0] - times[1])
""")
        busy = nodes.monitor_seconds()
        said = nodes.run("salloc", "-Q", "-n1", "/usr/bin/python3", script)   # this one may be out of the user's reach
        busy = nodes.monitor_seconds() - busy
        starts = hook_times(clock.read_text())[2:]
    assert len(starts) == 2 * args.pairs, clock
    (walls, cpus), (plain_walls, plain_cpus) = (zip(*starts[i::4], *starts[j::4]) for i, j in ((0, 3), (1, 2)))
    wall, cpu = (statistics.median(a) - statistics.median(b) for a, b in ((walls, plain_walls), (cpus, plain_cpus)))
    sheet.add("CPU time of the plugin at the start of `srun true` with --topo-monitor=sw, beyond without",
              f"{cpu:.2f}", "ms", "<= 1", beside=f"{wall:.2f} ms on the wall's clock; medians of {args.pairs} steps "
              f"each, {statistics.median(plain_cpus):.2f} without: all hooks until the program begins")
    sheet.add("CPU time of topiary-monitor for a step with --topo-monitor=sw, its end included",
              f"{busy * 1e3 / (args.pairs + 1):.2f}", "ms", beside=f"mean of {args.pairs + 1}; beside the step's start")
    more = sorted(float(line) * 1e3 for line in said.splitlines())
    low, _, high = statistics.quantiles(more, n=4)
    sheet.add("time of `srun true` with --topo-monitor=sw beyond without", round(statistics.median(more), 1), "ms",
              beside=f"median of {len(more)} pairs, quartiles {low:.1f}, {high:.1f}; with the end, when the trace is "
              "completed and copied")


def hook_times(text):
    """Milliseconds of the hooks until the program begins, and of CPU time, of each step in turn (topology_clock.c)."""
    steps = []
    for hook, context, *took in map(str.split, text.splitlines()):
        if hook in HOOKS and context == "2":    # in slurmstepd, S_CTX_REMOTE
            if hook == HOOKS[0]:
                steps.append((0, 0))
            steps[-1] = tuple(sum(two) for two in zip(steps[-1], (float(us) / 1e3 for us in took)))
    return steps


def live(sheet, args):
    with Nodes(8) as nodes:
        for hz in (1, 10):
            times, ticks = delays(nodes, hz, args.events)
            tell_p95(sheet, f"from an event to the screen of `topiary top JOB`, 8 nodes at {hz} Hz, p95", times,
                     f"<= {1 / hz + 0.5:.1f}: the period and 0.5 s", "until all nodes show it")
            if hz == 1:     # more than a period would be the same as less
                tell_p95(sheet, "from the tick that has it to the screen, 8 nodes at 1 Hz, p95", ticks)


def tell_p95(sheet, what, times, goal="", how=""):
    sheet.add(what, round(sorted(times)[int(0.95 * (len(times) - 1))], 2), "s", goal, beside="; ".join(filter(None, (
        f"of {len(times)}, median {statistics.median(times):.2f}", how))))


def delays(nodes, hz, events):
    """Seconds of events at equal distances over the period between two ticks, and of each from the tick before it is
    seen. A tick is at a whole multiple of the period. The job has all PUs, as the program is on two."""
    go = nodes.own / f"go.{hz}"
    script = nodes.own / f"job.{hz}"
    script.write_text(f"#!/bin/sh\nsrun -Q -n8 --topo-monitor=sw,hz={hz} sh -c "
                      f"'until [ -e {go} ]; do sleep 0.5; done'\n")
    script.chmod(0o755)
    job = nodes.run("sbatch", "--parsable", "--output=/dev/null", "-N8", "-n8", "--ntasks-per-node=1", "--exclusive",
                    script)
    assert wait_until(lambda: nodes.pages(f"{job}.0") == 8, 120)
    program = subprocess.Popen([sys.executable, "-c", MOVES], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    screen, times, ticks = None, [], []
    try:
        assert program.stdout.readline() == b"ready\n"
        screen = Terminal(*map(str, as_user(USER, ["topiary", "top", f"--metric={EVENT}", job])),
                          **nodes.cluster.env())

        def values():
            found = [value for name, (value, *_) in screen.boxes().items() if name.startswith("cn")]
            return found if len(found) == 8 else []
        for i in range(events):
            screen.wait(lambda: values() and max(values()) < MANY, seconds=120)
            later = time.monotonic() + i / events / hz
            while time.monotonic() < later:
                screen.read(0.01)
            begun = time.monotonic()
            os.write(program.stdin.fileno(), b"move")
            screen.wait(lambda: values() and min(values()) > MANY, quiet=0, seconds=120)
            times.append(time.monotonic() - begun)
            ticks.append(time.time() % (1 / hz))
            os.write(program.stdin.fileno(), b"rest")
    finally:
        program.kill()
        program.wait()
        if screen:
            screen.press("q")
            screen.end()
            screen.close()
        go.touch()
        assert wait_until(nodes.cluster.nodes_idle, 120)
    return times, ticks


TICKS = {"ticks": (86400, "seconds of the made trace"), "runs": (3, "the least of so many")}
EVENTS = {"events": (40, "that are to be seen on the screen")}
SECONDS = {"seconds": (10, "that the monitor records")}
PARTS = {
    "size": Part(size, "bytes of a trace", TICKS), "summary": Part(summary, "time of a summary", TICKS),
    "totals": Part(totals, "what perf stat and topiary record count of one process", {}),
    "display": Part(display, "from an event to the screen of topiary top; a trace as a page", {**TICKS, **EVENTS}),
    "cost": Part(cost, "what topiary-monitor takes of a node", {**SECONDS, "runs": (3, "the least of so many")}),
    "beside": Part(beside, "what recording costs a program that waits for memory",
                   {"slices": (900, "pairs of 0.5 s with and without a recording")}),
    "peers": Part(peers, "what other recorders take", SECONDS),
    "start": Part(start, "what --topo-monitor adds to a step", {"pairs": (100, "of steps with and without")}),
    "live": Part(live, "from an event to the screen of topiary top of a job", EVENTS),
}

if __name__ == "__main__":
    main(__doc__, PARTS, ("size", "summary", "totals", "display", "cost", "beside", "peers", "start --pairs 60",
                          "live --events 20"), needs=("monitor_tick", "topology_clock.so"))
