# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What anyone may read over HTTP, and what a client can do to the others: nothing."""
import hashlib
import re
import resource
import signal
import socket
import time

import pytest
from registry_rig import SMALL, machine
from rig.processes import wait_until

OTHER = "Package:2 [NUMANode] L3Cache:2 L2Cache:4 Core:1 PU:1"
SLOW = 300
REQUEST_SECONDS = 30


@pytest.fixture(scope="module")
def nodes(registry):
    """cn1 to cn4 are alike, cn4 lost its hyperthreads at its second boot."""
    for i in range(1, 5):
        assert registry.put(f"cn{i}", machine(SMALL, f"cn{i}", i)).status == 200
    time.sleep(0.01)
    assert registry.put("cn4", machine(OTHER, "cn4", 4)).status == 200
    return registry


def names(answer):
    assert answer.status == 200, answer.body
    return [n["node"] for n in answer.json()["nodes"]]


# --- what is read

@pytest.mark.parametrize("query, wanted", [
    ("", ["cn1", "cn2", "cn3", "cn4"]), ("?hosts=cn[2-3]", ["cn2", "cn3"]), ("?hosts=cn3,cn1,nobody", ["cn1", "cn3"]),
    ("?class=c99", []), ("?drift=any", ["cn4"]), ("?drift=capacity&hosts=cn[1-9]", ["cn4"]), ("?drift=cosmetic", []),
    ("?shape=s00000000", [])])
def test_nodes_are_selected(nodes, query, wanted):
    answer = nodes.get("/v1/nodes" + query)
    assert names(answer) == wanted and answer.json()["truncated"] is False


def test_node_by_shape_and_class(nodes):
    one = nodes.get("/v1/nodes/cn4").json()
    assert names(nodes.get(f"/v1/nodes?shape={one['shape']}")) == ["cn4"]
    assert names(nodes.get(f"/v1/nodes?class={one['class']}")) == ["cn1", "cn2", "cn3", "cn4"]


def test_node(nodes):
    xml = machine(SMALL, "cn2", 2)
    node = nodes.get("/v1/nodes/cn2").json()
    assert node["sha256"] == hashlib.sha256(xml).hexdigest() and node["xml_bytes"] == len(xml)
    assert node["boot_id"] == nodes.boot and node["cores"] == 16 and node["pus"] == 32 and node["drift"] is None
    assert node["cores_only"] == "NUMANode:2 Core:8 PU:2" and node["hierarchy"] == SMALL


def test_topology_now_then_and_canonical(nodes):
    before, now = machine(SMALL, "cn4", 4), machine(OTHER, "cn4", 4)
    history = nodes.get("/v1/nodes/cn4/history").json()["history"]
    answer = nodes.get("/v1/nodes/cn4/topology")
    assert answer.body == now and answer.headers["Topiary-SHA256"] == hashlib.sha256(now).hexdigest()
    assert nodes.get(f"/v1/nodes/cn4/topology?at={history[1]['since']}").body == before
    assert nodes.get(f"/v1/nodes/cn4/topology?at={history[0]['since']}").body == now
    canonical = nodes.get("/v1/nodes/cn4/topology?form=canonical")
    assert canonical.body.count(b"<object") == now.count(b"<object")
    assert canonical.headers["Topiary-SHA256"] == hashlib.sha256(canonical.body).hexdigest()
    assert nodes.get("/v1/nodes/cn4/topology?at=1999-12-31").status == 404
    assert nodes.get("/v1/nodes/cn4/topology?at=soon").status == 400


def test_history_describes_changes_in_words(nodes):
    answer = nodes.get("/v1/nodes/cn4/history").json()
    new, old = answer["history"]
    assert new["until"] is None and old["until"] == new["since"] and answer["truncated"] is False
    assert old["changes"] is None and new["changes"][0]["severity"] == "capacity"
    assert all(c["words"] for c in new["changes"])
    short = nodes.get("/v1/nodes/cn4/history?limit=1").json()
    assert short["history"] == [new] and short["truncated"] is True


