# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Phases of a program: what the library writes, and traces read phase by phase."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from rig import command
from rig.command import printed, topiary, trace_made
from rig.paths import BUILD, ROOT
from rig.processes import wait_until

TICKS, SECOND = 130, 10**9
PROGRAM = BUILD / "tests" / "phases"


@pytest.fixture(name="made")
def fixture_made(tmp_path):
    """A trace of 130 s that began in 1970, one tick a second."""
    return trace_made(tmp_path / "cn1.trace", "Package:2 [numa] Core:2 PU:2", TICKS)


class Marks:
    """The file of one process whose clock began with the trace, or later."""

    def __init__(self, path, number=1, began=0):
        self.path, self.id, self.began = path, f"{number:08x}", began
        self.add(f"P 1 {self.id} {number} {number - 1} {began * SECOND} 77")

    def add(self, line):
        with open(self.path, "a", encoding="latin-1") as f:
            f.write(line + "\n")

    def phase(self, name, begin, end=None, thread=1):
        self.add(f"B {self.id} {thread} {round(begin * SECOND) + 77 - self.began * SECOND} {name}")
        if end is not None:
            self.add(f"E {self.id} {thread} {round(end * SECOND) + 77 - self.began * SECOND} {name}")


def phases(trace):
    found = json.loads(printed("trace", "phases", trace, "--json"))
    return found, {p["phase"]: p for p in found["phases"]}


@pytest.fixture(name="marks")
def fixture_marks(made):
    return Marks(made.with_suffix(".phases"))


def totals(trace, *args):
    found = json.loads(printed("trace", "summary", trace, "--json", "--level=Package", *args))
    return found, {(m["metric"], m["object"]): m["total"] for m in found["metrics"]}


def test_phases_divide_the_trace(made, marks):
    """What is counted in each, and outside, is all, exactly; ticks are in a phase that is in half of them."""
    marks.phase("solve", 0, 20.5)
    marks.phase("exchange", 20.5, 60)
    marks.phase("solve", 60, 100)
    found, each = phases(made)
    assert (found["processes"], found["ticks"]) == (1, TICKS)
    assert [(p["times"], p["seconds"], p["ticks"]) for p in found["phases"]] == [(2, 60.5, 61), (1, 39.5, 40)]
    assert set(each) == {"solve", "exchange"}
    _, whole = totals(made)
    solve, exchange = totals(made, "--phase=solve"), totals(made, "--phase=exchange")
    assert (solve[0]["ticks"], solve[0]["seconds"], exchange[0]["ticks"]) == (61, pytest.approx(61), 40)
    rows = list(csv.DictReader(printed("trace", "export", made, "--level=Package", "--per-tick").splitlines()))

    def total(metric, n, ticks):
        return sum(float(r["value"]) for r in rows
                   if (r["metric"], int(r["object"])) == (metric, n) and float(r["time"]) in ticks)
    solving, exchanging = [*range(1, 22), *range(61, 101)], range(21, 61)
    for (metric, n), value in whole.items():
        if metric != "memory_used":
            assert solve[1][metric, n] == total(metric, n, solving)
            assert exchange[1][metric, n] == total(metric, n, exchanging)
            assert value == (solve[1][metric, n] + exchange[1][metric, n] + total(metric, n, range(101, 131))
                             - total(metric, n, [21]))


def test_times_stay_where_they_are_shown(made, marks):
    marks.phase("late", 40.2, 50.2)
    exported = {float(r["time"]) for r in csv.DictReader(printed("trace", "export", made, "--phase=late").splitlines())}
    assert exported == set(range(41, 51))
    assert "from 44.000 to 45.000 s" in printed("trace", "show", made, "--phase=late", "--at=44.5").splitlines()[0]
    assert topiary("trace", "show", made, "--phase=late", "--at=60").returncode == 1
    page = printed("trace", "html", made, "--phase=late", "--metric=cycles")
    assert [float(t) for t in re.search(r'"times":\[([^]]*)\]', page)[1].split(",")] == list(range(41, 51))


