# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Each step sees the hardware that it was given, and no other."""
import os
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import Cluster, MachineError, os_indexes
from rig.ask import cores_of, expand, hwloc_cpus
from rig.cluster import JOB_USER
from rig.node import configured, little_room, log_of, preloaded
from rig.paths import ROOT

SHOW = "cat $HWLOC_XMLFILE"
FILES = "stat -c %n:%i:%a:%U $TOPIARY_STEP_DIR/topology.shm $TOPIARY_STEP_DIR/topology.xml"
OURS = ("HWLOC_XMLFILE", "HWLOC_FORCE_FSROOT", "HWLOC_THISSYSTEM", "HWLOC_LIBXML_IMPORT", "HWLOC_PLUGINS_PATH")
TELL = "env | grep ^HWLOC_ | sort"
MOST_IMAGES = 512


def export(cluster, node):
    return cluster.topology_file(node)


def cache(cluster, node):
    return cluster.folder / "nodes" / node / "run" / "cache"


def run(cluster, script, *options, **more):
    number, state, output = cluster.job(script, *options, **more)
    assert state == "COMPLETED", output
    return number, output


def inodes(output):
    """{name: inode} of a step's files."""
    return {Path(line.split(":")[0]).name: int(line.split(":")[1]) for line in output.split("\n")[:-1]}


@pytest.fixture(scope="module")
def adopt(whole):
    """A program that asks libtopiary."""
    for name in ("tests/adopt", "libtopiary.so.0"):
        shutil.copy(whole.build / name, whole.folder / "bin")
    return whole.folder / "bin" / "adopt"


@pytest.mark.parametrize("node, tasks",
                         [("cn1", 6), ("cn3", 5), ("cn4", 12), ("cn5", 1)])
def test_batch_step_has_its_cores_only(cluster, node, tasks):
    number, state, output = cluster.job(SHOW, "-w", node, f"--ntasks={tasks}", "-N1")
    cores = cores_of(cluster, number)[node]
    assert state == "COMPLETED", output
    assert os_indexes(output) == hwloc_cpus(export(cluster, node), [f"core:{c}" for c in cores])
    assert not (cluster.folder / "nodes" / node / "run" / f"{number}.batch").exists()


def test_step_on_each_node_has_that_nodes(cluster):
    script = ('srun -l sh -c \'for f in $HWLOC_XMLFILE; do grep -o "HostName.*value=\\"[^\\"]*" $f; '
              'lstopo-no-graphics --only PU -p; done\'')
    number, state, output = cluster.job(script, "-w", "cn1,cn2", "-N2", "--ntasks=2", "--ntasks-per-node=1")
    assert state == "COMPLETED", output
    for task, node in enumerate(("cn1", "cn2")):
        mine = [line.split(": ", 1)[1] for line in output.split("\n") if line.startswith(f"{task}: ")]
        cpus = hwloc_cpus(export(cluster, node), [f"core:{c}" for c in cores_of(cluster, number)[node]])
        assert mine[0].endswith(f'"{node}')
        assert mine[1:] == [f"PU P#{cpu}" for cpu in cpus]


def test_restricted_topology_keeps_local_devices(cluster):
    output = cluster.output("lstopo-no-graphics --only PCI | wc -l", "-w", "cn3", "--ntasks=8", "-N1")
    assert int(output) > 0, output


def test_environment_names_the_topology_and_its_quickest_reader(cluster):
    _, output = run(cluster, f"echo $TOPIARY_STEP_DIR; {TELL}", "-w", "cn1", "-n1")
    folder, *told = output.split("\n")[:-1]
    # The first is for hwloc 1, which cannot read the file and looks at this before: it discovers as without us.
    assert told == ["HWLOC_FORCE_FSROOT=/", "HWLOC_LIBXML_IMPORT=0", "HWLOC_PLUGINS_PATH=", "HWLOC_THISSYSTEM=1",
                    f"HWLOC_XMLFILE={folder}/topology.xml"]


