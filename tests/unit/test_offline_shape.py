# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary shape over hwloc's own collection of machines: its strings tell the same cores, caches and memory as the
XML."""
import json
import os
import subprocess
from pathlib import Path

import pytest
from rig.command import topiary
from rig.paths import BUILD, CACHE

CORPUS = next(iter(sorted(CACHE.glob("src/hwloc-*/tests/hwloc"))), None)
pytestmark = pytest.mark.skipif(CORPUS is None, reason="no hwloc source: run packaging/setup")

PRECISIONS = ("cores", "hierarchy", "detail", "allocation")
# The sysfs of the machines that are hardest to tell; TOPIARY_ALL_MACHINES=1 unpacks every one, which takes a minute.
HARD = ("linux/16amd64-8n2c-cpusets", "linux/16em64t-4s2c2t-offlines", "linux/20s390-2g6s4c",
        "linux/4fake-4gr1nu1pu", "linux/64intel64-fakeKNL-SNC4-hybrid",
        "linux/8em64t-2s4c-heterogeneous", "linux/fakeheterocpunuma", "linux/fakeheteromemtiers",
        "linux/fakememinitiators-1np2c+1npp+gi", "linux/nvidiagpunumanodes", "linux/offline-cpu0-node0",
        "x86/AMD-19h-Zen3-2xEpyc-7763")


def documents():
    """All of them: hwloc takes each, of version 1 and 2, and so do we."""
    return sorted((CORPUS / "xml").glob("*.xml")) if CORPUS else []


def tarballs():
    if not CORPUS:
        return []
    found = sorted(f"{kind}/{path.name[:-len('.tar.bz2')]}" for kind in ("linux", "x86")
                   for path in (CORPUS / kind).glob("*.tar.bz2"))
    return found if os.environ.get("TOPIARY_ALL_MACHINES") else [name for name in found if name in HARD]


def shapes(*files):
    done = topiary("shape", "--json", *files)
    assert (done.returncode, done.stderr) == (0, "")
    return {Path(entry["file"]): entry for entry in json.loads(done.stdout)["files"]}


def lstopo(*args, **env):
    return subprocess.run(["lstopo-no-graphics", "--filter", "all:all", "--disallowed", "--of", "xml", *map(str, args)],
                          check=True, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          timeout=60).stdout


def xml_of_tarball(name, tmp_path):
    subprocess.run(["tar", "-xf", CORPUS / f"{name}.tar.bz2", "-C", tmp_path], check=True, timeout=120)
    root = next(tmp_path.iterdir())
    if name.startswith("linux/"):
        text = lstopo(HWLOC_FSROOT=str(root), HWLOC_COMPONENTS="linux,stop", HWLOC_THISSYSTEM="0")
    else:
        text = lstopo("--input", root)
    path = tmp_path / "machine.xml"
    path.write_bytes(text)
    return path


@pytest.mark.parametrize("name", tarballs())
def test_machines(name, tmp_path):
    """Of documents test_strings.c judges the strings; these it is given."""
    path = xml_of_tarball(name, tmp_path)
    done = subprocess.run([BUILD / "tests/test_strings", path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    done = topiary("snapshot", "--offline", f"n[1-2]={path}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_hwloc_expresses_most_shapes():
    """A ratio that only sinks when a string becomes wrong; hwloc itself decides each."""
    told = shapes(*documents())
    said = {precision: sum(entry[precision]["hwloc"] for entry in told.values()) for precision in PRECISIONS}
    assert (said["cores"] >= 0.9 * len(told) and said["hierarchy"] >= 0.9 * len(told)
            and said["detail"] >= 0.3 * len(told)), said


@pytest.mark.parametrize("version", ["", ' version="1.0"'])
def test_hwloc1(version, tmp_path):
    """XML of hwloc 1 has no version, or a version of its own."""
    path, synthetic = tmp_path / "old.xml", ("--input", "pack:2 core:2 pu:1")
    old = lstopo(*synthetic, "--export-xml-flags", "1").decode()
    assert "<topology>" in old
    path.write_text(old.replace("<topology>", f"<topology{version}>"))
    assert shapes(path)[path]["cores"]["text"] == "NUMANode:1 Core:4 PU:1"


def test_one_core_is_one(tmp_path):
    (tmp_path / "one.xml").write_bytes(lstopo("--input", "core:1 pu:1"))
    assert topiary("shape", tmp_path / "one.xml").stdout.startswith(f"{tmp_path}/one.xml: 1 core, 1 PU, s")


def test_table_for_people():
    path = documents()[0]
    done = topiary("shape", path)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].startswith(f"{path}: 16 cores, 16 PUs, s")
    assert [line.split()[:2] for line in lines[1:]] == [[precision, "hwloc"] for precision in PRECISIONS]


@pytest.mark.parametrize("text, says", [
    ("", "empty"),
    ("not XML\n", ":1: "),
    ('<?xml version="1.0"?>\n<topology version="2.0">\n<toaster/>', ":3: element toaster"),
    ("<topology><object/></topology>", "hwloc cannot load the XML"),
])
def test_bad_files(text, says, tmp_path):
    bad, good = tmp_path / "bad.xml", documents()[0]
    bad.write_text(text)
    done = topiary("shape", "--json", bad, good)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and f"{bad}" in done.stderr and says in done.stderr
    assert [entry["file"] for entry in json.loads(done.stdout)["files"]] == [str(good)]
    assert topiary("shape", bad).returncode == 1
