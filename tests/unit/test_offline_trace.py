# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary trace: summaries and exports of a made trace, the latter read by other programs; files that are none."""
import csv
import json
import re
import struct
import subprocess

import pytest
from rig import command
from rig.command import run, topiary, trace_made
from rig.machines import machines
from rig.paths import BUILD, CACHE
from rig.shown import number

TICKS = 130
PAPER = ("CYC_per_INS {PU, PAPI_TOT_CYC/PAPI_TOT_INS}\nPER_CORE_L3_MISS {Core, PAPI_L3_TCM}\nPER_NUMA_L3_MISS "
         "{NUMANode, PAPI_L3_TCM}\n")


def trace(*args, **how):
    return topiary("trace", *args, **how)


def printed(*args, **how):
    return command.printed("trace", *args, **how)


def rows(*args):
    return list(csv.DictReader(printed("export", *args).splitlines()))


@pytest.fixture(scope="module", name="made")
def fixture_made(tmp_path_factory):
    """Two packages of 8 PUs; the sums of what was recorded."""
    path = tmp_path_factory.mktemp("trace") / "made.trace"
    done = run(BUILD / "tests" / "trace_make", path, "Package:2 [numa] L3:2 Core:2 PU:2", TICKS, status=0)
    return path, dict(zip(("cycles", "l3_misses"), map(int, done.stdout.split())))


@pytest.fixture(name="paper")
def fixture_paper(tmp_path):
    path = tmp_path / "paper"
    path.write_text(PAPER)
    return path


@pytest.mark.parametrize("level,objects",
                         [("Machine", 1), ("socket", 2), ("NUMANode", 2), ("L3", 4), ("Core", 8), ("PU", 16)])
def test_totals_are_exact_at_every_level(made, level, objects):
    path, sums = made
    summary = json.loads(printed("summary", path, "--level", level, "--json"))
    assert summary["ticks"] == TICKS and summary["complete"]
    for event, total in sums.items():
        found = [m for m in summary["metrics"] if m["metric"] == event]
        assert [m["object"] for m in found] == list(range(objects))
        assert sum(m["total"] for m in found) == total
        assert all(m["min"] <= m["average"] <= m["max"] and m["absent"] == 0 for m in found)


def shown(*args):
    """[(depth, type, object, value, min, max, width of the bar)] of the rows of show, one for each type that shares a
    row."""
    text = printed("show", *args, env={"LC_ALL": "C.UTF-8"})
    assert printed("show", *args, env={"LC_ALL": "C"}) == text.replace("█", "#").replace("▌", "-")
    found = re.findall(r"^( *)(\w+ \d+(?: \+ \w+ \d+)*) +(\S+) +(\S+) +(\S+) *([█▌]*) *$", text, re.M)
    return [(len(indent) // 2, name.split()[0], int(name.split()[1]), *map(number, numbers),
             bar.count("█") + bar.count("▌") / 2)
            for indent, names, *numbers, bar in found for name in names.split(" + ")]


def test_tree_shows_what_the_summary_has(made):
    rows_shown = shown(made[0], "--metric=l3_misses", "--level=Core")
    assert [(depth, type_) for depth, type_, *_ in rows_shown[:7]] == [
        (0, "Machine"), (1, "Package"), (1, "NUMANode"), (2, "L3Cache"), (3, "Core"), (3, "Core"), (2, "L3Cache")]
    for level in ("Machine", "Package", "L3Cache", "Core"):
        metrics = json.loads(printed("summary", made[0], "--level", level, "--json"))["metrics"]
        due = {m["object"]: [m["average"], m["min"], m["max"]] for m in metrics if m["metric"] == "l3_misses"}
        here = {n: numbers for _, type_, n, *numbers in rows_shown if type_ == level}
        assert sorted(due) == sorted(here)
        greatest = max(most for _, _, most in due.values())
        for n, (*numbers, bar) in here.items():
            assert (numbers == pytest.approx(due[n], rel=5e-4)
                    and bar == pytest.approx(24 * due[n][0] / greatest, abs=0.26))


def test_tree_at_a_time(made):
    exported = {(r["level"], int(r["object"])): float(r["value"]) for level in ("Machine", "Package")
                for r in rows(made[0], "--level", level) if r["metric"] == "cycles" and float(r["time"]) == 61}
    assert ({(type_, n): value for _, type_, n, value, *_ in shown(made[0], "--at=60.5", "--level=Package")}
            == pytest.approx(exported, rel=5e-4))


