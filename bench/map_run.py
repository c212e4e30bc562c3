# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Any method on a problem: what it cost by the judge, and how long it took. Each is a program that is given the
problem's files."""
import json
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import map_judge as judge
from rig.paths import BUILD

PEERS = {"scotch": "Scotch as netloc calls it", "treematch": "TreeMatch"}
PEER_LIMIT = 300
OURS_LIMIT = 1800
HERE = Path(__file__).resolve().parent


@dataclass
class Found:
    """cost: None, if the method ended without a mapping."""
    seats: list = None
    cost: float = None
    doubles: int = 0
    seconds: float = 0.0
    told: dict = None       # what --explain=json says


class Bed:
    """A problem laid out in a folder."""

    def __init__(self, problem, folder):
        self.problem, self.folder = problem, folder
        self.machine = judge.Machine(problem.fabric)
        problem.write(folder)

    def judged(self, text, **more):
        seats = judge.read_plain(text, self.machine, self.problem.ranks)
        return Found(seats, self.cost(seats), judge.doubles(seats), **more)

    def cost(self, seats):
        return judge.cost(self.problem.pairs, self.machine, seats)

    def ours(self, effort="normal", seed=1, core=None, explain=True, program=BUILD / "topiary"):
        """`topiary map`, as a user calls it; seconds: of processor time, which with `explain` is also that of the
        comparisons."""
        words = [program, "map", f"--arch={self.folder}/fabric", f"--matrix={self.folder}/matrix", f"--effort={effort}",
                 f"--seed={seed}"] + ["--explain=json"] * explain
        done, seconds = timed(words, OURS_LIMIT, core)
        if done.returncode:
            raise judge.Broken(f"{self.problem.name}: {done.stderr.strip()}")
        return self.judged(done.stdout, seconds=seconds, told=json.loads(done.stderr) if explain else None)

    def peer(self, method):
        try:
            done, seconds = timed([sys.executable, HERE / "map_peers.py", method, self.folder], PEER_LIMIT)
            return Found() if done.returncode else self.judged(done.stdout, seconds=seconds)
        except (subprocess.TimeoutExpired, judge.Broken):
            return Found()


def timed(words, limit, core=None):
    """What a program said, and its seconds of processor time; core: the one that it may use."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pin = None if core is None else lambda: os.sched_setaffinity(0, [core])
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False, preexec_fn=pin)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def bed(problem):
    with tempfile.TemporaryDirectory(prefix="map") as folder:
        yield Bed(problem, Path(folder))
