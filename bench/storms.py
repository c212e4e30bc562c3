# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A private registry under a storm of nodes: its processes' time and memory, and what is left of it after a kill."""
import collections
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from common import cpu_seconds, family, memory_of
from registry_rig import BUILD, USER, Registry
from rig import clones
from rig.cluster import as_user, free_ports, port_open
from rig.paths import CACHE
from rig.processes import start_time, wait_until

Export = collections.namedtuple("Export", "node boot seq sha256")


def machines():
    """The machines that packaging/setup exported, one of each kind that has memory and cores as clusters have them."""
    return [CACHE / "machines" / f"{name}.xml" for name in ("intel-2x8", "amd-4x16", "arm-2x64", "power-2x4")]


class Peak:
    """The most memory that a process and its children had while this was open."""

    def __init__(self, pid, every=0.5):
        self.pid, self.every, self.bytes, self.over = pid, every, 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.over.wait(self.every):
            self.bytes = max(self.bytes, memory_of(self.pid))

    def __enter__(self):
        self.bytes = memory_of(self.pid)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Stormy(Registry):
    """A registry with a munged for the nodes beside its own: what nodes sign costs the registry nothing."""

    def __init__(self, folder, **settings):
        super().__init__(folder)
        with self.config.open("a") as f:
            f.writelines(f"{key}={value}\n" for key, value in settings.items())
        self.node_socket = self.folder / "nodes" / "socket"
        self.node_socket.parent.mkdir(mode=0o755)
        self.logs = 0
        self.second_port = None

    def start_munge(self):
        super().start_munge()
        home = self.node_socket.parent
        shutil.copy(self.folder / "munge" / "key", home / "key")
        self.daemon("node-munged", ["munged", "--foreground", f"--socket={self.node_socket}", f"--key-file={home}/key",
                                    f"--pid-file={home}/pid", f"--log-file={home}/log", f"--seed-file={home}/seed"],
                    self.node_socket.exists)

    def start(self):
        super().start()
        if not wait_until(lambda: self.get("/healthz").status == 200, 30):
            raise RuntimeError(f"topiaryd: {self.log('topiaryd')}")
        return self

    def start_second(self):
        """Another topiaryd on the same PostgreSQL, or the same one again after its end; its URL."""
        self.second_port = self.second_port or free_ports(1)[0]
        config = self.folder / "second.conf"
        config.write_text(self.config.read_text().replace(f":{self.port}", f":{self.second_port}")
                          .replace(f"SnapshotFile={self.snapshot}", f"SnapshotFile={self.snapshot}2"))
        self.daemon("second", as_user(USER, [str(self.folder / "topiaryd"), "--config", str(config)]),
                    lambda: port_open(self.second_port))
        return f"http://127.0.0.1:{self.second_port}"

    def end(self):
        for name in ("second", "node-munged"):
            if name in self.daemons:
                self.stop(name)
        super().end()

    # --- storms

    def storm_command(self, bases, log=None, pad=0, distinct=False, **options):
        command = [BUILD / "bench/storm", "--config", self.config, "--munge-socket", self.node_socket]
        for base in bases:
            kind = self.folder / f"{Path(base).stem}.kind"
            kind.write_text(clones.kind(base, options.get("variants"), pad, distinct), encoding="utf-8")
            command += ["--base", kind]
        command += ["--log", log] if log else []
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            values = value if isinstance(value, list) else [value]
            command += [part for one in values for part in ((flag,) if one is True else (flag, one))]
        return [str(part) for part in command]

    def storm(self, bases, **options):
        """Run one to its end; its own report, whether or not all were acknowledged."""
        done = subprocess.run(self.storm_command(bases, **options), stdout=subprocess.PIPE, text=True, check=False)
        return json.loads(done.stdout)

    def background_storm(self, bases, **options):
        log = self.folder / f"storm{self.logs}.log"
        self.logs += 1
        return subprocess.Popen(self.storm_command(bases, log=log, **options), stdout=subprocess.PIPE, text=True), log

    # --- what it costs

    PARTS = ("topiaryd", "postgres", "munged", "node-munged")

    def cpu(self):
        return {name: cpu_seconds(self.daemons[name].pid) for name in self.PARTS}

    def measured(self, work):
        """work(), the CPU seconds that each part took meanwhile, and topiaryd's most memory."""
        before = self.cpu()
        with Peak(self.daemons["topiaryd"].pid) as peak:
            result = work()
        after = self.cpu()
        return result, {name: after[name] - before[name] for name in before}, peak.bytes

    # --- what is left

    def kill(self, name):
        """SIGKILL to a daemon and to all below it at once."""
        daemon = self.daemons.pop(name)
        doomed = [(pid, int(fields[19])) for pid, fields in family(daemon.pid).items()]
        for pid, start in doomed:
            if start_time(pid) == start:
                os.kill(pid, signal.SIGKILL)
        daemon.child.wait()
        if not wait_until(lambda: all(start_time(pid) != start for pid, start in doomed), 10):
            raise RuntimeError(f"{name} outlives SIGKILL")

    def revive(self, name):
        {"topiaryd": self.start_topiaryd, "postgres": self.start_postgres, "second": self.start_second}[name]()

    def survivors(self, exports):
        """What is wrong with all that was ever acknowledged to some nodes, in its order: a line each."""
        wrong, acknowledged = [], collections.defaultdict(list)
        for export in exports:
            acknowledged[export.node].append(export)
        for node, told in acknowledged.items():
            last, answer = told[-1], self.get(f"/v1/nodes/{node}")
            if answer.status != 200:
                wrong.append(f"{node}: {len(told)} exports acknowledged, and the registry answers {answer.status}")
                continue
            now = answer.json()
            if (now["boot_id"], now["seq"], now["sha256"]) != (last.boot, last.seq, last.sha256):
                wrong.append(f"{node}: acknowledged {last}, there is boot {now['boot_id']} seq {now['seq']} sha256 "
                             f"{now['sha256']}")
            found = hashlib.sha256(self.get(f"/v1/nodes/{node}/topology").body).hexdigest()
            if found != last.sha256:
                wrong.append(f"{node}: acknowledged {last.sha256}, gives back {found}")
            history = [entry["sha256"] for entry in self.get(f"/v1/nodes/{node}/history?limit=1000").json()["history"]]
            changes = [sha256 for sha256, _ in itertools.groupby(export.sha256 for export in told)]
            if history[::-1] != changes:
                wrong.append(f"{node}: acknowledged {len(changes)} changes, its history has {len(history)}: lost "
                             "or doubled")
        return wrong