def test_history_of_many_topologies(nodes):
    """Words for the newest twenty, no more."""
    for i in range(25):
        assert nodes.put("often", machine(SMALL, "often", i)).status == 200
    entries = nodes.get("/v1/nodes/often/history").json()["history"]
    assert len(entries) == 25
    assert [e["changes"] is not None for e in entries] == [True] * 20 + [False] * 5
    for entry, serial in zip(entries[:3], range(24, 21, -1)):
        assert [(c["what"], c["to"]) for c in entry["changes"]] == [("DMIProductSerial", f"C{serial:06d}")]


def test_facts(nodes):
    facts = nodes.get("/v1/nodes/cn2/facts").json()["facts"]
    assert {"object": "machine", "fact": "DMIProductSerial", "value": "C000002"} in facts
    assert (nodes.get("/v1/nodes/cn2/facts?fact=HostName").json()["facts"]
            == [{"object": "machine", "fact": "HostName", "value": "cn2"}])
    every = nodes.get("/v1/facts?fact=DMIProductSerial&hosts=cn[1-3]").json()["facts"]
    assert [(f["node"], f["value"]) for f in every] == [("cn1", "C000001"), ("cn2", "C000002"), ("cn3", "C000003")]
    assert [f["node"] for f in nodes.get("/v1/facts?fact=DMIProductSerial&value=C000003").json()["facts"]] == ["cn3"]
    assert nodes.get("/v1/nodes/nobody/facts").status == 404


def test_drift(nodes):
    one = nodes.get("/v1/nodes/cn4/drift").json()
    assert one["severity"] == "capacity" and one["since"] and one["changes"][0]["words"]
    assert nodes.get("/v1/drift").json()["drift"] == [one] == nodes.get("/v1/drift?severity=capacity").json()["drift"]
    assert nodes.get("/v1/drift?severity=wiring").json()["drift"] == []
    none = nodes.get("/v1/nodes/cn1/drift").json()
    assert (none["severity"], none["since"], none["changes"]) == (None, None, [])


def test_shapes_and_classes_fold_hosts(nodes):
    shapes = {s["hosts"]: s for s in nodes.get("/v1/shapes").json()["shapes"]}
    assert shapes["cn4"]["nodes"] == 1 and shapes["cn4"]["pus"] == 16
    assert any(hosts.startswith("cn[1-3]") for hosts in shapes)
    baseline = nodes.get("/v1/classes").json()["classes"][0]
    assert baseline["baseline"] == "cn1" and baseline["hosts"].startswith("cn[1-4]") and baseline["drifted"] == 1


def test_metrics(nodes):
    text = nodes.get("/metrics").body.decode()
    values = dict(line.rsplit(" ", 1) for line in text.split("\n") if line and not line.startswith("#"))
    assert values["topiary_postgresql_up"] == "1" and int(values["topiary_nodes"]) >= 4
    assert int(values['topiary_exports_total{result="kept"}']) >= 5
    assert int(values['topiary_requests_total{method="PUT",route="/v1/nodes/*/topology",code="2xx"}']) >= 5
    series = 'topiary_request_duration_seconds_bucket{method="GET",route="/v1/nodes",le="+Inf"}'
    assert values[series] == values[series.replace("_bucket", "_count").replace(',le="+Inf"', "")]
    assert text.count("# TYPE topiary_nodes_drifted ") == 1
    assert values["topiary_request_body_bytes"] == "0"


# --- how it is asked

def test_etag(nodes):
    for path in ("/v1/nodes", "/v1/nodes/cn1", "/v1/nodes/cn1/topology", "/v1/shapes", "/v1/snapshot"):
        answer = nodes.get(path)
        tag = answer.headers["ETag"]
        assert (tag == f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
                and answer.headers["Cache-Control"] == "no-cache")
        for known in (tag, "*", f'"other", {tag}', f"W/{tag}"):
            again = nodes.request("GET", path, If_None_Match=known)
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert nodes.request("GET", path, If_None_Match='"other"').body == answer.body
        assert nodes.request("GET", path, If_None_Match="nonsense").status == 200


