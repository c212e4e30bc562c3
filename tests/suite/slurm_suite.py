#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Runs Slurm's own test suite on two equal clusters side by side, stock Slurm and Slurm with Topiary. Prints the tests
that pass with stock Slurm and not with Topiary; the exit status is 1 if there are any. A difference counts if two more
runs of the test on both sides repeat it.
"""
import argparse
import datetime
import fnmatch
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rig import Cluster  # noqa: E402 (after the line above)
from rig.cluster import SLURM_RELEASE  # noqa: E402
from rig.paths import CACHE, SLURM_PREFIX  # noqa: E402

TESTS = Path(__file__).with_name("tests.txt")
SLURM_SOURCE = Path(os.environ.get("SLURM_SRC") or CACHE / "src/slurm").resolve()
SIDES = ("stock", "topiary")
RELEASE = ".".join(f"{part:02}" for part in SLURM_RELEASE)
LOGS = CACHE / "releases" / "log" / f"{RELEASE}.slurm-suite"
RERUNS = 2
TEST_SECONDS = 300
REST_SECONDS = 30
EXPECT_SKIPPED = 255
PYTEST = ["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider"]    # Debian's: older suites need its module py

NODES = [f"n{i}" for i in range(1, 11)]
GPUS = 4
CONF = """\
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
GresTypes=gpu
Licenses=matlab:10,ansys:20
OverTimeLimit=0
ReturnToService=1
"""

# Nothing of a side outlives it, nor reaches what else runs on the machine: the suite has tests that signal every srun
# of the user. The shell stays, for those processes whose parents end before them.
NAMESPACE = ["unshare", "--net", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child", "sh", "-c",
             'ip address add 192.0.2.1 dev lo && ip link set lo up && "$@"; exit', "sh"]


# --- one side: a process of its own, to which the names of the tests come as lines

class Side:
    def __init__(self, cluster, suite):
        self.cluster = cluster
        self.suite = cluster.folder / "testsuite"
        self.logs = LOGS / ("stock" if cluster.stock else "topiary")
        self.logs.mkdir(parents=True, exist_ok=True)
        shutil.copytree(suite, self.suite, symlinks=True, ignore=shutil.ignore_patterns("slurm_unit"))
        installed = SLURM_PREFIX or "/usr"
        globals_local = cluster.folder / "globals.local"
        globals_local.write_text(f"set slurm_dir {installed}\nset build_dir {SLURM_SOURCE}\nset src_dir "
                                 f"{SLURM_SOURCE}\n"
                                 "set mpicc /usr/bin/mpicc\nset testsuite_colorize false\n")
        testsuite_conf = cluster.folder / "testsuite.conf"
        testsuite_conf.write_text(f"SlurmSourceDir = {SLURM_SOURCE}\nSlurmBuildDir = {SLURM_SOURCE}\nSlurmInstallDir = "
                                  f"{installed}\n"
                                  f"SlurmConfigDir = {cluster.folder}/etc\n")
        self.env = cluster.env(HOME=str(cluster.folder / "work"), USER="root", LOGNAME="root", SHELL="/bin/bash",
                               TERM="dumb", SLURM_LOCAL_GLOBALS_FILE=str(globals_local),
                               SLURM_TESTSUITE_CONF=str(testsuite_conf))
        # Since 23.02 the python tests run each command in a login shell of sudo's.
        self.hide("/etc/sudoers", "root ALL=(ALL:ALL) NOPASSWD: ALL\nDefaults !env_reset, !secure_path\n")
        self.hide("/etc/profile", f"PATH={self.env['PATH']}\n")
        self.etc = cluster.folder / "etc.before"
        shutil.copytree(cluster.folder / "etc", self.etc)

    def hide(self, path, text):
        """In this side's mounts a file of the machine has another text."""
        instead = self.cluster.folder / Path(path).name
        instead.write_text(text)
        instead.chmod(0o444)
        self.cluster.command(["mount", "--bind", instead, path])

    def run(self, test):
        """{case: result}, a file of the python suite having several cases."""
        log = self.logs / (test.replace("/", ".") + ".log")
        junit = log.with_suffix(".xml")
        junit.unlink(missing_ok=True)
        command = ["expect", test]
        if test.endswith(".py"):
            command = [*PYTEST, f"--junitxml={junit}", "--local-config", test]
        with open(log, "w", encoding="utf-8") as out:
            running = subprocess.Popen(command, cwd=self.suite / ("python" if test.endswith(".py") else "expect"),
                                       env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       start_new_session=True)
            try:
                status = running.wait(TEST_SECONDS)
            except subprocess.TimeoutExpired:
                status = None
            try:
                os.killpg(running.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            running.wait()
        results = results_of(test, status, log.read_text(errors="replace"), junit)
        unwell = self.rest()
        return {case: f"fail: afterwards {unwell}" for case in results} if unwell else results

    def rest(self):
        """As it was before the test; what is not, in words, after it was mended."""
        dead = [name for name, daemon in self.cluster.daemons.items() if not daemon.alive()]
        for name in dead:
            self.cluster.end(name)
            getattr(self.cluster, "start_" + name.split(".")[0])(*name.split(".")[1:])
        self.restore()
        until = time.monotonic() + REST_SECONDS
        while not self.cluster.nodes_idle() and time.monotonic() < until:
            for command in ("scancel --user=root --quiet", "scontrol update NodeName=ALL State=RESUME"):
                self.cluster.command(command.split(), check=False)
            time.sleep(0.5)
        return f"{', '.join(dead)} ended" if dead else None if self.cluster.nodes_idle() else "nodes are not idle"

    def restore(self):
        etc = self.cluster.folder / "etc"
        if subprocess.run(["diff", "-rq", etc, self.etc], capture_output=True, check=False).returncode:
            shutil.rmtree(etc)
            shutil.copytree(self.etc, etc)
            self.cluster.command(["scontrol", "reconfigure"], check=False)


def results_of(test, status, said, junit):
    if status is None:
        return {test: f"fail: not over after {TEST_SECONDS} s"}
    if test.endswith(".py"):
        return cases_of(test, junit) or {test: f"fail: status {status}, no test ran"}
    kind = "pass" if status == 0 else "skip" if status == EXPECT_SKIPPED else "fail"
    reasons = re.findall(r"^\[.*?\] *(?:Fatal|Error|Warning) +(.*?)(?: \(\S+\))?$", said, re.M)
    return {test: kind if kind == "pass" else f"{kind}: {(reasons or [f'status {status}'])[-1]}"}


def cases_of(test, junit):
    """What pytest's report says of each case."""
    results = {}
    for case in ElementTree.parse(junit).iter("testcase") if junit.exists() else ():
        ill = next((case.find(kind) for kind in ("failure", "error", "skipped") if case.find(kind) is not None), None)
        words = "" if ill is None else " ".join(ill.get("message", "").split())[:200]
        results[f"{test}::{case.get('name')}"] = ("pass" if ill is None
                                                  else f"{'skip' if ill.tag == 'skipped' else 'fail'}: {words}")
    return results


def serve(side, suite):
    # Cores of a whole socket: since 25.11 Slurm refuses others.
    gpus = "".join(f"NodeName=n[1-{len(NODES)}] Name=gpu File={{folder}}/gpu{i} "
                   f"Cores={'0-7' if i < GPUS // 2 else '8-15'}\n" for i in range(GPUS))
    with tempfile.TemporaryDirectory(prefix="topiary_suite_", dir="/tmp", ignore_cleanup_errors=True) as folder:
        with Cluster(folder, dict.fromkeys(NODES, "intel-2x8"), stock=side == "stock", registry=False, conf=CONF,
                     nodes=dict.fromkeys(NODES, f"Gres=gpu:{GPUS}"), files={"gres.conf": gpus}) as cluster:
            served = Side(cluster, suite)
            print(flush=True)
            for line in sys.stdin:
                began = time.monotonic()
                results = served.run(line.strip())
                print(json.dumps([results, time.monotonic() - began]), flush=True)


# --- both sides

class SideError(Exception):
    """A side whose cluster did not start, or ended."""


class Suite:
    """Clusters of both sides. Tests of a side run on whichever of its clusters is free."""

    def __init__(self, suite, shards):
        self.suite = suite
        self.waiting = {side: queue.Queue() for side in SIDES}
        self.over = queue.Queue()
        self.keepers = [threading.Thread(target=self.keep, args=(side,)) for side in SIDES * shards]

    def __enter__(self):
        for keeper in self.keepers:
            keeper.start()
        return self

    def __exit__(self, *_):
        for side in SIDES:
            for _ in self.keepers:
                self.waiting[side].put(None)
        for keeper in self.keepers:
            keeper.join()

    def keep(self, side):
        """One cluster: hands it the tests that wait for its side."""
        command = [*NAMESPACE, sys.executable, __file__, "--side", side, "--suite", str(self.suite)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            reply, test = process.stdout.readline(), "its start"
            while reply:
                test = self.waiting[side].get()
                if test is None:
                    return
                process.stdin.write(test + "\n")
                process.stdin.flush()
                reply = process.stdout.readline()
                if reply:
                    self.over.put((side, test, *json.loads(reply)))
        self.over.put((side, test, None, None))

    def run(self, tests):
        """{side: {case: result}}; a result is "pass", or "fail" or "skip" with the reason."""
        results = {side: {} for side in SIDES}
        for side in SIDES:
            for test in tests:
                self.waiting[side].put(test)
        runs = len(tests) * len(SIDES)
        for count in range(1, runs + 1):
            side, test, result, seconds = self.over.get()
            if result is None:
                for waiting in self.waiting.values():
                    while not waiting.empty():
                        waiting.get()
                raise SideError(f"the cluster of side {side} ended during {test}")
            results[side] |= result
            worst = next((r for r in result.values() if r != "pass"), "pass")
            print(f"{count}/{runs} {side} {test}: {worst} ({seconds:.0f} s)", flush=True)
        return results


def differences(results):
    """The cases that pass with stock Slurm only."""
    return [case for case, result in results["stock"].items() if result == "pass"
            and results["topiary"].get(case) != "pass"]


def compare(tests, suite):
    results = suite.run(tests)
    for _ in range(RERUNS):
        again = {case.partition("::")[0] for case in differences(results)}
        for side, result in suite.run([test for test in tests if test in again]).items():
            results[side] |= result
    return results


# --- which tests, and what became of them

def listed(verb):
    """The patterns of tests.txt in lines of this verb."""
    lines = [line.split(None, 1) for line in TESTS.read_text().split("\n") if line and not line.startswith("#")]
    return [words.partition(": ")[0].strip() for what, words in lines if what == verb]


def tests_in(suite):
    """All tests of the suite, in the order of their numbers."""
    found = [path.name for path in (suite / "expect").glob("test*") if re.fullmatch(r"test\d+\.\d+", path.name)]
    found += [str(path.relative_to(suite / "python")) for path in (suite / "python/tests").rglob("test_*.py")]
    return sorted(found, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def matching(tests, patterns):
    return [test for test in tests if any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)]


def selected(options):
    tests = tests_in(options.suite)
    if options.tests:
        return matching(tests, options.tests)
    cannot = matching(tests, listed("not"))
    return [test for test in matching(tests, listed("telling" if options.telling else "run")) if test not in cannot]


def report(results, seconds, record):
    stock, topiary = results["stock"], results["topiary"]
    differ = differences(results)
    table = LOGS.with_suffix(".suite-table")
    table.write_text("".join(f"{case}\t{stock[case]}\t{topiary.get(case, 'missing')}\n" for case in stock))
    for case, result in stock.items():
        if result != "pass" and topiary.get(case) != "pass":
            print(f"passes on neither side: {case}: {result}")
    for side in SIDES:
        kinds = [result.partition(":")[0] for result in results[side].values()]
        print(f"{side}: {kinds.count('pass')} passed, {kinds.count('fail')} failed, {kinds.count('skip')} skipped")
    for case in differ:
        print(f"passes with stock Slurm only: {case}: {topiary.get(case, 'missing')}")
    print(f"slurm-suite: {seconds:.0f} s; results {table}, logs {LOGS}")
    passed = list(topiary.values()).count("pass")
    counts = f"{passed} passed, {len(differ)} failed, {len(stock) - passed - len(differ)} skipped"
    if record:
        (CACHE / "releases" / f"{RELEASE}.check-slurm-suite").write_text(
            f"{RELEASE}\tcheck-slurm-suite\t{datetime.date.today()}\t{counts}\n")
    print(counts)
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, default=os.environ.get("SLURM_TESTSUITE") or SLURM_SOURCE / "testsuite",
                        help="folder of the suite, instead of the one in Slurm's source")
    parser.add_argument("--telling", action="store_true", help="only the tests that tests.txt calls telling")
    parser.add_argument("--shards", type=int, default=1, help="clusters of each side")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="*", help="patterns of tests instead of those of tests.txt")
    options = parser.parse_args()
    options.suite = options.suite.resolve()
    if options.side:
        return serve(options.side, options.suite)
    if not (options.suite / "expect").exists():
        print(f"slurm-suite: not run: {options.suite} has no expect tests; the suite is in Slurm's git repository, "
              "and in release tarballs until 25.05. SLURM_TESTSUITE names its folder")
        return 0
    tests = selected(options)
    began = time.monotonic()
    try:
        with Suite(options.suite, options.shards) as suite:
            results = compare(tests, suite)
    except SideError as e:
        sys.exit(f"slurm-suite: {e}")
    return report(results, time.monotonic() - began, record=not options.tests and not options.telling)


if __name__ == "__main__":
    sys.exit(main())
