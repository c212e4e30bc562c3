# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What root of one node may do, who holds munge's key and so can sign as anybody, and what only administrators may."""
import json
import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import SMALL, USER, machine, zstd
from rig.cluster import as_user
from rig.paths import ROOT
from rig.processes import wait_until

FABRIC = json.dumps({"planes": [], "switches": [], "hosts": [], "links": []}).encode()


@pytest.fixture
def two_hosts(registry, configured, elsewhere):
    """topiaryd on all addresses, and a host beside it named far."""
    registry.name_host(elsewhere.there, "far", "alias")

    def start(**settings):
        configured(Listen=f"0.0.0.0:{registry.port}", **settings)
        return registry
    return start


def import_fabric(registry, body=FABRIC, at="127.0.0.1", user=None, **other):
    cred = registry.sign(registry.claim("fabric", body, **{"purpose": "fabric", **other}), user)
    return registry.request("PUT", "/v1/fabric", zstd(body), at=at, Authorization=f"Munge {cred}",
                            Content_Encoding="zstd")


def words(answer):
    return answer.json()["error"]


# --- what a credential is for

def test_a_credential_serves_one_purpose(registry):
    """Each request is sent with what was signed for each of the others."""
    xml = machine(SMALL, "purpose", 1)
    requests = {
        "export": [lambda **c: registry.ask("purpose", xml, **c), lambda **c: registry.put("purpose", xml, **c)],
        "accept": [lambda **c: registry.accept("purpose", xml, **c)],
        "fabric": [lambda **c: import_fabric(registry, **c)],
        "forget": [lambda **c: registry.forget("purpose", xml, **c)],
    }
    assert registry.put("purpose", xml).status == 200
    for wanted, sends in requests.items():
        for send in sends:
            for signed in ("ack", *requests):
                answer = send(purpose=signed)
                if signed == wanted:
                    assert answer.status == 200, (wanted, answer.body)
                else:
                    assert (answer.status == 403 and f"signed for '{signed}', but '{wanted}' is required"
                            in words(answer))


def test_acknowledgement_states_its_purpose(registry):
    xml = machine(SMALL, "ack", 1)
    assert registry.put("ack", xml).headers["Topiary-Ack"] == registry.acknowledgement("ack", xml)
    answer = registry.put("ack", xml, key="")
    assert answer.status == 401 and "has no key for the acknowledgement" in words(answer)


# --- where an export comes from

def test_a_node_exports_itself_only(two_hosts, elsewhere):
    """With no word in topiary.conf about it."""
    registry = two_hosts()
    own, other = "far", "other"
    xml, stolen = machine(SMALL, own, 1), machine(SMALL, other, 2)
    with elsewhere.threads(1) as far:
        answer = far.submit(registry.put, other, stolen, at=elsewhere.here).result()
        assert answer.status == 403
        assert f"other: sent from {elsewhere.there}, which is not one of its addresses" in words(answer)
        assert far.submit(registry.ask, other, stolen, at=elsewhere.here).result().status == 403
        assert registry.get("/v1/nodes/other").status == 404
        assert far.submit(registry.put, own, xml, at=elsewhere.here).result().status == 200
    assert registry.put(other, stolen).status == 200, "root of the registry's own host"
    assert registry.put(other, machine(SMALL, other, 3), at=elsewhere.here).status == 200, "by any of its addresses"


def test_an_address_is_no_name(two_hosts, elsewhere):
    """In any form that a resolver reads: test_snapshot.c has the others."""
    registry = two_hosts()
    name = str(int.from_bytes(bytes(map(int, elsewhere.there.split(".")))))
    with elsewhere.threads(1) as far:
        answer = far.submit(registry.put, name, machine(SMALL, "far", 1), at=elsewhere.here).result()
    assert answer.status == 400 and "an address or a number is not a node's name" in words(answer)
    assert registry.sql(f"SELECT name FROM node WHERE name = '{name}'") == ""


