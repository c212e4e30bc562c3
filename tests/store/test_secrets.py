# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Serial numbers and UUIDs, which Linux shows to root alone: stored to the byte, and told to administrators only."""
import hashlib
import re
import shutil
import subprocess

import pytest
from registry_rig import SMALL, machine
from rig.cluster import as_user
from rig.paths import BUILD, ROOT

HOST = b'    <info name="HostName"'
UUID = b"4c4c4544-0042-3510-8053-b4c04f564433"
SECRET = re.compile(rb"C00\d{4}|" + UUID + b"|M123")


def document(node, serial=1, memory=True):
    lines = b'    <info name="DMIProductUUID" value="%s"/>\n' % UUID
    if memory:
        lines += b'    <info name="SerialNumber" value="M123"/>\n'
    return machine(SMALL, node, serial).replace(HOST, lines + HOST, 1)


def public(xml):
    return b"".join(line + b"\n" for line in xml.split(b"\n")[:-1] if not SECRET.search(line))


@pytest.fixture
def closed(registry, configured):
    """As a site has it that says nothing about it."""
    configured(PublishSerials="no", ReadFacts="users")
    return registry


def read(registry, path, user="", about=None, **how):
    """As nobody in particular, or with a credential of a user; None is root."""
    about = about or (path.split("/")[3] if path.startswith("/v1/nodes/") else "registry")
    if user == "":
        return registry.request("GET", path, **how)
    cred = registry.sign(registry.claim(about, b"", purpose="read"), user)
    return registry.request("GET", path, Authorization=f"Munge {cred}", **how)


def test_documents(closed):
    xml = document("doc")
    assert closed.put("doc", xml).status == 200
    for user in ("", "nobody"):
        answer = read(closed, "/v1/nodes/doc/topology", user)
        assert answer.body == public(xml) != xml
        assert answer.headers["Topiary-SHA256"] == hashlib.sha256(answer.body).hexdigest()
        assert not SECRET.search(read(closed, "/v1/nodes/doc/topology?form=canonical", user).body)
    whole = read(closed, "/v1/nodes/doc/topology", None)
    assert whole.body == xml and whole.headers["Topiary-SHA256"] == hashlib.sha256(xml).hexdigest()
    assert closed.ask("doc", xml).status == 200, "the hash is the whole document's"


def test_facts(closed):
    xml = document("fact")
    assert closed.put("fact", xml).status == 200
    for path in ("/v1/nodes/fact/facts", "/v1/facts?fact=HostName"):
        assert read(closed, path).status == 401 and "credential" in read(closed, path).json()["error"]
        assert b"fact" in read(closed, path, "nobody").body
    told = read(closed, "/v1/nodes/fact/facts", "nobody")
    assert told.status == 200 and b"HostName" in told.body and not SECRET.search(told.body)
    assert len(SECRET.findall(read(closed, "/v1/nodes/fact/facts", None).body)) == 3
    for path in ("/v1/nodes/fact/facts?fact=DMIProductUUID", "/v1/facts?fact=DMIProductUUID&value=" + UUID.decode(),
                 "/v1/facts?fact=dmiproductuuid", "/v1/facts?fact=DMIProductUU%C4%B0D"):     # PostgreSQL folds it to i
        answer = read(closed, path, "nobody")
        assert answer.status == 403 and "only administrators may read" in answer.json()["error"]
        assert UUID in read(closed, path, None).body


def test_changes(closed):
    """A serial number that changed is told in the history as what it was and is."""
    for serial in (11, 12):
        assert closed.put("past", document("past", serial)).status == 200
    assert not SECRET.search(read(closed, "/v1/nodes/past/history").body)
    whole = read(closed, "/v1/nodes/past/history", None)
    assert b"C000011" in whole.body and b"C000012" in whole.body