@pytest.mark.parametrize("site, options, there", [
    ("on", [], True), ("off", [], False), ("on", ["--topo-hwloc=off"], False), ("off", ["--topo-hwloc=on"], True),
])
def test_topo_hwloc_off(cluster, site, options, there):
    with configured(cluster, f"TopoHwloc = {site}\n"):
        _, output = run(cluster, f"{TELL}; srun sh -c '{TELL}; ls $TOPIARY_STEP_DIR/topology.xml'", "-w", "cn4",
                        "-n1", *options)
    assert output.count("HWLOC_XMLFILE=") == output.count("HWLOC_FORCE_FSROOT=") == (2 if there else 0), output
    assert output.endswith(".0/topology.xml\n"), output


@pytest.mark.parametrize("name, value", [("HWLOC_XMLFILE", "/etc/mine.xml"), ("HWLOC_SYNTHETIC", "Core:2 PU:1"),
                                         ("HWLOC_FSROOT", "/mine"), ("HWLOC_CPUID_PATH", "/mine"),
                                         ("HWLOC_COMPONENTS", "-pci")])
def test_users_choice_of_topology_is_kept(cluster, name, value):
    _, output = run(cluster, "env", "-w", "cn1", "-n1", variables={name: value})
    told = dict(line.split("=", 1) for line in output.split("\n") if line.startswith("HWLOC_"))
    told.pop("HWLOC_THISSYSTEM")    # the rig's own
    assert told == {name: value}


@pytest.mark.parametrize("name, value", [("HWLOC_PLUGINS_PATH", "/mine"), ("HWLOC_LIBXML_IMPORT", "1")])
def test_users_choice_of_reader_is_kept(cluster, name, value):
    _, output = run(cluster, TELL, "-w", "cn1", "-n1", variables={name: value})
    told = dict(line.split("=", 1) for line in output.split("\n")[:-1])
    assert told.pop(name) == value
    assert set(told) == set(OURS) - {name}


def test_step_inside_a_step_has_its_own_topology(cluster):
    """What the step around it was told goes, what the user set or changed there stays."""
    script = ("export HWLOC_LIBXML_IMPORT=1 HWLOC_HIDE_ERRORS=1\n"
              f"srun -n1 --mem=1 sh -c 'echo $TOPIARY_STEP_DIR; {TELL}; srun --overlap -n1 --mem=1 sh -c \"{TELL}\"'")
    number, output = run(cluster, script, "-w", "cn1", "-n2")
    folder, *told = output.split("\n")[:-1]
    assert folder.endswith(f"/{number}.0")
    outer, inner = told[:6], told[6:]
    assert outer == ["HWLOC_FORCE_FSROOT=/", "HWLOC_HIDE_ERRORS=1", "HWLOC_LIBXML_IMPORT=1", "HWLOC_PLUGINS_PATH=",
                     "HWLOC_THISSYSTEM=1", f"HWLOC_XMLFILE={folder}/topology.xml"]
    assert inner == [*outer[:5], f"HWLOC_XMLFILE={folder[:-1]}1/topology.xml"]


@pytest.mark.parametrize("node, tasks", [("cn1", 6), ("cn3", 16), ("cn4", 3)])
def test_program_adopts_the_image(cluster, adopt, node, tasks):
    number, output = run(cluster, f"srun -n2 --overlap {adopt}; {adopt}", "-w", node, f"--ntasks={tasks}", "-N1")
    cpus = hwloc_cpus(export(cluster, node), [f"core:{c}" for c in cores_of(cluster, number)[node]])
    told = [line.split() for line in output.split("\n")[:-1]]
    assert [line[:2] for line in told] == [["shmem", "1"]] * 3, output
    assert expand(told[2][2]) == cpus


