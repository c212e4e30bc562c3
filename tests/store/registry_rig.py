# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A private registry: PostgreSQL, munged, topiaryd, each in one folder, and the agent's part of the protocol by
hand."""
import hashlib
import hmac
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest
import rig.command
from rig.cluster import free_ports, port_open
from rig.paths import BUILD, ROOT
from rig.postgres import POSTGRES, REGISTRY_USER, as_user, copied_data
from rig.processes import Daemon, wait_until
from rig.unit import confined

USER = REGISTRY_USER  # who runs topiaryd
SMALL = "Package:2 [NUMANode] L3Cache:2 L2Cache:4 Core:1 PU:2"


def run(command, **how):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, **how).stdout


def zstd(data):
    return run(["zstd", "-q", "-c"], input=data)


def machine(synthetic, host, serial=0):
    """A machine's XML as hwloc exports it, with what differs between machines of one kind."""
    xml = run(["lstopo-no-graphics", "--input", synthetic, "--of", "xml", "-"]).decode()
    if not re.search(r'<info name="HostName"', xml):
        xml = re.sub(r'(<object type="Machine"[^>]*>\n)',
                     rf'\1    <info name="HostName" value="{host}"/>\n    <info name="DMIProductSerial" '
                     rf'value="C{serial:06d}"/>\n',
                     xml, count=1)
    return xml.encode()