def test_a_node_has_one_name(registry, configured):
    """Without the domain and in lower case, unless NodeDomain=keep; each reply is for the name that asked."""
    xml = machine(SMALL, "one", 1)
    for i, name in enumerate(("one", "ONE", "one.", "One.cluster.example")):
        answer = registry.put(name, xml) if i == 0 else registry.ask(name, xml)
        assert answer.status == 200 and answer.json()["node"] == "one"
        assert answer.headers["Topiary-Ack"] == registry.acknowledgement(name, xml)
        assert registry.get(f"/v1/nodes/{name}/topology").body == xml
        assert len(registry.get(f"/v1/nodes?hosts={name}").json()["nodes"]) == 1
    assert registry.sql("SELECT name FROM node WHERE name LIKE 'on%'") == "one"
    configured(NodeDomain="keep", KnownNodes="one.cluster.example")
    assert registry.put("ONE.cluster.example.", xml).status == 200 and registry.put("one", xml).status == 403
    assert registry.sql("SELECT name FROM node WHERE name LIKE 'one%' ORDER BY name") == "one\none.cluster.example"


def test_names_of_an_earlier_release(registry, configured):
    """The row that was exported last stays, with all that is stored of it."""
    for i, name in enumerate(("before", "twice")):
        for serial in (i, 10 + i):
            assert registry.put(name, machine(SMALL, name, serial)).status == 200
    registry.sql("UPDATE node SET name = 'Before' WHERE name = 'before'")
    registry.sql("UPDATE past SET node = 'Before' WHERE node = 'before'")
    registry.sql("UPDATE node SET name = 'twice.cluster.example' WHERE name = 'twice'")
    xml = machine(SMALL, "twice", 20)
    assert registry.put("twice", xml).status == 200
    configured(UpkeepInterval=1)
    assert wait_until(lambda: registry.sql("SELECT name FROM node WHERE name ~ '[A-Z.]'") == "", 30)
    assert registry.get("/v1/nodes/BEFORE/topology").body == machine(SMALL, "before", 10)
    assert len(registry.get("/v1/nodes/before/history").json()["history"]) == 2
    assert registry.get("/v1/nodes/twice/topology").body == xml
    assert "Before: now before (NodeDomain)" in registry.log("topiaryd")


def test_a_quota_is_a_hosts(two_hosts, elsewhere):
    """Whatever names it has."""
    registry = two_hosts(NodeDocuments=4)
    with elsewhere.threads(1) as far:
        answers = [far.submit(registry.put, name, machine(SMALL, name, 100 + i), at=elsewhere.here).result().status
                   for i in range(4) for name in ("far", "alias")]
    assert answers[0] == 200 and answers[-1] == 429 and answers.count(200) <= 5, answers
    assert registry.put("near", machine(SMALL, "near", 100)).status == 200


def test_users_of_the_registrys_host_cannot_relay(two_hosts):
    """What root of some node signed, sent by a user who is logged in where the registry runs, or by a proxy there."""
    registry = two_hosts()
    xml = machine(SMALL, "passed", 1)
    assert registry.put("passed", xml).status == 200

    def send(method, path, purpose, user):
        cred = registry.sign(registry.claim("passed", xml, purpose=purpose))
        command = ["curl", "-s", "-X", method, "-H", f"Authorization: Munge {cred}",
                   f"http://127.0.0.1:{registry.port}{path}"]
        return subprocess.run(as_user(user, command), capture_output=True, text=True, timeout=60, check=True,
                              cwd="/").stdout
    boot = ("PUT", "/v1/nodes/passed/boot", "export")
    accept = ("POST", "/v1/nodes/passed/accept", "accept")
    assert "the registry's own host, but not by root" in send(*boot, "nobody")
    for user in ("nobody", "root"):  # whose connection may be a proxy's
        assert "not one of AdminHosts, or behind a proxy, and may not accept a node" in send(*accept, user)
    assert '"seq"' in send(*boot, "root")
    registry.topiary("accept", "passed", status=0)


