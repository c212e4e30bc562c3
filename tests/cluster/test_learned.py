# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""--topo-matrix=auto: the first runs of a program are recorded, later ones mapped by them, and no job is harmed."""
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from rig import mpi
from rig.node import configured
from rig.paths import BUILD, ROOT

RECORDERS = {"openmpi": BUILD / "libtopiary-capture.so", "mpich": BUILD / "libtopiary-capture-mpich.so"}
EIGHT = ("-w", "cn1", "-n8")
AUTO = "--topo-matrix=auto"
USERS = ("nobody", "daemon")
# What ranks exchange with those half of all ranks away.
FAR = ("%%MatrixMarket matrix coordinate real symmetric\n% program x\n% run 7 {0} 1\n% run 8 {0} 0\n8 8 4\n"
       "5 1 9\n6 2 9\n7 3 9\n8 4 9\n")
pytestmark = pytest.mark.skipif(not RECORDERS["openmpi"].exists(), reason="no mpicc when Topiary was built")


@pytest.fixture(scope="module")
def build(whole):
    """build(name of an MPI): a program with a build ID of its own, and how srun starts it."""
    shutil.copy(RECORDERS["openmpi"], whole.folder)

    def one(name, path=None, linked=True):
        try:
            kind = getattr(mpi, name)()
        except mpi.Missing as why:
            pytest.skip(f"NOT TESTED: {why}")
        # The rig's task prolog preloads its own in the recorder's stead, but for cn5: programs are linked with it.
        if linked and not RECORDERS[name].exists():
            pytest.skip(f"NOT TESTED: no recorder for {name}")
        kind.libs = [*(["-Wl,--no-as-needed", RECORDERS[name]] if linked else []), *kind.libs]
        path = path or whole.folder / "work" / f"app.{time.monotonic_ns()}"
        source = path.with_suffix(".c")
        source.write_text((ROOT / "tests/cluster/exchange.c").read_text() +
                          f'const char *build = "{time.monotonic_ns()}";\n')
        path.unlink(missing_ok=True)
        return kind.build(source, path)
    return one


@pytest.fixture
def home(cluster):
    """A folder of the job's user, where matrices are kept."""
    path = cluster.folder / "work" / f"home.{time.monotonic_ns()}"
    path.mkdir()
    shutil.chown(path, USERS[0])
    return path


@pytest.fixture
def run(cluster, home):
    """run(program, words...): the state and output of a job."""
    def job(program, *words, how="srun --mpi=pmix -v", options=(*EIGHT, AUTO), user=USERS[0], kept_in=home, **more):
        _, state, output = cluster.job(f"{how} {program} {' '.join(words)}", *options, user=user,
                                       variables={"HOME": kept_in, "SLURM_PMIX_TMPDIR": kept_in, **more})
        return state, output
    return job


def kept(cluster, home, user=USERS[0]):
    return json.loads(cluster.topiary("matrix", "list", "--json", user=user,
                                      env={**cluster.env(), "HOME": str(home)}).stdout)


def seed(cluster, home, program, text=None):
    """As if two runs had agreed."""
    folder = home / ".local/share/topiary/matrices"
    folder.mkdir(parents=True)
    key = cluster.command(["readelf", "-n", program]).stdout.split("Build ID: ")[1].split()[0]
    file = folder / f"8-{key}.mat"
    file.write_text(text if text is not None else FAR.format(int(time.time())))
    for path in (folder, *list(folder.parents)[:3], file):
        shutil.chown(path, USERS[0])
    return file


def said(output):
    return [line.partition("topiary: ")[2] for line in output.splitlines() if "topiary: " in line]


PLACED = "ranks placed by run {} of this program (8 ranks): "
STAY = "ranks stay where Slurm places them: "


@pytest.mark.parametrize("name, how, options", [
    ("openmpi", "srun --mpi=pmix", EIGHT), ("mpich", "srun --mpi=pmi2", ("-w", "cn1,cn2", "-N2", "-n8")),
])
def test_third_run_is_mapped_by_the_first_two(cluster, run, build, home, name, how, options):
    program = build(name)
    libraries = {"LD_LIBRARY_PATH": mpi.mpich().env["LD_LIBRARY_PATH"]} if name == "mpich" else {}
    for number in range(1, 5):
        state, output = run(program, "far", "where", how=how, options=(*options, AUTO), **libraries)
        assert state == "COMPLETED", output
        ranks = dict(re.findall(r"rank (\d) of 8 on (.*)", output))
        assert len(ranks) == 8, output
        (one,) = kept(cluster, home)
        assert (one["ranks"], one["program"], one["runs"]) == (8, str(program), min(number, 2))
        # It is recorded until two runs agree.
        assert {"recorded" in where for where in ranks.values()} == {number < 3}, output
        if number < 3:
            assert said(output) == []
            continue
        (line,) = said(output)
        assert line.startswith(PLACED.format(one["last_job"])), output
        assert re.search(r": [1-9]\d* % less communication \(bytes x distance\) than block$", line)
        assert all(ranks[str(r)] == ranks[str(r + 4)] for r in range(4)), output
    assert not list((home / ".local/share/topiary/matrices").glob("recording.*"))
    (file,) = (home / ".local/share/topiary/matrices").glob("*.mat")
    assert " msgs sent" in file.read_text()


