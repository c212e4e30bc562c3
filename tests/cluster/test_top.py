# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary top of jobs: what topiary-monitor records on several nodes, live, for the job's user and nobody else."""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rig import Cluster
from rig.cluster import as_user
from rig.processes import wait_until
from rig.terminal import Terminal

USER, OTHER = "nobody", "games"
NODES = ("cn1", "cn2", "cn3")
STEP = "srun -Q -n3 --topo-monitor=sw,hz=5 sh -c 'until [ -e {} ]; do sleep 0.05; done'\n"     # on all, to its file


class LiveCluster:
    """Nodes that all are this machine, each with its topiary-monitor."""

    def __init__(self, cluster):
        self.cluster, self.folder = cluster, cluster.folder / "work"
        self.program = shutil.copy(cluster.build / "topiary-monitor", cluster.folder / "bin")

    def start(self, node):
        self.cluster.run_daemon(f"monitor.{node}", self.cluster.on_node(node, [
            self.program, "--config", self.cluster.folder / "etc" / "topiary.conf"]))
        assert wait_until(lambda: (self.run_dir(node) / "monitor.lock").exists(), 30)

    def run_dir(self, node):
        return self.cluster.folder / "nodes" / node / "run"

    def pages(self, job):
        return [node for node in NODES if (self.run_dir(node) / job / "monitor.live").exists()]

    def submit(self, script, *options):
        path = self.folder / f"script.{time.monotonic_ns()}"
        path.write_text("#!/bin/bash\n" + script)
        path.chmod(0o755)
        return self.cluster.command(["sbatch", "--parsable", "--output=/dev/null", "-N3", "-n3", "--ntasks-per-node=1",
                                     *options, path], user=USER, cwd=self.own).stdout.strip()

    @property
    def own(self):
        folder = self.folder / "own"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def top(self, *words, user=USER, **how):
        return self.cluster.command(["topiary", "top", *words], user=user, check=False, cwd=self.own, **how)

    def steps(self):
        return self.cluster.command(["squeue", "-h", "-s", "-o", "%j"]).stdout.split()


@pytest.fixture(scope="module", name="live")
def fixture_live(folders):
    with Cluster(folders(), dict.fromkeys(NODES), registry=False) as cluster:
        live = LiveCluster(cluster)
        for node in NODES:
            live.start(node)
        yield live


@pytest.fixture(name="job")
def fixture_job(live):
    """A step on all nodes that lasts until it is told to end: its name, and end()."""
    go = live.own / f"go.{time.monotonic_ns()}"
    job = live.submit(STEP.format(go))
    assert wait_until(lambda: len(live.pages(f"{job}.0")) == 3, 60)
    yield SimpleNamespace(id=job, end=go.touch)
    go.touch()
    assert wait_until(lambda: not live.steps(), 60), live.steps()
    assert wait_until(live.cluster.nodes_idle, 60)


