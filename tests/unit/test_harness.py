# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""tests/conftest.py's own rules: what counts as passed, failed and skipped. One suite of small programs, run with and
without TOPIARY_CI."""
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from rig.paths import ROOT

SOURCE = "TEST(first)\n{\n}\n\nTEST(second, .setup_func = begin)\n{\n}\n"
BOTH = "1..2\nok 1 - first\nok 2 - second\n"
HALF = "1..2\nok 1 - first\nnot ok 2 - second\n"
SKIPS = """# a comment

tests/unit/test_python.py::test_*[a*]: no * here
tests/unit/test_listed_skip.c::second: *
"""
PYTHON = """
import pytest

@pytest.mark.parametrize("name", ["a", "b"])
def test_tool(name):
    pytest.skip("no tool here")

@pytest.mark.skipif(True, reason="of another reason")
@pytest.mark.parametrize("name", ["a"])
def test_mark(name):
    pass

@pytest.mark.xfail
def test_known():
    raise AssertionError
"""


def printing(text, status=0):
    return f"cat <<'END'\n{text}END\nexit {status}"


def meeting(own, other):
    """A program that passes only if the other one runs at the same time."""
    return f"touch {own}\ntimeout 60 sh -c 'until test -e {other}; do sleep 0.01; done' || exit 1\n{printing(BOTH)}"


# name: the script, what becomes of its cases and of its report, words of a failure
PROGRAMS = {
    "good": (printing(BOTH), "passed passed passed", ""),
    "chatty": (printing(f"a line of its own\n{BOTH}"), "passed passed passed", ""),
    "silent": (printing(""), "failed failed failed", "no TAP results"),
    "silent_error": (printing("", 3), "failed failed failed", "exit status 3"),
    "killed": ("kill -SEGV $$", "failed failed failed", "ended by SIGSEGV"),
    "bad_end": (printing(BOTH, 1), "passed passed failed", "exit status 1"),
    "case_failed": (printing(HALF, 1), "passed failed passed", "not ok 2 - second"),
    "status_lies": (printing(HALF), "passed failed failed", "although a case failed"),
    "no_plan": (printing(BOTH.replace("1..2\n", "")), "passed passed failed", "plans []"),
    "long_plan": (printing(BOTH.replace("1..2", "1..3")), "passed passed failed", "plans [3]"),
    "cut_short": (printing("1..2\nok 1 - first\n"), "passed failed failed", "no result"),
    "misnumbered": (printing(BOTH.replace("ok 2", "ok 1")), "passed passed failed", "results [1, 1]"),
    "unlisted_case": (printing(BOTH.replace("1..2", "1..3") + "ok 3 - third\n"), "passed passed failed",
                      "the source lists"),
    "left": (meeting("left", "right"), "passed passed passed", ""),
    "right": (meeting("right", "left"), "passed passed passed", ""),
    "not_built": (None, "failed failed failed", "was not built"),
}
OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}   # by the names of JUnit's report
SKIPPING = {
    "listed_skip": printing(BOTH.replace("ok 2 - second", "not ok 2 # SKIP second")),
    "unlisted_skip": printing(BOTH.replace("ok 2 - second", "not ok 2 # SKIP second")),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    root = tmp_path_factory.mktemp("suite")
    (root / "tests/unit").mkdir(parents=True)
    (root / "build/tests").mkdir(parents=True)
    for name in ("conftest.py", "pytest.ini"):
        shutil.copy(ROOT / "tests" / name, root / "tests")
    (root / "tests/skips.txt").write_text(SKIPS)
    (root / "tests/unit/test_python.py").write_text(PYTHON)
    for name, script in {**{name: row[0] for name, row in PROGRAMS.items()}, **SKIPPING}.items():
        (root / f"tests/unit/test_{name}.c").write_text(SOURCE)
        if script is not None:
            program = root / f"build/tests/test_{name}"
            program.write_text(f"#!/bin/sh\necho {name} >>{root}/runs\n{script}\n")
            program.chmod(0o755)

    def run(*words, ci=False):
        """The names of the programs that ran, and pytest's output."""
        (root / "runs").write_text("")
        env = {name: value for name, value in os.environ.items() if name not in ("TOPIARY_CI", "TOPIARY_BUILD")}
        done = subprocess.run([sys.executable, "-m", "pytest", "-c", "tests/pytest.ini", "--rootdir=.",
                               "--junitxml=results", "tests/unit", *words],
                              cwd=root, env={**env, **({"TOPIARY_CI": "1"} if ci else {})}, capture_output=True,
                              text=True, timeout=300, check=False)
        return (root / "runs").read_text().split(), done.stdout
    run.root = root
    return run


@pytest.fixture(scope="module", params=[False, True], ids=["at home", "CI"])
def finished(request, suite):
    """Whether under CI, {(file, case): (outcome, text)}, the programs that ran, the last line."""
    ran, told = suite(ci=request.param)
    outcomes = {}
    for case in ElementTree.parse(suite.root / "results").iter("testcase"):
        found = next((part for part in case if part.tag in OUTCOMES), None)
        text = "" if found is None else f"{found.get('message')}\n{found.text}"
        outcome = "passed" if found is None else OUTCOMES[found.tag]
        outcomes[case.get("classname").split(".")[2], case.get("name")] = (outcome, text)
    return request.param, outcomes, ran, told.splitlines()[-1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_passes_only_by_a_whole_report(finished, name):
    _, outcomes, _, _ = finished
    _, wanted, words = PROGRAMS[name]
    found = [outcomes[f"test_{name}", case] for case in ("first", "second", "tap")]
    assert [outcome for outcome, _ in found] == wanted.split()
    assert not words or any(words in text for _, text in found), found


def test_each_program_runs_once(finished):
    assert sorted(finished[2]) == sorted({*PROGRAMS, *SKIPPING} - {"not_built"})


@pytest.mark.parametrize("file, case, listed", [
    ("test_python", "test_tool[a]", True), ("test_python", "test_tool[b]", False),
    ("test_python", "test_mark[a]", False),
    ("test_listed_skip", "second", True), ("test_unlisted_skip", "second", False),
])
def test_skip_fails_under_ci_unless_listed(finished, file, case, listed):
    ci, outcomes, _, _ = finished
    outcome, text = outcomes[file, case]
    assert outcome == ("failed" if ci and not listed else "skipped")
    assert ("skipped under CI" in text) == (ci and not listed)


def test_totals_are_the_last_line(finished):
    _, outcomes, _, totals = finished
    count = [sum(outcome == name for outcome, _ in outcomes.values()) for name in ("passed", "failed", "skipped")]
    assert totals == "{} passed, {} failed, {} skipped".format(*count) and all(count)


def test_expected_failure_is_no_skip(finished):
    assert finished[1]["test_python", "test_known"][0] == "skipped"


@pytest.mark.parametrize("words", [["--collect-only"], ["-k", "no_such_case"]])
def test_no_program_runs_at_collection(suite, words):
    ran, told = suite(*words)
    assert ran == [] and ("no_such_case" in words or "second" in told)
