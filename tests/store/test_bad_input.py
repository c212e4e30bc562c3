# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What must be refused, and what breaks beside topiaryd: each leaves what was stored intact and topiaryd serving."""
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from registry_rig import SMALL, machine, zstd
from rig.cluster import as_user, free_ports
from rig.processes import Daemon, descendants, wait_until
from upkeep_rig import memory_below

XML = machine(SMALL, "bad", 2)


MEMORY = 256 << 20  # bytes that topiaryd and its workers may have, whatever comes


@pytest.fixture(scope="module", autouse=True)
def bounded_memory(registry):
    """All that this module sends is held within so much memory."""
    with memory_below(registry, MEMORY):
        yield


def refused(answer, status, words):
    assert answer.status == status, (answer.status, answer.body)
    assert re.search(words, answer.json()["error"]), answer.body
    return True


# --- credentials

CREDENTIALS = {
    "missing": (lambda r: r.request("PUT", "/v1/nodes/bad/boot"), 401, "bad: .*the 'Authorization"),
    "of another scheme": (lambda r: r.request("PUT", "/v1/nodes/bad/boot", Authorization="Basic YTpi"), 401,
                          "the 'Authorization"),
    "garbage": (lambda r: r.ask("bad", XML, cred="MUNGE:AwQFAAC:"), 401, "bad: munge: "),
    "another user's": (lambda r: r.ask("bad", XML, r.sign(r.claim("bad", XML), user="nobody")), 403,
                       "bad: signed by uid 65534"),
    "for another reader": (lambda r: r.ask("bad", XML, r.sign(r.claim("bad", XML), reader="nobody")), 401,
                           f"(?i)unauthorized.*RegistryUser must be uid {pwd.getpwnam('daemon').pw_uid} on every host"),
    "of another node": (lambda r: r.put("witness", XML, r.sign(r.claim("bad", XML))), 403, "witness: .* node bad"),
    "number out of range": (lambda r: r.ask("bad", XML, seq=2**63), 400, "out of range"),
    "length too large": (lambda r: r.ask("bad", XML, length=(16 << 20) + 1), 413, "bad: "),
    "body in another encoding": (lambda r: r.put("bad", XML, body=XML, encoding="identity"), 415, "bad: .*zstd"),
}


@pytest.mark.parametrize("what", CREDENTIALS)
def test_refused_request(intact, what):
    send, status, words = CREDENTIALS[what]
    refused(send(intact), status, words)


def test_replayed_credential(intact):
    cred = intact.sign(intact.claim("bad", XML))
    assert intact.ask("bad", XML, cred).status == 202
    refused(intact.ask("bad", XML, cred), 401, "(?i)replayed")


def test_expired_credential(intact):
    cred = intact.sign(intact.claim("bad", XML), ttl=1)
    time.sleep(2.5)
    refused(intact.ask("bad", XML, cred), 401,
            "(?i)expired credential: the clocks of this host and the sender's differ")


@pytest.mark.parametrize("payload", [
    "", "hello", "topiary2 export bad", "topiary1 bad {boot} 1 1 {sha}", "topiary3 export bad {boot} 1 1 {sha}",
    "topiary2 bad {boot} 1 1 {sha}", "topiary2 Export bad {boot} 1 1 {sha}",
    "topiary2 exportexportexport bad {boot} 1 1 {sha}", "topiary2 export bad {boot} -1 1 {sha}",
    "topiary2 export bad {boot} 1 1 {sha} x", "topiary2 export  bad {boot} 1 1 {sha}",
    "topiary2 export bad nonsense 1 1 {sha}", "topiary2 export bad {boot} 1 1 abc",
    "topiary2 export a;b {boot} 1 1 {sha}", "topiary2 export bad {boot} 99999999999999999999999 1 {sha}",
    "topiary2 export bad {boot} 1 1 {sha}\n", "x" * 5000])
def test_signed_nonsense(intact, payload):
    text = payload.format(boot=intact.boot, sha="0" * 64)
    refused(intact.ask("bad", XML, intact.sign(text)), 401, "unsupported payload")


def test_old_sequence_number(intact):
    assert intact.put("seq", XML, seq=2000).status == 200
    refused(intact.put("seq", XML, seq=2000), 409, "seq: sequence number 2000")
    refused(intact.ask("seq", XML, seq=1999), 409, "seq: sequence number 1999 is not above 2000")
    assert intact.ask("seq", XML, seq=1999).json()["last"] == 2000
    assert intact.ask("seq", XML, seq=2001).status == 200
    assert intact.ask("seq", XML, seq=1, boot=str(uuid.uuid4())).status == 200


