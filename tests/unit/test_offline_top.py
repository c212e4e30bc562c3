# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary top and topiary trace replay: what the screen shows is what was recorded, live and replayed; lines where
there is no screen."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from rig.command import topiary, trace_made
from rig.paths import BUILD
from rig.processes import wait_until
from rig.shown import number
from rig.terminal import Terminal

TOPIARY = BUILD / "topiary"
TICKS = 130
PUS = sorted(os.sched_getaffinity(0))
BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


@pytest.fixture(scope="module", name="made")
def fixture_made(tmp_path_factory):
    return trace_made(tmp_path_factory.mktemp("top") / "made.trace")


@pytest.fixture(name="terminal")
def fixture_terminal():
    opened = []

    def start(*command, **how):
        opened.append(Terminal(TOPIARY, *map(str, command), **how))
        return opened[-1]
    yield start
    for terminal in opened:
        terminal.close()


@pytest.fixture(scope="module", name="counts")
def fixture_counts(tmp_path_factory):
    """Containers may forbid it, and kernel.perf_event_paranoid of 3 or more forbids it to users."""
    done = topiary("record", "--output", tmp_path_factory.mktemp("probe") / "trace", "true", status=0)
    if re.search(r"not recorded: perf_event_open: (Operation not permitted|Permission denied)", done.stderr):
        pytest.skip("the kernel lets nobody count here")


def exported(path, level, metric, at):
    """{object: value} of the tick that ends at this time."""
    done = topiary("trace", "export", path, "--level", level, status=0)
    return {f"{r['level']} {r['object']}": float(r["value"]) for r in csv.DictReader(done.stdout.splitlines())
            if r["metric"] == metric and float(r["time"]) == at}


def type_of(box):
    return re.match(r"\w+ \d+", box)[0]


def shown(terminal, level):
    return {type_of(name): value for name, (value, *_) in terminal.boxes().items() if name.startswith(level)}


def second(terminal):
    """The time that the screen shows."""
    found = re.search(r" ([0-9.]+) of ", terminal.screen.display[1])
    return float(found[1]) if found else None


def test_screen_shows_the_last_tick_of_a_trace(made, terminal):
    screen = terminal("top", made, term="screen-256color")
    screen.wait(lambda: "q Quit" in screen.display[-1])
    assert screen.display[0].startswith("made: cycles, /s") and second(screen) == TICKS
    for level in ("Machine", "Package", "L3Cache", "Core", "PU"):
        assert shown(screen, level) == pytest.approx(exported(made, level, "cycles", TICKS), rel=5e-4)
    screen.press("q")
    status, written = screen.end()
    assert status == 0 and "\x1b[?1049l" in written     # the screen as before


@pytest.mark.parametrize("term, colours", [("linux", {"red", "green"}), ("screen-256color", {"ff0000", "5fff00"})])
def test_bars_and_colours_are_relative_to_the_greatest_at_the_level(made, terminal, term, colours):
    screen = terminal("top", "--metric=l3_misses", made, term=term)
    screen.wait(lambda: "q Quit" in screen.display[-1])
    summary = topiary("trace", "summary", made, "--level=PU", "--json", status=0)
    greatest = max(m["max"] for m in json.loads(summary.stdout)["metrics"] if m["metric"] == "l3_misses")
    found = set()
    for name, (value, part, colour) in screen.boxes().items():
        if name.startswith("PU"):
            assert part == pytest.approx(value / greatest, abs=0.03)
            found.add(colour)
    assert found == colours     # every other PU has a tenth of the misses


def test_names_of_boxes_are_not_cut_in_a_word(terminal, tmp_path):
    screen = terminal("top", trace_made(tmp_path / "t", "Package:2 [numa] L2:2 Core:1 PU:1", 3), columns=60)
    screen.wait(lambda: len(screen.boxes()) == 7)
    assert list(screen.boxes())[1:4] == ["Package 0 + NUMANode 0", "L2Cache 0", "L2Cache 1"], "\n".join(screen.display)


