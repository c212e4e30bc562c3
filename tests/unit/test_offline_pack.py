# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary pack on nodes made from real machines: what differs from node to node costs some bytes, a missing part some
more."""
import functools
import hashlib
import json
import random

import pytest
from rig import command
from rig.clones import clone
from rig.machines import machines
from rig.paths import CACHE

TWINS = 40
pytestmark = pytest.mark.skipif(not machines(), reason="no machines: run packaging/setup")


topiary = functools.partial(command.topiary, "pack", timeout=300)


def pack(*files):
    done = topiary("--json", *files, status=0)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert [entry["file"] for entry in told["files"]] == [str(path) for path in files]
    return told


def clones(folder, name, numbers, variant="none"):
    """Files of nodes like that machine; nic, core, dimm or pci: without one of these, or with it elsewhere."""
    paths = [folder / f"{variant}{i}.xml" for i in numbers]
    for number, path in zip(numbers, paths):
        path.write_bytes(clone(CACHE / "machines" / f"{name}.xml", number, variant))
    return paths


@pytest.mark.parametrize("name", machines())
def test_twins_cost_little(name, tmp_path):
    files = clones(tmp_path, name, range(TWINS))
    told = pack(*files)
    kinds = [entry["kind"] for entry in told["files"]]
    assert kinds == ["base"] + ["fields"] * (TWINS - 1)
    assert {entry["base"] for entry in told["files"][1:]} == {str(files[0])}
    totals = told["totals"]
    assert totals["diff_bytes"] == sum(entry["bytes"] for entry in told["files"][1:])
    assert totals["base_bytes"] == told["files"][0]["bytes"] + totals["form_bytes"]
    assert (totals["nodes"], totals["bases"], totals["diffs"]) == (TWINS, 1, TWINS - 1)
    assert totals["diff_bytes"] / totals["diffs"] <= 150     # clones differ in more values than most real nodes do
    for entry, path in zip(told["files"], files):
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert entry["xml_bytes"] == path.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("name", machines())
def test_missing_parts_are_patches_in_any_order(name, tmp_path):
    odd = [file for variant in ("nic", "core", "dimm", "pci") for file in clones(tmp_path, name, [100], variant)]
    twins = clones(tmp_path, name, range(TWINS))
    for seed in range(3):
        files = odd + twins
        random.Random(seed).shuffle(files)
        kinds = {entry["file"]: entry for entry in pack(*(odd + twins if seed == 0 else files))["files"]}
        assert [kinds[str(path)]["kind"] for path in odd] == ["patch"] * len(odd)
        assert max((kinds[str(path)]["bytes"] for path in odd), default=0) <= 10_000
        assert sorted(kinds[str(path)]["kind"] for path in twins) == ["base"] + ["fields"] * (TWINS - 1)


def test_many_that_are_patches_get_a_base(tmp_path):
    """A first lot with a part missing, then many as they should be, then many with the part missing again: two bases,
    all else fields."""
    cores = 16      # of the machine: so far apart, numbers lack the same one
    told = pack(*clones(tmp_path, "intel-2x8", range(0, 60 * cores, cores), "core"),
                *clones(tmp_path, "intel-2x8", range(80)))
    assert (told["totals"]["bases"], [entry["kind"] for entry in told["files"]].count("patch")) == (2, 0)


def test_old_xml_is_text(tmp_path):
    files = clones(tmp_path, machines()[0], range(3))
    for file in files:
        file.write_text(file.read_text().replace('<topology version="2.0">', "<topology>"))
    told = pack(*files)
    assert [entry["kind"] for entry in told["files"]] == ["base", "fields", "fields"]


def test_table_for_people(tmp_path):
    files = clones(tmp_path, machines()[0], range(3))
    done = topiary(*files, status=0)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["FILE", "SHAPE", "KIND", "BYTES", "XML", "BASE"]
    assert [line.split()[2] for line in lines[1:4]] == ["base", "fields", "fields"]
    assert "rebuilt byte for byte" in lines[-1]
    assert " to 1" in lines[-2]


@pytest.mark.parametrize("text, says", [
    (None, "No such file"), ("", "empty"), ("no XML\n", ":1: "),
    ("<topology version=\"2.0\">\n<evil/>\n</topology>\n", ":2: "),
    ("<topology\nversion/>\n", ":2: "),
])
def test_one_bad_file_is_one_clear_error(text, says, tmp_path):
    good = clones(tmp_path, machines()[0], [0])
    bad = tmp_path / "bad.xml"
    if text is not None:
        bad.write_text(text)
    done = topiary(*good, bad)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"{bad}" in done.stderr and says in done.stderr


def test_usage():
    done = topiary()
    assert done.returncode != 0 and "FILE" in done.stderr