# --- bodies

def test_body_that_is_not_what_was_signed(intact):
    refused(intact.put("bad", XML, body=zstd(XML + b" ")), 422, f"bad: .*{len(XML)} bytes")
    refused(intact.put("bad", XML, body=zstd(XML.replace(b"bad", b"bat"))), 422, "bad: .*signed")
    refused(intact.put("bad", XML, length=len(XML) - 1), 422, f"bad: .*{len(XML) - 1} bytes")


@pytest.mark.parametrize("body", [b"", b"\0", b"no zstd", XML, zstd(XML)[:-7], zstd(XML)[:20], zstd(XML) + zstd(XML),
                                  zstd(XML) + b"x"],
                         ids=["empty", "nul", "text", "plain", "short", "shorter", "two frames", "more"])
def test_body_that_is_not_zstd(intact, body):
    refused(intact.put("bad", XML, body=body), 422, "^bad: ")


# RFC 8878: magic number, frame header, blocks; each number is little endian.
MAGIC = b"\x28\xb5\x2f\xfd"
SINGLE_4 = b"\xa0"  # the frame's content size follows in four bytes, and is the window


def zstd_raw(data, header):
    """A frame of uncompressed blocks."""
    blocks = [data[i:i + (100 << 10)] for i in range(0, len(data), 100 << 10)]
    return MAGIC + header + b"".join(struct.pack("<I", len(b) << 3 | (i + 1 == len(blocks)))[:3] + b
                                     for i, b in enumerate(blocks))


def zstd_rle(size, header):
    """A frame that says so many zeros in four bytes for each 128 KiB."""
    blocks = [128 << 10] * (size >> 17)
    return MAGIC + header + b"".join(struct.pack("<I", n << 3 | 2 | (i + 1 == len(blocks)))[:3] + b"\0"
                                     for i, n in enumerate(blocks))


def skippable(data):
    return struct.pack("<II", 0x184D2A50, len(data)) + data