def test_tree_of_a_formula(made, paper):
    assert [type_ for _, type_, *_ in shown(made[0], "--metric=PER_CORE_L3_MISS", "--formulas", paper,
                                            "--level=Package")] == \
        ["Machine", "Package", "Package"]
    # Counted at NUMA nodes, which are the packages here: nothing is below them.
    assert [row[1:3] for row in shown(made[0], "--metric=memory_used", "--level=PU")] == \
        [("Machine", 0), ("Package", 0), ("NUMANode", 0), ("Package", 1), ("NUMANode", 1)]


@pytest.mark.parametrize("name", machines())
def test_trees_of_real_machines(name, tmp_path):
    done = run(BUILD / "tests" / "trace_make", tmp_path / "trace", CACHE / "machines" / f"{name}.xml", "3", status=0)
    for level in ("Machine", "Core", "PU"):
        found = json.loads(printed("summary", tmp_path / "trace", "--level", level, "--json"))["metrics"]
        assert sum(m["total"] for m in found if m["metric"] == "cycles") == int(done.stdout.split()[0])
    # Other levels may have a part of the PUs only.
    tree = shown(tmp_path / "trace", "--level=PU")
    whole = tree[0][3]
    for level in ("Machine", "PU"):
        assert sum(value for _, type_, _, value, *_ in tree if type_ == level) == pytest.approx(whole, rel=1e-3)


def test_counters_that_live_higher_are_shown_there(made):
    levels = {m["metric"]: m["level"]
              for m in json.loads(printed("summary", made[0], "--level", "PU", "--json"))["metrics"]}
    assert levels["cycles"] == "PU" and levels["memory_used"] == "NUMANode"


def test_formulas_of_the_paper(made, paper):
    path, sums = made
    found = json.loads(printed("summary", path, "--formulas", paper, "--json"))["metrics"]
    assert {(m["metric"], m["level"]) for m in found} >= {("CYC_per_INS", "PU"), ("PER_CORE_L3_MISS", "Core"),
                                                          ("PER_NUMA_L3_MISS", "NUMANode")}
    assert sum(m["total"] for m in found if m["metric"] == "PER_NUMA_L3_MISS") == sums["l3_misses"]
    per_pu = {m["object"]: m["total"]
              for m in json.loads(printed("summary", path, "--level", "PU", "--json"))["metrics"]
              if m["metric"] == "cycles"}
    instructions = {m["object"]: m["total"]
                    for m in json.loads(printed("summary", path, "-l", "PU", "--json"))["metrics"]
                    if m["metric"] == "instructions"}
    for m in found:
        if m["metric"] == "CYC_per_INS":
            assert m["average"] == pytest.approx(per_pu[m["object"]] / instructions[m["object"]], rel=1e-12)


def test_modes(made):
    path, sums = made
    of = {}
    for mode in (["--accumulate"], ["--per-tick"], []):
        of[tuple(mode)] = [float(r["value"]) for r in rows(path, "--level", "Machine", *mode)
                           if r["metric"] == "cycles"]
    assert of[("--accumulate",)][-1] == sums["cycles"]
    assert sum(of[("--per-tick",)]) == sums["cycles"] and len(of[()]) == TICKS
    assert of[()] == pytest.approx(of[("--per-tick",)])          # the made trace has a tick a second


def test_csv_and_json_say_the_same(made):
    from_csv = [(float(r["time"]), r["metric"], int(r["object"]), float(r["value"])) for r in rows(made[0])]
    document = json.loads(printed("export", made[0], "--json"))
    from_json = [(s["time"], m["name"], o["index"], x) for s in document["samples"]
                 for m, values in zip(document["metrics"], s["values"])
                 for o, x in zip(m["objects"], values)]
    assert from_csv == from_json and len(from_csv) == TICKS * (6 * 16 + 2)
    assert (document["node"], document["mode"], document["ticks"]) == ("made", "rate", TICKS)


