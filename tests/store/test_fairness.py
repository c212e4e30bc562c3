# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""One node cannot take from the others what all of them share: turns, workers, room in the database."""
import contextlib
import http.client
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import SMALL, machine
from rig.processes import wait_until

CONNECTIONS = 32  # of the hostile node
MANY = 130000
HOST = b'    <info name="HostName"'


def attributes(node, _):
    """Of one element: libxml2 compares each with all others."""
    return machine(SMALL, node).replace(HOST, b"    <info " + b" ".join(b'a%d="x"' % i for i in range(MANY))
                                        + b' name="HostName"', 1)


def infos(node, letter):
    """Of one object: each becomes a row of the database, and is compared with those of the node's class."""
    return machine(SMALL, node).replace(HOST, b"".join(b'    <info name="%c%d" value="1"/>\n' % (letter, i)
                                                       for i in range(MANY)) + HOST, 1)


@pytest.fixture
def hostile_host(registry, configured, elsewhere):
    registry.name_host(elsewhere.there, "far")
    configured(Listen=f"0.0.0.0:{registry.port}")
    return registry


@pytest.mark.parametrize("make", [attributes, infos], ids=["attributes", "infos"])
def test_a_hostile_node_does_not_block_others(hostile_host, elsewhere, make):
    """All others are acknowledged while root of one node sends documents over as many connections as it may; it is told
    at once that they are refused, or to come later, and never that the registry is busy."""
    registry, own = hostile_host, "far"
    documents = [make(own, letter) for letter in b"ABC"]
    done, told = threading.Event(), []

    def attack():
        while not done.is_set():
            answer = registry.put(own, documents[len(told) % len(documents)], at=elsewhere.here)
            told.append((answer.status, answer.headers["Retry-After"], answer.body))
    with elsewhere.threads(CONNECTIONS) as far, ThreadPoolExecutor(12) as near:
        attacks = [far.submit(attack) for _ in range(CONNECTIONS)]
        try:
            nodes = [f"{make.__name__}{i}" for i in range(60)]
            answers = list(near.map(lambda n: registry.put(n, machine(SMALL, n, 7)), nodes))
        finally:
            done.set()
        for a in attacks:
            a.result()
    assert [a.status for a in answers] == [200] * 60, [a.body for a in answers if a.status != 200]
    assert {status for status, *_ in told} <= {422, 429}, {body for status, _, body in told if status not in (422, 429)}
    assert 422 in {status for status, *_ in told} and all(after for status, after, _ in told if status == 429)


def test_slow_bodies_of_a_node_leave_memory_to_others(hostile_host, elsewhere):
    """Twenty of the largest, of which a byte came: others are served, and the node's own have to come again."""
    registry, xml = hostile_host, machine(SMALL, "far", 7)

    def begin():
        slow = http.client.HTTPConnection(elsewhere.here, registry.port, timeout=60)
        slow.putrequest("PUT", "/v1/nodes/far/topology")
        for name, value in {"Authorization": f"Munge {registry.sign(registry.claim('far', xml))}",
                            "Content-Encoding": "zstd", "Content-Length": 4 << 20}.items():
            slow.putheader(name, value)
        slow.endheaders(b"x")
        return slow
    with elsewhere.threads(1) as far:
        slow = [far.submit(begin).result() for _ in range(20)]
        for i in range(5):
            assert registry.put(f"beside{i}", machine(SMALL, f"beside{i}", i)).status == 200
        refused = slow[-1].getresponse()
        assert refused.status == 503 and b"from its address" in refused.read()
        for one in slow:
            one.close()
        assert wait_until(lambda: far.submit(registry.put, "far", xml, at=elsewhere.here).result().status == 200, 60)


def noise(node, values=1):
    """A document that is like no other."""
    value = os.urandom(100000).hex().encode()
    infos = b"".join(b'    <info name="Noise%d" value="%s"/>\n' % (i, value) for i in range(values))
    return machine(SMALL, node).replace(HOST, infos + HOST, 1)


def test_slow_readers_of_a_node_leave_memory_to_others(hostile_host, elsewhere):
    """As many replies as all memory has room for, of which nobody reads a byte: another's is sent."""
    registry, path = hostile_host, "/v1/nodes/large/topology"
    assert registry.put("large", noise("large", 10)).status == 200

    def begin():
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect((elsewhere.here, registry.port))
        slow.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return slow
    with elsewhere.threads(1) as far, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(far.submit(begin).result()) for _ in range(130)]
        heads = [one.recv(12) for one in slow]
        assert b"HTTP/1.1 200" in heads and b"HTTP/1.1 503" in heads
        assert registry.get(path).status == 200


# --- room in the database


@pytest.mark.parametrize("settings, stored", [({"NodeDocuments": 24, "NodeBytes": 16}, 24), ({"NodeBytes": 1}, 11)],
                         ids=["as shipped", "bytes"])
def test_a_node_does_not_fill_the_database(registry, configured, settings, stored):
    """Forty documents, each a new base: so many are stored as may be in a day, and what the last of them was stays."""
    configured(**settings)
    node = f"noisy{stored}"
    told = registry.log("topiaryd").count(f"{node}: quota of 24 hours used up")
    bases = int(registry.sql("SELECT count(*) FROM base"))
    documents = [noise(node) for _ in range(40)]
    answers = [registry.put(node, xml) for xml in documents]
    assert [a.status for a in answers] == [200] * stored + [429] * (40 - stored), answers[stored].body
    assert {a.headers["Retry-After"] for a in answers[stored:]} == {"3600"}
    assert int(registry.sql("SELECT count(*) FROM base")) <= bases + stored
    assert registry.log("topiaryd").count(f"{node}: quota of 24 hours used up") == told + 1
    assert registry.get(f"/v1/nodes/{node}/topology").body == documents[stored - 1]
    assert registry.ask(node, documents[stored - 1]).status == 200, "it boots with what is stored"
    assert registry.put(f"quiet{stored}", noise(f"quiet{stored}")).status == 200


def test_a_node_does_not_fill_the_database_with_small_changes(registry, configured):
    """Which no parser sees."""
    configured(NodeDocuments=5)
    answers = [registry.put("serial", machine(SMALL, "serial", i)).status for i in range(10)]
    assert answers == [200] * 5 + [429] * 5
    registry.sql("UPDATE past SET since = since - interval '1 day' WHERE node = 'serial'")
    assert registry.put("serial", machine(SMALL, "serial", 9)).status == 200, "a day later"