def test_levels_fold_to_the_size_of_the_terminal(terminal, tmp_path):
    screen = terminal("top", trace_made(tmp_path / "t", "Package:2 [numa] L3:8 Core:8 PU:2", 3), lines=60)
    levels = ["Machine", "Package", "L3Cache", "Core", "PU"]
    # 256 PUs do not fit.
    for key, n in [("", 4), ("-", 3), ("-", 2), ("-", 1), ("-", 1), ("+", 2), ("+", 3), ("+", 4), ("+", 5), ("+", 5)]:
        screen.press(key)
        screen.wait(lambda: {name.split()[0] for name in screen.boxes()} == set(levels[:n]))    # noqa: B023
    seen = set(screen.boxes())
    screen.press("down")
    screen.wait(lambda: set(screen.boxes()) - seen)
    screen.resize(20, 100)
    screen.process.send_signal(signal.SIGWINCH)
    screen.wait(lambda: "q Quit" in screen.display[19])


def is_sorted(boxes):
    """Is each greater than the next one within the same object?"""
    levels, last = ["Machine", "Package", "L3Cache", "Core", "PU"], {}
    for name, (value, *_) in boxes.items():
        level = levels.index(name.split()[0])
        if value > last.get(level, value):
            return False
        last = {**{above: x for above, x in last.items() if above < level}, level: value}
    return True


def test_metric_and_order_by_keys(made, terminal, tmp_path):
    formulas = tmp_path / "formulas"
    formulas.write_text("IPC {PU, instructions / cycles}\n")
    screen = terminal("top", "--formulas", formulas, "--metric=memory_used", made)
    screen.wait(lambda: screen.display[0].startswith("made: memory_used, B "))
    assert not shown(screen, "PU")      # it is counted at NUMA nodes
    screen.press("m")
    screen.wait(lambda: screen.display[0].startswith("made: IPC ") and shown(screen, "PU"))
    screen.press("m")
    screen.wait(lambda: screen.display[0].startswith("made: cycles, /s"))
    screen.press("m")
    screen.wait(lambda: screen.display[0].startswith("made: instructions, /s")
                and "q Quit" in screen.display[-1])
    tree = list(screen.boxes())
    assert not is_sorted(screen.boxes())
    screen.press("s")
    screen.wait(lambda: "sorted" in screen.display[1] and is_sorted(screen.boxes())
                and set(screen.boxes()) == set(tree))


def test_accumulated_values(made, terminal):
    """Since the start, whichever way a tick is reached; and the average of a formula is that of what was counted."""
    done = topiary("trace", "export", "--accumulate", "--level=Package", made, status=0)
    wanted = {(float(r["time"]), f"Package {r['object']}"): float(r["value"])
              for r in csv.DictReader(done.stdout.splitlines()) if r["metric"] == "cycles"}

    def is_right(screen):
        here = second(screen)
        return shown(screen, "Package") == pytest.approx(
            {name: value for (at, name), value in wanted.items() if at == here}, rel=5e-4)
    screen = terminal("top", made)
    screen.wait(lambda: "q Quit" in screen.display[-1])
    screen.press("a")
    screen.wait(lambda: screen.display[0].startswith("made: cycles, accumulated"))
    assert second(screen) == TICKS and is_right(screen)
    for key, at in (("home", 1), ("right", 2), ("end", TICKS), ("left", TICKS - 1), *(("left", n) for n in
                                                                                     range(TICKS - 2, TICKS - 14, -1))):
        screen.press(key)
        screen.wait(lambda: second(screen) == at)   # noqa: B023
        assert is_right(screen)
    screen.press("a")
    screen.wait(lambda: screen.display[0].startswith("made: cycles, /s"))
    assert shown(screen, "Package") == pytest.approx(exported(made, "Package", "cycles", TICKS - 13), rel=5e-4)
    done = topiary("trace", "replay", "-a", "--json", "--level=Package", made, status=0)
    for line in map(json.loads, done.stdout.splitlines()):
        for row in line["values"]:
            if row["level"] == "Package":
                assert row["value"] == pytest.approx(wanted[round(line["time"]), f"Package {row['object']}"])


