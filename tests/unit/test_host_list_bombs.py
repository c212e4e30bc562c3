# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Host lists of a few bytes that stand for a million names, in every file and every option that takes one: bounded
memory and time."""
import itertools
import subprocess

import pytest
from rig.command import topiary
from rig.limits import limits

LETTERS = "a" * 235
BOMBS = {
    "long names": f"{LETTERS}[0-999999]",
    "a suffix": f"{LETTERS}[0-999999]-ib",
    "more than a million": ",".join(f"x{i}[0-99999]" for i in range(200)),
    "doubles": ",".join(["zz[0-999]"] * 2000),
    "rows of brackets": "n" + "[0-99]" * 60,
}
SHAPE = "shape S Package:2 [NUMANode] L3Cache:1 Core:4 PU:2"
RECORD = "JobID|Submit|Eligible|Start|End|AllocNodes|AllocCPUS|NTasks|NodeList\n1|1|1|1|2|1|1|1|{}\n"
MEMORY = 512 << 20  # bytes of address space


def files(folder, bomb):
    """Those that are read beside the bomb, and those that have it: in one line, and in many of which each alone could
    be taken."""
    def put(name, *lines):
        (folder / name).write_text("\n".join([*lines, ""]))
    put("snapshot", "topiary-snapshot 1", SHAPE, "nodes cn[1-4] S", "end")
    put("one", "topiary-snapshot 1", SHAPE, f"nodes {bomb} S", "end")
    put("many", "topiary-snapshot 1", SHAPE, *(f"nodes {LETTERS[:200]}{i}[0-99999] S" for i in range(100)), "end")
    put("topology.conf", f"SwitchName=s Nodes={bomb}")
    put("many.conf", *(f"SwitchName=s{i} Nodes={LETTERS[:200]}{i}[0-99999]" for i in range(100)))
    put("small.conf", "SwitchName=s Nodes=cn[1-4]")
    put("ring", "0 1\n1 0")
    put("jobs", RECORD.format(bomb))
    put("few", RECORD.format("cn1"))
    subprocess.run(["lstopo-no-graphics", "--input", "Package:2 Core:2 PU:1", "--of", "xml", "-f", folder / "cn.xml"],
                   check=True)


COMMANDS = {
    "map --nodes": "map --snapshot=snapshot --nodes={} --matrix=ring",
    "map, snapshot": "map --snapshot=one --nodes=cn1 --matrix=ring",
    "map, long snapshot": "map --snapshot=many --nodes=cn1 --matrix=ring",
    "map, network": "map --snapshot=snapshot --arch=topology.conf --nodes=cn1 --matrix=ring",
    "map --topology": "map --snapshot=snapshot --nodes=cn1 --format=intelmpi --topology={}=cn.xml "
    "--url=http://127.0.0.1:1 --matrix=ring",
    "snapshot --offline": "snapshot --offline {}=cn.xml",
    "snapshot --offline, many": "snapshot --offline "
    + " ".join(f"{LETTERS[:200]}{i}[0-99999]=cn.xml" for i in range(40)),
    "fabric": "fabric export --format=slurm topology.conf",
    "fabric, many lines": "fabric export --format=slurm many.conf",
    "fabric --nodes": "fabric export --format=slurm --nodes={} small.conf",
    "replay, snapshot": "replay --snapshot=one few", "replay, long snapshot": "replay --snapshot=many few",
    "replay, jobs": "replay --snapshot=snapshot jobs",
}

# All of them expand lists by one function, of which test_snapshot.c has the values: each command has one of the bombs.
@pytest.mark.parametrize("command, bomb", zip(COMMANDS, itertools.cycle(BOMBS)))
def test_host_list_bombs(tmp_path, command, bomb):
    """Refused in one line that does not speak of memory."""
    files(tmp_path, BOMBS[bomb])
    done = topiary(*(word.format(BOMBS[bomb]) for word in COMMANDS[command].split()), cwd=tmp_path,
                   preexec_fn=limits(MEMORY, cpu=20), timeout=300)
    assert done.returncode == 1, (done.returncode, done.stderr[:400])
    assert done.stderr.count("\n") == 1 and "memory" not in done.stderr, done.stderr[:400]