def test_public_requests_reveal_no_serials(closed):
    """Of all that can be asked."""
    for serial in (21, 22):
        assert closed.put("every", document("every", serial, memory=serial == 22)).status == 200
    paths = [path for path, verb in re.findall(r"^  (/\S*):\n(?:    parameters:\n.*\n)?    (get|put|post):",
                                               (ROOT / "docs/openapi.yaml").read_text(), re.M) if verb == "get"]
    assert len(paths) > 12
    for path in [*paths, "/v1/nodes/{node}/topology?form=canonical", "/v1/nodes?drift=any",
                 "/v1/facts?fact=DMIProductSerial"]:
        answer = closed.get(path.replace("{node}", "every"))
        assert answer.status in (200, 400, 401, 404), (path, answer.status)
        assert not SECRET.search(answer.body), path


def test_root_of_a_node_is_no_administrator(closed, configured, elsewhere):
    assert closed.put("far", document("far")).status == 200
    configured(PublishSerials="no", ReadFacts="users", Listen=f"0.0.0.0:{closed.port}")
    with elsewhere.threads(1) as far:
        for path in ("/v1/nodes/far/topology", "/v1/nodes/far/facts"):
            answer = far.submit(read, closed, path, None, at=elsewhere.here).result()
            assert answer.status == 200 and b"HostName" in answer.body and not SECRET.search(answer.body)


def test_credentials_of_readers(closed):
    assert closed.put("cred", document("cred")).status == 200
    assert read(closed, "/v1/nodes/cred/facts", None, about="other").status == 403
    assert closed.request("GET", "/v1/nodes/cred/topology", Authorization="Munge MUNGE:x:").status == 401
    export = closed.sign(closed.claim("cred", b""))
    assert closed.request("GET", "/v1/nodes/cred/topology", Authorization=f"Munge {export}").status == 403


@pytest.mark.parametrize("settings, anyone, nobody", [
    ({"PublishSerials": "yes", "ReadFacts": "anyone"}, (200, True), (200, True)),
    ({"PublishSerials": "no", "ReadFacts": "anyone"}, (200, False), (200, False)),
    ({"PublishSerials": "yes", "ReadFacts": "admins"}, (401, False), (403, False)),
])
def test_publish_serials_setting(registry, configured, settings, anyone, nobody):
    configured(**settings)
    assert registry.put("site", document("site")).status == 200
    for user, (status, told) in (("", anyone), ("nobody", nobody), (None, (200, True))):
        answer = read(registry, "/v1/nodes/site/facts", user)
        assert (answer.status, bool(SECRET.search(answer.body))) == (status, told)
    shown = bool(SECRET.search(registry.get("/v1/nodes/site/topology").body))
    assert shown == (settings["PublishSerials"] == "yes")


def test_the_nodes_own_file(closed, tmp_path):
    file = tmp_path / "own.xml"
    file.write_bytes(document("own"))
    for how in "--local", "--once":
        done = closed.agent("own", file, how)
        assert done.returncode == 0, done.stderr
    kept = closed.folder / "run/topology.xml"
    assert kept.read_bytes() == public(file.read_bytes()) and kept.stat().st_mode & 0o777 == 0o644
    assert not [f for f in kept.parent.rglob("*") if f.is_file() and f.stat().st_mode & 0o077
                and SECRET.search(f.read_bytes())]
    subprocess.run(["lstopo-no-graphics", "--input", kept, "--of", "console", "-"], check=True, capture_output=True)
    assert read(closed, "/v1/nodes/own/topology", None).body == file.read_bytes()


def test_commands(closed):
    """They sign by themselves."""
    assert closed.put("cmd", document("cmd")).status == 200
    program = closed.folder / "topiary"
    shutil.copy(BUILD / "topiary", program)

    def run(user, *words):
        command = [str(w) for w in (program, *words, "--config", closed.config)]
        return subprocess.run(as_user(user, command), capture_output=True, timeout=60, check=True, cwd="/").stdout
    for words in (["facts", "cmd"], ["show", "--xml", "cmd"], ["show", "cmd", "--facts"]):
        assert SECRET.search(run("root", *words)), words
        told = run("nobody", *words)
        assert told and not SECRET.search(told), words