def test_several_metrics_in_a_box(made, terminal, tmp_path):
    """The first has the bar and the colour; m changes it, and the others stay."""
    formulas = tmp_path / "formulas"
    formulas.write_text("IPC {PU, instructions / cycles}\n")
    screen = terminal("top", "--formulas", formulas, "--metric=cycles,memory_used,IPC", made, columns=120)
    for first, unit in (("cycles", "/s"), ("instructions", "/s")):
        screen.wait(lambda: screen.display[0].startswith(f"made: {first}, {unit}; memory_used, B; IPC "))
        screen.wait(lambda: "q Quit" in screen.display[-1])
        found = [re.match(r"\[(\w+ \d+).*?(\S+) +(\S+) +(\S+)\]", box)
                 for line in screen.display for box in re.findall(r"\[.*?\]", line)]
        assert len(found) == 1 + 2 + 4 + 8 + 16 and all(found)
        shown_values = {m[1]: [number(word) if word != "-" else None for word in m.groups()[1:]] for m in found}
        for level in ("Machine", "Package", "Core"):
            values = exported(made, level, first, TICKS)
            memory = exported(made, level, "memory_used", TICKS)
            assert {n: v[0] for n, v in shown_values.items() if n.startswith(level)} == pytest.approx(values, rel=5e-4)
            assert all(v[1] == (pytest.approx(memory[n], rel=5e-4) if n in memory else None)
                       for n, v in shown_values.items() if n.startswith(level))
        cycles, instructions = (exported(made, "PU", name, TICKS) for name in ("cycles", "instructions"))
        assert all(v[2] == pytest.approx(instructions[n] / cycles[n], abs=6e-3)
                   for n, v in shown_values.items() if n.startswith("PU"))
        screen.press("m")
    screen.press("q")
    assert screen.end()[0] == 0


def test_metrics_beside_in_lines(made):
    done = topiary("top", "--metric=cycles,memory_used", "--level=Package", made, status=0)
    assert f"made: cycles, /s; memory_used, B, at {TICKS}.000 s" in done.stdout
    rows = {m[1]: number(m[2]) for m in re.finditer(r"^ *(Package \d+)\D.* (\S+)  \S+$", done.stdout, re.M)}
    done = topiary("top", "--json", "--metric=cycles,memory_used", "--level=Package", made, status=0)
    line = json.loads(done.stdout)
    assert line["beside"] == [{"metric": "memory_used", "unit": "B"}]
    memory = {f"Package {v['object']}": v["beside"][0] for v in line["values"] if v["level"] == "Package"}
    assert memory == pytest.approx(exported(made, "Package", "memory_used", TICKS)) and set(memory) == set(rows)
    assert rows == pytest.approx(memory, rel=5e-4)


def test_replay_has_speed_steps_and_pause(made, terminal):
    screen = terminal("trace", "replay", made, "--speed=4")
    begun = time.monotonic(), screen.wait(lambda: second(screen))
    screen.wait(lambda: second(screen) >= begun[1] + 8)
    rate = (second(screen) - begun[1]) / (time.monotonic() - begun[0])
    print(f"replayed at {rate:.1f} seconds of the trace a second, 4 are wanted")
    assert 1 < rate < 8
    screen.press(" ")
    screen.wait(lambda: "paused" in screen.display[1])
    for key, step in (("left", -1), ("left", -1), ("right", 1)):
        before = second(screen)
        screen.press(key)
        screen.wait(lambda: second(screen) == before + step)    # noqa: B023
    assert shown(screen, "PU") == pytest.approx(exported(made, "PU", "cycles", second(screen)), rel=5e-4)
    for key, at in (("home", 1), ("left", 1), ("end", TICKS), ("right", TICKS)):
        screen.press(key)
        screen.wait(lambda: second(screen) == at)               # noqa: B023
    screen.press("home")
    screen.press(" ")
    screen.press(">")
    screen.wait(lambda: "speed 8" in screen.display[1])
    screen.press("F")
    screen.wait(lambda: "complete" in screen.display[1] and second(screen) == TICKS)
    screen.press("F10")
    assert screen.end()[0] == 0


@pytest.mark.parametrize("how", [{"term": "no-such-terminal"}, {"term": "dumb"}, {"lines": 5}, {"columns": 39}],
                         ids=str)
def test_lines_where_there_is_no_screen(made, terminal, how):
    status, written = terminal("top", made, NO_COLOR="1", **how).end()
    assert status == 0 and written.startswith(f"made: cycles, /s, at {TICKS}.000 s\r\n") and "\x1b" not in written


def test_lines_in_a_pipe(made):
    done = topiary("trace", "replay", made, "--level=Package", status=0)
    blocks = done.stdout.split("\n\nmade: ")
    assert len(blocks) == TICKS and done.stderr == ""
    for at in (1, 60, 61, TICKS):
        found = {name: number(value) for name, value in re.findall(r"^ *(Package \d+)(?: \+ \w+ \d+)* +(\S+) ",
                                                                   blocks[at - 1], re.M)}
        assert f"at {at}.000 s" in blocks[at - 1]
        assert found == pytest.approx(exported(made, "Package", "cycles", at), rel=5e-4)


