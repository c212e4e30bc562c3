# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Drift: a node that is not what its class is, from its export to the hook, and what a person accepts."""
import json
import re
import time

import pytest
from registry_rig import USER
from rig.processes import wait_until
from upkeep_rig import INTERVAL, alike, all_there, clone, name, number, relinked, upkeep_ran, upkept

PATIENCE = 20 * INTERVAL
HOOK = """#!/bin/sh
echo "$1 $2 $TOPIARY_NODE $TOPIARY_SEVERITY $TOPIARY_CLASS $# \
$(env | grep -vc -e ^TOPIARY -e ^PATH= -e ^PWD= -e ^_=) $(ls /proc/self/fd | wc -l)" >> {state}/calls
cat > {state}/changes-$1
"""


@pytest.fixture(scope="module")
def registry():
    with upkept(DriftHook="{folder}/hook") as r:
        hook(r)
        for i in range(8):
            assert r.put(name(i), clone(i)).status == 200
        yield r


def hook(registry, text=HOOK, mode=0o755):
    path = registry.folder / "hook"
    new = registry.folder / "hook.new"
    new.write_text(text.format(state=registry.folder / "state"))
    new.chmod(mode)
    new.rename(path)


def calls(registry):
    file = registry.folder / "state" / "calls"
    return [line.split(" ") for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def calls_for(registry, node):
    return [call for call in calls(registry) if call[0] == node]


def drift(registry, node):
    return registry.get(f"/v1/nodes/{node}/drift").json()


def changes(registry, node):
    text = registry.sql(f"SELECT changes FROM drift WHERE node = '{node}'")
    return json.loads(text) if text else []


def severity(registry, node):
    return registry.sql(f"SELECT severity FROM drift WHERE node = '{node}'")


def without(xml, start):
    """The XML without the object that begins with this."""
    lines, out, depth = xml.decode().split("\n"), [], 0
    for line in lines:
        if not depth and not line.strip().startswith(start):
            out.append(line)
            continue
        depth += line.strip().startswith("<object") - line.strip().startswith("</object") - (
            line.strip().startswith("<object") and line.strip().endswith("/>"))
    assert len(out) < len(lines)
    return "\n".join(out).encode()

def test_one_machine_under_two_names(registry):
    """Equal network addresses, serial numbers and UUIDs; not where only some are, as with a vendor's default UUID."""
    again, first = name(70), clone(70)
    other = re.sub(rb'(DMIProductSerial" value=")[^"]*', rb"\g<1>another", first)
    assert registry.put(again, first).status == 200
    assert registry.put("alias", first).status == 200
    assert registry.put("swapped", other).status == 200

    def found():
        return {n: [c["words"] for c in drift(registry, n)["changes"]] for n in (again, "alias", "swapped", name(0))}

    same = "the same hardware as {}: network addresses and serial numbers are equal"
    assert wait_until(lambda: found() == {again: [same.format("alias")], "alias": [same.format(again)], "swapped": [],
                                          name(0): []}, PATIENCE), found()
    assert drift(registry, "alias")["severity"] == "capacity" and not calls_for(registry, again)
    assert registry.get("/v1/nodes/alias").json()["drift"] == "capacity"
    said = registry.topiary("doctor").stdout
    assert f"alias: {same.format(again)}" in " ".join(said.split()), said
    many = [f"alias{i}" for i in range(5)]
    assert all(registry.put(n, first).status == 200 for n in many)
    words = "alias, alias0, alias1, alias2 and 2 more"
    assert wait_until(lambda: found()[again] == [same.format(words)], PATIENCE), found()
    assert all(registry.forget(n, first).status == 200 for n in ("alias", *many))
    assert wait_until(lambda: drift(registry, again)["changes"] == [], PATIENCE)


# --- what drift is

def test_a_twin_does_not_drift(registry):
    assert number(registry, "SELECT count(*) FROM drift") == 0
    assert number(registry, "SELECT count(*) FROM class") == 1
    node = registry.get(f"/v1/nodes/{name(3)}").json()
    assert not node.get("drift")


# One of each severity: what differs, and in which words, has rows in tests/unit/test_compare.c.
VARIANTS = {
    "nic": (lambda i: clone(i, "nic"), "capacity", "gone", "eth|mlx5"),
    "bus": (lambda i: clone(i, "pci"), "wiring", "changed", "bus"),
    "kernel": (lambda i: clone(i).replace(b'"3.2.0-4-amd64"', b'"6.1.0-9-amd64"'), "cosmetic", "changed", "6.1.0-9"),
}


@pytest.mark.parametrize("what", VARIANTS)
def test_what_drifts(registry, what):
    make, grave, direction, words = VARIANTS[what]
    number_of = 20 + list(VARIANTS).index(what)
    node, xml = name(number_of), make(number_of)
    assert registry.put(node, clone(number_of)).status == 200
    assert severity(registry, node) == ""
    assert registry.put(node, xml).status == 200
    assert severity(registry, node) == grave
    found = changes(registry, node)
    assert found[0]["severity"] == grave, found
    assert any(re.search(words, c["words"]) and direction in (None, c["direction"]) for c in found), found
    assert all(c["severity"] != "identity" for c in found)
    assert registry.get(f"/v1/nodes/{node}/topology").body == xml
    assert drift(registry, node)["severity"] == grave
    assert registry.get("/metrics").body.decode().count(f'severity="{grave}"') >= 1
    # The hook is run once, with all of it.
    assert wait_until(lambda: calls_for(registry, node), PATIENCE), registry.log("topiaryd")
    assert wait_until(lambda: registry.sql(f"SELECT reported FROM drift WHERE node = '{node}'") == "t", PATIENCE)
    assert calls_for(registry, node)[0][:6] == [node, grave, node, grave, "c1", "2"]
    assert json.loads((registry.folder / "state" / f"changes-{node}").read_text()) == found
    # Mended, it is gone.
    assert registry.put(node, clone(number_of)).status == 200
    assert severity(registry, node) == ""
    assert len(calls_for(registry, node)) == 1


def test_the_hook_gets_nothing_else(registry):
    assert ({(call[6], call[7]) for call in calls(registry)}
            == {("0", "4")}), "no environment, and no open file but its own"


def test_known_document_is_reported_once(registry):
    xml = clone(40, "nic")
    for _ in range(3):
        assert registry.put(name(40), xml).status == 200
    assert wait_until(lambda: calls_for(registry, name(40)), PATIENCE)
    registry.ask(name(40), xml)
    upkeep_ran(registry)
    assert len(calls_for(registry, name(40))) == 1
    assert registry.put(name(40), clone(40, "dimm")).status == 200
    assert wait_until(lambda: len(calls_for(registry, name(40))) == 2, PATIENCE), "other drift is new drift"
    assert registry.put(name(40), clone(40)).status == 200


def test_metrics(registry):
    def drifted(grave):
        return int(re.search(rf'topiary\w*drifted{{severity="{grave}"}} (\d+)',
                             registry.get("/metrics").body.decode()).group(1))
    lost = number(registry, "SELECT count(*) FROM drift WHERE severity = 'capacity'")
    assert wait_until(lambda: drifted("capacity") == lost, 15)
    before = drifted("capacity")
    assert registry.put(name(41), clone(41, "core")).status == 200
    assert wait_until(lambda: drifted("capacity") == before + 1, 15)
    assert registry.put(name(41), clone(41)).status == 200
    assert wait_until(lambda: drifted("capacity") == before, 15)


# --- hooks that are no good

def untold(registry, node):
    return registry.sql(f"SELECT reported FROM drift WHERE node = '{node}'") == "f"


def still_serves(registry, number_of):
    node = name(number_of)
    assert registry.put(node, clone(number_of)).status == 200
    assert registry.get(f"/v1/nodes/{node}/topology").body == clone(number_of)


@pytest.mark.parametrize("case", ["writable by others", "missing", "no program"])
def test_a_hook_that_is_not_run(registry, case):
    node = name(50 + len(case))
    path = registry.folder / "hook"
    mark = len(registry.log("topiaryd"))
    if case == "writable by others":
        hook(registry, mode=0o757)
    elif case == "no program":
        hook(registry, text="not a program", mode=0o644)
    else:
        path.unlink()
    assert registry.put(node, clone(50, "nic")).status == 200
    try:
        assert wait_until(lambda: str(path) in registry.log("topiaryd")[mark:],
                          PATIENCE), registry.log("topiaryd")[mark:]
        still_serves(registry, 51)
        assert not calls_for(registry, node)
        upkeep_ran(registry)
        assert registry.log("topiaryd")[mark:].count(str(path)) <= 3, "an error that lasts is not logged each time"
    finally:
        hook(registry)
    if case != "no program":
        assert wait_until(lambda: calls_for(registry, node), PATIENCE), "the hook runs once it is there"
    registry.put(node, clone(50))


def test_a_hook_that_fails_is_run_three_times(registry):
    hook(registry, text="#!/bin/sh\necho \"$1\" >> {state}/failed\nprintf 'line one\\nl\\303\\244st %s\\n' x "
         ">&2\nexit 7\n")
    mark = len(registry.log("topiaryd"))
    assert registry.put(name(60), clone(60, "nic")).status == 200
    assert wait_until(lambda: not untold(registry, name(60)), PATIENCE)
    log = registry.log("topiaryd")[mark:]
    assert (registry.folder / "state" / "failed").read_text() == 3 * f"{name(60)}\n"
    assert log.count("exit status 7") == 3 and log.count("not retried") == 1, log
    assert f"{name(60)}: drift hook: line one l??st x" in log.replace("st  x", "st x") or "line one l" in log
    upkeep_ran(registry)
    assert (registry.folder / "state" / "failed").read_text() == 3 * f"{name(60)}\n"
    hook(registry)


def test_hook_with_much_output_and_unread_input(registry):
    hook(registry, text="#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\necho \"$1\" >> {state}/loud\n")
    mark = len(registry.log("topiaryd"))
    assert registry.put(name(61), clone(61, "nic")).status == 200
    assert wait_until(lambda: (registry.folder / "state" / "loud").exists(), PATIENCE)
    assert wait_until(lambda: not untold(registry, name(61)), PATIENCE)
    assert len(registry.log("topiaryd")) - mark < 8192
    hook(registry)


def test_a_hook_that_hangs_is_ended(registry):
    """With what it started; the hook runs for others afterwards, and topiaryd serves all the while."""
    hook(registry, text="#!/bin/sh\ncase $1 in cn000062) echo $$ > {state}/hangs; sleep 600 & sleep 600;; "
         "*) echo $1 >> {state}/next;; esac\n")
    mark = len(registry.log("topiaryd"))
    assert registry.put(name(62), clone(62, "nic")).status == 200
    assert wait_until(lambda: (registry.folder / "state" / "hangs").exists(), PATIENCE)
    assert registry.put(name(63), clone(63, "nic")).status == 200
    assert "killed (time limit: " not in registry.log("topiaryd")[mark:]
    assert wait_until(lambda: "killed (time limit: " in registry.log("topiaryd")[mark:], 45)
    assert wait_until(lambda: (registry.folder / "state" / "next").exists(), PATIENCE)
    assert registry.sql("SELECT count(*) FROM drift WHERE node = 'cn000062' AND reported") in ("0", "1")
    registry.put(name(62), clone(62))
    hook(registry)


def test_hook_is_ended_at_shutdown(registry):
    """topiaryd ends at once, and its hook runs when topiaryd is back."""
    hook(registry, text="#!/bin/sh\necho $$ > {state}/long; sleep 600\n")
    assert registry.put(name(64), clone(64, "nic")).status == 200
    assert wait_until(lambda: (registry.folder / "state" / "long").exists(), PATIENCE)
    begun = time.monotonic()
    registry.stop("topiaryd")
    assert time.monotonic() - begun < 120
    hook(registry)
    registry.start_topiaryd()
    assert wait_until(lambda: calls_for(registry, name(64)), PATIENCE)


def test_most_severe_change_comes_first(registry):
    """A new kernel on all nodes does not keep a lost card waiting."""
    registry.stop("topiaryd")
    config = registry.config.read_text()
    registry.config.write_text(config.replace(f"UpkeepInterval={INTERVAL}", "UpkeepInterval=86400"))
    hook(registry, text="#!/bin/sh\nsleep 0.3; echo $2 >> {state}/order\n")
    registry.start_topiaryd()
    for i in range(70, 76):
        assert registry.put(name(i), VARIANTS["kernel"][0](i)).status == 200
    assert registry.put(name(77), clone(77, "pci")).status == 200
    assert registry.put(name(78), clone(78, "nic")).status == 200
    registry.sql("UPDATE drift SET reported = node < 'cn000070' OR node > 'cn000078'")
    (registry.folder / "state" / "order").unlink(missing_ok=True)
    registry.stop("topiaryd")
    registry.sql("UPDATE drift SET reported = node < 'cn000070' OR node > 'cn000078'")
    (registry.folder / "state" / "order").unlink(missing_ok=True)
    registry.config.write_text(config)
    registry.start_topiaryd()
    assert wait_until(lambda: number(registry, "SELECT count(*) FROM drift WHERE NOT reported") == 0, PATIENCE)
    assert (registry.folder / "state" / "order").read_text().split() == ["capacity", "wiring"] + 6 * ["cosmetic"]
    hook(registry)


# --- accepting

def class_of(registry, node):
    return registry.sql(f"SELECT class FROM topiary_nodes WHERE node = '{node}'")


def test_accepting_what_does_not_drift_changes_nothing(registry):
    got = registry.accept(name(1), clone(1))
    assert (got.status == 200 and got.json()["node"] == name(1)
            and got.json()["class"] == class_of(registry, name(1)) == "c1")
    assert number(registry, "SELECT count(*) FROM class") == 1


def test_who_may_accept(registry):
    xml = clone(80, "nic")
    assert registry.put(name(80), xml).status == 200
    assert registry.accept(name(80), xml, user="nobody").status == 403
    assert registry.accept(name(80), clone(80)).status == 409
    assert "changed meanwhile" in registry.accept(name(80), clone(80)).json()["error"]
    assert registry.accept("unknown", xml).status == 404
    assert registry.accept(name(80), xml, seq=time.time_ns() - 400 * 10**9).status == 403
    assert registry.accept(name(80), xml, seq=time.time_ns() + 400 * 10**9).status == 403
    assert registry.request("POST", f"/v1/nodes/{name(80)}/accept").status == 401
    cred = registry.sign(registry.claim(name(81), xml, purpose="accept"))
    assert registry.accept(name(80), xml, cred).status == 403
    assert severity(registry, name(80)) == "capacity" and class_of(registry, name(80)) == "c1"
    cred = registry.sign(registry.claim(name(80), xml, purpose="accept"))
    assert [registry.accept(name(80), xml, cred).status for _ in range(2)] == [200, 401]
    assert severity(registry, name(80)) == "" and class_of(registry, name(80)) == "c2"


def test_a_changed_cluster_is_accepted_once(registry):
    """All nodes have a new kernel and a card less: one is accepted, those that are alike follow, the others stay."""
    def changed(i):
        return VARIANTS["kernel"][0](i).replace(b"6.1.0-9", b"6.7.0-1")
    new = {name(i): changed(i) for i in range(90, 102)}
    cardless = {name(i): clone(i, "core") for i in range(102, 105)}
    for node, xml in {**new, **cardless}.items():
        assert registry.put(node, xml).status == 200
    before = registry.sql(f"SELECT node, class FROM topiary_nodes WHERE node < '{name(90)}' ORDER BY node")
    kernels = number(registry, "SELECT count(*) FROM drift WHERE severity = 'cosmetic'")
    got = registry.accept(name(95), new[name(95)], user=USER)
    assert got.status == 200, got.body
    made = got.json()["class"]
    assert class_of(registry, name(95)) == made != "c1" and severity(registry, name(95)) == ""
    assert wait_until(lambda: all(class_of(registry, n) == made for n in new), PATIENCE), registry.log("topiaryd")
    assert not any(severity(registry, n) for n in new)
    assert (all(severity(registry, n) == "capacity" for n in cardless)
            and not any(class_of(registry, n) == made for n in cardless))
    assert number(registry, "SELECT count(*) FROM drift WHERE severity = 'cosmetic'") == kernels - len(new)
    assert registry.sql(f"SELECT node, class FROM topiary_nodes WHERE node < '{name(90)}' ORDER BY node") == before
    assert all_there(registry, {**new, **cardless})
    assert registry.put(name(96), new[name(96)]).json()["stored"] == "known"
    baseline = {c["class"]: c["baseline"] for c in registry.get("/v1/classes").json()["classes"]}
    assert baseline[made] == name(95)


def test_a_base_beside_the_baseline_is_accepted_with_its_nodes(registry):
    """Enough nodes are alike to have a base; the one that it was made of is accepted."""
    same = alike(110, 12, "dimm")
    for node, xml in same.items():
        assert registry.put(node, xml).status == 200
    listed = ", ".join(f"'{n}'" for n in same)
    patches = f"SELECT count(*) FROM topiary_nodes WHERE node IN ({listed}) AND stored = 'patch'"
    assert wait_until(lambda: number(registry, patches) == 0, PATIENCE), registry.log("topiaryd")
    own = registry.sql(f"SELECT node FROM topiary_nodes WHERE node IN ({listed}) AND stored = 'base'")
    got = registry.accept(own, same[own])
    assert got.status == 200, got.body
    assert got.json()["nodes"] >= 1
    assert wait_until(lambda: not any(severity(registry, n) for n in same), PATIENCE), registry.log("topiaryd")
    assert {class_of(registry, n) for n in same} == {got.json()["class"]}
    assert all_there(registry, same)
    late = clone(134, "dimm")
    assert registry.put(name(134), late).status == 200
    assert severity(registry, name(134)) == "" and class_of(registry, name(134)) == got.json()["class"]
    missing = without(late, '<object type="OSDev" gp_index="80"')
    assert registry.put(name(134), missing).status == 200
    assert severity(registry, name(134)) == "capacity"
    assert all("sda" in c["words"] or c["severity"] != "capacity"
               for c in changes(registry, name(134))), "from what was accepted"


def test_more_than_expected(registry):
    """A class without a card: with one, a node has more."""
    less, more = relinked(clone(140, "nic")), relinked(clone(140))
    assert registry.put(name(140), less).status == 200
    assert registry.accept(name(140), less).status == 200
    assert severity(registry, name(140)) == ""
    assert registry.put(name(140), more).status == 200
    assert severity(registry, name(140)) == "capacity"
    assert ([c["direction"] for c in changes(registry, name(140)) if c["severity"] == "capacity"]
            == ["extra"]), changes(registry, name(140))


def test_a_node_that_goes_back_is_what_others_still_are(registry):
    """Two kernels are right at a time: a node may have either, and no third."""
    node = name(97)
    for kernel, grave in (("3.2.0-4", ""), ("6.7.0-1", ""), ("6.8.0-0", "cosmetic"), ("3.2.0-4", "")):
        assert registry.put(node, clone(97).replace(b"3.2.0-4", kernel.encode())).status == 200
        assert wait_until(lambda want=grave: severity(registry, node) == want,
                          PATIENCE), (kernel, changes(registry, node))
    upkeep_ran(registry)
    assert severity(registry, node) == ""
