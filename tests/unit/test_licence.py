# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What is loaded into users' programs is made of files under a permissive licence only: the linker and the compiler say
of which."""
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOPIARY_BUILD", ROOT / "build"))


def linked():
    """The objects in libtopiary.so: its own, and those that the linker took from the archives."""
    text = (BUILD / "libtopiary.so.0.map").read_text()
    own = re.findall(r"^LOAD \S*obj/(lib/\S+)\.o$", text, re.M)
    return own + [f"lib/{room}/{name}"
                  for room, name in re.findall(r"^\S*libtopiary-(\w+)\.a\((\w+)\.o\)$", text, re.M)]


def compiled(stem):
    """All of our files that one object is made of."""
    text = (BUILD / "obj" / f"{stem}.d").read_text()
    return {name for name in re.findall(r"[^\s:\\]+", text) if name.startswith("lib/")}


def recorders():
    return [str(path.relative_to(ROOT)) for folder in ("capture", "phase")
            for path in sorted((ROOT / "lib" / folder).glob("*.[chf]*"))]


def test_libtopiary_is_permissive():
    objects = linked()
    assert {"lib/app/load", "lib/hwview/image"} <= set(objects)
    files = set().union(*map(compiled, objects))
    assert [f for f in sorted(files) if licence(f) != "BSD-3-Clause"] == []


@pytest.mark.parametrize("file", recorders())
def test_recorder_is_permissive(file):
    assert licence(file) == "BSD-3-Clause"
    ours = re.findall(r'^#include "([^"]+)"', (ROOT / file).read_text(), re.M)
    found = [path for name in ours for path in ((ROOT / file).parent / name, ROOT / "lib" / name) if path.exists()]
    assert len(found) == len(ours)
    assert all(licence(path) == "BSD-3-Clause" for path in found)


def licence(file):
    return re.search(r"SPDX-License-Identifier: (\S+)", (ROOT / file).read_text()).group(1)
