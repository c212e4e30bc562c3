# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A machine that packaging/setup prepared has all that the packages are built with."""
import os
import re
import shutil
import subprocess

import pytest
from rig.command import run
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


def test_lines_of_documents_may_be_repeated():
    """What they append or create, they look for before."""
    for name in ("README.md", "docs/admin-guide.md"):
        text = (ROOT / name).read_text().replace("||\n", "||")
        lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)).split("\n")
        assert not [line for line in lines if re.search(r">>|createuser|createdb", line) and "||" not in line], name


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


def test_installed_migrations_are_those_of_this_version(tmp_path):
    """topiaryd would apply one that an older version left there."""
    folder = tmp_path / "usr/share/topiary/sql"
    folder.mkdir(parents=True)
    for name in ("0004_identity.sql", "site.sql"):
        (folder / name).touch()
    run("make", "-o", "all", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr", status=0, cwd=ROOT)
    assert {path.name for path in folder.iterdir()} == {path.name for path in ROOT.glob("sql/*.sql")} | {"site.sql"}


def test_flags_of_packages_reach_every_object():
    made = run("make", "-nB", "V=1", "BUILD=x", "CPPFLAGS=-DOF_CPPFLAGS", "CFLAGS=-DOF_CFLAGS", "x/topiary-monitor",
               "x/libtopiary-capture.so", status=0, cwd=ROOT).stdout.replace("\\\n", "")
    compiled = [line for line in made.split("\n") if " -std=gnu11 " in line]
    assert len(compiled) > 20 and [line for line in compiled if "libtopiary-capture.so" in line]
    assert not [line for line in compiled if "-DOF_CPPFLAGS" not in line or "-DOF_CFLAGS" not in line]


def test_programs_bind_now_and_plugins_lazily():
    def binds_now(path):
        return "NOW" in run("readelf", "-dW", path, status=0).stdout
    assert {name for name in ("topiary", "topiaryd", "topiary-agent", "topiary-monitor")
            if not binds_now(BUILD / name)} == set()
    assert not [path for path in (BUILD / "slurm").glob("*.so") if binds_now(path)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("hook", ["enroot", "apptainer", None])
def test_container_has_the_step_directory(hook, tmp_path):
    """As enroot and Apptainer mount it: by a line of a table, and by a configured path."""
    step, root, mounts = tmp_path / "run/7.0", tmp_path / "root", tmp_path / "mounts"
    step.mkdir(parents=True)
    (step / "topology.xml").write_text("<topology/>")
    paths = [d for d in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(d)]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ENROOT_MOUNTS": str(mounts), "SLURM_JOB_ID": "7",
           "TOPIARY_STEP_DIR": str(step)}
    examples, lines = ROOT / "packaging/examples", ""
    if hook == "enroot":
        subprocess.run([examples / "enroot-hook"], env={**env, "SLURM_JOB_ID": ""}, check=True)
        assert not mounts.exists(), "outside of jobs nothing is mounted"
        subprocess.run([examples / "enroot-hook"], env=env, check=True)
        lines = mounts.read_text()
        source, target, kind, options = lines.split()
        assert (source, target, kind) == (str(step.parent),) * 2 + ("none",) and {"bind", "ro"} <= {*options.split(",")}
    elif hook == "apptainer":
        assert "\nbind path = /run/topiary\n" in (examples / "apptainer.conf").read_text()
        lines = f"{step.parent} {step.parent} none bind\n"
    for path in paths:
        (root / path[1:]).mkdir(parents=True)
    script = "".join(f"mount --bind {p} {root}{p}\n" for p in paths)
    for line in lines.splitlines():
        source, target = line.split()[:2]
        script += f"mkdir -p {root}{target}\nmount --bind {source} {root}{target}\n"
    script += f"exec chroot {root} cat {step}/topology.xml"
    done = run("unshare", "-m", "sh", "-ec", script, env=env)
    assert done.stdout == "<topology/>" if hook else f"{step}/topology.xml: No such file" in done.stderr, done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("line, stays", [("optional /x/spank_topiary.so", True), ("# optional spank_topiary", False)])
def test_plugins_stay_while_a_configless_host_names_them(line, stays, tmp_path):
    """slurmd's copy of the controller's files is all that such a host has."""
    script = tmp_path / "prerm"
    script.write_text((ROOT / "packaging/debian/topiary-slurm.prerm").read_text().replace("#DEBHELPER#", ""))
    command = ("mount -t tmpfs none /run; mkdir -p /run/slurm/conf; echo \"$1\" > /run/slurm/conf/plugstack.conf; "
               "exec sh \"$2\" remove")
    done = run("unshare", "-m", "sh", "-ec", command, "sh", line, script)
    assert done.returncode == stays and ("/run/slurm/conf/plugstack.conf still names it" in done.stderr) == stays, done
