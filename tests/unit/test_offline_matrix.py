# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary matrix: reads, adds up, converts and makes matrices, and names what is wrong with one."""
import functools
import json
import os
import stat
import subprocess

import pytest
from rig import command
from rig.limits import limits

PROF = ("# POINT TO POINT\nE\t{0}\t{1}\t{2} bytes\t1 msgs sent\t1,0,0\n# OSC\n# COLLECTIVES\n"
        "D\tMPI_COMM_WORLD\tprocs: {3}\n")


topiary = functools.partial(command.topiary, "matrix")


def info(*args):
    return json.loads(topiary(*args, "--json", status=0).stdout)


def prof(path, source, target, count, ranks):
    path.write_text(PROF.format(source, target, count, ",".join(map(str, range(ranks)))))
    return path


def test_output_to_a_device_leaves_the_device(tmp_path):
    """As root, by a copy of /dev/null; a pipe; /dev/stdout."""
    ring = ("--generate", "ring:3", "-o")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert topiary(*ring, pipe).returncode == 0 and pipe.is_fifo()
            assert reader.communicate(timeout=120)[0].startswith("%%MatrixMarket")
        finally:
            reader.kill()
    assert topiary(*ring, "/dev/stdout").stdout.startswith("%%MatrixMarket")
    if os.geteuid() == 0:
        null = tmp_path / "null"
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        assert topiary(*ring, null).returncode == 0
        assert null.is_char_device()


def test_files_are_added_up_and_converted(tmp_path):
    files = [prof(tmp_path / f"run.{r}.prof", r, (r + 1) % 4, 100 + r, 4) for r in range(4)]
    for form, text in [("mm", "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n2 1 50\n3 2 50.5\n4 1 51.5\n"
                        "4 3 51\n"),
                       ("dense", "0 50 0 51.5\n50 0 50.5 0\n0 50.5 0 51\n51.5 0 51 0\n"),
                       ("grf", "0\n4\t8\n0\t010\n2\t100 1\t103 3\n2\t100 0\t101 2\n2\t101 1\t102 3\n"
                        "2\t103 0\t102 2\n"),
                       ("prof", "".join(f"E\t{r}\t{c}\t{half} bytes\t{int(c == (r + 1) % 4)} msgs sent\n"
                                       for r, c, half in (
                           (0, 1, 50), (0, 3, 51.5), (1, 0, 50), (1, 2, 50.5), (2, 1, 50.5), (2, 3, 51), (3, 0, 51.5),
                           (3, 2, 51))) + "D\tMPI_COMM_WORLD\tprocs: 0,1,2,3\n")]:
        done = topiary(*files, "--format", form, "-o", tmp_path / form)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / form).read_text() == text
        assert topiary(tmp_path / form, "--format", "mm").stdout == (tmp_path / "mm").read_text()
    assert info(tmp_path / "mm") == {"ranks": 4, "pairs": 4, "most_partners": 2, "bytes": 406.0, "heaviest": [
        {"a": 0, "b": 3, "bytes": 103.0}, {"a": 2, "b": 3, "bytes": 102.0}, {"a": 1, "b": 2, "bytes": 101.0},
        {"a": 0, "b": 1, "bytes": 100.0}]}


def test_info_tells_the_heaviest_pairs(tmp_path):
    (tmp_path / "m").write_text("0 3 0\n0 0 1\n0 0 0\n")
    done = topiary(tmp_path / "m", "--info")
    assert done.stdout == "ranks      3\npairs      2, 1.3 partners a rank, at most 2\nbytes      4\n" \
        "heaviest   0 and 1: 3, 75.00 %\n           1 and 2: 1, 25.00 %\n"
    both = topiary(tmp_path / "m", "--info", "-o", tmp_path / "n")
    assert both.stdout == done.stdout and (tmp_path / "n").read_text().startswith("%%MatrixMarket")