class Lines:
    """topiary top in a pipe, and its lines as they come."""

    def __init__(self, live, *words, user=USER):
        env = live.cluster.env()
        self.process = subprocess.Popen([str(w) for w in as_user(user, ["topiary", "top", "--json", *words])],
                                        env={**env, "PATH": f"{live.own}:{env['PATH']}"}, cwd=live.own, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.said = [], []
        self.readers = [threading.Thread(target=self._read, args=(self.process.stdout, self.lines)),
                        threading.Thread(target=self._read, args=(self.process.stderr, self.said))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(line)

    def ticks(self):
        return [json.loads(line) for line in self.lines]

    def wait(self, n):
        assert wait_until(lambda: len(self.lines) >= n or self.process.poll() is not None, 60)
        assert len(self.lines) >= n, self.said
        return self.ticks()

    def end(self):
        status = self.process.wait(60)
        for reader in self.readers:
            reader.join(60)
        return status, "".join(self.said)


def value(tick, level, name=None):
    return next(row["value"] for row in tick["values"] if row["level"] == level and (not name or row["name"] == name))


def test_job_in_a_pipe(live, job):
    top = Lines(live, job.id)
    ticks = top.wait(10)
    job.end()
    assert top.end() == (0, "")
    for tick in ticks:
        assert tick["node"] == f"job {job.id}" and tick["metric"] == "busy"
        assert {row["name"] for row in tick["values"] if row["level"] == "Machine"} == set(NODES)
        nodes = [value(tick, "Machine", node) for node in NODES]
        assert value(tick, "Job") == pytest.approx(sum(nodes) / 3, rel=0.01) and 0 <= min(nodes) <= max(nodes) <= 100
    apart = sorted(b["time"] - a["time"] for a, b in zip(ticks, ticks[1:]))
    assert apart[len(apart) // 2] == pytest.approx(0.2, abs=0.15), "five ticks a second, of all nodes together"
    assert not [name for name in live.steps() if name == "topiary-top"]


def test_step_in_a_pipe_as_tables(live, job):
    """To its end, which is the step's."""
    threading.Timer(3, job.end).start()
    done = live.top("--level=PU", f"{job.id}.0")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count(f"job {job.id}.0: busy") >= 2
    assert all(done.stdout.count(node) for node in NODES) and "PU 0" in done.stdout


def test_job_on_a_terminal(live, job):
    before = set(Path("/tmp").glob("topiary.*"))
    screen = Terminal(*map(str, as_user(USER, ["topiary", "top", job.id])), **live.cluster.env())
    try:
        screen.wait(lambda: any(name.startswith("cn3") for name in screen.boxes()))
        screen.wait(lambda: "no tick" not in screen.display[1])
        assert screen.display[0].startswith(f"job {job.id}: busy")
        assert next(iter(screen.boxes())).startswith(f"job {job.id}")
        screen.press("m")
        screen.wait(lambda: ": busy" not in screen.display[0])
        job.end()
        screen.wait(lambda: "complete" in screen.display[1])
        assert any(name.startswith("cn1") for name in screen.boxes()), "the last state stays"
        assert screen.process.poll() is None
        screen.press("q")
        status, _ = screen.end()
        assert status == 0 and set(Path("/tmp").glob("topiary.*")) <= before
    finally:
        screen.close()


def test_quit_ends_the_readers(live, job):
    screen = Terminal(*map(str, as_user(USER, ["topiary", "top", job.id])), **live.cluster.env())
    try:
        screen.wait(lambda: any(name.startswith("cn3") for name in screen.boxes()))
        assert "topiary-top" in live.steps()
        screen.press("q")
        assert screen.end()[0] == 0
    finally:
        screen.close()
    assert wait_until(lambda: "topiary-top" not in live.steps(), 30)


def test_killed_top_ends_the_readers(live, job):
    top = Lines(live, job.id)
    top.wait(2)
    os.kill(top.process.pid, signal.SIGKILL)
    top.end()
    assert wait_until(lambda: "topiary-top" not in live.steps(), 30)


def test_node_in_a_pipe(live, job):
    """The user's jobs on that node, and nobody else's."""
    threading.Timer(3, job.end).start()
    done = live.top("cn2")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("cn2: busy")
    assert done.stdout.count(f"\ncn2 + job {job.id} + ") >= 2 and "cn1" not in done.stdout
    other = live.top("cn2", user=OTHER)
    assert other.returncode == 1 and other.stderr.startswith("topiary: top: node cn2: none of your jobs runs there")


@pytest.mark.parametrize("launch", ["srun -Q", "SLURMD_NODENAME=../evil srun -Q", "srun -Q -N2 -n2 -x cn1"])
def test_each_node_of_a_scripts_step_leaves_its_trace(live, launch):
    """Under its own name: the script's environment, which srun passes on, has the name of the script's node."""
    job = live.submit(f"{launch} --topo-monitor=sw,hz=10 --topo-report "
                      "sh -c 'sleep 1.5; echo $SLURMD_NODENAME; echo $TOPIARY_PHASES' >out 2>&1\n", "-W")
    nodes = NODES[1:] if "-x cn1" in launch else NODES
    folder, out = live.own / f"topiary-{job}.0", (live.own / "out").read_text()
    files = sorted(path.name for path in folder.iterdir())
    assert files == sorted(f"{node}.{kind}" for node in nodes for kind in ("trace", "tasks")), out
    for node in nodes:
        assert f"{folder}/{node}.phases" in out
        assert re.search(rf"^rank \d+ +node {node} ", out, re.M), out
        head = json.loads((folder / f"{node}.tasks").read_text().splitlines()[0])
        assert (head["node"], head["nodes"]) == (node, len(nodes))
    assert "not written" not in out and "not recorded" not in out


def test_nodes_that_mpirun_reaches_leave_their_traces(live):
    """By the step of its daemons, which it starts by srun from the script; the script's node by the script's step."""
    job = live.submit("mpirun --allow-run-as-root sh -c 'sleep 2; echo $SLURMD_NODENAME' >out 2>&1\n", "-W",
                      "--topo-monitor=sw,hz=10")
    found = {step: sorted(path.name for path in (live.own / f"topiary-{job}.{step}").iterdir())
             for step in ("batch", "0")}
    assert found == {"batch": ["cn1.trace"], "0": ["cn2.trace", "cn3.trace"]}, (live.own / "out").read_text()


def test_next_step_is_followed(live):
    """Each step lasts until it was seen. The controller restarts meanwhile, which is what this squeue does."""
    squeue, down = live.own / "squeue", live.own / "down"
    squeue.write_text(f"#!/bin/sh\ntest -e {down} || exec {shutil.which('squeue')} \"$@\"\n"
                      "echo Unable to contact slurm controller >&2\nexit 1\n")
    squeue.chmod(0o755)
    ends = [live.own / f"go.{time.monotonic_ns()}.{step}" for step in (0, 1)]
    job = live.submit("".join(STEP.format(path) for path in ends))

    def turns():
        times = [tick["time"] for tick in top.ticks()]
        return sum(later < earlier for earlier, later in zip(times, times[1:]))

    try:
        assert wait_until(lambda: len(live.pages(f"{job}.0")) == 3, 60)
        top = Lines(live, job)
        top.wait(5)
        down.touch()
        ends[0].touch()
        assert wait_until(lambda: top.said and len(live.pages(f"{job}.2")) == 3, 60), top.said
        down.unlink()
        assert wait_until(lambda: turns() or top.process.poll() is not None, 60)
    finally:
        for path in ends:
            path.touch()
    assert top.end()[0] == 0 and turns() == 1 and "slurmctld does not answer" in top.said[0] and len(top.said) == 1
    assert wait_until(live.cluster.nodes_idle, 60)


@pytest.mark.parametrize("node, step, how", [("cn2", "", [signal.SIGKILL]), ("cn1", ".0", [])])
def test_monitor_comes_back(live, job, node, step, how):
    """Killed, or restarted as by an administrator: its trace is complete, and another one begins."""
    top = Lines(live, f"{job.id}{step}")
    top.wait(5)
    live.cluster.end(f"monitor.{node}", *how)
    top.wait(len(top.lines) + 5)
    live.start(node)
    time.sleep(1)
    ticks = top.wait(len(top.lines) + 10)
    assert value(ticks[-1], "Machine", node) is not None and value(ticks[-1], "Job") is not None
    job.end()
    assert top.end()[0] == 0


def reader_on(node):
    """The process of topiary top --feed on a node."""
    for entry in Path("/proc").iterdir():
        try:
            if (entry.name.isdigit() and b"--feed" in (entry / "cmdline").read_bytes().split(b"\0")
                    and f"SLURMD_NODENAME={node}".encode() in (entry / "environ").read_bytes().split(b"\0")):
                return int(entry.name)
        except OSError:
            pass
    return None


def test_node_that_is_silent(live, job):
    """And comes back. The other nodes go on meanwhile."""
    top = Lines(live, f"{job.id}.0")
    top.wait(5)
    reader = reader_on("cn2")
    os.kill(reader, signal.SIGSTOP)
    assert wait_until(lambda: any("cn2: nothing for" in line for line in top.said), 60)
    last = top.wait(len(top.lines) + 2)[-1]
    assert value(last, "Machine", "cn2") is None and value(last, "Machine", "cn3") >= 0
    os.kill(reader, signal.SIGCONT)
    assert wait_until(lambda: value(top.ticks()[-1], "Machine", "cn2") is not None, 60)
    os.kill(reader, signal.SIGKILL)
    top.wait(len(top.lines) + 10)
    job.end()
    status, said = top.end()
    assert status == 0 and "cn1" not in said and "cn3" not in said


def test_unrecorded_step_is_one_line(live):
    job = live.submit("srun -Q -n3 sleep 20\n")
    assert wait_until(lambda: (live.run_dir("cn1") / f"{job}.0" / "monitor.ask").exists(), 60)
    for what in (job, f"{job}.0"):
        done = live.top(what)
        assert done.returncode == 1 and not done.stdout
        assert done.stderr.count("\n") == 1 and "has no --topo-monitor=sw or =on" in done.stderr
    live.cluster.command(["scancel", job])
    assert wait_until(live.cluster.nodes_idle, 60)


@pytest.mark.parametrize("what, why", [("99999", "job 99999: slurm_load_jobs error: Invalid job id specified"),
                                       ("99999.0", "Invalid job id"), ("7.", "no such file, command, job or node"),
                                       ("nosuchnode", "no such file, command, job or node"),
                                       ("7.x/..", "No such file or directory")])
def test_unknown_job_is_one_line(live, what, why):
    done = live.top(what)
    assert done.returncode in (1, 127) and not done.stdout
    assert done.stderr.count("\n") == 1 and why in done.stderr


def test_pending_and_ended_job(live):
    job = live.submit("true\n", "--hold")
    assert "does not run: PENDING" in live.top(job).stderr
    assert "does not run: PENDING" in live.top("--set=SW", job).stderr
    assert "a job has --topo-monitor" in live.top("--hz=10", job).stderr
    live.cluster.command(["scancel", job])
    assert "has ended" in live.top(job).stderr


def test_other_user_reads_nothing(live, job):
    """By the file, by Slurm, and by the reader itself, also as a step of a job of that user's on the same node."""
    step = f"{job.id}.0"
    files = [path for node in NODES for path in (live.run_dir(node) / step).glob("monitor.*")]
    assert len(files) == 9
    for path in files:
        if path.name != "monitor.ask":
            assert live.cluster.command(["cat", path], user=OTHER, check=False).stdout == ""
    page = live.run_dir("cn1") / step / "monitor.live"
    assert live.cluster.command(["head", "-c8", page], user=USER).stdout == "TOPLIVE1"
    for user in (USER, OTHER):
        for command in (["sh", "-c", f"echo >> {page}"], ["truncate", "-s0", page], ["rm", "-f", page],
                        ["chmod", "666", page], ["setfacl", "-m", f"u:{OTHER}:r", page],
                        ["ln", page, "/tmp/topiary.page"]):
            if shutil.which(command[0]):
                assert live.cluster.command(command, user=user, check=False, cwd="/tmp").returncode != 0, command
    for what in (job.id, step):
        done = live.top(what, user=OTHER)
        assert done.returncode == 1 and not done.stdout and "denied" in done.stderr, done.stderr
    feed = ["topiary", "top", f"--feed=={step}"]
    done = live.cluster.command(live.cluster.on_node("cn1", as_user(OTHER, feed)))
    assert done.stdout == f"node error step {step} is another user's\n"
    foreign = live.cluster.command(["srun", "-Q", f"--jobid={job.id}", "--overlap", "-N1", "-n1", *feed], user=OTHER,
                                   check=False)
    assert foreign.returncode != 0 and not foreign.stdout
    own = live.cluster.command(["srun", "-Q", "-w", "cn1", "-n1", *feed], user=OTHER, check=False)
    assert own.stdout == f"cn1 error step {step} is another user's\n", own.stderr


@pytest.mark.parametrize("feed", ["", "=../../etc", "=7.0/" * 70 + "=7.0", "\x1b=7.0"])
def test_bad_feed_is_refused(live, feed):
    done = live.top(f"--feed={feed}")
    assert done.returncode == 1 and not done.stdout and "--feed: " in done.stderr
