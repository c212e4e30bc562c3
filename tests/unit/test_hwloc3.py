# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Exports by hwloc 3 beside those by hwloc 2 of the same machines: the same hardware, whatever the format."""
import json
import re
import subprocess
from pathlib import Path

import pytest
from rig.command import topiary
from rig.paths import BUILD, CACHE

DATA = Path(__file__).parents[1] / "data" / "hwloc3"
CORPUS = next(iter(sorted(CACHE.glob("src/hwloc-*/tests/hwloc"))), None)
FROM = {"amd-8x2": "linux/16amd64-8n2c.tar.bz2", "power-2x4": "linux/nvidiagpunumanodes.tar.bz2",
        "uneven-2x6": "linux/fakeheterocpunuma.tar.bz2", "memory-tiers": "linux/fakeheteromemtiers.tar.bz2",
        "intel-2x8": "xml/32em64t-2n8c2t-pci-wholeio.xml", "power8-gpus": "xml/power8gpudistances.xml"}


def by_hwloc2(name, folder):
    """The machine as the hwloc of this host exports it."""
    if name == "vm":
        return DATA / "vm.by2.xml"
    if CORPUS is None:
        pytest.skip("no hwloc source: run packaging/setup")
    source, out = CORPUS / FROM[name], folder / f"{name}.by2.xml"
    how = ["--input", source]
    if source.suffix == ".bz2":
        tree = folder / "tree"
        tree.mkdir()
        subprocess.run(["tar", "-xjf", source, "-C", tree, "--strip-components=1", "--no-same-owner"], check=True,
                       timeout=120)
        how = ["--if", "fsroot", "--input", tree]
    subprocess.run(["lstopo-no-graphics", *how, "--whole-io", "--force", "--of", "xml", out], check=True,
                   stderr=subprocess.DEVNULL, timeout=60)
    return out


def shape(file):
    done = topiary("shape", "--json", file)
    assert (done.returncode, done.stderr) == (0, "")
    entry = json.loads(done.stdout)["files"][0]
    del entry["file"]
    return entry


def words(a, b, *options):
    done = topiary("diff", *options, a, b)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", [*FROM, "vm"])
def test_the_same_machine_has_the_same_shape_and_no_difference(name, tmp_path):
    old, new = by_hwloc2(name, tmp_path), DATA / f"{name}.xml"
    assert 'version="3.0"' in new.read_text() and 'version="2.0"' in old.read_text()
    assert shape(old) == shape(new)
    for a, b, was, now in ((old, new, 2, 3), (new, old, 3, 2)):
        status, said = words(a, b, "--all")
        assert status == 0
        assert re.fullmatch(rf"identity  machine: export format {was}\.0 -> {now}\.0( \(hwloc \S+ -> \S+\))?\n1 "
                            r"change: 1 identity\n", said), said


@pytest.mark.parametrize("a, b, said", [
    ("vm.by2", "vm.as2",
     "identity  machine: hwloc 2.9.0 -> 3.0.0a1-git, export format 2.0\n1 change: 1 identity\n"),
    ("vm.as2", "vm",
     "identity  machine: export format 2.0 -> 3.0\n1 change: 1 identity\n"),
])
def test_the_older_format_of_hwloc_3_is_the_same_machine(a, b, said):
    assert shape(DATA / f"{a}.xml") == shape(DATA / f"{b}.xml")
    assert words(DATA / f"{a}.xml", DATA / f"{b}.xml", "--all") == (0, said)


EDITS = {
    "memory": ("amd-8x2", r'(os_index="3"[^>]* local_memory=")\d+', r"\g<1>2147483648",
               "capacity  NUMA node 3: memory 8 GiB -> 2 GiB\n"),
    "disk": ("vm", r'(<info name="Size" value=")268435456KiB', r"\g<1>134217728KiB",
             "capacity  vda: Size 268435456 -> 134217728KiB\n"),
    "NIC": ("vm", r' *<object type="PCIDev"[^>]*0000:00:03.0.*?</object>\n *</object>\n', "", "capacity  eth0 gone\n"),
    "kernel": ("vm", r'(<info name="OSRelease" value=")[^"]*', r"\g<1>7.0",
               "cosmetic  machine: OSRelease 6.18.44-fc-v769 -> 7.0\n"),
    "efficiency": ("uneven-2x6", r'(forced_efficiency=")1025', r"\g<1>100",
                   "wiring    CPU kind 0: efficiency 2 -> 0\n"),
    "info": ("vm", r' *<info name="CPUModel".*?\n', "",
             "capacity  package 0: CPUModel Intel(R) Xeon(R) Processor -> none\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_changed_with_the_format_is_found(edit, tmp_path):
    name, pattern, by, said = EDITS[edit]
    text, done = re.subn(pattern, by, (DATA / f"{name}.xml").read_text(), count=1, flags=re.S)
    assert done == 1
    (tmp_path / "new.xml").write_text(text)
    status, got = words(by_hwloc2(name, tmp_path), tmp_path / "new.xml")
    assert status == 1 and said in got and len(got.splitlines()) < 5, got


def hwloc_of(program):
    """The major version of the hwloc that a program is linked with: 2's library is libhwloc.so.15."""
    libraries = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    return 2 if "libhwloc.so.15" in libraries else 3


@pytest.mark.parametrize("value", ["own", "2", "3", "1", "two"])
def test_the_agent_exports_in_the_format_that_is_configured(value, tmp_path):
    config, file, agent = tmp_path / "topiary.conf", tmp_path / "topology.xml", BUILD / "topiary-agent"
    config.write_text(f"RunDir={tmp_path}\nTopologyFile={file}\nExportFormat={value}\n")
    done = subprocess.run([agent, "--config", config, "--node", "n1", "--local"], stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    major = hwloc_of(agent)
    written = {"own": major, "2": 2, "3": 3 if major == 3 else None}.get(value)
    if written:
        assert (done.returncode, done.stderr) == (0, "")
        assert f'<topology version="{written}.0">' in file.read_text()
        assert shape(file)
        return
    said = f"n1: ExportFormat=3: hwloc {major} cannot export XML of hwloc 3" if value == "3" else \
        f"{config}:3: ExportFormat={value}: expected own, 2 or 3"
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and said in done.stderr
    assert not file.exists()
