# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A machine that packaging/setup prepared has all that the packages are built with."""
import re
import shutil
import subprocess

from rig.paths import ROOT


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
    told = re.search(r"^printf '%s\\n' (.*) > /etc/slurm/topiary.conf$", (ROOT / "README.md").read_text(),
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