def test_steps_with_the_same_cores_share_one_image(cluster):
    """Of the same job and of a later one; other cores have another."""
    whole = ("-w", "cn1", "--ntasks=64", "-N1")
    first, later = (run(cluster, f"{FILES}; srun -n1 -N1 --overlap -c64 sh -c \"{FILES}\"", *whole)[1]
                    for _ in range(2))
    half = inodes(first[:len(first) // 2])
    assert set(half) == {"topology.xml", "topology.shm"}
    for output in (first, later):
        told = [line.split(":") for line in output.split("\n")[:-1]]
        assert {(Path(name).name, int(inode)) for name, inode, *_ in told} == set(half.items())
        assert {(mode, owner) for _, _, mode, owner in told} == {("644", "root")}
    other = inodes(run(cluster, FILES, "-w", "cn1", "--ntasks=3", "-N1")[1])
    assert not set(other.values()) & set(half.values())
    kept = cache(cluster, "cn1")
    assert (kept.stat().st_uid, kept.stat().st_mode & 0o777) == (0, 0o700)
    assert {entry.stat().st_ino for entry in kept.iterdir()} >= set(half.values()) | set(other.values())


def test_topology_of_the_whole_node_remains_available(cluster):
    count = "lstopo-no-graphics --input $TOPIARY_STEP_DIR/node/topology.xml --only PU | wc -l"
    _, output = run(cluster, f"srun -n1 --topo-nic=auto sh -c '{count}'; {FILES} | wc -l; "
                    "test -e $TOPIARY_STEP_DIR/node || echo none",
                    "-w", "cn3", "-n2")
    assert output.split() == ["32", "2", "none"]


@contextmanager
def exported(cluster, node, text):
    """Another export, for a while."""
    path = export(cluster, node)
    old = path.read_bytes()
    try:
        path.write_text(text)
        yield
    finally:
        path.write_bytes(old)


def test_topology_of_another_machine_is_not_bound_to(cluster, adopt):
    """cn5 is this machine, and the export is of one that has more CPUs."""
    with exported(cluster, "cn5", export(cluster, "cn1").read_text()):
        _, output = run(cluster, f"{TELL}; {adopt}", "-w", "cn5", "-n1")
    assert "HWLOC_THISSYSTEM" not in output and "HWLOC_XMLFILE" in output
    assert output.split("\n")[-2].startswith("shmem 0 ")


def test_cache_is_bounded_and_cleans_up(cluster):
    """The longest unused go, and what a crash left: half of a pair, a note that was not renamed."""
    kept = cache(cluster, "cn4")
    run(cluster, "true", "-w", "cn4", "--ntasks=5", "-N1")
    for image in [*kept.glob("*.shm"), *kept.glob("*.xml")]:    # of steps before: the next may have their cores
        image.unlink()
    old = time.time() - 3600
    made = [f"{i:064x}.{kind}" for i in range(MOST_IMAGES + 40) for kind in ("shm", "xml")]
    for i, name in enumerate([*made, f"{'f' * 64}.xml", "export.123"]):
        (kept / name).touch()
        os.utime(kept / name, (old + i, old + i))
    used = inodes(run(cluster, FILES, "-w", "cn4", "--ntasks=7", "-N1")[1])
    names = sorted(entry.name for entry in kept.iterdir())
    assert sum(name.endswith(".shm") for name in names) == sum(name.endswith(".xml") for name in names) == MOST_IMAGES
    assert not {f"{'f' * 64}.xml", "export.123", *made[:80]} & set(names)
    assert set(used.values()) <= {entry.stat().st_ino for entry in kept.iterdir()}
    for name in set(made) & set(names):
        (kept / name).unlink()


def test_missing_file_of_a_pair_is_recreated(cluster):
    """A crash in between the two links."""
    ask = (FILES, "-w", "cn4", "--ntasks=4", "-N1")
    run(cluster, *ask)
    kept = cache(cluster, "cn4")
    newest = max(kept.glob("*.shm"), key=lambda path: path.stat().st_mtime)
    newest.unlink()
    shm = inodes(run(cluster, *ask)[1])["topology.shm"]
    assert newest.stat().st_ino == shm == inodes(run(cluster, *ask)[1])["topology.shm"]


def test_many_steps_at_once(cluster):
    script = f"#!/bin/bash\nfor i in $(seq 24); do srun --exact -n1 -c1 --mem=1 sh -c '{FILES} | wc -l' & done; wait"
    _, output = run(cluster, script, "-w", "cn1", "--ntasks=24", "-N1")
    assert output.split() == ["2"] * 24


def test_full_run_dir_is_one_warning_and_stock(cluster):
    with log_of(cluster, "cn4") as log, little_room(cluster.folder / "nodes" / "cn4" / "run"):
        _, output = run(cluster, "env | grep -c -e TOPIARY_STEP_DIR -e HWLOC_XMLFILE || true", "-w", "cn4",
                        "-n2", "-N1")
    warnings = [line for line in log if "topiary: " in line]
    assert output == "0\n"
    assert len(warnings) == 1 and re.search(r"step \d+.batch runs without its topology: .*No space left",
                                            warnings[0]), warnings


def test_export_of_a_later_hwloc_is_one_warning_and_stock(cluster):
    """The plugin's hwloc 2 cannot restrict XML of hwloc 3; programs with hwloc discover by themselves."""
    file = export(cluster, "cn4")
    own = file.read_bytes()
    try:
        file.write_bytes((ROOT / "tests/data/hwloc3/amd-8x2.xml").read_bytes())
        with log_of(cluster, "cn4") as log:
            _, output = run(cluster, "env | grep -c -e TOPIARY_STEP_DIR -e HWLOC_XMLFILE; "
                            "srun -n2 hwloc-bind --get | wc -l", "-w", "cn4",
                            "-n2", "-N1", "--topo-place=compact")
    finally:
        file.write_bytes(own)
    warnings = [line for line in log if "runs without its topology" in line]
    assert re.fullmatch(r"0\ntopiary: step \d+\.0: tasks run without --topo-place: this node has no topology for "
                        r"them; .*\n2\n", output), output
    assert [re.search(r"step \d+\.(\w+) ", line).group(1) for line in warnings] == ["batch", "0"], log
    assert all("topology.xml: XML of hwloc 3, and this is hwloc 2: set ExportFormat=2" in line
               for line in warnings), warnings


def test_a_slurm_with_another_hwloc_is_one_warning_and_stock(cluster):
    """Its functions come first in slurmstepd: the plugin calls none of them with its own structures."""
    library = cluster.folder / "bin" / "other_hwloc.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, ROOT / "tests/cluster/other_hwloc.c"], check=True)
    with preloaded(cluster, "cn4", library), log_of(cluster, "cn4") as log:
        done = cluster.command(["srun", "-Q", "-w", "cn4", "-n2", "--topo-place=compact", "sh", "-c",
                                "env | grep -c -e TOPIARY_STEP_DIR -e HWLOC_XMLFILE || true"], user="nobody")
    warnings = [line for line in log if "runs without its topology" in line]
    assert len(warnings) == 1 and re.search(
        r"spank_topiary.so was built with hwloc \d, and slurmstepd has hwloc \d loaded: build Topiary with the hwloc "
        r"of Slurm$", warnings[0]), log
    assert done.stdout == "0\n0\n" and "tasks run without --topo-place: this node has no topology" in done.stderr


def test_exports_come_back_byte_for_byte(cluster):
    """What everybody may read is the node's own file; an administrator reads what the node sent, with what only its
    root can see."""
    for node in cluster.xml:
        text = export(cluster, node).read_text()
        assert cluster.topiary("show", node, "--xml", user=JOB_USER).stdout == text, node
        whole = cluster.topiary("show", node, "--xml").stdout
        assert re.sub(r"\s*<info name=\"(DMI\w*(Serial|UUID))\"[^>]*>", "",
                      whole) == re.sub(r"\s*<info name=\"(DMI\w*(Serial|UUID))\"[^>]*>", "", text)
        assert cluster.xml[node] is None or "DMIProductSerial" in whole


def test_machine_that_slurm_cannot_describe_is_refused(folders):
    with pytest.raises(MachineError, match="cn1: slurmd cannot describe this machine"):
        Cluster(folders(), {"cn1": "uneven-4x3"}, stock=True).prepare()