def test_json_lines(made):
    done = topiary("trace", "replay", made, "--json", "--metric=instructions", "--level=PU", status=0)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["time"] for line in lines] == pytest.approx(list(range(1, TICKS + 1)))
    for at in (1, 61, TICKS):
        line = lines[at - 1]
        assert (line["node"], line["metric"], line["unit"]) == ("made", "instructions", "/s")
        for level in ("Machine", "PU"):
            assert {f"{level} {v['object']}": v["value"] for v in line["values"] if v["level"] == level} == \
                pytest.approx(exported(made, level, "instructions", at))


def test_hostile_name_of_a_node(tmp_path, terminal):
    screen = terminal("top", trace_made(tmp_path / "t", ticks=1, node="%s%n\u00db" + "y" * 200))
    screen.wait(lambda: "q Quit" in screen.display[-1])
    assert screen.display[0].startswith("%s%n") and "y" * 60 in screen.display[0]
    assert shown(screen, "Machine")


def test_name_that_controls_a_terminal_is_refused(tmp_path):
    path = trace_made(tmp_path / "t", ticks=1, node="cn1\u009b31m")
    for words in (["top", path], ["trace", "summary", path], ["trace", "replay", path]):
        done = topiary(*words)
        assert (done.returncode, done.stdout, done.stderr) == \
            (1, "", f"topiary: {words[0]}: {path}: node: has control characters\n")


# --- live


def test_live_screen_of_a_command(counts, terminal):
    pu = PUS[-1]
    screen = terminal("top", "--hz=20", "taskset", "-c", pu, sys.executable, "-c",
                      BURN.format(1.5) + "print('out')\nraise SystemExit(5)", term="screen-256color")
    screen.wait(lambda: [name for name, (value, *_) in screen.boxes().items() if value > 5
                         and re.search(rf" {PUS.index(pu)}\b", name)])
    assert "busy, %" in screen.display[0] and "live" in screen.display[1]
    status, written = screen.end()
    assert status == 5 and written.rstrip().endswith("out") and written.index("\x1b[?1049l") < written.rindex("out")


def test_command_goes_on_when_its_screen_is_left(counts, terminal):
    screen = terminal("top", "--hz=20", "sh", "-c", "sleep 1; echo out; exit 6")
    screen.wait(lambda: screen.boxes())
    screen.press("q")
    status, written = screen.end()
    assert status == 6 and written.rstrip().endswith("out")


def test_process_goes_on_when_its_screen_is_left(counts, terminal):
    watched = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
    try:
        screen = terminal("top", "--hz=20", f"--pid={watched.pid}")
        screen.wait(lambda: any(value > 20 / len(PUS) for value, *_ in screen.boxes().values()))
        screen.press("q")
        assert screen.end()[0] == 0 and watched.poll() is None
    finally:
        watched.kill()
        watched.wait()


def test_trace_that_is_being_written_is_followed(counts, terminal, tmp_path):
    recorder = subprocess.Popen([TOPIARY, "record", "--live", "--hz=20", "--output", tmp_path / "trace", "sleep", "60"],
                                stderr=subprocess.PIPE)
    assert wait_until(lambda: (tmp_path / "trace").exists() and (tmp_path / "trace").stat().st_size, 30)
    screen = terminal("top", tmp_path / "trace")
    seen = [screen.wait(lambda: second(screen))]
    for _ in range(3):
        seen.append(screen.wait(lambda: second(screen) > seen[-1] and second(screen)))
    assert "live" in screen.display[1]
    recorder.send_signal(signal.SIGSTOP)
    screen.wait(lambda: re.search(r"live, nothing for \d+ s", screen.display[1]))
    recorder.send_signal(signal.SIGCONT)
    recorder.terminate()
    recorder.communicate(timeout=30)
    screen.wait(lambda: "complete" in screen.display[1])
    screen.press("q")
    assert screen.end()[0] == 0


