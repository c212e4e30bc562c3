# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary doctor: nothing to report on a healthy host; each fault is found, and the remedy names what to do."""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess

import pytest
from rig import Cluster
from rig.cluster import REGISTRY_USER, STOCK_PLUGINS
from rig.node import preloaded
from rig.paths import BUILD, ROOT
from rig.processes import wait_until


@pytest.fixture(scope="module")
def site(folders):
    conf = "TaskPlugin=task/affinity\n"
    with Cluster(folders(), {"cn1": "amd-4x16", "cn2": "intel-2x8"}, conf=conf) as cluster:
        for recorder in cluster.build.glob("libtopiary-capture*.so"):
            shutil.copy(recorder, cluster.folder)
        yield cluster


def doctor(site, env, node=None, check=None):
    where = ["nsenter", f"--uts=/proc/{site.daemons[f'slurmd.{node}'].pid}/ns/uts"] if node else []
    done = site.command([*where, f"{site.folder}/bin/topiary", "doctor", "--json"], env=env, check=False)
    answer = json.loads(done.stdout)
    status = {"ok": 0, "note": 0, "warning": 1, "error": 2}[answer["result"]]
    assert done.returncode == status and not done.stderr, done
    return [c for c in answer["checks"] if c["level"] != "ok" and check in (None, c["check"])]


@pytest.mark.parametrize("node", [None, "cn1"], ids=["controller", "node"])
def test_healthy_host_has_no_finding(site, node):
    assert doctor(site, site.env(), node) == []


def test_each_value_has_its_origin(site):
    answer = json.loads(site.topiary("doctor", "--json", env=site.env()).stdout)
    path = site.folder / "etc" / "topiary.conf"
    lines = path.read_text().split("\n")
    at = next(number for number, line in enumerate(lines, 1) if line.startswith("RunDir"))
    run_dir = lines[at - 1].partition(" = ")[2].replace("%h", socket.gethostname().partition(".")[0])
    found = {reader: [c["finding"] for c in answer["checks"] if (c["group"], c["check"]) == ("topiary.conf", reader)]
             for reader in ("commands", "select", "spank")}
    for reader in ("commands", "spank"):
        assert f"RunDir={run_dir} ({path}:{at})" in found[reader], found
    assert (found["select"][-1]
            == f"{path} (beside slurm.conf); by default: TopoFit=prefer TopoLevel=node "
               "TopoMem=prefer TopoGpuCores=spare TopoVerdicts=admin WithoutSnapshot=run")
    assert found["commands"][-1].startswith(f"{path} (TOPIARY_CONF); by default: ExportFormat=own ")
    assert found["spank"][-1].startswith(f"{path} (config= in plugstack.conf); by default: TopoTasks=off ")


def test_table_shows_finding_and_remedy(site):
    env = site.env(TOPIARY_CONF=str(site.folder / "work" / "no.conf"))
    done = site.topiary("doctor", env=env, check=False)
    assert done.returncode == 2 and "-> start topiaryd" in done.stdout, done.stdout


def test_usage(site):
    assert site.topiary("doctor", "surplus", check=False).returncode == 64


