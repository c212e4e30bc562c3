# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""All tests under one roof: each case of a cmocka program is a test beside those in Python; one line of totals ends the
run."""
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("TOPIARY_BUILD", ROOT / "build"))
PROGRAMS_AT_ONCE = ThreadPoolExecutor(max(2, os.cpu_count()))
UNIT_TIMEOUT = int(os.environ.get("TOPIARY_UNIT_TIMEOUT", "300"))  # seconds, of one program
# Those that look for displays load X11 and OpenCL each time: half of the time of programs that read many machines.
NO_DISPLAYS = {"HWLOC_PLUGINS_BLACKLIST": "hwloc_gl.so,hwloc_opencl.so"}
SKIPS = ROOT / "tests" / "skips.txt"
LISTED_CASE = re.compile(r"^TEST\((\w+)", re.M)  # tests/unit/table.h
RESULT = re.compile(r"^(not ok|ok) (\d+) (?:- |# (SKIP) )(\S+)", re.M)  # cmocka's, in which a skipped case is "not ok"
PLAN = re.compile(r"^1\.\.(\d+)$", re.M)

sys.path.insert(0, str(ROOT / "tests"))


def pytest_collect_file(file_path, parent):
    if file_path.parent.name == "unit" and file_path.suffix == ".c" and file_path.name.startswith("test_"):
        return Program.from_parent(parent, path=file_path)
    return None


class Program(pytest.File):
    """A cmocka program: its cases are listed by its source; it runs once, beside the other programs, if one of them is
    selected."""

    running = None

    def collect(self):
        self.cases = list(dict.fromkeys(LISTED_CASE.findall(self.path.read_text())))  # once, also if #ifdef has two
        for name in self.cases:
            yield Case.from_parent(self, name=name)
        yield Protocol.from_parent(self, name="tap")

    def start(self):
        self.running = self.running or PROGRAMS_AT_ONCE.submit(self.run)
        return self.running

    @property
    def output(self):
        """How the program ended, None for status 0, and its TAP."""
        return self.start().result()

    def run(self):
        program = BUILD / "tests" / self.path.stem
        try:
            done = subprocess.run([str(program)], cwd=ROOT, timeout=UNIT_TIMEOUT,
                                  env={**os.environ, **NO_DISPLAYS, "CMOCKA_MESSAGE_OUTPUT": "TAP"},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", check=False)
        except FileNotFoundError:
            return f"{program} was not built", ""
        except subprocess.TimeoutExpired as late:
            return f"killed after {UNIT_TIMEOUT} s", (late.stdout or b"").decode(errors="replace")
        return how_it_ended(done.returncode), done.stdout


def is_worker(config):
    """One of several processes of xdist, which run the tests of some files each."""
    return hasattr(config, "workerinput")


# Files that share clusters of the session, by the folder's fixtures: one worker starts those and runs all of the files.
SHARING = {"plain": "daemons fates mixture reservations resize suspend",
           "rich": "dynamic_nodes gres preemption specialised_cores", "network": "exclusive_topology network"}
SHARED = {f"tests/cluster/compose/test_{name}.py": pair for pair, names in SHARING.items() for name in names.split()}
# What takes longest begins first, so that no worker is alone with it at the end.
LONGEST = ["tests/whole/test_whole.py", "tests/cluster/test_hostile.py", "plain", "tests/store/test_baseline.py",
           "rich", "network", "tests/unit/test_offline_audit.py", "tests/cluster/test_audit.py",
           "tests/cluster/test_rank_file.py", "tests/store/test_fabric.py", "tests/cluster/test_monitor.py",
           "tests/cluster/test_fit.py", "tests/cluster/test_place.py"]


def work_of(nodeid):
    """What one worker runs as a whole: a file, or files that share clusters."""
    file = nodeid.partition("::")[0]
    return SHARED.get(file, file)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(work) if (work := work_of(item.nodeid)) in LONGEST else len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByWork(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return work_of(nodeid)
    return ByWork(config, log)


def pytest_runtestloop(session):
    """Starts the unit programs, which need no other test; each is reported in its turn."""
    if not session.config.option.collectonly and not is_worker(session.config):
        for item in session.items:
            if isinstance(item, UnitItem):
                item.parent.start()


def pytest_sessionfinish():
    PROGRAMS_AT_ONCE.shutdown(cancel_futures=True)


def how_it_ended(status):
    if status == 0:
        return None
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


class CaseFailed(Exception):
    """A cmocka case or program that failed; the text is the program's."""


class UnitItem(pytest.Item):
    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if isinstance(excinfo.value, CaseFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class Case(UnitItem):
    def runtest(self):
        ended, text = self.parent.output
        results = {skipped or verdict for verdict, _, skipped, name in RESULT.findall(text) if name == self.name}
        if not results:
            raise CaseFailed(f"no result; the program: {ended or 'exit status 0'}\n{text}")
        if "not ok" in results:
            raise CaseFailed(text)
        if "SKIP" in results:
            pytest.skip("skipped by the program")


class Protocol(UnitItem):
    """What the program reported is what its source lists and its plan announced, and its status agrees."""

    def runtest(self):
        ended, text = self.parent.output
        results = RESULT.findall(text)
        seen = [name for _, _, _, name in results]
        numbers = [int(number) for _, number, _, _ in results]
        failed = any(verdict != "ok" and not skipped for verdict, _, skipped, _ in results)
        plans = [int(count) for count in PLAN.findall(text)]
        for wrong, problem in (
            (ended and not failed, ended),
            (failed and not ended, "exit status 0 although a case failed"),
            (not results, "no TAP results"),
            (plans != [len(results)] or numbers != list(range(1, len(results) + 1)),
             f"plans {plans}, results {numbers}"),
            (seen != self.parent.cases, f"the source lists {self.parent.cases}, the program reported {seen}"),
        ):
            if wrong:
                raise CaseFailed(f"{problem}\n{text}")


def skips_listed():
    """[(test, reason)] of skips.txt, as patterns."""
    lines = [line for line in SKIPS.read_text().split("\n") if line and not line.startswith("#")]
    return [tuple(re.compile(re.escape(part).replace(r"\*", ".*")) for part in line.split(": ", 1)) for line in lines]


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item):
    """With TOPIARY_CI set, a skip that skips.txt does not list is a failure."""
    report = (yield).get_result()
    if not os.environ.get("TOPIARY_CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2].removeprefix("Skipped: ")
    if not any(test.fullmatch(item.nodeid) and words.fullmatch(reason) for test, words in skips_listed()):
        report.outcome = "failed"
        report.longrepr = f"skipped under CI, and not listed in {SKIPS.relative_to(ROOT)}: {reason}"


totals = {"passed": 0, "failed": 0, "skipped": 0}
failures = {}       # of the tests that failed, in order


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        totals[report.outcome] += 1
    if report.failed:
        failures[report.nodeid] = True
        print(f"\nFAILED {report.nodeid} ({report.when}): {str(report.longrepr)[-300:]}", flush=True)


def pytest_collectreport(report):
    if report.outcome == "failed":
        totals["failed"] += 1


def pytest_unconfigure(config):
    """One line of totals; tools/pytest reads the same from a file."""
    if not config.option.collectonly and not is_worker(config):
        if "TOPIARY_TOLD" in os.environ:
            Path(os.environ["TOPIARY_TOLD"]).write_text(json.dumps({"totals": totals, "failures": list(failures)}))
        print(", ".join(f"{count} {outcome}" for outcome, count in totals.items()), flush=True)