def test_replay_and_page_name_the_phase(made, marks):
    marks.phase("step", 10)
    marks.phase("solve</script>", 20, 30)
    marks.add(f"E {marks.id} 1 {100 * SECOND + 77} step")
    lines = [json.loads(line) for line in printed("trace", "replay", made, "--json", "--level=Machine").splitlines()]
    assert [line.get("phase") for line in lines] == \
        [None] * 10 + ["step"] * 10 + ["solve</script>"] * 10 + ["step"] * 70 + [None] * 30
    page = printed("trace", "html", made, "--metric=cycles", "--level=Machine")
    assert page.count("</script>") == 2 and '"phases":["step","solve\\u003c/script>"]' in page
    assert len(re.search(r'"phased":\[([^]]*)\]', page)[1].split(",")) == TICKS


def test_paje_has_the_phases_as_states(made, marks, tmp_path):
    marks.phase('warm "up"', 10, 20)
    marks.phase("solve", 20, 30)
    path = tmp_path / "made.paje"
    path.write_text(printed("trace", "export", made, "--paje", "--level=Machine"))
    done = command.run("pj_dump", path)
    assert (done.returncode, done.stderr) == (0, "")
    # State, container, type, start, end, duration, depth, value
    states = [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines() if line[:5] == "State"]
    assert [(s[1], s[2], float(s[3]), float(s[4]), s[7]) for s in states] == \
        [("made", "Phase", begin, end, name) for begin, end, name in
         [(0, 10, "no phase"), (10, 20, "warm 'up'"), (20, 30, "solve"), (30, TICKS, "no phase")]]


def test_phases_within_others(made, marks):
    marks.phase("step", 10)
    marks.phase("solve", 20, 30)
    marks.add(f"E {marks.id} 1 {100 * SECOND + 77} step")
    found, each = phases(made)
    assert [(p["phase"], p["depth"], p["ticks"]) for p in found["phases"]] == [("step", 0, 90), ("solve", 1, 10)]
    assert "at 25.000 s, in phase solve" in printed("trace", "replay", made)


def test_half_of_the_processes_decide(made):
    path = made.with_suffix(".phases")
    for number, end in enumerate((20, 40, 60, 80), 1):
        Marks(path, number, began=number).phase("solve", 10, end)
    found, each = phases(made)
    solve = each["solve"]
    assert (found["processes"], solve["processes"], solve["seconds"], solve["least"], solve["greatest"]) == \
        (4, 4, 40, 10, 70)
    assert solve["ticks"] == 50, "from 10 to 60 s, when two of four still are in it"


def test_earlier_run_of_a_requeued_job_is_not_counted(made):
    path = made.with_suffix(".phases")
    for number, began in enumerate((-3600, -11, -2, 1), 1):
        Marks(path, number, began).phase("solve", began + 1, 20)
    found, each = phases(made)
    assert (found["processes"], each["solve"]["processes"], each["solve"]["times"]) == (2, 2, 2)
    assert (each["solve"]["greatest"], each["solve"]["least"]) == (20, 18)


def test_marks_that_do_not_fit_together(made, marks):
    """Ends without begins, begins without ends, times outside the trace, threads."""
    marks.add(f"E {marks.id} 1 5 never")
    marks.phase("outer", 10)
    marks.phase("inner", 20)
    marks.add(f"E {marks.id} 1 {30 * SECOND + 77} outer")
    marks.phase("killed", 100)
    marks.phase("other", 50, 70, thread=2)
    marks.phase("long", 120, 10**6)
    marks.add(f"M {marks.id} 1 {40 * SECOND} here")
    done = topiary("trace", "phases", made, "--json")
    assert "1 lines are left out" in done.stderr
    each = {p["phase"]: p for p in json.loads(done.stdout)["phases"]}
    assert {name: p["seconds"] for name, p in each.items()} == \
        pytest.approx({"never": 0, "outer": 20, "inner": 10, "killed": 30, "other": 20, "long": 10, "here": 0},
                      abs=1e-6)
    assert each["here"]["marks"] == 1


@pytest.mark.parametrize("line", [
    "", "B", "B 00000001", "B 00000001 1 5", "B 00000001 1 5 ", "B 00000002 1 5 x", "X 00000001 1 5 x",
    "P 1 00000001 1 1 1 1", "P 2 00000007 1 1 1 1", "P 1 00000008 1 1 1 1 more",
    "B 00000001 99999999999999999999 -1 x", "\x00\xff", "B" * 5000])
