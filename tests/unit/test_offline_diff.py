# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary diff and topiary verify on files, without a registry."""
import json
import os
import re
import socket
import subprocess

import pytest
from rig.command import topiary

SYNTHETIC = "pack:2 numa:1(memory=68719476736) l3:1 core:4 pu:2"


@pytest.fixture(name="files", scope="module")
def files_fixture(tmp_path_factory):
    """A machine, and what became of it."""
    folder = tmp_path_factory.mktemp("diff")
    subprocess.run(["lstopo-no-graphics", "--input", SYNTHETIC, "--of", "xml", "-f", folder / "a.xml"], check=True)
    a = (folder / "a.xml").read_text()
    less = re.sub(r' *<object type="Core" os_index="1".*?</object>\n', "", a, count=1, flags=re.S)
    less = less.replace(' cpuset="0x0000ffff"', ' cpuset="0x0000fff3"', 1)
    edits = {
        "offline": less,
        "memory": a.replace('local_memory="68719476736"', 'local_memory="51539607552"', 1),
        "kernel": a.replace('name="hwlocVersion" value="2', 'name="hwlocVersion" value="2.1'),
        "twin": a.replace('name="ProcessName" value="', 'name="ProcessName" value="x'),
        "broken": a.replace("</topology>", ""),
        "bomb": a.replace('"hwloc2.dtd">', '"hwloc2.dtd" [<!ENTITY a "b">]>'),
        "empty": "",
    }
    for name, text in edits.items():
        (folder / f"{name}.xml").write_text(text)
    (folder / "topiary.conf").write_text(f"TopologyFile={folder}/offline.xml\nRegistryURL=http://127.0.0.1:9\n")
    return folder


def run(files, *words, timeout=60):
    env = {**os.environ, "TOPIARY_CONF": str(files / "topiary.conf")}
    return topiary(*words, cwd=files, env=env, timeout=timeout)


@pytest.mark.parametrize("words, status, said", [
    (["a.xml", "a.xml"], 0, "0 changes\n"),
    (["a.xml", "offline.xml"], 1, "capacity  core 1 offline\n1 change: 1 capacity\n"),
    (["offline.xml", "a.xml"], 1, "capacity  core 1 online\n1 change: 1 capacity\n"),
    (["./a.xml", "memory.xml"], 1, "capacity  NUMA node 0: memory 64 GiB -> 48 GiB\n1 change: 1 capacity\n"),
    (["a.xml", "twin.xml"], 0, "1 change: 1 identity\n"),
    (["--all", "a.xml", "twin.xml"], 0,
     "identity  machine: ProcessName lstopo-no-graphics -> xlstopo-no-graphics\n1 change: 1 identity\n"),
])
def test_diff_output(files, words, status, said):
    done = run(files, "diff", *words)
    assert (done.returncode, done.stdout, done.stderr) == (status, said, "")


def test_diff_in_json(files):
    done = run(files, "diff", "--json", "a.xml", "memory.xml")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["changes"] == [{"severity": "capacity", "direction": "gone", "object": "NUMA node 0",
                                  "what": "memory", "from": "68719476736", "to": "51539607552",
                                  "words": "NUMA node 0: memory 64 GiB -> 48 GiB"}]
    assert answer["counts"] == {"capacity": 1, "wiring": 0, "cosmetic": 0, "identity": 0}
    assert (answer["from"], answer["to"]) == ("a.xml", "memory.xml")


def test_diff_for_hwloc(files):
    done = run(files, "diff", "--hwloc", "a.xml", "memory.xml")
    assert done.returncode == 1 and "topologydiff" in done.stdout
    (files / "diff.xml").write_text(done.stdout)
    subprocess.run(["hwloc-patch", "a.xml", "diff.xml", "patched.xml"], cwd=files, check=True)
    assert 'local_memory="51539607552"' in (files / "patched.xml").read_text()


@pytest.mark.parametrize("words, named", [
    (["a.xml", "/no/such.xml"], "/no/such.xml"),
    (["a.xml", "broken.xml"], "broken.xml"),
    (["a.xml", "bomb.xml"], "bomb.xml"),
    (["empty.xml", "a.xml"], "empty.xml"),
    (["a.xml", "."], "."),
    (["a.xml", "node1"], "127.0.0.1:9"),
    (["a.xml", "node1@sometime"], "sometime"),
    (["a.xml"], "NODE@WHEN"),
    (["a.xml", "a.xml", "a.xml"], "topiary diff"),
    (["--hwloc", "a.xml", "offline.xml"], "offline.xml"),
])
def test_diff_in_trouble(files, words, named):
    done = run(files, "diff", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert named in done.stderr


@pytest.mark.parametrize("words, status, said", [
    (["a.xml"], 0, ""),
    (["--verbose", "a.xml"], 0, "a.xml: as expected\n"),
    (["kernel.xml"], 0, ""),
    (["--severity", "cosmetic", "kernel.xml"], 1, None),
    (["twin.xml", "--severity", "cosmetic"], 0, ""),
    (["offline.xml"], 3, "capacity  core 1 offline\n"),
    ([], 3, "capacity  core 1 offline\n"),
    (["--mode", "allow-missing", "offline.xml"], 0, ""),
    (["--mode", "allow-extra", "offline.xml"], 3, "capacity  core 1 offline\n"),
    (["--mode", "ignore", "offline.xml"], 0, ""),
])
def test_verify_against_a_file(files, words, status, said):
    done = run(files, "verify", "--against", "a.xml", *words)
    assert (done.returncode, done.stderr) == (status, "")
    assert said is None or done.stdout == said


@pytest.mark.parametrize("words", [
    ["--against", "no.xml", "a.xml"], ["--against", "a.xml", "no.xml"], ["--against", "broken.xml", "a.xml"],
    ["--against", "a.xml", "bomb.xml"],
    ["--mode", "lenient"], ["--severity", "identity"], ["--severity", "grave"], ["node1"], [],
])
def test_verify_without_result(files, words):
    done = run(files, "verify", *words)
    assert done.returncode == 4 and done.stdout == "" and done.stderr


def test_verify_in_json(files):
    answer = json.loads(run(files, "verify", "--json", "--against", "a.xml", "offline.xml").stdout)
    assert answer["severity"] == "capacity" and answer["changes"][0]["words"] == "core 1 offline"
    answer = json.loads(run(files, "verify", "--json", "--against", "a.xml", "a.xml").stdout)
    assert answer["severity"] is None and answer["changes"] == []


@pytest.mark.slow
def test_verify_does_not_wait_for_ever(files):
    """A registry that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = run(files, "verify", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}", "node1", timeout=200)
    assert done.returncode == 4 and "10 s" in done.stderr