@pytest.fixture
def run_mpich(run, build):
    """As `run`, on one node for 8 ranks, on two for 16; and the program."""
    program = build("mpich")

    def job(way, ranks):
        nodes = ("-w", "cn1,cn2", "-N2", "-n16") if ranks == 16 else EIGHT
        return run(program, way, "where", how="srun --mpi=pmi2 -v", options=(*nodes, AUTO),
                   LD_LIBRARY_PATH=mpi.mpich().env["LD_LIBRARY_PATH"])
    return job


def test_another_number_of_ranks_is_mapped_by_the_pattern(cluster, run_mpich, home):
    for _ in range(2):
        assert run_mpich("plane", 8)[0] == "COMPLETED"
    (one,) = kept(cluster, home)
    assert one["pattern"] == "2-dimensional stencil 2x4"
    for own in ("(8 ranks, 2-dimensional stencil 2x4, here 4x4)",) * 2 + ("(16 ranks)",):
        state, output = run_mpich("plane", 16)
        node = dict(re.findall(r"rank (\d+) of 16 on (cn\d)", output))
        assert state == "COMPLETED" and len(node) == 16, output
        # It is recorded all the same until its own runs are known.
        assert output.count(" recorded") == (16 if own.startswith("(8") else 0), output
        (line,) = said(output)
        last = kept(cluster, home)[own.startswith("(16")]["last_job"]
        assert re.fullmatch(re.escape(f"ranks placed by run {last} of this program {own}: ") +
                            r"[1-9]\d % less communication \(bytes x distance\) than block", line), output
        # Those that exchange much, which in Slurm's order are on both nodes.
        assert all(node[str(r)] == node[str(r + 4)] for r in range(12)), output


def test_pattern_that_a_run_contradicts_is_not_used(run_mpich):
    for _ in range(2):
        run_mpich("plane", 8)
    assert "stencil" in run_mpich("far", 16)[1]
    state, output = run_mpich("plane", 16)
    assert state == "COMPLETED" and said(output) == [
        STAY + "one run of this program is recorded, and two must agree; 8 ranks: their pattern is not that of the "
        "run that is recorded"]


@pytest.mark.parametrize("how, ranks", [("srun --mpi=pmix", 2), ("mpirun", 2)])
def test_preloaded_recorder_learns(cluster, run, build, home, how, ranks):
    """On a node as it is on a real machine."""
    state, output = run(build("openmpi", linked=False), "far", how=how, options=("-w", "cn5", f"-n{ranks}", AUTO))
    assert (state, output) == ("COMPLETED", "")
    assert [one["ranks"] for one in kept(cluster, home)] == [ranks]


@pytest.mark.parametrize("site, options, learns", [
    ("", [], False), ("TopoMatrix = auto\n", [], True), ("TopoMatrix = auto\n", ["--topo-matrix=off"], False),
    ("", ["--topo-matrix=off"], False), ("", ["--topo-matrix=auto:wide"], True),
    ("", ["--topo-matrix=Auto:wide"], True), ("", ["--topo-matrix=OFF"], False), ("TopoMatrix = Off\n", [], False),
])
def test_site_and_user_choose(cluster, home, site, options, learns):
    shutil.copy(RECORDERS["openmpi"], cluster.folder)
    with configured(cluster, site):
        _, state, output = cluster.job("env", "-w", "cn5", "-n1", *options, variables={"HOME": home})
    assert state == "COMPLETED" and said(output) == []
    names = dict(line.partition("=")[::2] for line in output.splitlines())
    assert ("TOPIARY_LEARN" in names, "TOPIARY_CAPTURE" in names) == (learns, learns)
    assert names.get("TOPIARY_LEARN_TAG", "") == ("wide" if "wide" in str(options) else "")


def test_missing_recorder_is_one_line(cluster, home):
    recorder = Path(shutil.copy(RECORDERS["openmpi"], cluster.folder))
    recorder.unlink()
    try:
        _, state, output = cluster.job("true", "-w", "cn5", "-n1", AUTO, variables={"HOME": home})
    finally:
        shutil.copy(RECORDERS["openmpi"], recorder)
    (line,) = said(output)
    assert state == "COMPLETED" and "learns nothing: no libtopiary-capture*.so in the folder above" in line


