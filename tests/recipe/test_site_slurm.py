# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Packages for a site's own Slurm, as make deb and make rpm build them for SLURM_PREFIX: beside another release they
are not installed."""
import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from rig.paths import CACHE, ROOT

HOMES = sorted(path.parents[2] for path in CACHE.glob("slurm/[0-9]*/prefix/sbin/slurmd"))
pytestmark = pytest.mark.skipif(not HOMES, reason="no Slurm is built below CACHE/slurm")
HOME = HOMES[-1] if HOMES else None
PREFIX, VERSION = (HOME / "prefix", HOME.name.partition("-")[0]) if HOMES else (None, None)
# On a machine of its own: what dpkg installs in here is forgotten afterwards.
OWN_DPKG = ('mount -t overlay overlay -o "lowerdir=/var/lib/dpkg,upperdir=$0/upper,workdir=$0/work" /var/lib/dpkg && '
            'dpkg --log=/dev/null -i "$1" && shift && exec "$@"')


def build(kind, folder, prefix=PREFIX, before=()):
    """The package with the plugins. Objects of an RPM name the tree that they were compiled in: rpmlint would find
    another one."""
    done = subprocess.run([*before, ROOT / f"packaging/make-{kind}", folder], capture_output=True, text=True,
                          timeout=600, check=False, env=os.environ | {"rpm": {"CCACHE_DISABLE": "1"}}.get(kind, {}) | {
                              "SLURM_SRC": f"{HOME}/source", "SLURM_PREFIX": str(prefix)})
    assert not done.returncode, done.stderr + (folder / "build.log").read_text()[-2000:]
    return next(path for path in map(Path, done.stdout.split()) if re.match(r"topiary-slurm[_-]\d", path.name))


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="topiary-site-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def built(folder):
    """Of each kind the package with the plugins, for the prefix."""
    return functools.cache(lambda kind: build(kind, folder / kind))


class Deb:
    """To unpack is what runs the script; the rest of topiary-slurm's dependencies are not on this host."""

    def __init__(self, host):
        self.host = host

    def install(self, package):
        shutil.copy(package, self.host.path("/root/packages"))
        return self.host.run(f"dpkg --unpack {package.name}", check=False)

    def is_installed(self):
        return "unpacked" in self.host.run("dpkg-query -W -f '${Status}' topiary-slurm", check=False).stdout

    def remove(self):
        self.host.run("dpkg --purge topiary-slurm")


class Rpm:
    def __init__(self, host):
        self.host = host

    def install(self, package):
        return self.host.rpm("-i", "--nodeps", package, check=False)

    def is_installed(self):
        return self.host.rpm("-q", "topiary-slurm", check=False).returncode == 0

    def remove(self):
        self.host.rpm("-e", "topiary-slurm")


@pytest.mark.parametrize("kind, tool", [("deb", Deb), ("rpm", Rpm)])
def test_prefix_that_is_no_package_is_compared(host, built, kind, tool):
    package, tool = built(kind), tool(host)
    slurmd = host.path(f"{PREFIX}/sbin/slurmd")
    slurmd.parent.mkdir(parents=True, exist_ok=True)

    said = tool.install(package)
    assert f"{PREFIX}/sbin/slurmd does not run here: whether it is of Slurm {VERSION} was not checked" in said.stderr
    assert tool.is_installed()
    tool.remove()

    # The host's own, of Debian.
    slurmd.symlink_to("/usr/sbin/slurmd")
    other = host.says("slurmd -V")
    said = tool.install(package)
    assert said.returncode and not tool.is_installed()
    assert f"topiary-slurm: not installed: its plugins are for Slurm {VERSION}, and {PREFIX} has {other}" in said.stderr

    slurmd.unlink()
    shutil.copy(PREFIX / "sbin/slurmd", slurmd)
    library = re.search(r"libslurmfull\.so => (\S+)",
                        subprocess.run(["ldd", slurmd], capture_output=True, text=True, check=True).stdout)[1]
    host.path(library).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(library, host.path(library))
    said = tool.install(package)
    assert tool.is_installed() and "not checked" not in said.stderr, said
    tool.remove()
    slurmd.unlink()


def test_rpmlint_finds_nothing(built):
    packages = list(built("rpm").parent.glob("*.rpm"))
    said = subprocess.run(["rpmlint", "-c", ROOT / "packaging/rpm/rpmlint.toml", *packages], capture_output=True,
                          text=True, check=False, timeout=120)
    assert " 0 errors, 0 warnings" in said.stdout, said.stdout


def package_of_slurm(folder, prefix, version):
    """slurm-smd, the name that upstream's debian/ gives to the package with the plugins, of the real plugins in the
    prefix."""
    tree = folder / f"tree-{version}"
    shutil.copytree(prefix, tree / prefix.relative_to("/"), symlinks=True)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(f"Package: slurm-smd\nVersion: {version}\nArchitecture: amd64\nMaintainer: a "
                                         "site\nDescription: Slurm\n")
    file = folder / f"slurm-smd_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree, file], check=True,
                   capture_output=True)
    return file


def test_package_of_the_sites_slurm_is_required_to_the_micro_release(host, folder):
    prefix = folder / "slurm"
    libraries = [f"lib/{path.name}" for path in (PREFIX / "lib").glob("libslurm.so*")]
    for name in ("include", *libraries, "lib/slurm/select_cons_tres.so"):
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (PREFIX / name).is_dir() else shutil.copy)(PREFIX / name, prefix / name)
    right, wrong = (package_of_slurm(folder, prefix, f"{VERSION}-{revision}") for revision in (2, 1))
    for name in ("upper", "work"):
        (folder / name).mkdir()
    package = build("deb", folder / "smd", prefix, before=["unshare", "--mount", "sh", "-ec", OWN_DPKG, folder, right])
    assert f"slurm-smd (= {VERSION}-2)" in subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True,
                                                          text=True, check=True).stdout

    shutil.copy(package, host.path("/root/packages"))
    shutil.copy(wrong, host.path("/root/packages"))
    host.run(f"dpkg -i {wrong.name}")
    said = host.run(f"dpkg -i {package.name}", check=False)
    assert said.returncode and f"topiary-slurm depends on slurm-smd (= {VERSION}-2); however:" in said.stderr
    assert f"Version of slurm-smd on system is {VERSION}-1." in said.stderr
    host.run("dpkg --purge topiary-slurm slurm-smd")


def test_machine_without_that_slurm_says_so(tmp_path):
    said = subprocess.run([ROOT / "packaging/make-deb", tmp_path / "out"], capture_output=True, text=True,
                          check=False, timeout=60,
                          env=os.environ | {"SLURM_SRC": f"{HOME}/source", "SLURM_PREFIX": str(tmp_path)})
    assert said.returncode == 1 and f"make-deb: {tmp_path}: no Slurm is installed there" in said.stderr
