# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary doctor on recorded answers of scontrol and a registry: each fault is found, with what to do."""
import email.utils
import hashlib
import http.server
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest
from rig.cluster import SLURM_PREFIX, STOCK_PLUGINS
from rig.command import run, topiary
from rig.paths import BUILD, ROOT

STOCK, PLUGINS = str(STOCK_PLUGINS), BUILD / "slurm"
HOST = socket.gethostname().partition(".")[0]
RELEASE = run(SLURM_PREFIX / "sbin/slurmctld" if SLURM_PREFIX else "slurmctld", "-V", status=0).stdout.split()[-1:]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

SNAPSHOT = "topiary-snapshot 1\nsealed\nshape A Package:2 Core:4 PU:2\nnodes cn1 A\nnodes cn2 A\n"
SCONTROL = """#!/bin/sh
case "$*" in
--version) echo slurm {release} ;;
"show config") cat {folder}/config ;;
*nodes) cat {folder}/nodes ;;
esac
"""
NODES = "".join(f"NodeName={n} Arch=x86_64 CoresPerSocket=4 CPUAlloc=0 CPUTot=16 NodeAddr={n} NodeHostName={n} "
                "Sockets=2 ThreadsPerCore=2 BootTime=2026-11-20T10:00:00 SlurmdStartTime=2026-11-20T10:00:09\n"
                for n in ("cn1", "cn2"))


def sealed(text):
    return f"{text}end sha256={hashlib.sha256(text.encode()).hexdigest()}\n"


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = {"/readyz": json.dumps({"version": self.server.version, "checks": {
                    part: "ok" for part in ("database", "schema", "munge", "disk", "workers")}}),
                "/v1/nodes": json.dumps({"nodes": [{"node": n, "last_boot": f"{boot}T20:00:00Z"}
                                                   for n, boot in self.server.nodes.items()]}),
                "/v1/snapshot": sealed(SNAPSHOT)}.get(self.path.partition("?")[0], "{}")
        self.send_response_only(200)
        self.send_header("Date", email.utils.formatdate(time.time() + self.server.ahead, usegmt=True))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture(name="registry", scope="module")