def test_damaged_lines_are_left_out(made, marks, line):
    marks.phase("solve", 10, 20)
    marks.add(line)
    marks.phase("solve", 30, 40)
    done = topiary("trace", "phases", made, "--json")
    assert done.returncode == 0 and done.stderr.count("\n") <= 1
    each = {p["phase"]: p for p in json.loads(done.stdout)["phases"]}
    assert each["solve"]["seconds"] in (20, 10)


def test_names_are_bounded_and_control_nothing(made, marks):
    for number in range(100):
        marks.phase(f"p{number}", number, number + 1)
    marks.phase("\x1b[2J\xc2\x9b", 110, 112)
    marks.phase("y" * 500, 115, 116)
    done = topiary("trace", "phases", made)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3 + 64 and "are left out: " in done.stderr
    path = made.with_suffix(".phases")
    path.unlink()
    other = Marks(path)
    other.phase("\x1b[2J\xc2\x9b", 110, 112)
    other.phase("y" * 500, 115, 116)
    assert "\x1b" not in printed("trace", "phases", made) and set(phases(made)[1]) == {"?[2J??", "y" * 63}


@pytest.mark.parametrize("args, text, error", [
    (["summary", "--phase=C"], None,
     "{phases}: No such file or directory: the program named no phase, topiary_phase(3)"),
    (["phases"], "", "{phases}: has no phases"),
    (["phases"], "P 1 00000001 1 0 77 77\n", "{phases}: has no phases"),
    (["summary", "--phase=y"], "P 1 00000001 1 0 0 0\nB 00000001 1 5 x\n",
     "no phase 'y'; `topiary trace phases` lists them"),
    (["advise", "--phase=x"], "P 1 00000001 1 0 0 0\nB 00000001 1 5 x\nE 00000001 1 9 x\n",
     "phase x: at no tick were half of the processes in it"),
])
def test_bad_input_is_one_error(made, args, text, error):
    path = made.with_suffix(".phases")
    if text is not None:
        path.write_text(text)
    done = topiary("trace", args[0], made, *args[1:])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == f"topiary: trace: {made}: " + error.format(phases=path)


@pytest.mark.parametrize("args, error", [(["replay", "{made}"], "--phase does not apply to replay and phases"),
                                         (["advise", "{made}", "{made}"], "--phase applies to one FILE")])
def test_wrong_command_line(made, args, error):
    done = topiary("trace", *(a.format(made=made) for a in args), "--phase=x")
    assert (done.returncode, done.stdout) == (64, "") and error in done.stderr


def test_advice_is_about_the_phase(made, marks):
    """Its seconds are the phase's, whatever was between."""
    marks.phase("a", 0, 15)
    marks.phase("a", 100, 115)
    marks.phase("short", 50, 55)
    found = json.loads(printed("trace", "advise", made, "--phase=a", "--json"))
    assert found["seconds"] == pytest.approx(30) and "idle cores" in [check["kind"] for check in found["checks"]]
    done = topiary("trace", "advise", made, "--phase=short")
    assert done.returncode == 1 and "5 ticks, advice needs at least 10" in done.stderr


# --- the library

def run(path, *args, status=0, **how):
    env = {**os.environ, **({"TOPIARY_PHASES": str(path)} if path is not None else {})}
    return command.run(PROGRAM, *args, env=env, status=status, **how)


def lines_of(path):
    """{id: [(what, thread, name)]}"""
    found = {}
    for line in path.read_text().splitlines():
        if line.startswith("P"):
            assert re.fullmatch(r"P 1 [0-9a-f]{8} \d+ -?\d+ \d+ \d+", line) and line.split()[2] not in found
            found[line.split()[2]] = []
        else:
            what, process, thread, _, name = line.split(" ", 4)
            found[process].append((what, int(thread), name))
    return found


STEP = [("B", "step"), ("B", "compute"), ("E", "compute"), ("B", "wait"), ("E", "wait"), ("E", "step"), ("M", "done")]


def test_nothing_outside_a_recording(tmp_path):
    assert run(None, 1, 2, cwd=tmp_path).stderr == "" and run("", 1, 2, cwd=tmp_path).stderr == ""
    assert not list(tmp_path.iterdir())


def test_each_call_is_a_line(tmp_path):
    path = tmp_path / "folder" / "cn1.phases"
    run(path, 1, 3)
    run(path, 1, 1)
    first, second = lines_of(path).values()
    assert [(what, name) for what, _, name in first] == 3 * STEP and [(what, name) for what, _, name in second] == STEP