FRAMES = {
    "skippable alone": skippable(XML),
    "skippable before": skippable(b"x" * 10) + zstd(XML),
    "skippable behind": zstd(XML) + skippable(b"x" * 10),
    "skippable that lies": struct.pack("<II", 0x184D2A50, 0xFFFFFFFF) + b"x",
    "says it is less": zstd_raw(XML, SINGLE_4 + struct.pack("<I", len(XML) - 1)),
    "says it is more": zstd_raw(XML, SINGLE_4 + struct.pack("<I", len(XML) + 1)),
    "says it is 4 GiB": zstd_raw(XML, SINGLE_4 + struct.pack("<I", 0xFFFFFFFF)),
    "window of 2 GiB": zstd_raw(XML, b"\0" + bytes([(31 - 10) << 3])) + b"x",
    "window of 3.75 TiB": zstd_raw(XML, b"\0\xff"),
    "zeros without end": zstd_rle(1 << 30, b"\0\x58"),
    "a dictionary": zstd_raw(XML, b"\xa1\x07" + struct.pack("<I", len(XML))),
    "reserved bit": zstd_raw(XML, b"\xa8" + struct.pack("<I", len(XML))),
    "reserved block": MAGIC + SINGLE_4 + struct.pack("<I", len(XML)) + b"\x07\0\0" + XML,
    "wrong checksum": zstd(XML)[:-1] + bytes([zstd(XML)[-1] ^ 1]),
    "no last block": zstd_raw(XML, b"\0\x58")[:6] + b"\0" + zstd_raw(XML, b"\0\x58")[7:],
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frame_with_a_false_length(intact, frame):
    refused(intact.put("bad", XML, body=FRAMES[frame]), 422, "^bad: ")
    assert intact.get("/v1/nodes/bad").status == 404


def test_frames_as_any_compressor_may_write_them(intact):
    """What the tests above change a little is good as it is."""
    for header in (SINGLE_4 + struct.pack("<I", len(XML)), b"\0\x58"):
        assert intact.put("frame", XML, body=zstd_raw(XML, header)).status == 200
        assert intact.get("/v1/nodes/frame/topology").body == XML


def raw(registry, data, wait=10):
    with socket.create_connection(("127.0.0.1", registry.port), timeout=wait) as s:
        s.sendall(data)
        got = b""
        try:
            while chunk := s.recv(65536):
                got += chunk
        except (TimeoutError, ConnectionResetError):
            pass
        return got


def head(registry, lines):
    cred = registry.sign(registry.claim("bad", XML))
    return (f"PUT /v1/nodes/bad/topology HTTP/1.1\r\nHost: x\r\nAuthorization: Munge {cred}\r\n"
            f"Content-Encoding: zstd\r\n{lines}\r\n\r\n").encode()


def test_body_too_large(intact):
    """Announced, and streamed."""
    chunk = b"10000\r\n" + os.urandom(65536) + b"\r\n"
    for request in (head(intact, f"Content-Length: {1 << 40}"),
                    head(intact, "Transfer-Encoding: chunked\r\nConnection: close") + 80 * chunk + b"0\r\n\r\n"):
        assert b" 413 " in raw(intact, request).split(b"\r\n")[0]


@pytest.mark.parametrize("lengths", ["Content-Length: 0\r\nTransfer-Encoding: chunked",
                                     "Transfer-Encoding: chunked\r\nContent-Length: 0",
                                     "Transfer-Encoding: chunked\r\nContent-Length: 5",
                                     "Content-Length: 0\r\nContent-Length: 5",
                                     "Content-Length: 5\r\nContent-Length: 0"])
def test_body_of_two_lengths(intact, lengths):
    """Refused, and the connection closed (RFC 9112, 6.3): which of them BodyMemory was to count is not known."""
    got = raw(intact, head(intact, lengths))
    assert b" 400 " in got.split(b"\r\n")[0] and b"onnection: close" in got, got


def test_body_on_boot(intact):
    cred = intact.sign(intact.claim("bad", XML))
    refused(intact.request("PUT", "/v1/nodes/bad/boot", b"x" * 10, Authorization=f"Munge {cred}"), 413, "bad")


def test_bomb(intact):
    bomb = b"\0" * (15 << 20)
    refused(intact.put("bad", bomb), 422, "^bad: ")
    refused(intact.put("bad", XML, body=zstd(b"\0" * (1 << 28))), 422, "^bad: ")
    refused(intact.put("bad", b"\0" * (15 << 20), body=zstd_rle(15 << 20, b"\0\x58")), 422, "^bad: ")


ENTITIES = b"".join(b'<!ENTITY e%d "%s">' % (i, b"&e%d;" % (i - 1) * 10 if i else b"x" * 10) for i in range(9))
# Each kind of bad document is a row of tests/unit/test_canon.c, each kind of value one of test_fields.c.
HOSTILE = {
    "entity bomb": XML.replace(b'"hwloc2.dtd"', b'"hwloc2.dtd" [' + ENTITIES + b"]").replace(b"bad", b"&e8;"),
    "no cpusets": re.sub(rb' (complete_)?cpuset="[^"]*"', b"", XML),
    "cut": XML[: len(XML) // 2],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_xml(intact, name):
    assert HOSTILE[name] != XML
    refused(intact.put("bad", HOSTILE[name]), 422, "^bad: ")
    assert intact.get("/v1/nodes/bad").status == 404


# Where nodes differ only in values no parser looks at them: none of these is such a value.
VALUES = {
    "entity": b"b&lt;d", "unknown entity": b"b&e;d", "line end": b"b\nd", "cut utf-8": b"b\xe2\x82",
    "another attribute": b'b" x="', "end of the element": b'b"/></object><object type="',
}


@pytest.mark.parametrize("value", VALUES)
def test_invalid_value(intact, value):
    """Refused, or, where XML allows it, given back to the byte."""
    xml = XML.replace(b'value="bad"', b'value="' + VALUES[value] + b'"')
    assert xml != XML
    answer = intact.put("value", xml)
    assert answer.status in (200, 422), answer.body
    if answer.status == 200:
        assert value in ("entity", "line end")
        assert intact.get("/v1/nodes/value/topology").body == xml


@pytest.mark.parametrize("memory", [b"1e9", b"9" * 400, b""])
def test_invalid_memory_size(intact, memory):
    xml, said = machine("Package:2 [NUMANode(memory=67108864000)] Core:2 PU:1", "bad", 5), b'local_memory="67108864000"'
    for i in range(2):
        assert intact.put(f"memory{i}", xml.replace(said, b'local_memory="6710885%d000"' % i, 1)).status == 200
    refused(intact.put("bad", xml.replace(said, b'local_memory="' + memory + b'"', 1)), 422, "^bad: ")


def test_long_value(intact):
    """A megabyte where a name stands is that node's own trouble."""
    xml = XML.replace(b'value="bad"', b'value="' + os.urandom(1 << 19).hex().encode() + b'"')
    answer = intact.put("long", xml)
    assert answer.status in (200, 422), answer.body
    assert answer.status == 422 or intact.get("/v1/nodes/long/topology").body == xml
    twin = machine(SMALL, "short", 77)
    assert intact.put("short", twin).json()["stored_bytes"] < 200


def parser_of(registry):
    return next(pid for pid in descendants(registry.daemons["topiaryd"].pid)
                if open(f"/proc/{pid}/comm", encoding="ascii").read() == "topiaryd-parse\n")


UNSEEN = machine("Package:3 [NUMANode] Core:5 PU:1", "bad", 2)  # what is like a document that is there needs no parser


def test_a_stopped_parser_costs_one_answer(intact):
    pid = parser_of(intact)
    os.kill(pid, signal.SIGSTOP)
    try:
        refused(intact.put("bad", UNSEEN), 503, "bad: .*time")
    finally:
        os.kill(pid, signal.SIGCONT)


def test_reads_leave_a_parser_worker_to_exports(intact):
    """Of reads that need the parser, which is stopped, all workers but one wait for it, and the others for their turn,
    for a shorter time."""
    workers = max(4, 2 * os.cpu_count())  # parser.c
    pid = parser_of(intact)
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(workers + 4) as pool:
            reads = list(pool.map(intact.get, ["/v1/nodes/witness/topology?form=canonical"] * (workers + 4)))
    finally:
        os.kill(pid, signal.SIGCONT)
    refused_reads = [r for r in reads if r.status == 503 and b"too many reads need the parser" in r.body]
    assert len(refused_reads) == 5 and all(int(r.headers["Retry-After"]) > 0 for r in refused_reads)


# --- HTTP

@pytest.mark.parametrize("data", [b"\0" * 1000, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", os.urandom(5000),
                                  b"GET / HTTP/1.1\r\n" * 3000, b"GET /healthz HTTP/1.1\r\nContent-Length: -5\r\n\r\n"],
                         ids=["zeros", "no version", "TLS", "random", "many requests", "negative length"])
def test_garbage_on_the_port(intact, data):
    assert b" 200 " not in raw(intact, data, wait=2).split(b"\r\n")[0]


# --- what fails beside topiaryd

@pytest.fixture
def restartable(registry):
    xml = machine(SMALL, "witness", 1)
    assert registry.put("witness", xml).status == 200
    yield registry
    assert registry.get("/v1/nodes/witness/topology").body == xml
    assert registry.put("after", machine(SMALL, "after", 9)).status == 200


def test_start_without_postgres(restartable):
    restartable.stop("topiaryd")
    restartable.stop("postgres", signal.SIGINT)
    restartable.start_topiaryd()
    refused(restartable.get("/v1/nodes"), 503, "PostgreSQL")
    restartable.start_postgres()
    assert wait_until(lambda: restartable.get("/v1/nodes").status == 200, 20)


def test_topiaryd_down_and_up(restartable, tmp_path):
    file = tmp_path / "n.xml"
    file.write_bytes(machine(SMALL, "patient", 4))
    restartable.stop("topiaryd", signal.SIGKILL)
    agent = subprocess.Popen(restartable.agent_command("patient", file, "--deadline", "60"),
                             stderr=subprocess.PIPE, text=True)
    said = agent.stderr.readline()  # of its first try
    assert agent.poll() is None, said
    restartable.start_topiaryd()
    said += agent.communicate(timeout=90)[1]
    assert agent.returncode == 0, said
    assert restartable.get("/v1/nodes/patient/topology").body == file.read_bytes()


def test_parser_killed_ends_topiaryd_with_an_error(restartable):
    daemon = restartable.daemons["topiaryd"]
    os.kill(parser_of(restartable), signal.SIGKILL)
    assert wait_until(lambda: not daemon.alive(), 20) and daemon.child.returncode == 1
    restartable.start_topiaryd()


def test_munged_down_and_up(restartable):
    cred = restartable.sign(restartable.claim("bad", XML))
    restartable.stop("munged")
    refused(restartable.ask("bad", XML, cred), 503, "bad: munge")
    assert restartable.get("/healthz").status == 200
    restartable.start_munge()
    assert restartable.put("munged", XML).status == 200


def other_config(registry, name, **values):
    """That of the registry with other values, and files of its own, in a folder where topiaryd may write."""
    folder = registry.folder / name
    folder.mkdir()
    folder.chmod(0o777)
    values = {"Listen": f"127.0.0.1:{free_ports(1)[0]}", "SnapshotFile": folder / "snapshot",
              "CostsFile": folder / "costs", **values}
    kept = [line for line in registry.config.read_text().splitlines() if line.partition("=")[0] not in values]
    config = folder / "topiary.conf"
    config.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in values.items()), ""]))
    return config


