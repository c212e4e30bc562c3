# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary pack on nodes made from real machines: what differs from node to node costs some bytes, a missing part some
more."""
import functools
import hashlib
import json
import random
import re

import pytest
from rig import command
from rig.machines import machine, machines

HEX = "0123456789abcdef"
TWINS = 40
pytestmark = pytest.mark.skipif(not machines(), reason="no machines: run packaging/setup")


class Twin:
    """What tells one node from another of the same purchase. One card has one address, in whatever places it is
    told."""

    def __init__(self, number):
        self.number, self.chance, self.cards = number, random.Random(number), {}

    def digits(self, text, last):
        """Other digits in the last places, but the very last, which counts the ports."""
        card, port = text[:-1], text[-1]
        if card not in self.cards:
            self.cards[card] = card[:-last] + "".join(self.chance.choice(HEX) for _ in range(last))
        return self.cards[card] + port

    def address(self, value, last):
        digits = iter(self.digits(value.replace(":", ""), last))
        return "".join(c if c == ":" else next(digits) for c in value)

    def value(self, name, value):
        if name == "HostName":
            return f"node{self.number}"
        if name in ("NodeGUID", "SysImageGUID", "Port1GID0", "Address"):
            return self.address(value, 5)
        if name == "Port1LID":
            return f"{self.chance.randrange(1, 0xc000):#x}"
        if name.endswith("UUID"):
            return re.sub(r"[0-9a-f]", lambda _: self.chance.choice(HEX), value)
        if "Serial" in name and len(value) > 4:
            return value[:-6] + f"{self.chance.randrange(10 ** 6):06}"
        return value

    def memory(self, found):
        """The kernel keeps some pages more or less for itself, and hwloc counts the pages from what is left."""
        less = self.chance.randrange(60)
        memory, size, count = int(found[2]) - less * int(found[4]), found[4], int(found[6]) - less
        return f'{found[1]}{memory}{found[3]}{size}{found[5]}{count}"'

    def make(self, xml):
        if "HostName" not in xml:
            xml = re.sub(r'(<object type="Machine"[^>]*>\n)', r'\1    <info name="HostName" value="node0"/>\n',
                         xml, count=1)
        xml = re.sub(r'(<info name="([^"]*)" value=")([^"]*)"', lambda m: f'{m[1]}{self.value(m[2], m[3])}"', xml)
        return re.sub(r'(local_memory=")(\d{6,})("[^\n]*\n *<page_type size=")(\d+)(" count=")(\d+)"', self.memory, xml)


topiary = functools.partial(command.topiary, "pack", timeout=300)


def pack(*files):
    done = topiary("--json", *files)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert [entry["file"] for entry in told["files"]] == [str(path) for path in files]
    return told


def write(folder, texts):
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.xml")
        paths[-1].write_text(text)
    return paths


def without(xml, *marks):
    """The XML without the first object whose start tag or own lines have the marks, and with the gp_index of what is
    left as hwloc counts."""
    lines = xml.splitlines(keepends=True)
    for at, line in enumerate(lines):
        indent = re.match(r" *<object ", line)
        end = next((k for k in range(at, len(lines)) if lines[k].startswith(" " * (len(indent[0]) - 8) + "</object>")),
                   None) if indent else None
        if (end and not line.rstrip().endswith("/>") and all(mark in "".join(lines[at:end]) for mark in marks)
            and marks[0] in line):
            gone = sorted(map(int, re.findall(r' gp_index="(\d+)"', "".join(lines[at:end + 1]))))
            rest = "".join(lines[:at] + lines[end + 1:])
            return re.sub(r' gp_index="(\d+)"', lambda m: f' gp_index="{int(m[1]) - sum(g < int(m[1]) for g in gone)}"',
                          rest)
    return None


def variants(xml):
    """Nodes with something missing or elsewhere."""
    half = re.sub(r'(local_memory=")(\d{6,})"', lambda m: f'{m[1]}{int(m[2]) // 2}"', xml, count=1)
    moved = re.sub(r'(pci_busid="0000:)([0-9a-f]{2})', lambda m: f"{m[1]}{(int(m[2], 16) + 1) % 256:02x}", xml)
    made = {"dimm": half, "pci": moved, "nic": without(xml, 'type="PCIDev"', 'name="Address"'),
            "core": without(xml, 'type="Core"')}
    return {name: text for name, text in made.items() if text and text != xml}


@pytest.mark.parametrize("name", machines())
def test_twins_cost_little(name, tmp_path):
    files = write(tmp_path, {f"n{i}": Twin(i).make(machine(name)) for i in range(TWINS)})
    told = pack(*files)
    kinds = [entry["kind"] for entry in told["files"]]
    assert kinds == ["base"] + ["fields"] * (TWINS - 1)
    assert {entry["base"] for entry in told["files"][1:]} == {str(files[0])}
    totals = told["totals"]
    assert totals["diff_bytes"] == sum(entry["bytes"] for entry in told["files"][1:])
    assert totals["base_bytes"] == told["files"][0]["bytes"] + totals["form_bytes"]
    assert (totals["nodes"], totals["bases"], totals["diffs"]) == (TWINS, 1, TWINS - 1)
    assert totals["diff_bytes"] / totals["diffs"] <= 100
    for entry, path in zip(told["files"], files):
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert entry["xml_bytes"] == path.stat().st_size


@pytest.mark.parametrize("name", machines())
def test_missing_parts_are_patches_in_any_order(name, tmp_path):
    xml = machine(name)
    odd = write(tmp_path, {f"odd-{what}": Twin(100 + i).make(text)
                           for i, (what, text) in enumerate(variants(xml).items())})
    twins = write(tmp_path, {f"n{i}": Twin(i).make(xml) for i in range(TWINS)})
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
    xml = machine(machines()[0])
    other = variants(xml)["core"]
    files = write(tmp_path, {f"a{i}": Twin(i).make(other) for i in range(60)}
                  | {f"b{i}": Twin(i).make(xml) for i in range(80)})
    told = pack(*files)
    assert (told["totals"]["bases"], [entry["kind"] for entry in told["files"]].count("patch")) == (2, 0)


def test_old_xml_is_text(tmp_path):
    old = machine(machines()[0]).replace(' version="2.0"', "")
    assert "<topology>" in old
    told = pack(*write(tmp_path, {f"n{i}": Twin(i).make(old) for i in range(3)}))
    assert [entry["kind"] for entry in told["files"]] == ["base", "fields", "fields"]


def test_table_for_people(tmp_path):
    files = write(tmp_path, {f"n{i}": Twin(i).make(machine(machines()[0])) for i in range(3)})
    done = topiary(*files)
    assert done.returncode == 0, done.stderr
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
    good = write(tmp_path, {"good": machine(machines()[0])})
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