def test_child_and_parent_are_two(tmp_path):
    path = tmp_path / "x.phases"
    run(path, 1, 2, "fork")
    found = sorted(([(what, name) for what, _, name in lines] for lines in lines_of(path).values()), key=len)
    assert found == [2 * STEP, [("M", "before"), *2 * STEP]]


def test_threads_have_their_own(tmp_path):
    path = tmp_path / "x.phases"
    run(path, 1, 50, "threads")
    lines, = lines_of(path).values()
    for thread in (1, 2):
        assert [(what, name) for what, number, name in lines if number == thread] == 50 * STEP


def test_killed_program_leaves_all_but_a_second(tmp_path):
    path = tmp_path / "x.phases"
    run(path, 600, 3, "kill", status=-signal.SIGKILL)
    lines, = lines_of(path).values()
    assert len(lines) > 2 and [(what, name) for what, _, name in lines] == (3 * STEP)[:len(lines)]


def test_many_marks_are_whole_lines(tmp_path):
    """Of several processes at a time."""
    path = tmp_path / "x.phases"
    env = {**os.environ, "TOPIARY_PHASES": str(path)}
    all_ = [subprocess.Popen([PROGRAM, "0", "20000", "cost"], env=env, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [p.wait(60) for p in all_] == [0] * 4
    assert [len(lines) for lines in lines_of(path).values()] == [20000] * 4


@pytest.mark.parametrize("path", ["/nonexistent/a/b", "/dev/full", "/proc/self/x", "/", "x" * 5000, "{link}"])
def test_program_goes_on_whatever_the_file_is(tmp_path, path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    done = run(path.format(link=tmp_path / "link"), 1, 2, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and not (tmp_path / "target").exists()


def test_fortran(tmp_path):
    assert shutil.which("gfortran"), "comes with libmpich-dev"
    (tmp_path / "main.f90").write_text("program main\n use topiary_phase\n call topiary_phase_begin('solve  ')\n"
                                       " call topiary_phase_mark('a b')\n call topiary_phase_end('solve')\n"
                                       "end program\n")
    subprocess.run(["gfortran", "-Wall", "-Werror", ROOT / "lib/phase/topiary_phase.f90", "main.f90", "-o", "main",
                    f"-L{BUILD}", "-ltopiary_phase", f"-Wl,-rpath,{BUILD}"], cwd=tmp_path, check=True, timeout=120)
    subprocess.run([tmp_path / "main"], env={**os.environ, "TOPIARY_PHASES": str(tmp_path / "x.phases")}, check=True,
                   timeout=60)
    lines, = lines_of(tmp_path / "x.phases").values()
    assert [(what, name) for what, _, name in lines] == [("B", "solve"), ("M", "a b"), ("E", "solve")]


# --- with topiary record

def counts(done):
    if re.search(r"not recorded: perf_event_open: (Operation not permitted|Permission denied)", done.stderr):
        pytest.skip("the kernel lets nobody count here")
    assert done.returncode == 0, done.stderr


def test_recorded_program_has_its_phases(tmp_path):
    """Wherever it goes; marks of an earlier run are gone."""
    (tmp_path / "x.phases").write_text("P 1 00000001 1 0 0 0\nB 00000001 1 5 old\n")
    done = topiary("record", "--hz=20", "-o", "x.trace", "sh", "-c", f"cd / && exec {PROGRAM} 600 2", cwd=tmp_path)
    counts(done)
    found, each = phases(tmp_path / "x.trace")
    assert set(each) == {"step", "compute", "wait", "done"} and found["processes"] == 1
    assert each["step"]["seconds"] == pytest.approx(2.4, abs=1.5) and each["compute"]["times"] == 2
    busy = {}
    for name in ("compute", "wait"):
        summary = json.loads(printed("trace", "summary", tmp_path / "x.trace", "--json", f"--phase={name}"))
        busy[name] = next(m["average"] for m in summary["metrics"] if m["metric"] == "busy") * 1e-9
    assert busy["compute"] > 3 * busy["wait"], busy


def test_live_display_leaves_no_file(tmp_path):
    before = set(os.listdir("/tmp"))
    done = topiary("top", "--hz=20", PROGRAM, 50, 2, cwd=tmp_path)
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    assert wait_until(lambda: not [name for name in set(os.listdir("/tmp")) - before if name.endswith(".phases")], 5)