@pytest.mark.parametrize("tag", ["", "a-b", "/", "a" * 33, "a b"])
def test_impossible_tag_is_refused(cluster, tag):
    done = cluster.batch("true", f"--topo-matrix=auto:{tag}", check=False)
    assert done.returncode and "1 to 32 letters, digits and underscores" in done.stderr


def test_program_that_is_rebuilt_is_another_one(cluster, run, build, home):
    program = build("openmpi")
    seed(cluster, home, program)
    assert PLACED.format(8) in run(program, "far")[1]
    build("openmpi", program)
    state, output = run(program, "far")
    assert state == "COMPLETED"
    assert said(output) == [STAY + "no run of this program with 8 ranks is recorded yet; "
                            "no other number of ranks is recorded"]
    assert [one["runs"] for one in kept(cluster, home)] in ([1, 2], [2, 1])


def test_users_learn_apart(cluster, run, build, home):
    program = build("openmpi")
    seed(cluster, home, program)
    # Another user, whose home is the first one's by mistake: what is not the user's alone is not used.
    os.chmod(home / ".local/share/topiary/matrices", 0o755)
    state, output = run(program, "far", user=USERS[1], SLURM_PMIX_TMPDIR=f"{cluster.folder}/work")
    assert state == "COMPLETED" and len(said(output)) == 2, output
    assert all("not a directory of this user alone" in line or "auto learns nothing: " in line for line in said(output))
    assert len(kept(cluster, home)) == 1


@pytest.mark.parametrize("text, words", [
    ("", "empty"), ("\0" * 4096, "8-"), (FAR.format(1).replace("8 8 4", "99999999 99999999 4"), "8-"),
    (FAR.format(1).replace("5 1 9", "5 1 nan"), "8-"), (FAR.format(1).replace("8 8 4", "9 9 4"), "damaged"),
    (FAR.format(1).split("8 8 4")[0] + "8 8 1\n2 1 9\n", "a mapping gains 0 %"),
    (FAR.format(1).replace("% run 8 1 0", "% run 8 1 0.4"), "the last two runs of this program differ"),
    (None, "not a file of this user"), ("big", "File too large"),
])
def test_hostile_matrix_costs_the_mapping_alone(cluster, run, build, home, text, words):
    program = build("openmpi")
    file = seed(cluster, home, program, "" if text == "big" else text)
    if text is None:
        file.rename(home / "elsewhere")
        file.symlink_to(home / "elsewhere")
    if text == "big":
        os.truncate(file, 1 << 40)
    state, output = run(program, "far", "where")
    assert state == "COMPLETED" and output.count(" of 8 on cn1") == 8, output
    assert words in said(output)[0] and said(output)[0].startswith(STAY), output


def test_full_quota_is_one_line(cluster, run, build, full_disk):
    state, output = run(build("openmpi"), "far", kept_in=full_disk, how="srun --mpi=pmix",
                        SLURM_PMIX_TMPDIR=f"{cluster.folder}/work")
    assert state == "COMPLETED" and len(said(output)) == 1 and "could not write" in output, output


def test_ranks_that_crash_teach_nothing(cluster, run, build, home):
    state, output = run(build("openmpi"), "far", "kill", how="srun --mpi=pmix")
    assert state == "FAILED" and kept(cluster, home) == []
    assert len(said(output)) == 1 and "not learned" in output, output


def test_program_that_spawns_is_not_learned_in_one_line(cluster, run, build, home):
    program = build("openmpi")
    state, output = run(program, "far", "spawn", how="mpirun --oversubscribe", OMPI_MCA_btl="self,tcp",
                        OMPI_MCA_btl_tcp_if_include="lo")
    assert state == "COMPLETED" and kept(cluster, home) == [], output
    (line,) = said(output)
    assert re.fullmatch(rf"job \d+: {program}: not learned: it starts processes by MPI_Comm_spawn, .*", line)


def test_other_nodes_are_mapped_as_they_are(cluster, run, build, home):
    """What was recorded on one kind of node is mapped onto another."""
    program = build("openmpi")
    seed(cluster, home, program)
    for node in ("cn3", "cn4"):
        state, output = run(program, "far", "where", options=("-w", node, "-n8", AUTO))
        assert state == "COMPLETED" and output.count(f" of 8 on {node}") == 8, output
        assert len(said(output)) == 1 and said(output)[0].startswith((PLACED.format(8), STAY + "a mapping gains"))


@pytest.mark.parametrize("how, words", [
    ("srun --mpi=pmix -v -n4", "--ntasks=4, but the job has 8"),
    ("srun --mpi=pmix -v -m cyclic", "--distribution changes"), ("srun --mpi=pmix -v env", "no run of this program"),
])
def test_srun_that_is_not_the_whole_job_is_not_mapped(cluster, run, build, home, how, words):
    program = build("openmpi")
    seed(cluster, home, program)
    state, output = run(program, "far", how=how)
    assert state == "COMPLETED" and len(said(output)) == 1 and words in said(output)[0], output
