# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary doctor: nothing to report on a healthy host; each fault is found, and the remedy names what to do."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
from rig import Cluster
from rig.cluster import STOCK_PLUGINS
from rig.node import preloaded
from rig.processes import wait_until


@pytest.fixture(scope="module")
def site(folders):
    conf = "TaskPlugin=task/affinity\n"
    with Cluster(folders(), {"cn1": "amd-4x16", "cn2": "intel-2x8"}, conf=conf) as cluster:
        for library in cluster.build.glob("libtopiary-*.so"):
            shutil.copy(library, cluster.folder)
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
            == f"{path} (beside slurm.conf); by default: TopoMode=on TopoPartitions= TopoQos= TopoAccounts= "
               "ObserveFile=/var/log/slurm/topiary-observed ObserveShare=2 TopoFit=prefer TopoLevel=node "
               "TopoMem=prefer TopoWeight=long TopoGpuCores=spare TopoVerdicts=admin WithoutSnapshot=run")
    assert found["commands"][-1].startswith(f"{path} (TOPIARY_CONF); by default: ExportFormat=own ")
    assert found["spank"][-1].startswith(f"{path} (config= in plugstack.conf); by default: TopoMode=on ")


def test_table_shows_finding_and_remedy(site):
    env = site.env(TOPIARY_CONF=str(site.folder / "work" / "no.conf"))
    done = site.topiary("doctor", env=env, check=False)
    assert done.returncode == 2 and "-> start topiaryd" in done.stdout, done.stdout


def test_usage(site):
    assert site.topiary("doctor", "surplus", check=False).returncode == 64


def other_account(folder, _site):
    path = folder / "topiary.conf"
    kept = [line for line in path.read_text().splitlines() if not line.startswith("RegistryUser")]
    path.write_text("\n".join([*kept, "RegistryUser = nobody", ""]))


def other_plugins(folder, site):
    """Files that slurmctld has not loaded."""
    shutil.copytree(site.folder / "plugins", folder / "plugins")
    path = folder / "slurm.conf"
    path.write_text(re.sub(r"(?m)^PluginDir=.*", f"PluginDir={folder}/plugins:{site.folder}/doors:{STOCK_PLUGINS}",
                           path.read_text()))


# what is broken in a copy of the configuration, the check, a word of the finding, of the remedy
@pytest.mark.parametrize("breaks, key, word, remedy", [
    (other_account, "registry", "RegistryUser must be uid", "set RegistryUser"),
    (other_plugins, "loaded", "has not loaded", "restart slurmctld"),
])
def test_fault_is_found(site, tmp_path, breaks, key, word, remedy):
    shutil.copytree(site.folder / "etc", tmp_path, dirs_exist_ok=True)
    breaks(tmp_path, site)
    env = site.env(SLURM_CONF=str(tmp_path / "slurm.conf"), TOPIARY_CONF=str(tmp_path / "topiary.conf"))
    every = doctor(site, env, None, key)
    found = [f for f in every if word in f["finding"]]
    assert len(found) == 1 and remedy in found[0]["remedy"], every


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


@pytest.mark.parametrize("name, option", [("capture", "--topo-capture"), ("reorder", "--topo-reorder")])
def test_libraries_that_are_missing_are_found(site, name, option):
    away = site.folder / "away"
    away.mkdir()
    files = [*site.folder.glob(f"libtopiary-{name}*.so")]
    for file in files:
        file.rename(away / file.name)
    found = doctor(site, site.env(), "cn1")
    for file in files:
        (away / file.name).rename(file)
    away.rmdir()
    assert files and len(found) == 1 and found[0]["finding"].startswith(option), found
    assert f"/libtopiary-{name}*.so" in found[0]["finding"] and "reinstall topiary-slurm" in found[0]["remedy"]
    assert doctor(site, site.env(), "cn1") == []


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
        config = re.sub(r"(?m)^RegistryURL = .*", f"RegistryURL = http://127.0.0.1:{silent.getsockname()[1]}",
                        (site.folder / "etc/topiary.conf").read_text())
        (tmp_path / "topiary.conf").write_text(config)
        found = doctor(site, site.env(TOPIARY_CONF=str(tmp_path / "topiary.conf")))
    assert [f["check"] for f in found] == ["registry"] and "Timeout was reached" in found[0]["finding"], found