def test_head(nodes):
    whole, head = nodes.get("/v1/nodes/cn1"), nodes.request("HEAD", "/v1/nodes/cn1")
    assert head.status == 200 and head.body == b""
    assert all(head.headers[name] == whole.headers[name] for name in ("ETag", "Content-Length", "Content-Type"))


@pytest.mark.parametrize("path, allowed", [
    ("/v1/nodes", "GET, HEAD"), ("/v1/nodes/cn1", "GET, HEAD"), ("/v1/nodes/cn1/topology", "PUT, GET, HEAD"),
    ("/v1/nodes/cn1/boot", "PUT"), ("/v1/nodes/cn1/accept", "POST"), ("/healthz", "GET, HEAD")])
@pytest.mark.parametrize("method", ["DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods(nodes, path, allowed, method):
    answer = nodes.request(method, path)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed) and answer.json()["error"]


@pytest.mark.parametrize("path", [
    "/v1/nodes?x=1", "/v1/nodes?hosts", "/v1/nodes?hosts=", "/v1/nodes?hosts=cn[1-", "/v1/nodes?hosts=cn[2-1]",
    "/v1/nodes?hosts=cn[1-99999999]", "/v1/nodes?hosts=a&hosts=b", "/v1/nodes?hosts=a%00b", "/v1/nodes?hosts=%27;--",
    "/v1/nodes?shape=x", "/v1/nodes?class=1", "/v1/nodes?drift=bad", "/v1/nodes?Hosts=a", "/v1/nodes/cn1?fact=a",
    "/v1/nodes/cn1/history?limit=0", "/v1/nodes/cn1/history?limit=1001", "/v1/nodes/cn1/history?limit=1e2", "/v1/facts",
    "/v1/facts?fact=%ff", "/v1/facts?fact=%c0%80", "/v1/facts?fact=%ed%a0%80", "/v1/facts?fact=a%0ab",
    "/v1/nodes/cn1/topology?form=x", "/v1/facts?fact=" + "x" * 257, "/v1/nodes/cn1/topology?at=",
    "/v1/drift?severity=any", "/v1/openapi.yaml?x", "/healthz?a=b"])
def test_bad_parameters(nodes, path):
    answer = nodes.get(path)
    assert answer.status == 400 and answer.json()["error"], answer.body


@pytest.mark.parametrize("path, status", [
    ("/", 404), ("/v1", 404), ("/v1/nodes/", 404), ("/v1/nodes/nobody", 404), ("/v1/nodes/nobody/topology", 404),
    ("/v1/nodes/a%20b", 400), ("/v1/nodes/%27%3B--", 400), ("/v1/nodes/../../etc/passwd", 404),
    ("/v1/nodes/cn1%00", 400), ("/v1/nodes/cn1%00/topology", 400), ("/v1/nodes/cn1%2Ftopology", 400),
    ("/v1/nodes/cn1%2ftopology", 400), ("/v1%2fnodes", 400), ("/v1/nodes/../nodes", 404),
    ("/v1/nodes/..%5c..%5cx", 400), ("/v1/nodes/.", 400),
    ("/v1/nodes/%2e%2e", 400),
    ("/v1/nodes/-cn1", 400), ("/v1/nodes/" + "a" * 4000, 404), ("/" + "b" * 4000, 404), ("//v1/nodes", 404),
    ("/v1/nodes/cn1/", 404),
    ("/v1/nodes/cn%0a1", 400), ("/v1/nodes/%ff%fe", 400), ("/v1/nodes/cn1%", 400), ("/v1/nodes/cn1;x", 400)])
def test_hostile_paths(nodes, path, status):
    answer = nodes.get(path)
    assert answer.status == status and answer.json()["error"], answer.body


# --- what a client can do to others

def slow_client(address, port, text):
    s = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))
    s.sendall(text)
    return s


