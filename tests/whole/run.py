#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Random cases through real slurmctld and slurmd, each judged by what is true of it. Groups of nodes, a partition each,
work side by side: a load, some jobs one after another, the next load. After some hundred cases the cluster starts
anew with other machines. Whatever the seed and a case's name draw is the same each time.
"""
import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig import Cluster  # noqa: E402 (after the line above)
from rig.machines import MachineError  # noqa: E402
from whole import judge as judges  # noqa: E402
from whole import machines, requests  # noqa: E402

GROUPS, CASES_A_LOAD, LOADS_A_ROUND = 10, 4, 8
EXAMPLES = 2             # of a kind of fault that are printed
WAIT, LIMIT = 3, 40      # seconds until a job with a reason counts as waiting; of a case at most
SCRIPT = """#!/bin/sh
scontrol -d -o show job $SLURM_JOB_ID >{folder}/record.$SLURM_JOB_ID
{why}
srun {srun} {saw} >{folder}/out.$SLURM_JOB_ID 2>{folder}/err.$SLURM_JOB_ID
echo $? >{folder}/rc.$SLURM_JOB_ID
"""
LOAD = "#!/bin/sh\nscontrol -d -o show job $SLURM_JOB_ID >{folder}/record.$SLURM_JOB_ID\nexec sleep 3000\n"


class Site(Cluster):
    """Nodes of drawn machines; what slurm.conf says of a node is slurmd's own line where that can describe it."""

    def __init__(self, folder, drawn, partitions, conf, stock):
        gres = "".join(f"NodeName={node} Name=gpu {f'Type={kind} ' if kind else ''}File={{folder}}/{node}gpu{i}"
                       f"{f' Cores={near[0]}-{near[-1]}' if near else ''}\n"
                       for node, one in drawn.items() for i, (near, kind) in enumerate(zip(one.gpus, one.types)))
        conf += "GresTypes=gpu\nSlurmdParameters=config_overrides\nMinJobAge=2\n" + "".join(
            f"PartitionName={name} Nodes={words} State=UP\n" for name, words in partitions.items())
        words = {node: " ".join([*(f"{name}={value}" for name, value in one.words.items()),
                                 *([f"Gres={self.gres(one.types)}"] if one.gpus else [])])
                 for node, one in drawn.items()}
        super().__init__(folder, {node: one.xml for node, one in drawn.items()}, stock=stock, registry=False,
                         conf=conf, nodes=words, files={"gres.conf": gres})
        self.given = {node: one.words for node, one in drawn.items()}
        self.busy = time.monotonic()      # when a job came or went last

    @staticmethod
    def gres(types):
        return ",".join(f"gpu:{kind and kind + ':'}{count}" for kind, count in Counter(types).items())

    def node_line(self, node):
        """Some machines slurmd cannot describe: their sites say that cores have one thread."""
        words = self.given[node]
        try:
            if "Sockets" not in words:
                return super().node_line(node)
        except MachineError:
            words = {"Sockets": 1, "CoresPerSocket": self.xml[node].count('type="Core"'), "ThreadsPerCore": 1}
        return (f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname={node} Port={self.ports[node]} RealMemory=16000 "
                + " ".join(f"{key}={value}" for key, value in (
                    words | dict(word.split("=", 1) for word in self.words[node].split())).items()))

    def _install(self):
        super()._install()
        shutil.copy(self.build / "tests/saw", self.folder / "bin")

    def watch(self):
        """{job: (state, reason)} of all jobs that have not ended, anew several times a second."""
        began, jobs = time.monotonic(), {}
        told = self.command(["squeue", "-h", "-o", "%i|%T|%P|%r"], check=False)
        for line in told.stdout.splitlines():
            name, *what = line.split("|", 3)
            jobs.setdefault(re.split(r"[_+]", name)[0], []).append(what)
        if not told.returncode:
            self.jobs, self.seen = jobs, began

    def pending(self, job, since):
        """Whether all of a job waits, and Slurm has said for what; not for the end of those that gave way to it."""
        states = self.jobs.get(job) if self.seen > since else None
        return bool(states) and all(state == "PENDING" and reason not in ("None", "Priority")
                                    for state, _, reason in states) and not any(
            state == "COMPLETING" and partition[-2:] == states[0][1][-2:]
            for ending in self.jobs.values() for state, partition, _ in ending)