def read_log(path):
    for line in Path(path).read_text(encoding="ascii").split("\n")[:-1]:
        node, boot, seq, sha256 = line.split()
        yield Export(node, boot, int(seq), sha256)


def kill_rounds(registry, bases, times, seed, agents=120, first=600000, tell=lambda line: None):
    """
    Storms of the same nodes, each node repaired from one storm to the next, with a SIGKILL to topiaryd or to PostgreSQL
    in the midst of each. (Acknowledged exports, retries, what is wrong.)
    """
    chance, exports, wrong, retries = random.Random(seed), [], [], 0
    for number in range(times):
        victim = chance.choice(("topiaryd", "postgres"))
        storm, log = registry.background_storm(bases, agents=agents, first=first, window=1, pause_max=1,
                                               deadline=90, threads=32, variants=20, generation=number,
                                               seed=seed * 1000 + number)
        time.sleep(chance.uniform(0.2, 1.1))
        registry.kill(victim)
        time.sleep(chance.uniform(0, 0.3))
        registry.revive(victim)
        report = json.loads(storm.communicate()[0])
        retries += report["retries"]
        found = list(read_log(log))
        exports += found
        if report["failed"] or len(found) != agents or len({e.node for e in found}) != agents:
            wrong.append(f"round {number}, {victim} killed: {len(found)} of {agents} acknowledged, "
                         f"{report['last_reason']}")
        if number % 20 == 19 or number == times - 1:
            wrong += registry.survivors(exports)
        tell(f"kill {number + 1} of {times}: {victim}, {report['retries']} retries, {len(wrong)} wrong")
    return len(exports), retries, wrong