class Copy:
    """The cluster's configuration, to be spoilt."""

    def __init__(self, site, folder):
        self.site, self.folder, self.env, self.undo = site, folder, {}, lambda: None
        shutil.copytree(site.folder / "etc", folder, dirs_exist_ok=True)

    def sub(self, name, old, new):
        path = self.folder / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new))

    def line(self, name, text):
        """Add it, or replace that of the same key."""
        path, key = self.folder / name, text.partition(" = ")[0]
        kept = [line for line in path.read_text().splitlines() if line.partition(" = ")[0] != key]
        path.write_text("\n".join([*kept, text, ""]))

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def snapshot(self, change):
        self.line("topiary.conf",
                  f"SnapshotFile = {self.file('snapshot', change(self.site.snapshot_file.read_text()))}")

    def topology(self, text):
        self.line("topiary.conf", f"TopologyFile = {self.file('topology.xml', text)}")

    def run_dir(self, mode, uid=0):
        path = self.folder / "run"
        path.mkdir()
        path.chmod(mode)
        os.chown(path, uid, 0)
        self.line("topiary.conf", f"RunDir = {path}")

    def plugins(self, *folders):
        path = next(line for line in (self.folder / "slurm.conf").read_text().split("\n")
                    if line.startswith("PluginDir="))
        self.sub("slurm.conf", path, "PluginDir=" + ":".join(map(str, folders)))

    def copied_plugins(self):
        """Files that slurmctld has not loaded."""
        old = self.folder / "plugins"
        shutil.copytree(self.site.folder / "plugins", old)
        self.plugins(old, self.site.folder / "doors", STOCK)
        return old

    def other_release(self):
        old = self.copied_plugins()
        release = self.site.command(["scontrol", "--version"]).stdout.split()[-1].split(".")
        version = int(release[0]) << 16 | int(release[1]) << 8 | int(release[2])
        file = old / "select_cons_tres.so"
        file.write_bytes(file.read_bytes().replace(version.to_bytes(4, "little"), (version + 1).to_bytes(4, "little")))


    def registry(self, sql, undo):
        """What is wrong in the registry's database until the test ends."""
        psql = ["psql", "-q", "-h", str(self.site.folder / "postgres"), "-d", "topiary", "-c"]
        self.site.command([*psql, sql], user=REGISTRY_USER)
        self.undo = lambda: self.site.command([*psql, undo], user=REGISTRY_USER)

    def stack(self, text):
        self.sub("slurm.conf", f"{self.site.folder}/etc/plugstack.conf", str(self.file("stack.conf", text)))

    def stack_config(self, name, text):
        self.stack(f"optional {self.site.folder}/plugins/spank_topiary.so config={self.file(name, text)}\n")

    def environment(self, text):
        """The commands read another file than the plugins."""
        self.env = {"TOPIARY_CONF": str(self.file("environment.conf", text))}

    def clock(self, seconds):
        """The doctor's clock is ahead by so many seconds."""
        self.env = {"SET_CLOCK": str(self.file("clock", "")), "LD_PRELOAD": f"{BUILD}/tests/set_clock.so"}
        (self.folder / "clock").write_bytes(struct.pack("q", seconds))


STOCK = str(STOCK_PLUGINS)

