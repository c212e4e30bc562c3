# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Tiers of memory and kinds of core in shapes: of machines made from published facts, and of hwloc's own."""
import json
import subprocess

import pytest
from rig.made_machines import made_machine
from rig.paths import BUILD, CACHE

CORPUS = next(iter(sorted(CACHE.glob("src/hwloc-*/tests/hwloc"))), None)
GIB = 1 << 30
pytestmark = pytest.mark.slow


def shape(file):
    done = subprocess.run([BUILD / "topiary", "shape", "--json", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)["files"][0]


@pytest.mark.parametrize("name, allocation", [
    ("knl-flat", f"Package:1 [NUMANode(memory={96 * GIB})] [NUMANode(memory={16 * GIB} tier=hbm)] "
     "L2Cache:34 Core:2 PU:4"),
    *[(name, f"Package:2 Group:4 [NUMANode(memory={64 * GIB})] [NUMANode(memory={16 * GIB} tier=hbm)] "
       "L2Cache:14 Core:1 PU:1") for name in ("xeon-max", "xeon-max-plain")],
    ("mi300a", f"Package:4 [NUMANode(memory={128 * GIB})] L3Cache:3 L2Cache:8 Core:1 PU:1"),
    ("gh200", f"Package:1 [NUMANode(memory={480 * GIB})] [NUMANode(memory={96 * GIB} tier=gpu)] "
     "L3Cache:1 L2Cache:72 Core:1 PU:1"),
    ("cxl", f"Package:1 [NUMANode(memory={128 * GIB})] [NUMANode(memory={256 * GIB} tier=cxl)] Core:16 PU:1"),
    ("hybrid", f"Package:1 [NUMANode(memory={32 * GIB})] L3Cache:1 {{ Core:8(kind=1) PU:1 | Core:8 PU:1 }}"),
    ("big-little", f"Package:1 [NUMANode(memory={16 * GIB})] L3Cache:1 {{ Core:4 PU:1 | Core:4(kind=1) PU:1 }}"),
])
def test_made_machines(name, allocation, tmp_path):
    file = tmp_path / f"{name}.xml"
    file.write_text(made_machine(name))
    told = shape(file)
    assert told["allocation"]["text"] == allocation
    # hwloc refuses attributes that it does not know: the others have none.
    assert "tier" not in told["detail"]["text"] and "kind" not in told["detail"]["text"]


def made_of(source, folder):
    """The XML of a file of hwloc's corpus."""
    if CORPUS is None:
        pytest.skip("no hwloc source: run packaging/setup")
    if source.endswith(".xml"):
        return CORPUS / source
    tree, out = folder / "tree", folder / "node.xml"
    tree.mkdir()
    subprocess.run(["tar", "-xjf", CORPUS / source, "-C", tree, "--strip-components=1", "--no-same-owner"], check=True,
                   timeout=120)
    subprocess.run(["lstopo-no-graphics", "--if", "fsroot", "--input", tree, "--force", "--of", "xml", out], check=True,
                   stderr=subprocess.DEVNULL, timeout=60)
    return out


@pytest.mark.parametrize("source, tiers, kinds", [
    ("xml/64intel64-fakeKNL-SNC4-hybrid.xml", ["hbm"], []),
    ("xml/8intel64-fakeKNL-A2A-hybrid.rootattachednumas.xml", ["hbm"], []),
    ("linux/64intel64-fakeKNL-SNC4-hybrid.tar.bz2", ["hbm"], []),
    ("linux/64intel64-fakeKNL-A2A-cache.tar.bz2", [], []),
    ("linux/fakeheteromemtiers.tar.bz2", ["nvm", "hbm", "nvm", "hbm", "nvm"], []),
    ("linux/fakememinitiators-1np2c+1npp+gi.tar.bz2", ["nvm"], []),
    ("linux/nvidiagpunumanodes.tar.bz2", [], []),
    ("xml/8intel64-4n2t-memattrs.xml", [], []),
    # The first PUs of its two cores are of one kind.
    ("xml/fakecpukinds.xml", [], []),
    ("linux/fakeheterocpunuma.tar.bz2", [], ["1", "1"]),
])
def test_machines_of_hwloc(source, tiers, kinds, tmp_path):
    text = shape(made_of(source, tmp_path))["allocation"]["text"]
    words = text.replace("(", " ").replace(")", " ").split()
    assert [word[5:] for word in words if word.startswith("tier=")] == tiers
    assert [word[5:] for word in words if word.startswith("kind=")] == kinds
