# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Nodes that boot at once while the registry is killed: what was acknowledged is there, once, to the byte."""
import random
import re
import sys
import time

import pytest
from registry_rig import ROOT, run, running
from rig.clones import clone

sys.path.insert(0, str(ROOT / "bench"))

import storms  # noqa: E402

VARIANTS = ("none", "nic", "core", "dimm", "pci")


stormy = running(storms.Stormy)


# --- the nodes that storms are made of

@pytest.mark.parametrize("base", storms.machines(), ids=lambda p: p.stem)
def test_clones_are_nodes_as_hwloc_writes_them(stormy, tmp_path, base):
    """hwloc loads each and writes the same again; the registry takes it and gives it back; a number is a document."""
    documents = {v: clone(base, 7, v, pad=100000) for v in VARIANTS}
    assert len(set(documents.values())) == len(VARIANTS)
    assert documents["none"] == clone(base, 7, pad=100000) != clone(base, 8, pad=100000)
    for variant, xml in documents.items():
        file, again = tmp_path / f"{variant}.xml", tmp_path / "again.xml"
        file.write_bytes(xml)
        run(["lstopo-no-graphics", "--whole-io", "--force", "--input", file, "--of", "xml", again])
        assert again.read_bytes() == xml
        node = f"{base.stem}-{variant}"
        assert stormy.put(node, xml).status == 200
        assert stormy.get(f"/v1/nodes/{node}/topology").body == xml


def test_clones_keep_sums_and_pairs(tmp_path):
    """A NUMA node's memory is that of its pages, and a card's GUID is the same wherever it stands."""
    base = next(b for b in storms.machines() if b.stem == "arm-2x64")
    for number in range(20):
        xml = clone(base, number, VARIANTS[number % 5]).decode()
        for memory, inside in re.findall(r'local_memory="(\d+)">(.*?)</object>', xml, re.S):
            assert int(memory) == sum(int(s) * int(n) for s, n in re.findall(r'size="(\d+)" count="(\d+)"', inside))
        guids = re.findall(r'"NodeGUID" value="(.*?)"', xml)
        assert guids
        for guid in guids:
            assert xml.count(guid) == 3 and xml.count(":".join(re.findall("..", guid.replace(":", "")))) == 1
        gps = re.findall(r'gp_index="(\d+)"', xml)
        assert len(gps) == len(set(gps))


def test_a_machine_that_lacks_what_should_be_missing_is_refused(tmp_path):
    file = tmp_path / "bare.xml"
    file.write_bytes(run(["lstopo-no-graphics", "--input", "Package:1 Core:1 PU:1", "--of", "xml", "-"]))
    with pytest.raises(ValueError, match=f"{file}: no part for the variant core"):
        clone(file, 1, "core")


# --- storms

def acknowledged(log, report, agents):
    exports = list(storms.read_log(log))
    assert report["acknowledged"] == agents == len(exports) == len({e.node for e in exports}), report
    return exports


def test_first_boot_second_boot_and_after_repairs(stormy):
    log = stormy.folder / "boots.log"
    how = {"log": log, "agents": 200, "variants": 20}
    report = stormy.storm(storms.machines(), readers=1, **how)
    first = acknowledged(log, report, 200)
    assert report["documents"] == 200 and report["read_failures"] == 0
    assert stormy.survivors(first) == []
    report = stormy.storm(storms.machines(), mode="hash", seed=2, **how)
    second = acknowledged(log, report, 200)
    assert report["documents"] == 0 and {e.sha256 for e in second} == {e.sha256 for e in first}
    report = stormy.storm(storms.machines(), mode="mixed", seed=3, **how)
    third = acknowledged(log, report, 200)
    assert report["documents"] == 20 and len({e.sha256 for e in first + third}) == 220
    assert stormy.survivors(first + second + third) == []


def test_what_is_lost_would_be_seen(stormy):
    """Exports that nobody acknowledged, in four ways: none of them passes for stored."""
    log = stormy.folder / "few.log"
    good, *_ = acknowledged(log, stormy.storm(storms.machines(), log=log, agents=4, first=300), 4)
    assert stormy.survivors([good]) == []
    for wrong in (good._replace(node="cn999999"), good._replace(seq=good.seq + 1), good._replace(boot="0"),
                  good._replace(sha256="0")):
        assert stormy.survivors([wrong])
    assert stormy.survivors([good._replace(sha256="0"), good])


def test_kills_lose_nothing(stormy):
    """SIGKILL to topiaryd or to all of PostgreSQL in the midst of storms; python3 bench/registry.py kill --times 200
    does more."""
    exports, retries, wrong = storms.kill_rounds(stormy, storms.machines(), times=4, seed=7, agents=80)
    assert wrong == [] and exports == 4 * 80 and retries > 0


def test_two_topiaryd_on_one_database(stormy):
    """Each exchange of a node goes to the other one, and one of them is killed on the way."""
    urls = [f"http://127.0.0.1:{stormy.port}", stormy.start_second()]
    try:
        storm, log = stormy.background_storm(storms.machines(), agents=200, first=1000, window=1, pause_max=1,
                                             deadline=60, variants=20, url=urls)
        time.sleep(random.Random(3).uniform(0.5, 1.0))
        stormy.kill("second")
        stormy.revive("second")
        storm.communicate()
        exports = list(storms.read_log(log))
        assert storm.returncode == 0 and len(exports) == len({e.node for e in exports}) == 200
        assert stormy.survivors(exports) == []
    finally:
        stormy.stop("second")