def fixture_registry():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Site:
    """A healthy host, a controller and cn1, to be spoilt."""

    def __init__(self, folder, registry):
        self.folder, self.registry, self.ahead, self.path, self.env = folder, registry, 0, f"{folder}/bin:", {}
        registry.ahead, registry.version = 0, topiary("--version", status=0).stdout.split()[1]
        registry.nodes = {"cn1": "2026-11-21", "cn2": "2026-11-21"}
        (folder / "bin").mkdir()
        self.file("bin/scontrol", SCONTROL.format(release=RELEASE[0], folder=folder)).chmod(0o755)
        self.file("nodes", NODES)
        self.file("slurm.conf", f"SlurmctldHost={HOST}\nSelectType=select/cons_tres\n"
                  f"SelectTypeParameters=CR_Core_Memory\nTaskPlugin=task/affinity\nPluginDir={PLUGINS}:{STOCK}\n"
                  f"SlurmUser=nobody\nJobSubmitPlugins=topiary\nPlugStackConfig={folder}/plugstack.conf\n"
                  "SlurmctldPidFile=/nonexistent\nSlurmdPidFile=/nonexistent\n")
        keys = [line.partition("=") for line in (folder / "slurm.conf").read_text().splitlines()]
        self.running = f"SLURM_VERSION           = {RELEASE[0]}\n" + "".join(f"{key:23} = {value}\n"
                                                                              for key, _, value in keys)
        self.file("plugstack.conf", f"optional {PLUGINS}/spank_topiary.so config={folder}/topiary.conf\n")
        self.file("snapshot", sealed(SNAPSHOT))
        self.file("topology.xml", "<topology version=\"2.0\"></topology>\n")
        (folder / "run").mkdir(mode=0o755)
        keys = {"RunDir": f"{folder}/run", "TopologyFile": f"{folder}/topology.xml",
                "SnapshotFile": f"{folder}/snapshot", "RegistryUser": "root", "TopiaryCommand": BUILD / "topiary",
                "RegistryURL": f"http://127.0.0.1:{registry.server_port}", "SchemaDir": "/nonexistent"}
        self.file("topiary.conf", "".join(f"{key} = {value}\n" for key, value in keys.items()))

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def sub(self, name, old, new):
        text = (self.folder / name).read_text()
        assert old in text, (name, old)
        self.file(name, text.replace(old, new))

    def line(self, name, text):
        """Add it, or replace that of the same key."""
        path, key = self.folder / name, text.partition("=")[0].strip()
        kept = [line for line in path.read_text().splitlines() if line.partition("=")[0].strip() != key]
        path.write_text("\n".join([*kept, text, ""]))

    def snapshot(self, change):
        self.file("snapshot", change((self.folder / "snapshot").read_text()))

    def topology(self, text):
        self.file("topology.xml", text)

    def run_dir(self, mode, uid=0):
        (self.folder / "run").chmod(mode)
        os.chown(self.folder / "run", uid, 0)

    def plugins(self, *folders):
        self.line("slurm.conf", "PluginDir=" + ":".join(map(str, folders)))

    def other_release(self, name="select_cons_tres.so", old=None, new=None):
        shutil.copytree(PLUGINS, self.folder / "plugins")
        self.plugins(self.folder / "plugins", STOCK)
        release = RELEASE[0].split(".")
        version = int(release[0]) << 16 | int(release[1]) << 8 | int(release[2])
        file = self.folder / "plugins" / name
        file.write_bytes(file.read_bytes().replace(old or version.to_bytes(4, "little"),
                                                   new or (version + 1).to_bytes(4, "little")))

    def stack(self, text):
        self.file("plugstack.conf", text)

    def stack_config(self, name, text):
        self.stack(f"optional {PLUGINS}/spank_topiary.so config={self.file(name, text)}\n")

    def environment(self, text):
        """The commands read another file than the plugins."""
        self.env = {"TOPIARY_CONF": str(self.file("environment.conf", text))}

    def registrys_host(self, **keys):
        for key, value in {"SchemaDir": self.folder, "Listen": "0.0.0.0:6824", **keys}.items():
            self.line("topiary.conf", f"{key} = {value}")

    def doctor(self, node=False):
        """All findings, of the controller or, where that makes a difference, of cn1."""
        if node:
            self.line("topiary.conf", "NodeName = cn1")
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + self.ahead))
        self.file("config", f"Configuration data as of {now}\n{self.running}")
        done = topiary("doctor", "--json", env={
            "PATH": self.path + "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TOPIARY_CONF": f"{self.folder}/topiary.conf",
            "SLURM_CONF": f"{self.folder}/slurm.conf", **self.env})
        answer = json.loads(done.stdout)
        assert done.returncode == {"ok": 0, "note": 0, "warning": 1, "error": 2}[answer["result"]], done
        return [c for c in answer["checks"] if c["level"] != "ok"]


@pytest.fixture(name="site")
def fixture_site(registry):
    with tempfile.TemporaryDirectory(prefix="topiary_doctor_", dir="/tmp") as folder:     # which other users may enter
        os.chmod(folder, 0o755)
        yield Site(Path(folder), registry)


@pytest.mark.parametrize("node", [False, True], ids=["controller", "node"])
def test_healthy_host_has_no_finding(site, node):
    """But munged, which does not run here, and preloaded libraries, which are beside the plugins of an installation."""
    assert {f["check"] for f in site.doctor(node)} <= {"munge", "preloaded libraries"}


def test_host_without_slurm(site):
    """As the registry's may be."""
    for file in ("slurm.conf", "plugstack.conf"):
        (site.folder / file).unlink()
    env = {"TOPIARY_CONF": f"{site.folder}/topiary.conf", "PATH": str(site.folder)}
    done = topiary("doctor", "--json", env=env)
    found = [c for c in json.loads(done.stdout)["checks"] if c["level"] != "ok"]
    assert {f["check"] for f in found} == {"munge"}, found