def superuser(registry, *statements):
    options = [o for s in statements for o in ("-c", s)]
    return run(as_user("postgres", [POSTGRES / "psql", "-h", registry.folder / "pg", "-d", "topiary", "-AtX",
                                    *options]), cwd="/").decode()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Registry:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.chmod(0o755)
        self.port = free_ports(1)[0]
        self.boot = str(uuid.uuid4())
        self.key = uuid.uuid4().hex
        self.seq = time.time_ns()
        self.daemons = {}
        for name, owner in (("pg", "postgres"), ("munge", "root"), ("state", USER), ("run", "root")):
            (self.folder / name).mkdir(mode=0o755)
            user = pwd.getpwnam(owner)
            os.chown(self.folder / name, user.pw_uid, user.pw_gid)
        self.munge_socket = self.folder / "munge" / "socket"
        self.snapshot = self.folder / "state" / "snapshot"
        self.fabric = self.folder / "state" / "fabric"
        self.costs = self.folder / "state" / "costs"
        self.hosts = self.folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.config = self.folder / "topiary.conf"
        self.config.write_text(
            f"SnapshotFile={self.snapshot}\nFabricFile={self.fabric}\nCostsFile={self.costs}\n"
            f"RunDir={self.folder}/run\n"
            f"TopologyFile={self.folder}/run/topology.xml\n"
            f"RegistryURL=http://127.0.0.1:{self.port}\nRegistryUser={USER}\nMungeSocket={self.munge_socket}\n"
            f"Listen=127.0.0.1:{self.port}\nDatabase=host={self.folder}/pg dbname=topiary user={USER}\n"
            f"SchemaDir={self.folder}/sql\n"
            # Tests send many of one node, and compare what they get back to the byte.
            "NodeDocuments=0\nNodeBytes=0\nPublishSerials=yes\nReadFacts=anyone\n")
        # What runs as other users is copied: the checkout may be out of their reach.
        shutil.copytree(ROOT / "sql", self.folder / "sql")
        shutil.copy(BUILD / "topiaryd", self.folder)
        copied_data(self.folder / "pg/data")
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)

    # --- the parts

    def daemon(self, name, command, ready):
        self.daemons[name] = Daemon.run(name, [str(c) for c in command], self.folder / f"{name}.log")
        if not wait_until(lambda: ready() or not self.daemons[name].alive(), 30) or not self.daemons[name].alive():
            raise RuntimeError(f"{name}: {self.log(name)}")

    def stop(self, name, how=signal.SIGTERM):
        self.daemons.pop(name).stop(how)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start_postgres(self):
        self.daemon("postgres", as_user("postgres", [POSTGRES / "postgres", "-D", self.folder / "pg/data", "-k",
                                                     self.folder / "pg", "-c", "listen_addresses="]),
                    lambda: not subprocess.run([POSTGRES / "pg_isready", "-q", "-h", self.folder / "pg"],
                                               check=False).returncode)

    def complete_servers(self):
        """What a site has besides, before topiaryd begins."""

    def start_munge(self):
        home = self.folder / "munge"
        self.daemon("munged", ["munged", "--foreground", f"--socket={self.munge_socket}", f"--key-file={home}/key",
                               f"--pid-file={home}/pid", f"--log-file={home}/log", f"--seed-file={home}/seed"],
                    self.munge_socket.exists)

    def start_topiaryd(self):
        """Under its unit's system calls, with an /etc/hosts of its own."""
        own_hosts = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.hosts]
        self.daemon("topiaryd", [*own_hosts, *confined("topiaryd", self.folder),
                                 *as_user(USER, [self.folder / "topiaryd", "--config", self.config])], self.listening)

    def name_host(self, address, *names):
        """For topiaryd, which knows an address for a minute."""
        with self.hosts.open("a") as f:
            f.write(f"{address} {' '.join(names)}\n")

    def listening(self):
        return port_open(self.port)

    def start(self):
        self.start_postgres()
        self.complete_servers()
        self.start_munge()
        self.start_topiaryd()
        return self

    def end(self):
        for name in ("topiaryd", "munged", "postgres"):
            if name in self.daemons:
                self.stop(name, signal.SIGINT if name == "postgres" else signal.SIGTERM)

    # --- its use

    def request(self, method, path, body=None, at="127.0.0.1", **headers):
        c = http.client.HTTPConnection(at, self.port, timeout=300)
        c.connect()
        if at == "127.0.0.1":  # as `topiary` does
            os.fchown(c.sock.fileno(), pwd.getpwnam(USER).pw_uid, -1)
        c.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        got = c.getresponse()
        answer = Answer(got.status, got.headers, got.read())
        c.close()
        return answer

    def get(self, path):
        return self.request("GET", path)

    def sign(self, payload, user=None, ttl=None, reader=USER):
        command = ["munge", f"--socket={self.munge_socket}", f"--string={payload}", f"--restrict-uid={reader}"]
        command += [f"--ttl={ttl}"] if ttl else []
        return run(as_user(user, command) if user else command).decode().strip()

    def claim(self, node, xml, **other):
        if "seq" not in other:
            self.seq = max(self.seq + 1, time.time_ns())  # topiaryd takes what is signed by hand for some minutes only
        fields = {"purpose": "export", "node": node, "boot": self.boot, "seq": self.seq, "length": len(xml),
                  "sha256": hashlib.sha256(xml).hexdigest(), "key": self.key, **other}
        return "topiary2 {purpose} {node} {boot} {seq} {length} {sha256} {key}".format(**fields).rstrip()

    def acknowledgement(self, node, xml):
        """What the registry answers to the last claim."""
        claim = self.claim(node, xml, purpose="ack", seq=self.seq, key="")
        return "hmac-sha256 " + hmac.digest(self.key.encode(), claim.encode(), "sha256").hex()

    def ask(self, node, xml, cred=None, at="127.0.0.1", **other):
        cred = cred or self.sign(self.claim(node, xml, **other))
        return self.request("PUT", f"/v1/nodes/{node}/boot", at=at, Authorization=f"Munge {cred}")

    def put(self, node, xml, cred=None, body=None, encoding="zstd", at="127.0.0.1", **other):
        cred = cred or self.sign(self.claim(node, xml, **other))
        return self.request("PUT", f"/v1/nodes/{node}/topology", zstd(xml) if body is None else body, at=at,
                            Authorization=f"Munge {cred}", Content_Encoding=encoding)

    def accept(self, node, xml, cred=None, at="127.0.0.1", user=None, action="accept", **other):
        cred = cred or self.sign(self.claim(node, xml, **{"purpose": action, "seq": time.time_ns(), **other}), user)
        return self.request("POST", f"/v1/nodes/{node}/{action}", at=at, Authorization=f"Munge {cred}")

    def forget(self, node, xml, **how):
        return self.accept(node, xml, action="forget", **how)

    def agent_command(self, node, file, *options):
        return [str(c) for c in (*confined("topiary-agent", self.folder), BUILD / "topiary-agent", "--config",
                                 self.config, "--node", node, "--input", file, *options)]

    def agent(self, node, file, *options):
        return rig.command.run(*self.agent_command(node, file, *options), timeout=300)

    def topiary(self, *words, **how):
        return rig.command.topiary(*words, "--config", self.config, **how)

    def sql(self, query):
        return run(as_user(USER, [POSTGRES / "psql", "-h", self.folder / "pg", "-d", "topiary", "-AtF|", "-c", query]),
                   cwd="/").decode().strip()

    def snapshot_text(self):
        return self.snapshot.read_text() if self.snapshot.exists() else ""


def running(kind):
    """A fixture: the daemons of a registry of this kind, for the tests of one file."""
    @pytest.fixture(scope="module")
    def started():
        if os.geteuid():
            pytest.skip("needs root: daemons run as several users")
        with tempfile.TemporaryDirectory(prefix="tpy", dir="/tmp") as folder:
            r = kind(folder)
            try:
                yield r.start()
            finally:
                r.end()
    return started
