# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""RPM packages: their files, what they require, and their scriptlets in a root of their own."""
import os
import re
import subprocess
from pathlib import Path

import pytest
from rig.paths import BUILD, ROOT

RPMS = Path(os.environ.get("TOPIARY_RPMS", BUILD / "rpm"))
PLUGINDIR = "/usr/lib64/topiary/slurm"
# Of each package some of its files: all that make it useful on its hosts.
FILES = {
    "topiary": ["/usr/bin/topiary", "/usr/sbin/topiary-agent", "/usr/lib/systemd/system/topiary-agent.service"],
    "topiary-common": [PLUGINDIR, "/usr/lib/sysusers.d/topiary.conf", "/var/lib/topiary"],
    "topiary-registry": ["/usr/sbin/topiaryd", "/usr/lib/systemd/system/topiaryd.service",
                         "/usr/share/topiary/sql/0001_registry.sql"],
    "topiary-slurm": [f"{PLUGINDIR}/select_cons_tres.so", f"{PLUGINDIR}/spank_topiary.so",
                      "/usr/lib64/slurm/job_submit_topiary.so", "/usr/lib64/topiary/libtopiary-capture.so",
                      "/usr/lib64/topiary/libtopiary-capture-mpich.so",
                      "/usr/lib64/topiary/libtopiary-reorder.so", "/usr/lib64/topiary/libtopiary-reorder-mpich.so"],
    "libtopiary": ["/usr/lib64/libtopiary.so.0"],
    "libtopiary-devel": ["/usr/include/topiary.h", "/usr/lib64/libtopiary.so", "/usr/lib64/pkgconfig/topiary.pc"],
}


def rpm(*words):
    return subprocess.run(["rpm", *map(str, words)], capture_output=True, text=True, check=True, timeout=120)


def package(name):
    found = list(RPMS.glob(f"{name}-[0-9]*.rpm"))
    assert len(found) == 1, f"{RPMS}: {found}: run make rpm"
    return found[0]


def slurm_version():
    return re.search(r"Slurm (\S+)$", (RPMS / "build.log").read_text().split("\n")[0]).group(1)


@pytest.fixture
def root(host):
    """rpm on a host on which nothing of Topiary is installed by it."""
    host.run("rm -rf /etc/slurm && mkdir /etc/slurm")
    yield host.rpm
    installed = [name for name in FILES if host.rpm("-q", name, check=False).returncode == 0]
    host.run("rm -rf /etc/slurm")
    if installed:
        host.rpm("-e", *installed)


@pytest.mark.parametrize("name", FILES)
def test_package_has_its_files_and_no_other_has_them(name):
    files = rpm("-qpl", package(name)).stdout.split("\n")
    assert set(FILES[name]) <= set(files)
    for other in FILES:
        assert other == name or not set(rpm("-qpl", package(other)).stdout.split("\n")) & set(FILES[name])


def test_no_path_is_debians_alone():
    for name in FILES:
        assert "x86_64-linux-gnu" not in rpm("-qpl", package(name)).stdout


def test_every_installed_file_is_in_a_package():
    assert not re.search(r"Installed \(but unpackaged\)", (RPMS / "build.log").read_text())


def test_plugins_require_their_micro_release_of_slurm():
    assert f"slurm(x86-64) = {slurm_version()}" in rpm("-qpR", package("topiary-slurm")).stdout
    # Every library that a plugin is linked with is known to rpm: it looks into executable files only.
    assert "libhwloc.so" in rpm("-qpR", package("topiary-slurm")).stdout


def test_rpm_refuses_plugins_beside_another_slurm(root):
    said = root("-i", package("topiary-slurm"), check=False)
    assert said.returncode and f"slurm(x86-64) = {slurm_version()} is needed by topiary-slurm" in said.stderr


def test_rpmlint_finds_nothing():
    said = subprocess.run(["rpmlint", "-c", ROOT / "packaging/rpm/rpmlint.toml", *[package(name) for name in FILES],
                           ROOT / "packaging/rpm/topiary.spec"], capture_output=True, text=True, check=False,
                          timeout=120)
    assert re.search(r" 0 errors, 0 warnings", said.stdout), said.stdout


def test_account_and_directories_are_made_and_kept_by_an_upgrade(host, root):
    packages = [package(name) for name in FILES]
    root("-i", "--nodeps", *packages)
    assert host.says("stat -c '%U %G %a' /var/lib/topiary") == "topiary topiary 755"
    assert host.says("id -u topiary") == "824"
    account = host.says("getent passwd topiary")
    root("-U", "--force", "--nodeps", *packages)
    assert host.says("getent passwd topiary") == account
    assert root("-V", "--nodeps", *FILES).stdout == ""


@pytest.mark.parametrize("file, line", [("slurm.conf", "JobSubmitPlugins=lua,topiary"),
                                        ("plugstack.conf", f"optional {PLUGINDIR}/spank_topiary.so"),
                                        ("plugstack.conf.d/topiary.conf", f"required {PLUGINDIR}/spank_topiary.so")])
def test_plugins_that_slurms_configuration_names_are_not_removed(host, root, file, line):
    root("-i", "--nodeps", package("topiary-slurm"))
    host.run(f"mkdir -p $(dirname /etc/slurm/{file}) && echo '{line}' > /etc/slurm/{file}")
    said = root("-e", "topiary-slurm", check=False)
    assert said.returncode and f"topiary-slurm: not removed, because /etc/slurm/{file} still names it" in said.stderr
    assert host.says(f"ls {PLUGINDIR}/select_cons_tres.so")
    host.run(f"echo '#{line}' > /etc/slurm/{file}")
    root("-e", "topiary-slurm")


@pytest.mark.parametrize("conf, stays",
                         [(f"PluginDir={PLUGINDIR}:/usr/lib64/slurm", True), ("PluginDir=/usr/lib64/slurm", False)])
def test_directory_of_plugindir_stays_while_slurm_conf_names_it(host, root, conf, stays):
    root("-i", "--nodeps", package("topiary-common"))
    host.run(f"echo '{conf}' > /etc/slurm/slurm.conf")
    said = root("-e", "topiary-common")
    assert (f"{PLUGINDIR} stays" in said.stderr, host.path(PLUGINDIR).exists()) == (stays, stays)
    host.run(f"rm -rf {PLUGINDIR}")


def test_build_for_a_directory_that_is_no_slurm_says_so(tmp_path):
    said = subprocess.run([ROOT / "packaging/make-rpm", tmp_path / "out"], capture_output=True, text=True,
                          check=False, timeout=60, env=os.environ | {"SLURM_SRC": str(tmp_path)})
    assert said.returncode == 1
    assert f"make-rpm: {tmp_path}: not the source of a Slurm that was configured: it has no config.h" in said.stderr
