# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What is named as a source of Slurm and is none, or not the installed one, costs one line that says so."""
import os
import tarfile

import pytest
from rig.command import run
from rig.paths import ROOT

META = "  Meta: 1\n  Name:\tslurm\n  Version:\t25.11.4\n"
pytestmark = pytest.mark.slow


def tree(folder, **files):
    for name, text in files.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
    return folder


def no_slurm(folder):
    return tree(folder, README="a tree of something else"), "not a source of Slurm: it has no META of it"


def no_configure(folder):
    return tree(folder, META=META), "it has no configure"


def cut_short(folder):
    with tarfile.open(folder / "slurm.tar.gz", "w:gz") as archive:
        archive.add(tree(folder, META=META, configure=os.urandom(100000).hex()) / "configure",
                    "slurm-25.11.4/configure")
    whole = (folder / "slurm.tar.gz").read_bytes()
    (folder / "slurm.tar.gz").write_bytes(whole[:len(whole) // 2])
    return folder / "slurm.tar.gz", "nor a tarball that is whole"


def nothing(folder):
    return folder / "slurm-99.11.tar.bz2", "no such tree or tarball"


@pytest.mark.parametrize("make", [no_slurm, no_configure, cut_short, nothing])
def test_what_is_no_source_is_refused_in_one_line_and_leaves_nothing(tmp_path, make):
    (tmp_path / "source").mkdir()
    source, why = make(tmp_path / "source")
    done = run(ROOT / "packaging/slurm-from-source", source, env=os.environ | {"CACHE": str(tmp_path / "cache")})
    lines = [line for line in done.stderr.split("\n") if line and "the log is" not in line]
    assert (done.returncode, done.stdout, len(lines)) == (1, "", 1), done
    assert lines[0].startswith(f"slurm-from-source: {source}: ") and why in lines[0]
    assert not [path for path in (tmp_path / "cache/slurm").iterdir() if path.suffix != ".log"]


WHOLE = {"META": META, "src/common/slurm_xlator.h": "",
         "slurm/slurm_version.h": "#define SLURM_VERSION_NUMBER 0x190b04\n"}
# {what the tree lacks: what is said of it}
LACKS = {"META": "no source of Slurm: it has no META",
         "src/common/slurm_xlator.h": "it has no internal headers below src",
         "slurm/slurm_version.h": "it is not configured: run ./configure in it",
         None: "are of different micro releases (0x190b04 and 0x190b07"}


@pytest.mark.parametrize("lacks", LACKS)
@pytest.mark.parametrize("installed", ["0x190b07", None])
def test_source_that_the_plugins_cannot_be_built_with_is_one_line(tmp_path, lacks, installed):
    for name in WHOLE.keys() - {lacks}:
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(WHOLE[name])
    version = tmp_path / "prefix/include/slurm/slurm_version.h"
    version.parent.mkdir(parents=True)
    if installed:
        version.write_text(f"#define SLURM_VERSION_NUMBER {installed}\n")
    done = run("make", "-C", ROOT, "--no-print-directory", f"BUILD={tmp_path}/build", f"SLURM_SRC={tmp_path}/source",
               f"SLURM_PREFIX={tmp_path}/prefix", f"{tmp_path}/build/obj/select_plugin/hooks.o",
               env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"})
    said = LACKS[lacks] if installed or lacks else f"no Slurm is installed in {tmp_path}/prefix: {version} is not there"
    assert done.returncode and done.stderr.count("\n") == 1, done.stderr
    assert f"SLURM_SRC={tmp_path}/source: " in done.stderr and said in done.stderr, done.stderr
