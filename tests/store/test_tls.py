# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""TLS between agents, commands and topiaryd, with a CA of the site's own."""
import os
import pwd
import socket
import ssl
import subprocess

import pytest
from registry_rig import SMALL, USER, machine, run
from rig import command
from rig.paths import BUILD
from rig.processes import wait_until


class Authority:
    """A CA, which signs certificates."""

    def __init__(self, folder, name):
        self.folder, self.cert, self.key = folder, folder / f"{name}.pem", folder / f"{name}.key"
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert])
        self.cert.chmod(0o644)

    def sign(self, name, alt):
        key, request, cert, extra = (self.folder / f"{name}.{end}" for end in ("key", "csr", "pem", "ext"))
        run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             f"/CN={name}", "-keyout", key, "-out", request])
        extra.write_text(f"subjectAltName={alt}\n")
        run(["openssl", "x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
             "-days", "2", "-extfile", extra, "-out", cert])
        user = pwd.getpwnam(USER)
        os.chown(key, user.pw_uid, user.pw_gid)
        return {"TlsCertificate": cert, "TlsKey": key}


@pytest.fixture(scope="module")
def authority(registry):
    folder = registry.folder / "tls"
    folder.mkdir(mode=0o755)
    return Authority(folder, "site")


@pytest.fixture(scope="module")
def own(authority):
    return authority.sign("registry", "IP:127.0.0.1")


@pytest.fixture
def secure(registry, configured, authority, own):
    def start(**other):
        configured(RegistryURL=f"https://127.0.0.1:{registry.port}", **{"TlsCA": authority.cert, **own, **other})
        return registry
    return start


def test_what_is_no_tls_is_named(secure):
    registry = secure()
    with socket.create_connection(("127.0.0.1", registry.port)) as c:
        c.sendall(b"PROXY TCP4 192.0.2.5 192.0.2.1 50000 6824\r\n")
        assert wait_until(lambda: "127.0.0.1: sent what is no TLS that it accepts." in registry.log("topiaryd"), 60)


def test_agent_and_commands(secure, tmp_path):
    registry = secure()
    file = tmp_path / "safe.xml"
    file.write_bytes(machine(SMALL, "safe", 1))
    done = registry.agent("safe", file, "--once")
    assert done.returncode == 0 and "acknowledged" in done.stderr, done.stderr
    assert "safe" in registry.topiary("nodes").stdout
    shown = registry.topiary("show", "--xml", "safe")
    assert shown.stdout == file.read_text(), shown.stderr
    assert registry.topiary("accept", "safe").returncode == 0


def test_snapshot_watch(secure, tmp_path):
    """As a controller that is not the registry's host runs it."""
    registry, path = secure(), tmp_path / "snapshot"
    watch = subprocess.Popen([BUILD / "topiary", "snapshot", "--watch", "-o", path, "--config", registry.config],
                             stderr=subprocess.PIPE, text=True)
    try:
        assert wait_until(path.exists, 20)
    finally:
        watch.kill()
        watch.communicate()


def test_only_certificates_of_the_ca(secure, authority, tmp_path):
    """The registry is asked nothing, and told nothing, when it is another."""
    file = tmp_path / "lost.xml"
    file.write_bytes(machine(SMALL, "lost", 1))
    other = Authority(authority.folder, "other")
    elsewhere = authority.sign("elsewhere", "DNS:registry.invalid,IP:192.0.2.1")
    for settings in ({"TlsCA": ""}, {"TlsCA": other.cert}, {"TlsCA": authority.folder / "none.pem"}, elsewhere,
                     other.sign("stranger", "IP:127.0.0.1")):
        registry = secure(**settings)
        done = registry.agent("lost", file, "--once")
        assert done.returncode == 1 and f"https://127.0.0.1:{registry.port}" in done.stderr, (settings, done.stderr)
        assert registry.topiary("nodes").returncode == 1
        assert registry.sql("SELECT count(*) FROM node WHERE name = 'lost'") == "0"


def test_no_plain_http_beside_it(secure):
    registry = secure()
    plain = registry.topiary("nodes", "--url", f"http://127.0.0.1:{registry.port}")
    assert plain.returncode == 1 and plain.stdout == ""
    assert registry.topiary("nodes").returncode == 0


def test_no_old_version(secure, authority):
    registry = secure()
    context = ssl.create_default_context(cafile=authority.cert)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, version
        with socket.create_connection(("127.0.0.1", registry.port), timeout=60) as s:
            assert context.wrap_socket(s, server_hostname="127.0.0.1").version() == version.name.replace("_", ".")
    old = command.run("openssl", "s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect",
                      f"127.0.0.1:{registry.port}", stdin=subprocess.DEVNULL)
    assert old.returncode and "Cipher is (NONE)" in old.stdout


@pytest.mark.parametrize("change, error", [
    ({"TlsKey": ""}, "TlsCertificate and TlsKey must be set together"),
    ({"TlsKey": "/nowhere/key"}, "/nowhere/key: No such file"),
    ({"TlsKey": "cert"}, "TlsCertificate and TlsKey belong together"),
])
def test_invalid_certificate_ends_topiaryd(secure, own, registry, change, error):
    if change["TlsKey"] == "cert":
        change = {"TlsKey": own["TlsCertificate"]}
    with pytest.raises(RuntimeError, match="topiaryd: "):
        secure(**change)
    assert error in registry.log("topiaryd")
    registry.daemons.pop("topiaryd", None)


def test_listening_without_tls_warns(registry, configured, secure):
    words = "all traffic on the network is unencrypted"

    def warned(start, **settings):
        before = registry.log("topiaryd").count(words)
        start(**settings)
        return registry.log("topiaryd").count(words) - before
    assert warned(configured) == 0
    assert warned(configured, Listen=f"0.0.0.0:{registry.port}") == 1
    assert warned(secure, Listen=f"0.0.0.0:{registry.port}") == 0