def test_paje_is_read_by_pj_dump(made, paper, tmp_path):
    path = tmp_path / "made.paje"
    path.write_text(printed("export", made[0], "--paje", "--formulas", paper))
    done = run("pj_dump", path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines()]
    assert {line[6] for line in lines if line[0] == "Container"} >= {"made", "PU 0", "PU 15", "Core 7", "NUMANode 1"}
    # Variable, container, type, start, end, duration, value: equal neighbours are one.
    seen = [(line[1], line[2], float(line[3]), float(line[6])) for line in lines if line[0] == "Variable"]
    values = {(f"{r['level']} {r['object']}", r["metric"], float(r["time"]) - 1): float(r["value"])
              for r in rows(made[0], "-f", paper)}
    assert {s[:2] for s in seen} == {key[:2] for key in values}
    for container, metric, start, value in seen:
        assert value == pytest.approx(values[container, metric, start], rel=1e-6, abs=1e-6)


def test_cut_trace_is_read_up_to_the_cut(made, tmp_path):
    cut = tmp_path / "cut"
    cut.write_bytes(made[0].read_bytes()[:-600])
    done = trace("summary", cut, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["ticks"] == 120 and not json.loads(done.stdout)["complete"]
    assert (done.stderr == f"topiary: {cut}: has no index: it is still being written, or was cut short; "
            "read 120 complete ticks\n")


def test_a_trace_without_its_first_block_is_exported(made, tmp_path):
    """A recorder on a full disk loses blocks: the trace then does not begin at 0."""
    def chunk(at):
        kind, _, stored = struct.unpack_from("<4sII", whole, at)
        return kind, at + 32 + stored
    whole, late = made[0].read_bytes(), tmp_path / "late"
    first = chunk(8)[1]
    kind, second = chunk(first)
    assert kind == b"DATA"
    late.write_bytes(whole[:first] + whole[second:-16])
    exported = json.loads(trace("export", late, "--json").stdout)
    assert [s["time"] for s in exported["samples"]] == list(range(61, TICKS + 1))


def test_absent_events_are_reported(made, tmp_path):
    (tmp_path / "f").write_text("near {PU, memory_used / 2}\nflops {Core, flops}\n")
    done = trace("export", made[0], "--formulas", tmp_path / "f", status=0)
    assert [line.split(": ", 2)[2] for line in done.stderr.splitlines()] == [
        "near is absent: memory_used is not counted at or below level PU",
        "flops is absent: flops is not counted at or below level Core"]
    assert {r["value"] for r in csv.DictReader(done.stdout.splitlines()) if r["metric"] in ("near", "flops")} == {""}


LEVELS = "but Machine, Package, L3Cache, Core, PU and NUMANode"


@pytest.mark.parametrize("args,error", [
    (["summary", "/nowhere"], "/nowhere: No such file or directory"),
    (["export", "/dev/null"], "/dev/null: not a regular file"),
    (["export", "{made}", "--level", "Rack"], "{made}: the trace has no level 'Rack', " + LEVELS),
    (["export", "{made}", "--formulas", "{bad}"], "{made}: {bad}:2: expected '{{' at '= cycles'"),
    (["export", "{made}", "--formulas", "{cut}"], "{made}: {cut}:2: expected a level at the end of the text"),
    (["export", "{bad}"], "{bad}: not a Topiary trace"),
    (["show", "{made}", "--metric=nix"], "{made}: no event or formula 'nix'; `topiary trace summary` lists them"),
    (["show", "{made}", "--level=nix"], "{made}: the trace has no level 'nix', " + LEVELS),
    (["show", "{made}", "--at=1000"], "{made}: nothing at 1000.000 s: the trace ends at 130.000 s"),
])
def test_bad_input_is_one_error(made, tmp_path, args, error):
    bad = tmp_path / "bad"
    bad.write_text("ok {PU, cycles}\nIPC = cycles\n" + "#" * 100)
    cut = tmp_path / "cut"
    cut.write_text("ok {PU, cycles}\nIPC {")
    words = {"made": made[0], "bad": bad, "cut": cut}
    done = trace(*(a.format(**words) for a in args))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "topiary: trace: " + error.format(**words) + "\n")