def draw_defaults(rng):
    """What a partition has for each GPU of a job that does not say, by the option that does."""
    return ({"cpus-per-gpu": rng.choice([1, 2, 3, 5])} if rng.random() < 0.15 else {}) | (
        {"mem-per-gpu": rng.choice([100, 2000])} if rng.random() < 0.1 else {})


def words_of(defaults):
    names = {"cpus-per-gpu": "DefCpuPerGPU", "mem-per-gpu": "DefMemPerGPU"}
    return "".join(f" {names[name]}={value}" for name, value in defaults.items())


class Round:
    """A cluster with its groups, and a stock one for jobs that do not run."""

    def __init__(self, folder, seed, number, only=None):
        self.seed, self.number, self.only, self.folder = seed, number, only, Path(folder)
        self.drawn, self.groups = {}, {}
        for group in range(GROUPS):
            rng = random.Random(f"{seed}/{number}/{group}")
            names = [f"n{group}{letter}" for letter in "abc"[:rng.choices([1, 2, 3], [5, 3, 2])[0]]]
            same = rng.random() < 0.5
            for name in names:
                self.drawn[name] = (self.drawn[names[0]] if same and name != names[0] else
                                    machines.draw(random.Random(f"{seed}/{number}/{name}")))
            self.groups[f"g{group}"] = names
        # In some rounds jobs of a group's second partition may be preempted; in some groups jobs share cores.
        rng = random.Random(f"{seed}/{number}")
        self.preempts = rng.random() < 0.4
        self.forced = set() if self.preempts else {group for group in self.groups if rng.random() < 0.1}
        self.defaults = {group: draw_defaults(random.Random(f"{seed}/{number}/{group}/defaults"))
                         for group in self.groups}
        self.partitions = {group: ",".join(names) + (" OverSubscribe=FORCE:2" if group in self.forced else "")
                           + (" PriorityTier=10" if self.preempts else "") + words_of(self.defaults[group])
                           for group, names in self.groups.items()}
        if self.preempts:
            self.partitions |= {f"low{group}": ",".join(names) for group, names in self.groups.items()}
        self.clusters, self.lock, self.stopped = {}, threading.Lock(), threading.Event()
        self.given_up = set()       # groups with cores that no case knows of

    def cluster(self, stock):
        with self.lock:
            if stock not in self.clusters:
                self.clusters[stock] = self.start(stock)
        return self.clusters[stock]

    def start(self, stock):
        site = Site(self.folder / ("stock" if stock else "ours"), self.drawn, self.partitions,
                    "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n" * self.preempts, stock).__enter__()
        site.watcher = threading.Thread(target=self.watch, args=(site,), daemon=True)
        site.watch()
        site.watcher.start()
        lines = site.command(["scontrol", "-o", "show", "node"]).stdout.splitlines()
        site.confs = {re.match(r"NodeName=(\S+)", line)[1]: judges.conf_of(line) for line in lines if line}
        site.confs = {node: conf._replace(types=self.drawn[node].types) for node, conf in site.confs.items()}
        if not stock:
            self.hardware = {node: judges.Hardware(site.topology_file(node).read_text()) for node in self.drawn}
            for node, drawn in self.drawn.items():
                self.hardware[node].slice(drawn.parents, drawn.gpus)
        return site

    def watch(self, site):
        """While there are jobs, or were a moment ago."""
        while not self.stopped.wait(0.15):
            if site.jobs or time.monotonic() < site.busy + 5:
                site.watch()

    def stop(self):
        self.stopped.set()
        for site in self.clusters.values():
            site.watcher.join()
            site.stop()

    # --- jobs

    def submit(self, site, folder, text, options):
        """The job's number, or None with why it was refused."""
        folder.mkdir(mode=0o777, exist_ok=True)
        folder.chmod(0o777)
        script = folder / "script"
        script.write_text(text.format(folder=folder))
        script.chmod(0o755)
        site.busy = time.monotonic()
        done = site.command(["sbatch", "--parsable", "-o", folder / "batch", *options, script], user="nobody",
                            check=False)
        return (done.stdout.strip() or None), done.stderr

    def wait(self, site, job, tasks):
        """How a job ended: ended, waits, or late. Tasks of an array may run one after another."""
        start, reasoned = time.monotonic(), None
        while time.monotonic() < start + LIMIT * tasks:
            time.sleep(0.05)
            if site.seen < start:
                continue
            if job not in site.jobs:
                return "ended"
            reasoned = (reasoned or time.monotonic()) if site.pending(job, start) else None
            if reasoned and time.monotonic() > reasoned + WAIT * tasks:
                return "waits"
        return "late"

    def cancel(self, site, jobs):
        if jobs:
            site.command(["scancel", "--quiet", *jobs], check=False)
            since = site.busy = time.monotonic()
            while (site.seen <= since or set(jobs) & set(site.jobs)) and time.monotonic() < since + 60:
                time.sleep(0.05)

    def has_strangers(self, site, group, jobs):
        """Slurm may start the first component of a job and then refuse the second: its cores stay taken for minutes."""
        def strangers():
            return any(job not in jobs and states[0][1][-2:] == group for job, states in site.jobs.items())
        since = site.busy = time.monotonic()
        while (site.seen <= since or strangers()) and time.monotonic() < since + 5:
            time.sleep(0.05)
        return strangers()

    def load(self, site, folder, loads, group):
        """Jobs that run until they are cancelled or preempted: their numbers and records."""
        jobs, records = [], []
        for nth, words in enumerate(loads):
            words = words if not site.stock else requests.Request([words]).stock().options
            job, _ = self.submit(site, folder / f"load{nth}", LOAD, ["-p", group, *words])
            if not job:
                continue
            start = time.monotonic()
            path = folder / f"load{nth}" / f"record.{job}"
            while not (path.exists() and path.read_text().endswith("\n")) and not site.pending(job, start):
                time.sleep(0.03)
            if path.exists() and path.read_text().endswith("\n"):
                jobs.append(job)
                records.append(judges.Record(path.read_text(), site.confs))
            else:
                self.cancel(site, [job])      # there is no room for it
        gone = self.preempted(site, jobs)      # for later ones
        return [[one for job, one in zip(jobs, of) if job not in gone] for of in (jobs, records)]

    def run(self, site, folder, group, request):
        """A case: its fate, and its folder's files by the start of their names."""
        srun, options = " ".join(request.srun), []
        for nth, words in enumerate(request.components):
            options += [":"] * bool(nth) + ["-p", group, *words]
        if request.array:
            options.insert(0, f"--array=0-{request.array - 1}")
        if request.matrix and not site.stock:
            folder.mkdir(mode=0o777, exist_ok=True)
            (folder / "matrix").write_text("".join(
                " ".join(str(int(abs(a - b) in (1, request.matrix - 1))) for b in range(request.matrix)) + "\n"
                for a in range(request.matrix)))
            options.insert(0, f"--topo-matrix={folder}/matrix")
        text = SCRIPT.replace("{srun}", srun).replace("{saw}", f"{site.folder}/bin/saw").replace(
            "{why}", "" if site.stock else "topiary why -v $SLURM_JOB_ID >{folder}/why.$SLURM_JOB_ID 2>&1")
        job, refusal = self.submit(site, folder, text, options)
        if not job:
            return "refused", [{"batch": refusal}]
        end = self.wait(site, job, max(1, request.array))
        if end != "ended":
            told = {"batch": str(site.jobs.get(job))}
            if not site.stock:
                told["why"] = site.topiary("why", "-v", job, check=False).stdout
            self.cancel(site, [job])
            return end, [told | {path.stem: path.read_text() for path in folder.glob("record.*")}]
        runs = {path.suffix for path in folder.glob("record.*")} or {".none"}
        files = [{path.stem: path.read_text(errors="replace") for path in folder.glob(f"*{run}")} |
                 {"batch": (folder / "batch").read_text(errors="replace") if (folder / "batch").exists() else ""}
                 for run in sorted(runs)]
        good = len(runs) == max(1, request.array) and all(told.get("rc", "").strip() == "0" for told in files)
        return "ran" if good else "failed", files

    # --- cases

    def episode(self, group, number):
        """A load and the jobs beside it."""
        if group in self.given_up:
            return
        rng = random.Random(f"{self.seed}/{self.number}/{group}/{number}")
        site, names = self.cluster(False), self.groups[group]
        sizes = {name: (len(self.hardware[name].cores) - len(site.confs[name].reserved), site.confs[name].threads,
                        site.confs[name].gpus) for name in names}
        loads = requests.draw_loads(rng, sizes)
        for words in loads if self.preempts else ():
            words += [f"-plow{group}"] * (rng.random() < 0.6)
        for words in loads:
            cores, threads, gpus = sizes[words[0][2:]]
            sizes[words[0][2:]] = (max(1, cores - int(words[2][2:]) // threads), threads, gpus)
        idle = set(names) - {words[0][2:] for words in loads}
        drawn = [requests.draw(random.Random(f"{self.seed}/{self.number}/{group}/{number}/{nth}"), sizes, idle,
                               self.defaults[group]) for nth in range(CASES_A_LOAD)]
        folder = site.folder / "work" / f"{group}.{number}"
        folder.mkdir(mode=0o755)
        jobs, records = self.load(site, folder, loads, group)
        for nth, request in enumerate(drawn):
            name = f"{self.number}/{group[1:]}/{number}/{nth}"
            if self.only and self.only != name:
                continue
            fate, runs = self.run(site, folder / str(nth), group, request)
            if fate == "refused" and len(request.components) > 1 and self.has_strangers(site, group, jobs):
                self.given_up.add(group)
                break
            stock = "" if fate == "ran" else self.as_stock(folder.name, group, loads, records, request, nth)
            gone = self.preempted(site, jobs)
            cases = [judges.Case(request, {node: self.hardware[node] for node in names}, site.confs, names,
                                 [record for job, record in zip(jobs, records) if job not in gone],
                                 [record for job, record in zip(jobs, records) if job in gone],
                                 group in self.forced, fate=fate, stock=stock) for _ in runs]
            jobs, records = ([one for job, one in zip(jobs, of) if job not in gone] for of in (jobs, records))
            for case, files in zip(cases, runs):
                fill(case, files)
            yield name, loads, cases
        self.cancel(site, jobs)
        shutil.rmtree(folder, ignore_errors=True)

    def preempted(self, site, jobs):
        """Those of the load that a case has ended."""
        if not self.preempts:
            return set()
        told = site.command(["squeue", "-h", "-o", "%A %T"]).stdout.splitlines()
        return set(jobs) - {line.split()[0] for line in told if line.endswith(" RUNNING")}

    def as_stock(self, name, group, loads, ours, request, nth):
        """The fate; other cores or GPUs that are free are no comparison."""
        site = self.cluster(True)
        folder = site.folder / "work" / f"{name}.{nth}"
        folder.mkdir(mode=0o755)
        jobs, records = self.load(site, folder, loads, group)
        told, _ = self.run(site, folder / "case", group, request.stock())
        self.cancel(site, jobs)
        return told + ("" if taken(records) == taken(ours) else " beside other cores")


def taken(records):
    """Of the nodes, by jobs."""
    return {(node, kind, one) for record in records for kind, of in (("core", record.cores), ("GPU", record.gpus))
            for node, some in of.items() for one in some}


def fill(case, files):
    """What the files of a case have."""
    case.records = [judges.Record(line, case.confs) for line in files.get("record", "").splitlines() if line]
    case.why = files.get("why", "")
    case.tasks = [json.loads(line) for line in files.get("out", "").splitlines() if line.startswith("{")]
    for line in [*files.get("err", "").splitlines(), *files.get("batch", "").splitlines()]:
        if line.startswith('{"rank"'):
            case.reports.append(json.loads(line))
        elif "topiary" in line or case.fate != "ran":      # Slurm has lines of its own
            case.said.append(line)


def show(fault, name, seed, loads, case, drawn):
    print(f"""
fault: {fault.kind}
  again: tests/whole/run.py --seed {seed} --only {name}
  machine: {' | '.join(dict.fromkeys(drawn[node].what for node in case.order))}
  slurm.conf: {' | '.join(f'{node} {drawn[node].words or "as slurmd -C"}' for node in case.order)}
  load: {[' '.join(words) for words in loads]}, on { {n: sorted(case.used(n)) for n in case.order} }
  request: {case.request.words()}{' with a matrix' if case.request.matrix else ''}
  seen: {fault.seen}
  true: {fault.true}
  said: {' / '.join(case.said[-3:])}""", flush=True)


def run(seed, cases, only=None, keep=False):
    """{kind: number} of what was found; prints an example of each kind, and the figures."""
    start, done, kinds, fates = time.monotonic(), 0, Counter(), Counter()
    wanted = tuple(only.split("/")) if only else None
    number, lock = int(wanted[0]) if wanted else 0, threading.Lock()
    while done < cases:
        folder = tempfile.mkdtemp(prefix="topiary_whole_", dir="/tmp")
        os.chmod(folder, 0o755)
        this = Round(folder, seed, number, only)
        began, loads_each = done, min(LOADS_A_ROUND, -(-(cases - done) // (GROUPS * CASES_A_LOAD)))

        def work(group, this=this, loads_each=loads_each):
            nonlocal done
            for episode in [int(wanted[2])] if wanted else range(loads_each):
                for name, loads, judged in this.episode(group, episode):
                    found = [(fault, case) for case in judged for fault in judges.judge(case)]
                    with lock:
                        done += 1
                        fate = judged[0].fate + (f" (stock {judged[0].stock})" if judged[0].stock else "")
                        fates[fate] += 1
                        if (judged[0].stock and not judged[0].stock.startswith(judged[0].fate)
                                and judges.had(judged[0]) is not False
                                or judged[0].fate == "late"):
                            print(f"{name} {fate}: {judged[0].request.words()}: {judged[0].reason()}", flush=True)
                        kinds.update({fault.kind for fault, _ in found})
                        for fault, case in {fault.kind: (fault, case) for fault, case in reversed(found)}.values():
                            if wanted or kinds[fault.kind] <= EXAMPLES:
                                show(fault, name, seed, loads, case, this.drawn)
                        for case in judged if wanted else ():
                            print(judges.had(case), {n: sorted(case.used(n)) for n in case.order})
                            print(case.why, case.records[:1] and case.records[0].line, *case.said, *case.reports,
                                  *case.tasks, sep="\n")

        try:
            this.cluster(False)
            ready = time.monotonic()
            names = [f"g{wanted[1]}"] if wanted else list(this.groups)
            with ThreadPoolExecutor(len(names)) as pool:
                list(pool.map(work, names))
            if not this.cluster(False).slurm_alive():
                kinds["a daemon of Slurm ended"] += 1
                keep = True
        finally:
            this.stop()
        print(f"round {number}: {done - began} cases, {(done - began) * 60 / (time.monotonic() - ready):.0f} a minute",
              flush=True)
        number += 1
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        if wanted:
            break
    took = time.monotonic() - start
    print(f"\n{done} cases in {took:.0f} s, {done * 60 / took:.0f} a minute, seed {seed}")
    print("fates: " + ", ".join(f"{count} {what}" for what, count in fates.most_common()))
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", metavar="ROUND/GROUP/LOAD/CASE", help="one case, with all that it printed")
    parser.add_argument("--keep", action="store_true", help="keep the cluster's folder")
    given = parser.parse_args()
    return bool(run(given.seed, 10**9 if given.only else given.cases, given.only, keep=given.keep))


if __name__ == "__main__":
    sys.exit(main())