# fault: what is broken, or a line of topiary.conf; is it a node; the check, words of the finding, words of the remedy
FAULTS = {
    "unknown key": ("TopoFoo = 1", False, "settings", "TopoFoo", ["correct this line"]),
    "key twice": (lambda c: c.sub("topiary.conf", "RunDir = ", "RunDir = /elsewhere\nRunDir = "), False, "commands",
                  "replaces the value of line", ["remove one of the two lines"]),
    "number out of range": ("SnapshotPoll = 0", False, "settings", "SnapshotPoll", ["topiary.conf(5)"]),
    "no command": ("TopiaryCommand = /nonexistent", False, "settings", "/nonexistent", ["TopiaryCommand"]),
    "no account": ("RegistryUser = nobodyatall", False, "account", "nobodyatall", ["topiary-common"]),
    "no CA": (lambda c: (c.line("topiary.conf", "RegistryURL = https://127.0.0.1:1"),
                         c.line("topiary.conf", "TlsCA = /nonexistent")), False, "registry",
              "TlsCA=/nonexistent: No such file", ["correct TlsCA"]),
    "HTTPS": ("RegistryURL = https://127.0.0.1:1", False, "registry", "TlsCA=", ["TlsCA must name"]),
    "no munged": ("MungeSocket = /nonexistent", False, "munge", "/nonexistent", ["start munged"]),
    "registry elsewhere": ("RegistryURL = http://127.0.0.1:1", False, "registry", "127.0.0.1:1",
                           ["start topiaryd", "RegistryURL"]),
    "no slurm.conf": (lambda c: (c.folder / "slurm.conf").unlink(), False, "slurm-conf", "slurm.conf", ["SLURM_CONF"]),
    "no directory": (lambda c: c.plugins("/nonexistent", STOCK), False, "plugindir", "/nonexistent",
                     ["topiary-common"]),
    "stock first": (lambda c: c.plugins(STOCK, PLUGINS), False, "plugindir",
                    "comes first",
                    ["before Slurm's"]),
    "without stock": (lambda c: c.plugins(PLUGINS), False,
                      "plugindir", "of Slurm",
                      ["after Topiary's"]),
    "other release": (lambda c: c.other_release(), False, "plugins", "select_cons_tres.so was built for",
                      ["exactly this release"]),
    "controller has another file": (lambda c: c.plugins(STOCK), False, "controller", "plugindir",
                                    ["restart slurmctld"]),
    "select/linear": (lambda c: c.sub("slurm.conf", "select/cons_tres", "select/linear"), False, "select",
                      "select/linear",
                      ["select/cons_tres"]),
    "no cores": (lambda c: c.sub("slurm.conf", "CR_Core_Memory", "CR_Socket_Memory"), False, "select",
                 "CR_Socket_Memory", ["CR_Core"]),
    "task/none": (lambda c: c.sub("slurm.conf", "task/affinity", "task/none"), False, "task", "task/none",
                  ["task/affinity"]),
    "autobind": (lambda c: c.line("slurm.conf", "TaskPluginParam=autobind=threads"), False, "task", "autobind",
                 ["TopoPlace"]),
    "PMIx shares": (lambda c: c.file("mpi.conf", "PMIxShareServerTopology=yes\n"), False, "mpi",
                    "PMIxShareServerTopology=yes",
                    ["topology of the node"]),
    "no job_submit": (lambda c: (c.other_release(), (c.folder / "plugins/job_submit_topiary.so").unlink()), False,
                      "submit", "job_submit_topiary.so", ["JobSubmitPlugins"]),
    "no snapshot": ("SnapshotFile = /nonexistent", False, "snapshot", "/nonexistent", ["topiary-snapshot"]),
    "damaged snapshot": (lambda c: c.snapshot(lambda t: t[:len(t) // 2]), False, "snapshot", "truncated",
                         ["remove the file"]),
    "unsealed snapshot": (lambda c: c.snapshot(lambda t: t.replace("sealed\n", "").partition(" sha256=")[0] + "\n"),
                          False, "snapshot", "no seal", ["by hand"]),
    "node not in snapshot": (lambda c: c.snapshot(lambda t: t.replace("sealed\n", "").replace("nodes cn2", "nodes cx2")
                                                  .partition(" sha256=")[0] + "\n"), False, "snapshot", "lacks nodes",
                             ["export"]),
    "no topology": ("TopologyFile = /nonexistent", True, "topology", "/nonexistent", ["topiary-agent"]),
    "half a topology": (lambda c: c.topology("<topology version=\"2.0\">"), True, "topology", "not a complete",
                        ["restart topiary-agent"]),
    "hwloc 1": (lambda c: c.topology("<topology></topology>"), True, "topology", "hwloc 2", ["restart topiary-agent"]),
    "hwloc 3": (lambda c: c.topology((ROOT / "tests/data/hwloc3/vm.xml").read_text()), True, "topology",
                "XML of hwloc 3, and this host has hwloc 2",
                ["ExportFormat=2", "restart topiary-agent"]),
    "others' run directory": (lambda c: c.run_dir(0o755, 65534), True, "rundir", "uid 65534", ["chown root"]),
    "open run directory": (lambda c: c.run_dir(0o777), True, "rundir", "0777", ["chmod 755"]),
    "no run directory": ("RunDir = /nonexistent", True, "rundir", "/nonexistent", ["run-topiary.mount"]),
    "no monitor": ("TopoMonitor = sw", True, "monitor", "topiary-monitor does not run",
                   ["enable --now topiary-monitor"]),
    "no metrics": ("MonitorMetrics = /tmp/topiary.prom", True, "monitor",
                   "MonitorMetrics=/tmp/topiary.prom, but topiary-monitor does not run",
                   ["enable --now topiary-monitor"]),
    "bad TopoMonitor": ("TopoMonitor = sw,hz=0", True, "commands", "TopoMonitor=sw,hz=0: expected",
                        ["correct this line"]),
    "bad TopoFit": ("TopoFit = spread", False, "commands",
                    "TopoFit=spread: invalid value, expected one of: off, prefer, require", ["restart slurmctld"]),
    "bad TopoFit beside slurm.conf": (lambda c: (c.environment(""), c.line("topiary.conf", "TopoFit = spread")), False,
                                      "select", "TopoFit=spread: invalid value", ["restart slurmctld"]),
    "bad TopoPlace": ("TopoPlace = near", True, "commands",
                      "TopoPlace=near: invalid value, expected one of: off, compact", ["correct this line"]),
    "bad KnownNodes": ("KnownNodes = cn[1-", False, "commands", "KnownNodes: ", ["topiaryd does not start"]),
    "nobody in Admins": (lambda c: c.registrys_host(Admins="root,nobodyatall"), False, "commands",
                         "Admins=nobodyatall: no such user", ["restart topiaryd"]),
    "no drift hook": (lambda c: c.registrys_host(DriftHook="/nonexistent/hook"), False, "commands",
                      "DriftHook: /nonexistent/hook: No such file", ["restart topiaryd"]),
    "relative path": ("CostsFile = costs", False, "settings", "CostsFile=costs: expected an absolute path",
                      ["topiary.conf(5)"]),
    "no line": (lambda c: c.stack(""), True, "plugstack", "no line", ["plugstack.conf"]),
    "no plugin": (lambda c: c.stack("optional /nonexistent/spank_topiary.so\n"), True, "plugstack", "/nonexistent",
                  ["topiary-slurm"]),
    "required": (lambda c: c.stack(f"required {PLUGINS}/spank_topiary.so\n"), True,
                 "plugstack", "required",
                 ["optional"]),
    "other RunDir for steps": (lambda c: c.stack_config("other.conf", "# by hand\nRunDir = /elsewhere\n"), True,
                               "spank", "other.conf:2) for the SPANK plugin",
                               ["one file", "config="]),
    "unknown key for steps": (lambda c: c.stack_config("other.conf", "TopoFoo = 1\n"), True, "spank",
                              "other.conf:1: unknown key 'TopoFoo'",
                              ["correct this line", "steps"]),
    "other topiary.conf in the environment": (lambda c: c.environment("TopoLevel = l3\n"), False, "select",
                                              "TopoLevel=node (default) for the select plugin",
                                              ["one file", "TOPIARY_CONF"]),
    "unknown key beside slurm.conf": (lambda c: (c.environment(""), c.line("topiary.conf", "TopoFoo = 1")),
                                      False, "select", "unknown key 'TopoFoo'", ["restart slurmctld"]),
    "no config": (lambda c: c.stack(f"optional {PLUGINS}/spank_topiary.so config=/nonexistent\n"), True,
                  "plugstack", "/nonexistent", ["config="]),
    "second controller": (lambda c: (c.sub("slurm.conf", f"={HOST}\n", f"={HOST}(10.0.0.1)\nSlurmctldHost=other\n"),
                                     (c.folder / "snapshot").unlink()), False,
                          "snapshot", "snapshot: No such file", ["topiary-snapshot"]),
    "backup controller": (lambda c: (c.sub("slurm.conf", f"={HOST}\n", f"=other\nSlurmctldHost={HOST}\n"),
                                     (c.folder / "snapshot").unlink()), False,
                          "snapshot", "snapshot: No such file", ["topiary-snapshot"]),
    "snapshot for root alone": (lambda c: (c.folder / "snapshot").chmod(0o600), False, "readable",
                                "snapshot, which slurmctld reads as nobody: Permission denied", ["chmod"]),
    "topiary.conf for root alone": (lambda c: (c.folder / "topiary.conf").chmod(0o600), False, "readable",
                                    "topiary.conf, which slurmctld reads as nobody: Permission denied", ["chmod"]),
    "names that do not resolve": (lambda c: c.registrys_host(), False, "names", "cn1,cn2 (2)", ["DNS", "/etc/hosts"]),
    "plugstack line twice": (lambda c: c.stack(2 * f"optional {PLUGINS}/spank_topiary.so\n"), True, "plugstack",
                             "plugstack.conf:2: another line", ["keep one"]),
    "JobSubmitPlugins twice": (lambda c: c.sub("slurm.conf", "JobSubmitPlugins=", "JobSubmitPlugins=lua\n"
                                               "JobSubmitPlugins="), False, "slurm-conf",
                               "JobSubmitPlugins=lua has no effect", ["make one line"]),
    "other release of Topiary": (lambda c: c.other_release("spank_topiary.so", b"release of Topiary: 0",
                                                           b"release of Topiary: 9"), True, "plugins",
                                 "spank_topiary.so is of Topiary 9", ["one release"]),
    "other release of topiaryd": (lambda c: setattr(c.registry, "version", "9.9"), False, "registry",
                                  "topiaryd is 9.9", ["same release"]),
    "other NodeName": (lambda c: c.file("nodes", NODES.replace("NodeHostName=cn1", f"NodeHostName={HOST}")), False,
                       "name", f"slurm.conf calls this host cn1, Topiary calls it {HOST}", ["set NodeName=cn1"]),
    "other NodeName elsewhere": (lambda c: (c.registry.nodes.pop("cn2"), c.file("nodes", NODES.replace(
                                     "NodeHostName=cn2", "NodeHostName=linux2"))), False, "exports",
                                 "whose hosts have other names, that have never exported their topology: cn2",
                                 ["NodeName"]),
    "clock of the registry": (lambda c: setattr(c.registry, "ahead", -200), False, "registry",
                              "s ahead of the registry's", ["chrony", "300 s"]),
    "clock of the controller": (lambda c: setattr(c, "ahead", 200), True, "controller", "s behind the controller's",
                                ["chrony", "300 s"]),
    "node that never exported": (lambda c: c.registry.nodes.pop("cn2"), False, "exports",
                                 "nodes of slurm.conf that have never exported their topology: cn2 (1)",
                                 ["on these nodes", "enable --now topiary-agent"]),
    "no export since the boot": (lambda c: c.registry.nodes.update(cn1="2026-11-01"), False, "exports",
                                 "nodes that have not exported their topology since their boot: cn1",
                                 ["on these nodes", "restart topiary-agent"]),
    "without our directory": (lambda c: c.plugins(STOCK), False, "plugindir", STOCK,
                              ["first in PluginDir", "topiary-slurm"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(site, fault):
    breaks, node, key, word, remedy = FAULTS[fault]
    if isinstance(breaks, str):
        site.line("topiary.conf", breaks)
    else:
        breaks(site)
    every = site.doctor(node)
    found = [f for f in every if f["check"] == key and word in f["finding"]]
    assert len(found) == 1, (fault, every)
    assert all(w in found[0]["remedy"] for w in remedy), found