def test_live_lines(counts, tmp_path):
    """The trace that is kept has the ticks that were printed, and the command's output does not come between them."""
    done = topiary("top", "--json", "--hz=20", "--output", tmp_path / "trace", "sh", "-c", "sleep 1; echo out; exit 3")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    summary = topiary("trace", "summary", tmp_path / "trace", "--json", status=0)
    assert {line["unit"] for line in lines} == {"%"}
    assert all(v["value"] is None or 0 <= v["value"] < 110 for line in lines for v in line["values"])
    assert (done.returncode == 3 and done.stderr.startswith("out\n")
            and len(lines) == json.loads(summary.stdout)["ticks"] > 5)


@pytest.mark.parametrize("user", [[], ["setpriv", "--reuid=65534", "--clear-groups"]], ids=["own", "nobody"])
def test_this_node(user, tmp_path):
    """All that runs here, for everybody as far as the kernel lets them count; until a signal."""
    if user and os.geteuid():
        pytest.skip("only root becomes another user")
    program = shutil.copy(TOPIARY, tmp_path)    # the checkout may be out of nobody's reach
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.owner() == "root" and folder != folder.parent and str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    burner = subprocess.Popen([sys.executable, "-c", BURN.format(600)])
    try:
        top = subprocess.Popen([*user, program, "top", "--hz=5", "--json", "--level=PU"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd="/", start_new_session=True)
        ticks = [json.loads(top.stdout.readline()) for _ in range(5)]
        os.killpg(top.pid, signal.SIGINT)   # as from a terminal
        _, said = top.communicate(timeout=60)
    finally:
        burner.kill()
        burner.wait()
    assert top.returncode == 0 and ticks[0]["metric"] == "busy" and said.count("\n") <= 1
    assert not said or " not counted: " in said
    assert all(tick["values"][0]["level"] == "Machine" for tick in ticks)
    assert max(row["value"] for tick in ticks for row in tick["values"] if row["value"] is not None) >= 50


# Computes from "burn" on its input to "rest".
SWITCH = """import os, select
burns = False
print("ready", flush=True)
while True:
    if not burns or select.select([0], [], [], 0)[0]:
        burns = os.read(0, 99).endswith(b"burn")
    elif burns:
        sum(range(1000))
"""


@pytest.mark.slow
def test_time_from_event_to_screen(counts, terminal):
    """Of eight events, spread over the period between two ticks, and not the slowest."""
    period, events, times = 0.25, 8, []
    with subprocess.Popen([sys.executable, "-c", SWITCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            screen = terminal("top", f"--hz={1 / period:.0f}", f"--pid={process.pid}")

            def busy():
                return next((value for name, (value, *_) in screen.boxes().items() if name.startswith("Machine")), None)
            for i in range(events):
                screen.wait(lambda: busy() is not None and busy() < 0.01)
                time.sleep(i / events * period)
                begun = time.monotonic()
                os.write(process.stdin.fileno(), b"burn")
                screen.wait(lambda: busy() is not None and busy() > 0.1, quiet=0)
                times.append(time.monotonic() - begun)
                os.write(process.stdin.fileno(), b"rest")
        finally:
            process.kill()
    assert sorted(times)[-2] < 5, times


@pytest.mark.parametrize("args, status, why", [
    (["--pid=1", "true"], 64, "expected a COMMAND, or --pid"),
    (["--set=all", "true"], 64, "--set=all: expected sw, cpu, power, net or gpu, or several"),
    ([f"--pid={2**31 - 1}"], 1, f"process {2**31 - 1}: No such process"),
    (["/no/such/trace"], 127, "topiary: top: /no/such/trace: No such file or directory\n"),
    (["no.trace"], 127, "topiary: top: no.trace: no such file, command, job or node\n"),
    (["none"], 127, "topiary: top: none: not a Topiary trace, nor a command\n"),
    (["--output=/no/such/folder/x", "true"], 1, "/no/such/folder/x: No such file or directory"),
    (["--metric=nix", "{made}"], 1, "no event or formula 'nix'"),
    (["--metric=cycles,nix", "{made}"], 1, "no event or formula 'nix'"),
    (["--metric=cycles,b,c,d,e", "{made}"], 1, "--metric=cycles,b,c,d,e: more than 4 metrics"),
    (["{made}", "--metric=cycles"], 64, "one TRACE: options come before it"),
])
def test_bad_input(made, tmp_path, args, status, why):
    (tmp_path / "none").write_text("none\n")
    done = topiary("top", *(a.format(made=made) for a in args), cwd=tmp_path)
    assert done.returncode == status and why in done.stderr, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") <= 2
