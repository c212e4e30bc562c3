# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What tools/lint finds, in a small tree of its own; what tools/compile-commands makes of make's output."""
import json
import re
import shutil
import subprocess

import pytest
from rig.paths import ROOT

HEAD = "/* SPDX-License-Identifier: GPL-2.0-or-later */\n"
PAGE = ".Dd $Mdocdate$\n.Dt X 8\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Sh DESCRIPTION\n"
# Each word that the table of tools/lint lists for a header is one of the header.
OWN = re.search(r"^cli/place/place\.h\t+(.*)$", (ROOT / "tools/lint").read_text(), re.M)[1].split()
PLACE = "".join(f"void {word}_x(void);\n" for word in OWN)
CLEAN = {
    "lib/base/settings.c": HEAD,
    "lib/map/wide.c": HEAD + "static int wide;\t/*" + "x" * 92 + "*/\n",
    "lib/base/a.h": HEAD + "struct a {\n\tint x;\n};\n",
    "lib/map/b.h": HEAD + "struct b {\n\tstruct a *a;\n};\nstruct a;\n",
    "lib/map/many_parts.h": HEAD
    + "struct many;\nenum many_s { A };\nstruct map_x {\n\tint x;\n};\ntypedef int many_fn(int n);\n",
    "cli/place/place.h": HEAD + PLACE, "docs/x.8": PAGE,
    "docs/topiary.conf.5": PAGE.replace("X 8", "X 5"),
    "tests/x.py": "# SPDX-License-Identifier: GPL-2.0-or-later\n\n\ndef test_x():\n    pass\n",
    "Makefile": "smoke-names:\n\t@echo tests/x.py tests/x.py::test_x\n",
}