def test_folder_is_its_largest_run(tmp_path):
    for rank in range(2):
        prof(tmp_path / f"a.{rank}.prof", rank, 1 - rank, 7, 2)
    for rank in range(2, 4):
        prof(tmp_path / f"a.{rank}.prof", rank, 0, 1000, 4)
    (tmp_path / "notes").write_text("not read")
    done = topiary(tmp_path, "--json")
    assert json.loads(done.stdout)["bytes"] == 2000 and done.returncode == 0
    assert ([line.split(": ", 2)[-1] for line in done.stderr.splitlines()]
            == ["ignored 2 files of smaller runs", "only 2 of 4 ranks have a file"])
    for rank in range(2):
        (tmp_path / f"a.{rank}.prof").unlink()
    assert "only 2 of 4 ranks have a file" in topiary(tmp_path, "--json").stderr
    prof(tmp_path / "a.0.prof", 0, 1, 7, 2)
    done = topiary(*sorted(tmp_path.glob("*.prof")))
    assert done.returncode == 1 and "they are of different runs" in done.stderr


def test_runs_of_the_same_size_add_up(tmp_path):
    """Their files have names of their own; a rank counts once, however often it ran."""
    for run in ("b.1-2", "b.3-4"):
        for rank in range(2):
            prof(tmp_path / f"{run}.{rank}.prof", rank, 1 - rank, 7, 2)
    done = topiary(tmp_path, "--json")
    assert (json.loads(done.stdout)["bytes"], done.stderr) == (28, "")
    for run in ("b.1-2", "b.3-4"):
        (tmp_path / f"{run}.1.prof").unlink()
    done = topiary(tmp_path, "--json")
    assert json.loads(done.stdout)["bytes"] == 14 and "only 1 of 2 ranks have a file" in done.stderr
    # A file that does not say whose it is may be all of a run.
    prof(tmp_path / "whole.prof", 1, 0, 7, 2)
    assert topiary(tmp_path, "--json").stderr == ""


@pytest.mark.slow
def test_many_runs_take_no_more_than_few(tmp_path):
    """400 times the same 32,640 pairs in 160 MiB, which would not hold them all."""
    topiary("--generate", "pencils:256x1", "-o", tmp_path / "all")
    done = topiary(*[tmp_path / "all"] * 400, "--json", preexec_fn=limits(160 << 20), status=0)
    assert json.loads(done.stdout)["bytes"] == 400 * info(tmp_path / "all")["bytes"]


@pytest.mark.parametrize("text, said", [
    ("", "bad: empty"), ("0 -1\n1 0\n", "bad:1: negative weight"), ("0 1\nnan 0\n", "bad:2: not a number"),
    ("E 0 1 5\n", "bad:1: expected 'bytes' after the number"), ("\x00\x01", "bad:1: not a number"),
])
def test_bad_file_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "bad").write_text(text)
    (tmp_path / "old").write_text("as it was")
    done = topiary(tmp_path / "bad", "-o", tmp_path / "old")
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1
    assert (tmp_path / "old").read_text() == "as it was"


def test_bad_words_are_refused(tmp_path):
    for args, said in [([], "at least one FILE is required"), (["--generate", "ring:4", "x"], "exclude each other"),
                       *((["--generate", "ring:4", f"--seed={word}"], f"--seed={word}: expected a number from 0")
                         for word in ("-1", "+1", " 1", "0x10", "1d5")),
                       (["--generate", "cube:4"], "unknown rule"),
                       (["--generate", "ring:4", "--format", "png"], "expected dense, mm, grf or prof"),
                       ([tmp_path], "no .prof file in this directory"), ([tmp_path / "none"], "No such file"),
                       (["/dev/zero"], "not a regular file")]:
        done = topiary(*args)
        assert done.returncode and said in done.stderr, (args, done.stderr)


def test_rules_make_the_same_from_the_same_seed():
    for rule in ("random:256", "powerlaw:256"):
        one, same, other = (topiary("--generate", rule, "--seed", seed).stdout for seed in (5, 5, 6))
        assert one == same != other
    assert info("--generate", "stencil2d:8x8")["pairs"] == 112