# fault: what is broken, on which node (None: the controller), the check, a word of the finding, words of the remedy
FAULTS = {
    "unknown key": (lambda c: c.line("topiary.conf", "TopoFoo = 1"), None, "settings", "TopoFoo",
                    ["correct this line"]),
    "key twice": (lambda c: c.sub("topiary.conf", "RunDir = ", "RunDir = /elsewhere\nRunDir = "), None, "commands",
                  "replaces the value of line", ["remove one of the two lines"]),
    "number out of range": (lambda c: c.line("topiary.conf", "SnapshotPoll = 0"), None, "settings", "SnapshotPoll",
                            ["topiary.conf(5)"]),
    "no command": (lambda c: c.line("topiary.conf", "TopiaryCommand = /nonexistent"), None, "settings", "/nonexistent",
                   ["TopiaryCommand"]),
    "no account": (lambda c: c.line("topiary.conf", "RegistryUser = nobodyatall"), None, "account", "nobodyatall",
                   ["topiary-common"]),
    "other account": (lambda c: c.line("topiary.conf", "RegistryUser = nobody"), None, "registry",
                      "RegistryUser must be uid", ["set RegistryUser"]),
    "no CA": (lambda c: (c.line("topiary.conf", "RegistryURL = https://127.0.0.1:1"),
                         c.line("topiary.conf", "TlsCA = /nonexistent")), None, "registry",
              "TlsCA=/nonexistent: No such file", ["correct TlsCA"]),
    "HTTPS": (lambda c: c.line("topiary.conf", "RegistryURL = https://127.0.0.1:1"), None, "registry", "TlsCA=",
              ["TlsCA must name"]),
    "no munged": (lambda c: c.line("topiary.conf", "MungeSocket = /nonexistent"), None, "munge", "/nonexistent",
                  ["start munged"]),
    "registry elsewhere": (lambda c: c.line("topiary.conf", "RegistryURL = http://127.0.0.1:1"), None, "registry",
                           "127.0.0.1:1",
                           ["start topiaryd", "RegistryURL"]),
    "clock of the registry": (lambda c: c.clock(200), None, "registry", "s ahead of the registry's",
                              ["chrony", "300 s"]),
    "clock of the controller": (lambda c: c.clock(-200), "cn1", "controller", "s behind the controller's",
                                ["chrony", "300 s"]),
    "node that never exported": (lambda c: c.registry("UPDATE node SET name = 'cx2' WHERE name = 'cn2'",
                                                      "UPDATE node SET name = 'cn2' WHERE name = 'cx2'"),
                                 None, "exports", "of slurm.conf these nodes never exported their topology: cn2 (1)",
                                 ["on these nodes", "enable --now topiary-agent"]),
    "no export since the boot": (lambda c: c.registry("UPDATE node SET since = since - interval '1 year' WHERE "
                                                      "name = 'cn1'",
                                                      "UPDATE node SET since = since + interval '1 year' WHERE "
                                                      "name = 'cn1'"), None,
                                 "exports", "not exported since their boot: cn1",
                                 ["on these nodes", "restart topiary-agent"]),
    "no slurm.conf": (lambda c: (c.folder / "slurm.conf").unlink(), None, "slurm-conf", "slurm.conf", ["SLURM_CONF"]),
    "no directory": (lambda c: c.plugins("/nonexistent", STOCK), None, "plugindir", "/nonexistent", ["topiary-common"]),
    "without our directory": (lambda c: c.plugins(STOCK), None, "plugindir", STOCK,
                              ["first in PluginDir", "topiary-slurm"]),
    "stock first": (lambda c: c.plugins(STOCK, c.site.folder / "plugins", c.site.folder / "doors"), None, "plugindir",
                    "comes first",
                    ["before Slurm's"]),
    "without stock": (lambda c: c.plugins(c.site.folder / "plugins", c.site.folder / "doors"), None,
                      "plugindir", "of Slurm",
                      ["after Topiary's"]),
    "other release": (lambda c: c.other_release(), None, "plugins", "select_cons_tres.so was built for",
                      ["exactly this release"]),
    "not loaded": (lambda c: c.copied_plugins(), None, "loaded", "has not loaded", ["restart slurmctld"]),
    "controller has another file": (lambda c: c.plugins(STOCK), None, "controller", "plugindir", ["restart slurmctld"]),
    "select/linear": (lambda c: c.sub("slurm.conf", "select/cons_tres", "select/linear"), None, "select",
                      "select/linear",
                      ["select/cons_tres"]),
    "no cores": (lambda c: c.sub("slurm.conf", "CR_Core_Memory", "CR_Socket_Memory"), None, "select",
                 "CR_Socket_Memory", ["CR_Core"]),
    "task/none": (lambda c: c.sub("slurm.conf", "task/affinity", "task/none"), None, "task", "task/none",
                  ["task/affinity"]),
    "autobind": (lambda c: c.line("slurm.conf", "TaskPluginParam=autobind=threads"), None, "task", "autobind",
                 ["TopoPlace"]),
    "PMIx shares": (lambda c: c.file("mpi.conf", "PMIxShareServerTopology=yes\n"), None, "mpi",
                    "PMIxShareServerTopology=yes",
                    ["topology of the node"]),
    "no job_submit": (lambda c: c.plugins(c.site.folder / "plugins", STOCK), None, "submit", "job_submit_topiary.so",
                      ["JobSubmitPlugins"]),
    "no snapshot": (lambda c: c.line("topiary.conf", "SnapshotFile = /nonexistent"), None, "snapshot", "/nonexistent",
                    ["topiary-snapshot"]),
    "damaged snapshot": (lambda c: c.snapshot(lambda t: t[:len(t) // 2]), None, "snapshot", "truncated",
                         ["remove the file"]),
    "unsealed snapshot": (lambda c: c.snapshot(lambda t: t.replace("sealed\n", "").partition(" sha256=")[0] + "\n"),
                          None, "snapshot", "no seal", ["by hand"]),
    "node not in snapshot": (lambda c: c.snapshot(lambda t: t.replace("sealed\n", "").replace("nodes cn2", "nodes cx2")
                                                  .partition(" sha256=")[0] + "\n"), None, "snapshot", "lacks nodes",
                             ["export"]),
    "no topology": (lambda c: c.line("topiary.conf", "TopologyFile = /nonexistent"), "cn1", "topology", "/nonexistent",
                    ["topiary-agent"]),
    "half a topology": (lambda c: c.topology("<topology version=\"2.0\">"), "cn1", "topology", "not a complete",
                        ["restart topiary-agent"]),
    "hwloc 1": (lambda c: c.topology("<topology></topology>"), "cn1", "topology", "hwloc 2", ["restart topiary-agent"]),
    "hwloc 3": (lambda c: c.topology((ROOT / "tests/data/hwloc3/vm.xml").read_text()), "cn1", "topology",
                "XML of hwloc 3, and this host has hwloc 2",
                ["ExportFormat=2", "restart topiary-agent"]),
    "others' run directory": (lambda c: c.run_dir(0o755, 65534), "cn1", "rundir", "uid 65534", ["chown root"]),
    "open run directory": (lambda c: c.run_dir(0o777), "cn1", "rundir", "0777", ["chmod 755"]),
    "no run directory": (lambda c: c.line("topiary.conf", "RunDir = /nonexistent"), "cn1", "rundir", "/nonexistent",
                         ["run-topiary.mount"]),
    "no monitor": (lambda c: c.line("topiary.conf", "TopoMonitor = sw"), "cn1", "monitor",
                   "topiary-monitor does not run",
                   ["enable --now topiary-monitor"]),
    "no metrics": (lambda c: c.line("topiary.conf", "MonitorMetrics = /tmp/topiary.prom"), "cn1", "monitor",
                   "MonitorMetrics=/tmp/topiary.prom, but topiary-monitor does not run",
                   ["enable --now topiary-monitor"]),
    "bad TopoMonitor": (lambda c: c.line("topiary.conf", "TopoMonitor = sw,hz=0"), "cn1", "commands",
                        "TopoMonitor=sw,hz=0: expected", ["correct this line"]),
    "bad TopoFit": (lambda c: c.line("topiary.conf", "TopoFit = spread"), None, "commands",
                    "TopoFit=spread: invalid value, expected one of: off, prefer, require", ["restart slurmctld"]),
    "bad TopoFit beside slurm.conf": (lambda c: (c.environment(""), c.line("topiary.conf", "TopoFit = spread")), None,
                                      "select", "TopoFit=spread: invalid value", ["restart slurmctld"]),
    "bad TopoPlace": (lambda c: c.line("topiary.conf", "TopoPlace = near"), "cn1", "commands",
                      "TopoPlace=near: invalid value, expected one of: off, compact", ["correct this line"]),
    "bad KnownNodes": (lambda c: c.line("topiary.conf", "KnownNodes = cn[1-"), None, "commands", "KnownNodes: ",
                       ["topiaryd does not start"]),
    "nobody in Admins": (lambda c: c.line("topiary.conf", "Admins = root,nobodyatall"), None, "commands",
                         "Admins=nobodyatall: no such user", ["restart topiaryd"]),
    "no drift hook": (lambda c: c.line("topiary.conf", "DriftHook = /nonexistent/hook"), None, "commands",
                      "DriftHook: /nonexistent/hook: No such file", ["restart topiaryd"]),
    "relative path": (lambda c: c.line("topiary.conf", "CostsFile = costs"), None, "settings",
                      "CostsFile=costs: expected an absolute path", ["topiary.conf(5)"]),
    "no line": (lambda c: c.stack(""), "cn1", "plugstack", "no line", ["plugstack.conf"]),
    "no plugin": (lambda c: c.stack("optional /nonexistent/spank_topiary.so\n"), "cn1", "plugstack", "/nonexistent",
                  ["topiary-slurm"]),
    "required": (lambda c: c.stack(f"required {c.site.folder}/plugins/spank_topiary.so\n"), "cn1",
                 "plugstack", "required",
                 ["optional"]),
    "other RunDir for steps": (lambda c: c.stack_config("other.conf", "# by hand\nRunDir = /elsewhere\n"), "cn1",
                               "spank", "other.conf:2) for the SPANK plugin",
                               ["one file", "config="]),
    "unknown key for steps": (lambda c: c.stack_config("other.conf", "TopoFoo = 1\n"), "cn1", "spank",
                              "other.conf:1: unknown key 'TopoFoo'",
                              ["correct this line", "steps"]),
    "other topiary.conf in the environment": (lambda c: c.environment("TopoLevel = l3\n"), None, "select",
                                              "TopoLevel=node (default) for the select plugin",
                                              ["one file", "TOPIARY_CONF"]),
    "unknown key beside slurm.conf": (lambda c: (c.environment(""), c.line("topiary.conf", "TopoFoo = 1")),
                                      None, "select", "unknown key 'TopoFoo'", ["restart slurmctld"]),
    "no config": (lambda c: c.stack(f"optional {c.site.folder}/plugins/spank_topiary.so config=/nonexistent\n"), "cn1",
                  "plugstack", "/nonexistent", ["config="]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(site, tmp_path, fault):
    breaks, node, key, word, remedy = FAULTS[fault]
    copy = Copy(site, tmp_path)
    breaks(copy)
    env = site.env(**{"SLURM_CONF": str(tmp_path / "slurm.conf"), "TOPIARY_CONF": str(tmp_path / "topiary.conf"),
                      **copy.env})
    try:
        all_found = doctor(site, env, node, key)
    finally:
        copy.undo()
    found = [f for f in all_found if word in f["finding"]]
    assert len(found) == 1, (fault, all_found)
    assert all(w in found[0]["remedy"] for w in remedy), found


def test_plugin_that_was_replaced_under_slurmctld_is_found(site):
    """As by a package that was upgraded, without a restart."""
    file = site.folder / "plugins" / "select_cons_tres.so"
    shutil.copy(file, file.with_suffix(".new")).rename(file)
    try:
        found = doctor(site, site.env())
        assert [f["check"] for f in found] == ["loaded"] and "removed file" in found[0]["finding"], found
    finally:
        site.end("slurmctld")
        site.start_slurmctld()
        assert wait_until(lambda: site.command(["scontrol", "ping"], check=False).returncode == 0, 30)


def test_a_slurm_with_another_hwloc_is_found(site):
    """The names of two major versions differ, and so do their structures."""
    library = site.folder / "bin" / "libhwloc.so.99"
    subprocess.run(["gcc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    with preloaded(site, "cn1", library):
        found = doctor(site, site.env(), "cn1", "hwloc")
    assert len(found) == 1 and "libhwloc.so.99 loaded" in found[0]["finding"], found
    assert "built with" in found[0]["remedy"] and doctor(site, site.env(), "cn1", "hwloc") == []


def test_munged_that_hangs_ends_the_probes(site):
    munged = site.daemons["munged"].pid
    os.kill(munged, signal.SIGSTOP)
    try:
        found = doctor(site, site.env(), check="munge")
    finally:
        os.kill(munged, signal.SIGCONT)
    assert len(found) == 1 and found[0]["level"] == "error" and "restart munge" in found[0]["remedy"], found


def test_silent_registry_ends_the_probe(site, tmp_path):
    """It accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        Copy(site, tmp_path).line("topiary.conf", f"RegistryURL = http://127.0.0.1:{silent.getsockname()[1]}")
        found = doctor(site, site.env(TOPIARY_CONF=str(tmp_path / "topiary.conf")))
    assert [f["check"] for f in found] == ["registry"] and "timed out" in found[0]["finding"], found