def lint(folder, more=None):
    for name, text in {**CLEAN, **(more or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tools").mkdir()
    for name in ("lint", "house", "budgets"):
        shutil.copy(ROOT / "tools" / name, folder / "tools")
    subprocess.run(["git", "init", "-q", folder], check=True)
    done = subprocess.run([folder / "tools/lint"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_clean_tree_is_clean(tmp_path):
    assert lint(tmp_path) == (0, "lint: clean\n")


FINDINGS = [
    ("lib/map/a.h", HEAD + "struct a {\n\tint y;\n};\n",
     "lint: lib/map/a.h:2: struct a is also defined at lib/base/a.h:2"),
    ("lib/map/a.h", HEAD + "enum a { A };\n", "lint: lib/map/a.h:2: enum a is also defined at lib/base/a.h:2"),
    ("lib/map/b_parts.h", HEAD + "struct b_c {\n\tunion b {\n\t\tint y;\n\t} b;\n};\n",
     "lint: lib/map/b_parts.h:3: union b is also defined at lib/map/b.h:2"),
    ("lib/map/c.h", HEAD + "struct d {\n\tint y;\n};\n",
     "lint: lib/map/c.h:2: struct d begins with no word of the file or folder name"),
    ("lib/map/c.h", HEAD + "struct c {\n\tenum d { C } d;\n};\n",
     "lint: lib/map/c.h:3: enum d begins with no word of the file or folder name"),
    ("lib/map/c.h", HEAD + "struct cd;\nstruct cd {\n\tint y;\n};\n",
     "lint: lib/map/c.h:3: struct cd begins with no word of the file or folder name"),
    ("lib/map/c.h", HEAD + "typedef int d_fn(struct c *c);\n",
     "lint: lib/map/c.h:2: typedef d_fn begins with no word of the file or folder name"),
    ("lib/map/c.h", HEAD + "typedef int (*d)(void);\n",
     "lint: lib/map/c.h:2: typedef d begins with no word of the file or folder name"),
    ("lib/map/c.h", HEAD + "typedef const unsigned d;\n",
     "lint: lib/map/c.h:2: typedef d begins with no word of the file or folder name"),
    ("cli/place/place.h", HEAD + PLACE.replace("job", "place"),
     "lint: tools/lint: cli/place/place.h has no type or function job"),
    ("x.c", HEAD + "\t" * 15 + "x\n", "lint: x.c:2: 121 columns, 120 are allowed"),
    ("bench/x.py", f"{HEAD[:-1]}{'x' * (121 - len(HEAD[:-1]))}\n", "lint: bench/x.py:1: 121 columns, 120 are allowed"),
    ("tests/unit/x.py", "# SPDX-License-Identifier: GPL-2.0-or-later \n", "lint: tests/unit/x.py:1: trailing space"),
    ("lib/base/x.c", HEAD + "\t" * 15 + "x\n", "lint: lib/base/x.c:2: 121 columns, 120 are allowed"),
    ("x.c", HEAD + "x" * 119 + "\ty\n", "lint: x.c:2: 121 columns, 120 are allowed"),
    ("x.c", HEAD + "int x; \n", "lint: x.c:2: trailing space"),
    ("x.c", "int x;\n", "lint: x.c: no SPDX line"),
    ("lib/base/c.h", HEAD + '#include "map/b.h"\n', "lint: lib/base/c.h:2: lib/base may not include map/"),
    ("bench/y.py", f"{HEAD.replace('/*', '#', 1)}print(x)\n", "lint: bench/y.py:2:7: undefined name 'x'"),
    ("Makefile", CLEAN["Makefile"].replace("::test_x", "::test_y"),
     "lint: tests/cluster/room.mk: no tests/x.py::test_y"),
    ("lib/map/c.h", HEAD + "/* lib/map/b.h, map/b.h and lib/map/no.c */\n",
     "lint: lib/map/c.h:2: there is no lib/map/no.c"),
    ("lib/map/c.h", HEAD + "#ifndef TOPIARY_MAP_D_H\n", "lint: lib/map/c.h: its guard is TOPIARY_MAP_D_H"),
    ("docs/y.8", PAGE.replace(".Nm x\n", ""), "lint: docs/y.8:"),
]


def trees(rows):
    """As few trees as there are rows of one file: each file has one text in a tree."""
    while rows:
        tree = {}
        for name, text, finding in rows:
            tree.setdefault(name, (text, finding))
        rows = [row for row in rows if tree[row[0]] != row[1:]]
        yield tree


@pytest.mark.slow
def test_findings_are_reported(tmp_path):
    for number, tree in enumerate(trees(FINDINGS)):
        status, told = lint(tmp_path / str(number), {name: text for name, (text, _) in tree.items()})
        left = told.splitlines()
        for _, finding in tree.values():
            assert status == 1 and any(line.startswith(finding) for line in left), (finding, told)
            left = [line for line in left if not line.startswith(finding)]
        assert not left


def commands(text):
    return subprocess.run([ROOT / "tools/compile-commands"], input=text, capture_output=True, text=True, check=False)


def test_compilation_database_has_each_source_once():
    told = commands("mkdir -p build\ncc -Ilib -DV='\"1\"' -c -o build/a.o lib/a.c\nclang-14 -c -o "
                    "build/fuzz/a.o lib/a.c\n"
                    "ar rcs a.a build/a.o\n/usr/bin/mpicc -shared \\\n\t-o b.so.new lib/b.c lib/c.c && "
                    "mv b.so.new b.so\ncc -o a build/a.o\n")
    found = {entry["file"]: entry["command"] for entry in json.loads(told.stdout)}
    assert found == {"lib/a.c": "cc -Ilib -DV='\"1\"' -c -o build/a.o lib/a.c",
                     "lib/b.c": "/usr/bin/mpicc -shared  \t-o b.so.new lib/b.c lib/c.c",
                     "lib/c.c": "/usr/bin/mpicc -shared  \t-o b.so.new lib/b.c lib/c.c"}


def test_no_compiler_call_is_an_error():
    told = commands("make: Nothing to be done for 'all'.\n")
    assert told.returncode == 1 and "no compiler call" in told.stderr