@pytest.mark.parametrize("verb", ["summary", "show", "replay", "html", "advise", "export"])
@pytest.mark.parametrize("name", ["none.trace", "/no/such/cn1.trace", "./none"])
def test_mistyped_file_is_one_line(made, verb, name, tmp_path):
    for words in [[name], [name, made[0]], [made[0], name]] if verb == "advise" else [[name]]:
        done = trace(verb, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == \
            (1, "", f"topiary: trace: {name}: No such file or directory\n")


@pytest.mark.parametrize("args, error", [
    ([], "expected summary, phases, show, replay, html, advise or export, and a FILE"),
    (["none.trace"], "none.trace: expected summary, phases, show, replay, html, advise or export, and a FILE"),
    (["sumary", "{made}"], "sumary: expected summary, phases"),
    (["{made}"], "{made}: expected summary, phases, show, replay, html, advise or export before a trace"),
    (["summary"], "summary: expected a FILE"),
    (["show", "{made}", "other.trace"], "other.trace: expected one FILE; advise takes several of one node"),
    (["show", "{made}", "--at=x"], "--at=x: expected seconds"),
    (["summary", "{made}", "--at=1"], "--at applies to show only"),
    (["export", "{made}", "--metric=cycles"], "--metric applies to show, replay and html only"),
    (["show", "{made}", "--speed=2"], "--speed applies to replay only"),
    (["summary", "{made}", "--accumulate", "--per-tick"], "--accumulate and --per-tick exclude each other"),
    (["export", "{made}", "--paje", "--csv"], "--paje and --csv exclude each other"),
    (["export", "{made}", "--csv", "--json"], "--json excludes --csv and --paje"),
    (["replay", "{made}", "--speed=0"], "--speed=0: expected seconds of the trace a second"),
    (["html", "{made}", "--per-tick"], "--accumulate and --per-tick apply to summary, show, replay and export only"),
    (["advise", "{made}", "--level=PU"], "--level and --formulas do not apply to advise"),
])
def test_wrong_command_line(made, args, error):
    done = trace(*(a.format(made=made[0]) for a in args))
    assert (done.returncode, done.stdout) == (64, "") and error.format(made=made[0]) in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"], ["--paje"]], ids=str)
def test_a_full_disk_is_reported(made, form):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([BUILD / "topiary", "trace", "export", made[0], *form], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "cannot write the export" in done.stderr


@pytest.mark.parametrize("words, redirection, why", [
    (["-V"], ">/dev/full", "topiary: standard output: No space left on device\n"),
    (["-V"], ">&-", "topiary: standard output: Bad file descriptor\n"),
    (["--help"], ">/dev/full", "topiary: standard output: No space left on device\n"),
    (["trace", "--help"], ">/dev/full", "topiary: standard output: No space left on device\n"),
    (["trace", "advise"], ">/dev/full", "cannot write the table to standard output\n"),
    (["trace", "show"], ">/dev/full", "cannot write the table to standard output\n"),
    (["record", "-o/dev/null", "true"], ">&-", None),
], ids=str)
def test_output_that_cannot_be_written_is_an_error(made, words, redirection, why):
    """Of each command, once; one that writes nothing needs no standard output."""
    files = [made[0]] if words[0] == "trace" and "--help" not in words else []
    done = run("sh", "-c", f'exec "$@" {redirection}', "sh", BUILD / "topiary", *words, *files)
    assert done.returncode == (why is not None), done.stderr
    assert not why or (done.stderr.endswith(why) and done.stderr.count("\n") == 1)


def test_advice_says_what_it_cannot_tell(made):
    """The made trace has no run time, and half of its PUs wait for memory in each phase; near and far memory are in
    it."""
    checks = {check["kind"]: check for check in json.loads(printed("advise", made[0], "--json"))["checks"]}
    assert (len(checks) == 23 and checks["far memory"]["result"] == "found"
            and checks["far memory"]["evidence"].startswith("25 % of all"))
    assert ({kind for kind, check in checks.items() if check["missing"] == "busy"}
            > {"idle cores", "siblings", "serial part"})
    said = printed("advise", made[0])
    assert "--topo-membind=bind" in said and re.search(r"\(tasks\), idle cores, siblings, .*\(busy\)$", said.strip())


def test_short_trace_is_no_evidence(tmp_path):
    done = trace("advise", trace_made(tmp_path / "short", "Core:2 PU:1", 3))
    assert done.returncode == 1 and "3 ticks, advice needs at least 10" in done.stderr
