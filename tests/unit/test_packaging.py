# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A machine that packaging/setup prepared has all that the packages are built with."""
import re
import shutil
import subprocess

from rig.paths import BUILD, ROOT


def words(text):
    return {re.split(r"[\s(|]", word.strip())[0] for word in text.split(",") if word.strip()}


def test_setup_brings_what_dpkg_buildpackage_asks_for():
    control = (ROOT / "packaging" / "debian" / "control").read_text()
    asked = words(re.search(r"^Build-Depends:(.*?)(?=^\S)", control, re.MULTILINE | re.DOTALL)[1])
    # dpkg-checkbuilddeps asks for this one unsaid.
    asked = {"debhelper" if name == "debhelper-compat" else name for name in asked} | {"build-essential"}
    brought = {line for line in (ROOT / "packaging" / "packages.txt").read_text().split("\n") if line
               and not line.startswith("#")}
    assert asked <= brought, asked - brought


def test_example_says_what_the_recipe_says():
    told = re.search(r"printf '%s\\n' (.*) > /etc/slurm/topiary.conf$", (ROOT / "README.md").read_text(),
                     re.MULTILINE)[1].split()
    example = (ROOT / "packaging" / "examples" / "topiary.conf").read_text().split("\n")
    assert told and set(told) <= set(example)


def test_documents_are_installed_under_their_names(tmp_path):
    """debhelper compresses others of this size, and the manuals name them without .gz."""
    shutil.copytree(ROOT / "packaging/debian", tmp_path / "debian")
    installed = tmp_path / "debian/topiary-registry/usr/share/doc/topiary"
    names = {"operations.md", "openapi.yaml", "alerts.yml", "grafana.json"}
    installed.mkdir(parents=True)
    for name in names:
        (installed / name).write_bytes(bytes(65536))
    subprocess.run(["make", "-f", "debian/rules", "override_dh_compress"], cwd=tmp_path, check=True, timeout=60)
    assert {path.name for path in installed.iterdir()} == names


def test_flags_of_packages_reach_every_object():
    made = subprocess.run(["make", "-nB", "V=1", "BUILD=x", "CPPFLAGS=-DOF_CPPFLAGS", "CFLAGS=-DOF_CFLAGS",
                           "x/topiary-monitor", "x/libtopiary-capture.so"], cwd=ROOT, capture_output=True, text=True,
                          check=True, timeout=60).stdout.replace("\\\n", "")
    compiled = [line for line in made.split("\n") if " -std=gnu11 " in line]
    assert len(compiled) > 20 and [line for line in compiled if "libtopiary-capture.so" in line]
    assert not [line for line in compiled if "-DOF_CPPFLAGS" not in line or "-DOF_CFLAGS" not in line]


def test_programs_bind_now_and_plugins_lazily():
    def binds_now(path):
        return "NOW" in subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    assert {name for name in ("topiary", "topiaryd", "topiary-agent", "topiary-monitor")
            if not binds_now(BUILD / name)} == set()
    assert not [path for path in (BUILD / "slurm").glob("*.so") if binds_now(path)]