def trickle(sockets):
    """A byte to each; how many are still open."""
    still = 0
    for s in sockets:
        try:
            s.send(b"x")
            still += 1
        except OSError:
            pass
    return still


def test_slow_clients_do_not_block_others(nodes):
    """A byte a second, in the headers and in bodies, beside a client that is as quick as ever and a node that
    exports."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * SLOW + 256)), hard))
    cred = nodes.sign(nodes.claim("cn1", b"x" * 1000))
    body = (f"PUT /v1/nodes/cn1/topology HTTP/1.1\r\nHost: x\r\nAuthorization: Munge {cred}\r\n"
            "Content-Encoding: zstd\r\n"
            "Content-Length: 1000\r\n\r\n").encode()
    begun = time.monotonic()
    head = b"GET /v1/nodes HTTP/1.1\r\nX: "
    sockets = [slow_client(f"127.0.1.{1 + i % 4}", nodes.port, head if i else body) for i in range(SLOW)]
    try:
        slowest, i = 0, 0
        while trickle(sockets) and time.monotonic() - begun < 10 * REQUEST_SECONDS:
            started = time.monotonic()
            assert nodes.get("/v1/nodes/cn1").status == 200
            slowest, i = max(slowest, time.monotonic() - started), i + 1
            if i % 10 == 1:
                assert nodes.put("quick", machine(SMALL, "quick", i)).status == 200
            time.sleep(1)
        lasted = time.monotonic() - begun
    finally:
        for s in sockets:
            s.close()
    assert REQUEST_SECONDS - 2 < lasted < 10 * REQUEST_SECONDS
    assert slowest < REQUEST_SECONDS / 2
    assert "127.0.1.1: sent what is no" not in nodes.log("topiaryd"), "what topiaryd itself shut"


def test_client_that_does_not_read_its_reply(nodes):
    """It is let go of, and what it held is given back."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s.connect(("127.0.0.1", nodes.port))
    s.sendall(b"GET /v1/nodes/cn1/topology HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    assert nodes.get("/healthz").status == 200
    s.close()
    assert wait_until(lambda: re.search(rb"topiary_reply_body_bytes 0\n", nodes.get("/metrics").body), 20)


def test_bodies_have_a_budget(nodes, configured):
    """While as many bytes are announced as may be held, a further body is refused before it is read."""
    configured(BodyMemory=8)
    xml = machine(SMALL, "budget", 1)
    head = ("PUT /v1/nodes/holder/topology HTTP/1.1\r\nHost: x\r\nAuthorization: Munge {}\r\nContent-Encoding: zstd\r\n"
            f"Content-Length: {4 << 20}\r\n\r\n")
    creds = [nodes.sign(nodes.claim("holder", xml)) for _ in range(2)]
    holders = [slow_client("127.0.0.1", nodes.port, head.format(cred).encode()) for cred in creds]
    try:
        assert wait_until(lambda: re.search(rb"topiary_request_body_bytes 8388608\n", nodes.get("/metrics").body), 10)
        answer = nodes.put("budget", xml)
        assert (answer.status == 503 and 1 <= int(answer.headers["Retry-After"]) <= 10
                and "too many" in answer.json()["error"])
        assert nodes.get("/v1/nodes/cn1").status == 200
    finally:
        for holder in holders:
            holder.close()
    assert wait_until(lambda: nodes.put("budget", xml).status == 200, 10)


def test_health_and_metrics_without_postgres(nodes):
    nodes.stop("postgres", signal.SIGINT)
    try:
        answer = nodes.get("/healthz")
        assert (answer.status == 503 and int(answer.headers["Retry-After"]) >= 1
                and "PostgreSQL" in answer.json()["error"])
        assert wait_until(lambda: b"topiary_postgresql_up 0\n" in nodes.get("/metrics").body, 15)
    finally:
        nodes.start_postgres()
    assert wait_until(lambda: nodes.get("/healthz").status == 200, 20)