@pytest.mark.parametrize("key, value, words", [
    ("Listen", None, "Listen=.*: Address already in use"),
    *(("Listen", address, f"Listen={address}: expected ADDRESS:PORT")
      for address in ("127.0.0.1:65536", "127.0.0.1:http", "127.0.0.1", ":6824")),
    ("KnownNodes", "cn[1-", "KnownNodes: 'cn\\[1-': invalid host list"),
    ("PeerCheck", "refused", "PeerCheck=refused: expected off, warn or refuse"),
    ("TrustedProxies", "localhost", "TrustedProxies=localhost: expected at most 8 addresses, as numbers"),
    ("TlsKey", "/nonexistent", "TlsCertificate and TlsKey must be set together"),
    ("Database", "password='two #words'", "Database: unterminated quoted string"),
    ("ReadDatabase", "dbname", 'ReadDatabase: missing "="')])
def test_refused_settings_change_nothing(registry, key, value, words):
    config = other_config(registry, f"{key}{value}".replace("/", "-"), **{key: value or f"127.0.0.1:{registry.port}"})
    done = subprocess.run(as_user("daemon", [registry.folder / "topiaryd", "--config", config]), capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1 and re.search(words, done.stderr), done.stderr
    assert [f.name for f in config.parent.iterdir()] == ["topiary.conf"]


def test_doubtful_settings_are_warned_of(registry):
    config = other_config(registry, "doubtful", Admins="root, nobodyatall", AdminHosts="127.0.0.1,256.256.256.256",
                          DriftHook="/nonexistent/hook", RegistryUser="root")
    log = config.parent / "log"
    daemon = Daemon.run("other", as_user("daemon", [str(registry.folder / "topiaryd"), "--config", str(config)]), log)
    try:
        assert wait_until(lambda: "DriftHook" in log.read_text(), 60), log.read_text()
    finally:
        daemon.stop()
    warned = re.findall("topiary.conf: (.*)", log.read_text())
    assert warned == [
        "RegistryUser=root: another user runs topiaryd, and agents accept the acknowledgements of RegistryUser only",
        "Admins=nobodyatall: no such user on this host", "AdminHosts=256.256.256.256: Name or service not known",
        "DriftHook: /nonexistent/hook: No such file or directory"], warned


# --- the agent

def test_agent_gives_up_at_its_deadline(restartable, tmp_path):
    file = tmp_path / "n.xml"
    file.write_bytes(XML)
    restartable.stop("topiaryd")
    begun = time.monotonic()
    done = restartable.agent("late", file, "--deadline", "3")
    restartable.start_topiaryd()
    assert done.returncode == 1 and "late: not acknowledged within 3 s" in done.stderr
    assert done.stderr.count("\n") == 2, "a failure that lasts is logged once"
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize("node, xml, words", [
    ("a/b", XML, "'a/b' is not a node name"), ("refused", b"no xml", "refused: .*n.xml:1: "),
    ("absent", None, "absent: .*No such file")])
def test_agent_stops_at_permanent_errors(intact, tmp_path, node, xml, words):
    file = tmp_path / "n.xml"
    if xml is not None:
        file.write_bytes(xml)
    done = intact.agent(node, file)
    assert done.returncode == 1 and re.search(words, done.stderr), done.stderr
    assert len(done.stderr.strip().split("\n")) == 1


@pytest.mark.parametrize("user, words", [
    (str(pwd.getpwnam("daemon").pw_uid), None), ("nobody", "answered 401: doubt: .*RegistryUser must be uid"),
    ("65534", "answered 401: doubt: .*RegistryUser must be uid"),
    ("nosuch", "RegistryUser=nosuch: no such user on this host"), ("4294967295", "RegistryUser=4294967295: not a uid"),
    ("99999999999999999999", "not a uid"), ("-1", "RegistryUser=-1: no such user")])
def test_agent_accepts_only_the_registrys_user(intact, tmp_path, user, words):
    node = "doubt" if words else "numbered"
    file, config = tmp_path / "n.xml", tmp_path / "topiary.conf"
    file.write_bytes(machine(SMALL, node, 5))
    config.write_text(intact.config.read_text().replace("RegistryUser=daemon", f"RegistryUser={user}"))
    command = intact.agent_command(node, file, "--once", "--config", str(config))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    stored = intact.get(f"/v1/nodes/{node}").status
    assert (done.returncode, stored) == ((1, 404) if words else (0, 200)), done.stderr
    assert not words or re.search(words, done.stderr) and len(done.stderr.strip().split("\n")) == 1, done.stderr