def test_weights_beyond_scotchs_range_are_reported(tmp_path):
    (tmp_path / "m").write_text("E 0 1 9007199254740992 bytes\nE 1 2 4503599627370496 bytes\n")
    done = topiary(tmp_path / "m", "--format", "grf")
    assert "weights are divided by" in done.stderr
    numbers = [int(word) for line in done.stdout.split("\n")[3:] for word in line.replace(" ", "\t").split("\t")[1::2]]
    assert sum(numbers) < 2 ** 31 and abs(numbers[0] / numbers[3] - 2) < 1e-6


def test_large_matrix_needs_little_memory(tmp_path):
    """65,536 ranks of a 3D stencil: made, read and written within 256 MiB and seconds."""
    limit = limits(256 << 20, cpu=10)
    done = topiary("--generate", "stencil3d:64x32x32:27", "-o", tmp_path / "great", preexec_fn=limit, status=0)
    done = topiary(tmp_path / "great", "--json", preexec_fn=limit)
    told = json.loads(done.stdout)
    assert (told["ranks"], told["most_partners"]) == (65536, 26)


# --- what --topo-matrix=auto keeps

@pytest.fixture
def learned(tmp_path, monkeypatch):
    """learn(step, ...): ranks that each send to the rank so many after them, as a job's records."""
    monkeypatch.setenv("TOPIARY_MATRICES", str(tmp_path / "kept"))
    program = tmp_path / "program"
    subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=b"int main() { return 0; }", check=True)
    said = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    key = said.split("Build ID: ")[1].split()[0]

    def learn(step, *options, ranks=4, key=key, program=program, lost=0, text=None):
        folder = tmp_path / "records"
        folder.mkdir()
        for r in range(ranks - lost):
            prof(folder / f"rank.{key}.1f-2.{r}.prof", r, (r + step) % ranks, 100, ranks)
        if text:
            (folder / f"rank.{key}.1f-2.0.prof").write_text(text)
        (folder / f"rank.{key}.program").write_text(str(program))
        done = topiary("learn", *options, folder, status=0)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return done.stderr
    learn.key = key
    return learn


def kept(*words):
    return json.loads(topiary("list", *words, "--json", status=0).stdout)


def test_pattern_is_used_once_two_runs_agree(learned):
    told = []
    for job, step in enumerate([1, 1, 2, 2], 11):
        assert learned(step, f"--job={job}") == ""
        (one,) = kept()
        told.append((one["runs"], one["last_job"], one["distance"], one["used"], one["recorded"]))
    # To the second neighbour of four, both send to each other: no pair is the same.
    assert told == [(1, 11, 1, False, True), (2, 12, 0, True, False), (3, 13, 1, False, True), (4, 14, 0, True, False)]
    assert learned(1, "--tag=wide") == "" and learned(1, ranks=8) == ""
    ids = [f"4-{learned.key}", f"4-wide-{learned.key}", f"8-{learned.key}"]
    assert [one["id"] for one in kept()] == ids
    assert "4-wide-" + learned.key[:8] in topiary("list").stdout
    assert topiary("export", "4-wide", "--format=dense").stdout.split("\n")[0] == "0 50 0 50"
    assert topiary("show", ids[0]).stdout.split("\n")[1] == "    ██  "
    assert "<svg" in topiary("show", "8", "--format=svg").stdout
    for word, words in ("4-", "2 learned matrices begin so"), ("", "an empty word"), ("5", "5: no learned matrix"):
        for verb in "show", "export", "forget":
            done = topiary(verb, word)
            assert done.returncode == 1 and words in done.stderr and len(kept()) == 3, done
    assert topiary("list", "5").returncode == 1 and "no learned matrix" in topiary("list", "5").stderr
    assert topiary("forget", "4-wide").returncode == 0 and len(kept()) == 2
    assert topiary("forget", "all").returncode == 0 and kept() == []


def test_pattern_is_recognised_when_a_run_is_added(learned, tmp_path):
    """Not for each list, which may be of many large matrices; a file that does not name it is recognised then."""
    assert learned(1, ranks=16) == ""
    (file,) = (tmp_path / "kept").iterdir()
    text = file.read_text()
    assert kept()[0]["pattern"] == "ring" and "\n% pattern ring\n" in text
    for line, shown in (("% pattern another\n", "another"), ("", "ring")):
        file.write_text(text.replace("% pattern ring\n", line))
        assert kept()[0]["pattern"] == shown
        assert topiary("show", "16").stdout.endswith(f"; pattern: {shown}\n")