def test_clients_of_a_proxy(two_hosts, elsewhere):
    """The last address of the last X-Forwarded-For counts, and only from TrustedProxies; nobody behind one is an
    administrator."""
    registry = two_hosts(TrustedProxies="192.0.2.1, 127.0.0.1", AdminHosts="behind")
    xml, behind = machine(SMALL, "behind", 1), "192.0.2.77"
    registry.name_host(behind, "behind")

    def send(*forwarded, method="PUT", path="boot", **how):
        purpose = {"boot": "export"}.get(path, path)
        headers = dict(zip(("X_Forwarded_For", "x_forwarded_for"), forwarded))
        cred = registry.sign(registry.claim("behind", xml, purpose=purpose))
        return registry.request(method, f"/v1/nodes/behind/{path}", Authorization=f"Munge {cred}", **headers, **how)
    for status, *forwarded in ((202, behind), (202, f"192.0.2.5,{behind} "), (403, f"{behind}, 192.0.2.5"),
                               (202, "192.0.2.5", behind), (403, behind, "192.0.2.5"), (403, "::1"), (400, ""),
                               (400, f"{behind}, unknown"), (202,)):
        answers = []
        # PostgreSQL may be late on a busy machine.
        wait_until(lambda sent=forwarded, said=answers: said.append(send(*sent)) or said[-1].status != 503, 30)
        assert answers[-1].status == status, (forwarded, answers[-1].body)
        assert status != 400 or "is no address" in words(answers[-1])
    assert "behind: sent from 192.0.2.5, which is not one of its addresses" in registry.log("topiaryd")
    with elsewhere.threads(1) as far:
        assert far.submit(send, behind, at=elsewhere.here).result().status == 403, "no proxy of TrustedProxies"
    assert registry.put("behind", xml).status == 200
    for forwarded, status in (([behind], 403), (["127.0.0.1"], 403), ([], 200)):
        assert send(*forwarded, method="POST", path="accept").status == status


def test_the_proxy_protocol_is_named(registry):
    """libmicrohttpd answers a request behind such a header itself, with 400 and no reason."""
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor() as pool:
        def forward():
            client, _ = proxy.accept()
            with client, socket.create_connection(("127.0.0.1", registry.port)) as server:
                server.sendall(b"PROXY TCP4 192.0.2.5 192.0.2.1 50000 6824\r\n" + client.recv(65536))
                while text := server.recv(65536):
                    client.sendall(text)
        done = pool.submit(forward)
        said = registry.topiary("--url", f"http://127.0.0.1:{proxy.getsockname()[1]}", "shapes", status=1).stderr
        done.result()
    assert "no reason given: " in said and "the PROXY protocol (TrustedProxies" in said and "HTTP status 400)" in said
    said = "127.0.0.1: sent what is no HTTP request. If it is a proxy that sends the PROXY protocol"
    assert wait_until(lambda: said in registry.log("topiaryd"), 60)


def test_peer_check_settings(two_hosts, elsewhere):
    registry = two_hosts(PeerCheck="warn")
    with elsewhere.threads(1) as far:
        for i in (2, 3):
            assert far.submit(registry.put, "warned", machine(SMALL, "warned", i),
                              at=elsewhere.here).result().status == 200
        assert (registry.log("topiaryd").count(f"warned: sent from {elsewhere.there}")
                == 1), "warned of once by each topiaryd"
        two_hosts(PeerCheck="off")
        assert far.submit(registry.put, "warned", machine(SMALL, "warned", 4), at=elsewhere.here).result().status == 200


def test_known_nodes(registry, configured):
    configured(KnownNodes="cn[1-3],gpu1")
    for node, status in (("cn1", 202), ("cn3", 202), ("gpu1", 202), ("cn4", 403), ("cn01", 403), ("evil", 403)):
        answer = registry.ask(node, machine(SMALL, node, 1))
        assert answer.status == status, (node, answer.body)
        assert status == 202 or words(answer) == f"{node}: the node is not in KnownNodes"


# --- administrators

def test_administrators_are_users_on_listed_hosts(two_hosts, elsewhere):
    """Root of a node may sign as anybody; from there nobody is an administrator, unless the site says so."""
    registry = two_hosts()
    xml = machine(SMALL, "run", 1)
    assert registry.put("run", xml).status == 200

    def try_all(far, **how):
        return [far.submit(registry.accept, "run", xml, at=elsewhere.here, **how).result(),
                far.submit(import_fabric, registry, at=elsewhere.here, **how).result()]
    with elsewhere.threads(1) as far:
        for user in (None, USER):
            answers = try_all(far, user=user)
            assert [a.status for a in answers] == [403, 403]
            assert all("on a host that is not one of AdminHosts" in words(a) for a in answers)
        assert "run: uid 0 is on a host" in registry.log("topiaryd")
        two_hosts(AdminHosts=f"nowhere.invalid, {elsewhere.there}")
        assert [a.status for a in try_all(far)] == [200, 200]
        assert [a.status for a in try_all(far, user="nobody")] == [403, 403]