@pytest.mark.parametrize("pattern, of_another_number", [("ring", True), ("ring, ranks in no regular order", False)])
def test_order_without_a_rule_is_not_searched_for_again(learned, tmp_path, pattern, of_another_number):
    """By each srun, which would take some tenths of a second: the file says what was found."""
    for _ in range(2):
        learned(1, ranks=16)
    (file,) = (tmp_path / "kept").iterdir()
    file.write_text(file.read_text().replace("% pattern ring\n", f"% pattern {pattern}\n"))
    done = command.topiary("map", "--learned", tmp_path / "program", "--ranks", "32", "--nodes", "n1", "-o",
                           tmp_path / "out", status=0)
    assert ("16 ranks: no pattern that is known for other numbers" in done.stdout) != of_another_number, done.stdout


def test_file_named_as_a_learned_matrix_would_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert topiary("--generate=ring:4", "-o", "comm.mat").returncode == 0
    assert "no learned matrix; topiary matrix show ./comm.mat draws the file" in topiary("show", "comm.mat").stderr
    assert topiary("show", "./comm.mat").returncode == 0


@pytest.mark.parametrize("how, words", [
    ({"lost": 1}, "1 of 4 ranks left no record"), ({"key": "0" * 40}, "it was replaced while it ran"),
    ({"program": "/nonexistent"}, "No such file"), ({"program": "/bin/sh"}, "name each by a tag"),
    ({"program": "/etc/passwd"}, "not an ELF program"), ({"text": "E 0 nonsense\n"}, "rank.{}.1f-2.0.prof:1: "),
    ({"ranks": 1}, ""),
])
def test_what_cannot_be_learned_is_one_line(learned, how, words):
    said = learned(1, **how)
    assert words.format(learned.key) in said and said.count("\n") == bool(words)
    assert kept() == []


@pytest.mark.parametrize("text", ["", "%%MatrixMarket matrix coordinate real symmetric\n% run 1 1 0.1\n9 9 1\n2 1 1\n",
                                  "%%MatrixMarket matrix coordinate real symmetric\n4 4 1\n2 1 1\n", "\0" * 99])
def test_damaged_file_is_replaced_by_the_next_run(learned, tmp_path, text):
    learned(1)
    (file,) = (tmp_path / "kept").iterdir()
    file.write_text(text)
    assert str(file) in kept()[0]["error"] and "not used" in topiary("list").stdout
    assert "replaced by this run" in learned(1) and kept()[0]["runs"] == 1


def test_folder_without_records_is_named(tmp_path):
    done = topiary("learn", tmp_path)
    assert done.returncode == 1 and f"{tmp_path}: no records of ranks" in done.stderr
    assert topiary("learn", "--job=7", tmp_path).returncode == 0  # a job without MPI


def test_folder_and_files_must_be_the_users_alone(learned, tmp_path):
    learned(1)
    (file,) = (tmp_path / "kept").iterdir()
    file.rename(tmp_path / "other")
    file.symlink_to(tmp_path / "other")
    assert "not a file of this user" in kept()[0]["error"]
    (tmp_path / "kept").chmod(0o777)
    for words in (["list"], ["forget", "all"], ["show", "4"]):
        assert "not a directory of this user alone" in topiary(*words).stderr
    assert "not a directory of this user alone" in learned(1)
    assert (tmp_path / "other").exists()


def test_oldest_files_go(learned, tmp_path):
    learned(1)
    (first,) = (tmp_path / "kept").iterdir()
    for n in range(140):
        file = tmp_path / "kept" / f"4-t{n}-{learned.key}.mat"
        file.write_bytes(first.read_bytes())
        os.utime(file, (1000 + n, 1000 + n))
    learned(1, "--tag=new")
    names = {file.name.split("-")[1] for file in (tmp_path / "kept").iterdir()}
    assert len(names) == 128 and "new" in names and "t139" in names and "t0" not in names