def test_a_controller_that_follows_the_snapshot(two_hosts, elsewhere):
    """Its request names the current one; neither do others count, nor its own for an old one."""
    registry = two_hosts(ControllerHosts="nowhere.invalid far", KnownNodes="far,followed,more")
    assert registry.put("followed", machine(SMALL, "followed", 1)).status == 200

    def times():
        text = registry.get("/metrics").body.decode()
        assert "\ntopiary_known_nodes 3\n" in text
        return {host: int(t) for host, t in re.findall(r'controller_snapshot_\S+{host="(\S+)"} (\d+)', text)}
    tag = registry.get("/v1/snapshot").headers["ETag"]
    assert registry.request("GET", "/v1/snapshot", If_None_Match=tag).status == 304
    with elsewhere.threads(1) as far:
        for named, status in (('"old"', 200), (tag, 304)):
            assert times() == {"nowhere.invalid": 0, "far": 0}
            assert far.submit(registry.request, "GET", "/v1/snapshot", at=elsewhere.here,
                              If_None_Match=named).result().status == status
    assert times()["nowhere.invalid"] == 0 and abs(times()["far"] - time.time()) < 60


def test_who_may_remove_a_node(two_hosts, elsewhere):
    registry = two_hosts()
    old, xml = machine(SMALL, "leaving", 1), machine(SMALL, "leaving", 2)
    assert registry.put("leaving", old).status == registry.put("leaving", xml).status == 200
    with elsewhere.threads(1) as far:
        assert far.submit(registry.forget, "leaving", xml, at=elsewhere.here).result().status == 403
    answer = registry.forget("leaving", xml, user="nobody")
    assert answer.status == 403 and "leaving: uid 65534 is not one of Admins and may not remove a node" in words(answer)
    answer = registry.forget("leaving", old)
    assert answer.status == 409 and "leaving: the node's topology has changed meanwhile" in words(answer)
    assert registry.forget("unknown", xml).status == 404
    assert registry.get("/v1/nodes/leaving/topology").body == xml
    assert registry.forget("leaving", xml, user=USER).json() == {"node": "leaving", "history": 1}
    assert registry.get("/v1/nodes/leaving").status == 404


def test_admins(registry, configured):
    xml = machine(SMALL, "run", 1)
    assert registry.put("run", xml).status == 200
    for admins, accepted in (("", [USER]), ("root", [None, USER]), ("bin,nobody", ["nobody", USER]),
                             ("65534", ["nobody", USER])):
        configured(Admins=admins)
        for user in (None, "nobody", USER):
            answer = registry.accept("run", xml, user=user)
            assert answer.status == (200 if user in accepted else 403), (admins, user, answer.body)


# --- the hook that is shipped

def test_the_shipped_hook_drains_within_its_budget(tmp_path):
    """A scontrol that notes what it is asked: how often it is asked is the question here."""
    asked, program = tmp_path / "asked", tmp_path / "scontrol"
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    program.chmod(0o755)
    text = (ROOT / "packaging/examples/drift-hook").read_text()

    def run(per_day, nodes, severity="capacity"):
        hook = tmp_path / "hook"
        hook.write_text(text.replace("drain_per_day=0", f"drain_per_day={per_day}")
                        .replace("/var/lib/topiary", str(tmp_path)))
        return [subprocess.run(["sh", hook, f"cn{i}", severity], capture_output=True, text=True, check=True,
                               env={"PATH": f"{tmp_path}:/usr/bin:/bin"}).stdout for i in nodes]

    def drained():
        return [line.split()[1] for line in asked.read_text().splitlines()] if asked.exists() else []
    assert all("drain_per_day is 0" in said for said in run(0, range(20))) and drained() == []
    said = run(3, range(20))
    assert drained() == [f"NodeName=cn{i}" for i in range(3)] and said[:3] == ["", "", ""]
    assert all("3 nodes were within 24 hours" in line for line in said[3:])
    run(9, range(20), "wiring")
    assert len(drained()) == 3
    ledger = tmp_path / "drained"
    ledger.write_text("".join(f"{int(line.split()[0]) - 86401} {line.split()[1]}\n"
                              for line in ledger.read_text().splitlines()))
    run(3, range(20, 40))
    assert len(drained()) == 6
