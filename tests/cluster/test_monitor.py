# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary-monitor: the traces of steps that ask for them, whose they are, and steps as without it whatever happens to
it."""
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from rig.cluster import as_user
from rig.node import own_disk
from rig.processes import Daemon, wait_until
from rig.unit import confined, setting

NODE = "cn5"  # of this machine's own hardware
USER = "nobody"
CAP_PERFMON = 38
LONG = "end=$(($(date +%s)+600)); while [ ! -e $0.go ] && [ $(date +%s) -lt $end ]; do :; done"


@pytest.fixture(scope="module", name="monitor")
def fixture_monitor(whole):
    """With the system calls of its unit alone, and its capabilities, where this machine has them to give."""
    wanted = setting("topiary-monitor", "CapabilityBoundingSet")[0].split()
    bounding = int(re.search(r"CapBnd:\s+(\w+)", Path("/proc/self/status").read_text())[1], 16)
    bounded = ["setpriv", "--bounding-set",
               "-all" + "".join(f",+{name.removeprefix('CAP_').lower()}" for name in wanted), "--inh-caps", "-all",
               "--no-new-privs"]
    assert wanted == ["CAP_PERFMON"]
    if not bounding >> CAP_PERFMON & 1 or not shutil.which("setpriv"):
        bounded = []
    bounded += confined("topiary-monitor", whole.folder)

    class Monitor:
        """The daemon of the node that is this machine."""
        log = whole.folder / "log" / "topiary-monitor.log"
        daemon = None

        def start(self):
            program = shutil.copy(whole.build / "topiary-monitor", whole.folder / "bin")
            self.daemon = Daemon.run("topiary-monitor", [str(w) for w in whole.on_node(NODE, [
                *bounded, program, "--config", whole.folder / "etc" / "topiary.conf"])], self.log,
                                     env=whole.env())
            assert wait_until(lambda: not self.daemon.alive() or (self.run_dir / "monitor.lock").exists(), 30)

        def stop(self, how=signal.SIGTERM):
            self.daemon.stop(how)

        @property
        def run_dir(self):
            return whole.folder / "nodes" / NODE / "run"

        def said(self):
            return self.log.read_text(errors="replace")

        def step_files(self, name):
            return [path for path in self.run_dir.glob(f"*/{name}") if path.parent.name[0].isdigit()]

    m = Monitor()
    m.start()
    yield m
    m.stop()


@pytest.fixture(name="folder")
def fixture_folder(cluster, request):
    path = cluster.folder / "work" / f"monitor.{abs(hash(request.node.name)):x}"
    path.mkdir()
    path.chmod(0o777)
    return path


def run(cluster, folder, *options, command=("true",), node=NODE, user=USER, check=True):
    return cluster.command(["srun", "-Q", "-w", node, *options, *command], user=user, cwd=folder, check=check)


def summary(cluster, path, level="Machine"):
    found = json.loads(cluster.command([cluster.build / "topiary", "trace", "summary", path, f"--level={level}",
                                        "--json"]).stdout)
    return found, {(m["metric"], m["object"]): m for m in found["metrics"]}


def burn(hundredths):
    """A shell that computes until it has used so much of a PU."""
    return ("sh", "-c", f"while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user _ < /proc/$$/stat && [ $user -lt {hundredths} "
            "]; do :; done")


def test_step_has_a_trace(cluster, monitor, folder):
    done = run(cluster, folder, "-n1", "--topo-monitor=sw,hz=20", "--topo-place=compact", command=burn(100))
    assert done.stderr == ""
    path, = folder.glob("topiary-*.0/*.trace")
    assert path.name == f"{NODE}.trace" and path.stat().st_uid != 0
    head, task = map(json.loads, path.with_suffix(".tasks").read_text().splitlines())
    assert (head["node"], head["nodes"], task["rank"], task["cores"]) == (NODE, 1, 0, head["cores"])
    found, metrics = summary(cluster, path)
    assert found["complete"] and found["node"] == NODE and found["ticks"] >= 2
    assert metrics["busy", 0]["total"] >= 0.5e9, "of a second of one PU, in hundredths"
    assert wait_until(lambda: not monitor.step_files("monitor.*"), 30), "the step's directory goes, after srun at times"


def test_events_that_the_kernel_counts(cluster, monitor, folder):
    run(cluster, folder, "-n1", "--topo-monitor=sw,hz=20", command=burn(30))
    if "context_switches and migrations are not counted" in monitor.said():
        pytest.skip("the kernel lets nobody count here")
    _, metrics = summary(cluster, next(folder.glob("*/*.trace")))
    assert metrics["minor_faults", 0]["total"] > 0 and metrics["context_switches", 0]["total"] > 0


def test_both_steps_of_a_batch_job(cluster, monitor, folder):
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\nsrun -Q " + " ".join(burn(30)[:2]) + f" '{burn(30)[2]}'\n")
    cluster.command(["sbatch", "-W", "-Q", "-w", NODE, "-n1", "--topo-monitor=sw,hz=20", f"--output={folder}/out",
                     script], user=USER, cwd=folder)
    assert (folder / "out").read_text() == ""
    steps = {path.parent.name.split(".")[-1] for path in folder.glob("topiary-*/*.trace")}
    assert steps == {"0", "batch"}


def test_bad_value_is_refused(cluster, folder):
    """Of values tests/unit/test_ask.c has all."""
    done = run(cluster, folder, "--topo-monitor=on,set=all", check=False)
    assert done.returncode != 0 and "set=all" in done.stderr and "expected off, sw or on" in done.stderr


def test_off_leaves_nothing(cluster, monitor, folder):
    before = monitor.said()
    assert run(cluster, folder, "--topo-monitor=off").stderr == run(cluster, folder).stderr == ""
    assert not list(folder.iterdir()) and monitor.said() == before


def test_node_without_a_monitor(cluster, folder):
    done = run(cluster, folder, "-n1", "--topo-monitor=sw", node="cn1")
    assert done.stderr.count("is not recorded on cn1: topiary-monitor did not begin a trace; does it run there?") == 1
    assert done.returncode == 0 and [path.name for path in folder.glob("*/*")] == ["cn1.tasks"]


def test_folder_that_the_user_may_not_write(cluster, monitor, folder):
    folder.chmod(0o755)
    done = run(cluster, folder, "-n1", "--topo-monitor=sw")
    assert done.returncode == 0 and done.stderr.count("was not written to") == 1 and "Permission denied" in done.stderr
    assert not list(folder.iterdir())


def test_folder_that_only_a_group_of_the_user_may_write(cluster, monitor, folder):
    """Debian's postgres is in the group ssl-cert, too."""
    own = pwd.getpwnam("postgres").pw_gid
    others = set(os.getgrouplist("postgres", own)) - {own}
    assert others, "needs a user with a second group"
    os.chown(folder, 0, others.pop())
    folder.chmod(0o775)
    assert run(cluster, folder, "-n1", "--topo-monitor=sw,hz=20", user="postgres").stderr == ""
    assert {path.suffix for path in folder.glob("*/*")} == {".trace", ".tasks"}


@pytest.mark.parametrize("script, why", [
    (f"mkfifo {{}}/{NODE}.trace", "No such device or address"), (f"mkdir {{}}/{NODE}.trace", "Is a directory"),
    ("rmdir {0} && ln -s /etc {0}", "Not a directory"), ("rmdir {0} && touch {0}", "Not a directory"),
    (f"touch {{0}}/{NODE}.trace && chmod 400 {{0}}/{NODE}.trace", "Permission denied"),
    (f"ln -s /dev/full {{0}}/{NODE}.tasks", "Too many levels of symbolic links"),
    (f"ln -s /etc/{NODE}.trace {{0}}/{NODE}.trace", "Too many levels of symbolic links"),
    ("chmod 777 {0}", "all users may write to the directory"),
], ids=["fifo", "folder", "link of the folder", "file", "read only", "link of the tasks",
        "link of the trace", "writable by all"])
def test_what_a_user_puts_in_place_of_the_files(cluster, monitor, folder, script, why):
    """One line, the step's own status, and nothing written elsewhere; whatever the job's name is."""
    made = "topiary-$SLURM_JOB_ID.0"
    done = run(cluster, folder, "-n1", "--topo-monitor=sw", "-J", "\x1b[31m%s%n/../$(id)`id`\n",
               command=("sh", "-c", f"mkdir {made}; {script.format(made, made)}; exit 3"), check=False)
    assert done.returncode == 3 and done.stderr.count("was not written to") == 1 and why in done.stderr, done.stderr
    assert not list(Path("/etc").glob(f"{NODE}.*"))
    assert monitor.daemon.alive()


def test_folder_without_room(cluster, monitor, folder):
    """What a job has filled itself: one line, and the step's own status."""
    with own_disk(folder, "64k"):
        folder.chmod(0o777)
        fill(folder / "filler")
        done = run(cluster, folder, "-n1", "--topo-monitor=sw", command=("sh", "-c", "exit 3"), check=False)
        assert done.returncode == 3 and done.stderr.count("was not written to") == 1
        assert "No space left on device" in done.stderr, done.stderr
        assert not list(folder.glob("*/*"))
    assert monitor.daemon.alive()


@pytest.fixture(name="running")
def fixture_running(cluster, folder):
    """A step that lasts until it is told to end: (process, end)."""
    go = folder / "step.go"
    process = subprocess.Popen([str(w) for w in as_user(USER, ["srun", "-Q", "-w", NODE, "-n1",
                                                               "--topo-monitor=sw,hz=100", "sh", "-c", LONG,
                                                               folder / "step"])], env=cluster.env(), cwd=folder,
                               stderr=subprocess.PIPE, text=True)

    def end():
        go.touch()
        _, err = process.communicate(timeout=90)
        return process.returncode, err
    yield end
    go.touch()
    process.wait(timeout=90)


def grown(monitor, size):
    files = monitor.step_files("monitor.trace")
    return bool(files) and files[0].stat().st_size > size


def test_killed_monitor_goes_on_in_the_same_trace(cluster, monitor, folder, running):
    """A block is written each ten seconds at the latest, and with 60 ticks."""
    assert wait_until(lambda: grown(monitor, 0), 30)
    size = monitor.step_files("monitor.trace")[0].stat().st_size
    assert wait_until(lambda: grown(monitor, size), 30), "the first block"
    monitor.stop(signal.SIGKILL)
    kept = monitor.step_files("monitor.trace")[0].stat().st_size
    monitor.start()
    assert wait_until(lambda: grown(monitor, kept), 30), monitor.said()
    assert running() == (0, "")
    found, _ = summary(cluster, next(folder.glob("*/*.trace")))
    assert found["complete"] and found["ticks"] >= 120


def test_monitor_that_is_gone_at_the_end(cluster, monitor, folder, running):
    """What it recorded is there."""
    assert wait_until(lambda: grown(monitor, 0), 30)
    size = monitor.step_files("monitor.trace")[0].stat().st_size
    assert wait_until(lambda: grown(monitor, size), 30)
    monitor.stop(signal.SIGKILL)
    assert running() == (0, "")
    found, _ = summary(cluster, next(folder.glob("*/*.trace")))
    assert found["ticks"] >= 60 and not found["complete"]
    done = run(cluster, folder, "-n1", "--topo-monitor=sw")
    assert done.returncode == 0 and "topiary-monitor did not begin a trace; does it run there?" in done.stderr
    monitor.start()


def fill(path):
    """The file takes all the room that is left."""
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def test_run_dir_that_fills(cluster, monitor, folder):
    """The step goes on, what was recorded until then is there, and with room the next step is recorded again."""
    monitor.stop()
    with ExitStack() as last:
        last.callback(monitor.start)
        last.enter_context(own_disk(monitor.run_dir, "2m"))
        last.callback(monitor.stop)
        monitor.start()
        filler, before, go = monitor.run_dir / "filler", len(monitor.said()), folder / "step.go"
        step = last.enter_context(subprocess.Popen([str(w) for w in as_user(USER, [
            "srun", "-Q", "-w", NODE, "-n1", "--topo-monitor=sw,hz=100", "sh", "-c", LONG, folder / "step"])],
            env=cluster.env(), cwd=folder, stderr=subprocess.PIPE, text=True))
        last.callback(go.touch)
        assert wait_until(lambda: grown(monitor, 0), 30)
        size = monitor.step_files("monitor.trace")[0].stat().st_size
        assert wait_until(lambda: grown(monitor, size), 30)
        fill(filler)
        assert wait_until(lambda: "recording ends, the step goes on" in monitor.said()[before:], 120)
        assert "No space left on device" in monitor.said()[before:] and monitor.daemon.alive()
        full = run(cluster, folder, "-n1", "--overlap", "--topo-monitor=sw")
        assert full.returncode == 0 and full.stderr.count("\n") <= 1, full.stderr
        filler.unlink()
        go.touch()
        _, err = step.communicate(timeout=90)
        found, _ = summary(cluster, next(folder.glob("*/*.trace")))
        assert (step.returncode, err) == (0, "") and found["ticks"] >= 60
        assert run(cluster, folder, "-n1", "--topo-monitor=sw,hz=20").stderr == ""
    assert len(list(folder.glob("*/*.trace"))) == 2


def test_only_root_reads_what_is_recorded(cluster, monitor, running):
    assert wait_until(lambda: grown(monitor, 0), 30)
    path = monitor.step_files("monitor.trace")[0]
    assert path.stat().st_uid == 0 and path.stat().st_mode & 0o777 == 0o600
    for user in (USER, "games"):
        done = cluster.command(["cat", path], user=user, check=False)
        assert done.returncode != 0 and done.stdout == ""
    assert running()[0] == 0


def test_second_monitor_ends(cluster, monitor):
    done = cluster.command(cluster.on_node(NODE, [cluster.folder / "bin" / "topiary-monitor", "--config",
                                                  cluster.folder / "etc" / "topiary.conf"]), check=False)
    assert done.returncode == 1 and "another topiary-monitor runs" in done.stderr


@pytest.mark.parametrize("text", ["", 4000 * "z"], ids=["empty", "long"])
def test_damaged_request_is_one_line(monitor, text):
    home = monitor.run_dir / "999.0"
    home.mkdir()
    try:
        before = monitor.said()
        (home / "new").write_text(text)
        (home / "new").rename(home / "monitor.ask.new")
        os.link(home / "monitor.ask.new", home / "monitor.ask")
        assert wait_until(lambda: "step 999.0: not recorded: monitor.ask: " in monitor.said()[len(before):], 30)
        assert monitor.daemon.alive()
    finally:
        shutil.rmtree(home)


def test_request_that_is_not_roots(monitor):
    home = monitor.run_dir / "998.0"
    home.mkdir()
    try:
        (home / "new").write_text("topiary monitor 1\nuid 1\nhz 1\nset sw\n")
        os.chown(home / "new", 65534, 65534)
        os.link(home / "new", home / "monitor.ask")
        assert wait_until(lambda: "step 998.0: not recorded: monitor.ask: not a file of root's" in monitor.said(), 30)
    finally:
        shutil.rmtree(home)


def test_short_steps(cluster, monitor, folder):
    """Steps of no duration, one after another and at a time."""
    script = "for i in 1 2 3 4 5 6 7 8; do srun -Q --overlap true & srun -Q --overlap true; done; wait"
    done = cluster.command(["salloc", "-Q", "-w", NODE, "-n1", "--topo-monitor=sw,hz=100", "sh", "-c", script],
                           user=USER, cwd=folder)
    assert done.returncode == 0 and monitor.daemon.alive()
    assert len(list(folder.glob("*/*.trace"))) + done.stderr.count("did not begin a trace") == 16, done.stderr


def test_pus_of_two_users_are_nobodys(cluster, monitor, folder, running):
    """As where nodes are oversubscribed: here another user's step is told of by hand."""
    assert wait_until(lambda: grown(monitor, 0), 30)
    step = monitor.step_files("monitor.trace")[0].parent
    other = monitor.run_dir / "997.0"
    before = monitor.said()
    shutil.copytree(step, other, ignore=lambda _, names: [n for n in names if n.startswith("monitor.")])
    try:
        (other / "new").write_text("topiary monitor 1\nuid 4242\nhz 0\nset sw\n")
        os.link(other / "new", other / "monitor.ask")
        assert wait_until(lambda: "are not recorded while another user's step has them, too"
                          in monitor.said()[len(before):], 30)
        size = monitor.step_files("monitor.trace")[0].stat().st_size
        assert wait_until(lambda: grown(monitor, size), 30), "a block with ticks of that time"
    finally:
        shutil.rmtree(other)
    assert running() == (0, "")
    _, metrics = summary(cluster, next(folder.glob("*/*.trace")))
    assert metrics["busy", 0]["absent"] > 0


def test_sites_default(cluster, monitor, folder):
    conf = cluster.folder / "etc" / "topiary.conf"
    text = conf.read_text()
    try:
        conf.write_text(f"{text}TopoMonitor = sw,hz=20\n")
        assert run(cluster, folder, "-n1").stderr == ""
        assert len(list(folder.glob("*/*.trace"))) == 1
        assert run(cluster, folder, "-n1", "--topo-monitor=off").stderr == ""
        assert run(cluster, folder, "-n1", node="cn1").stderr == "", "nobody asked"
        assert len(list(folder.glob("*/*.trace"))) == 1
    finally:
        conf.write_text(text)


WANDERS = ("sh", "-c", "taskset -pc 1 $$ >/dev/null; end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do "
           "i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; done")


def advice(err):
    return [line.partition("topiary: ")[2] for line in err.splitlines() if "topiary: " in line]


def test_a_line_of_advice_at_the_end(cluster, monitor, folder):
    """By srun, of the thread that left its rank's core; and none for a step without a fault, or without the word."""
    if os.cpu_count() < 2:
        pytest.skip("needs two PUs")
    for value in ("sw,hz=20,advise", "sw,hz=20"):
        done = cluster.command(["salloc", "-Q", "-w", NODE, "--exclusive", "srun", "-Q", "-n1", "--topo-place=compact",
                                f"--topo-monitor={value}", *WANDERS], user=USER, cwd=folder)
        job = max(int(path.name.split("-")[1].split(".")[0]) for path in folder.iterdir())
        said = advice(done.stderr)
        if "advise" not in value:
            assert said == []
            continue
        assert len(said) == 1 and re.match(rf"step {job}\.0: 1 of \d+ PUs that no rank is bound to worked, P#1 for "
                                           rf"\d+ % of the time on {NODE}: keep threads on their rank's cores: --topo",
                                           said[0]), done.stderr


MIGRATES = ("end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do for i in 0 1; do "
            "taskset -pc $i $$ >/dev/null; sleep 0.02; done; done")


def test_a_line_of_advice_of_a_batch_script(cluster, monitor, folder):
    """By a process that is the user, where the script starts its program without srun; with srun, of the step alone."""
    if os.cpu_count() < 2:
        pytest.skip("needs two PUs")
    live = monitor.run_dir / "$SLURM_JOB_ID.batch" / "monitor.live"
    begun = f"n=0; until [ -e {live} ] || [ $n -ge 600 ]; do sleep 0.1; n=$((n + 1)); done"
    for line, steps in ((MIGRATES, ["batch"]), ("srun -Q sleep 2", ["0"])):
        out = folder / f"out.{steps[0]}"
        script = folder / "job.sh"
        script.write_text(f"#!/bin/sh\n{begun}\n{line}\n")
        cluster.command(["sbatch", "-W", "-Q", "-w", NODE, "--exclusive", "--topo-monitor=sw,hz=20,advise",
                         f"--output={out}", script], user=USER, cwd=folder)
        found = re.findall(r"topiary: step \d+\.(\w+): (.*)", out.read_text())
        assert "batch" not in dict(found) if steps == ["0"] else list(dict(found)) == steps, (
            out.read_text() + monitor.said()[-2000:])


def test_advice_that_cannot_be_given_is_one_line(cluster, monitor, folder):
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    cluster.command(["sbatch", "-W", "-Q", "-w", NODE, "-n1", "--topo-monitor=sw,advise", f"--output={folder}/out",
                     script], user=USER, cwd=folder)
    said = (folder / "out").read_text()
    assert said.count("\n") == 1 and "no advice: " in said and "ticks, advice needs at least 10; run longer" in said


def test_metrics_name_the_job_where_the_site_asks(cluster, monitor, folder):
    """As the unit runs it: without a capability to write elsewhere."""
    conf = cluster.folder / "etc" / "topiary.conf"
    text, path = conf.read_text(), cluster.folder / "work" / "topiary.prom"
    try:
        for jobs in ("yes", "no"):
            monitor.stop()
            conf.write_text(f"{text}MonitorMetrics = {path}\nMonitorMetricsInterval = 1\nMonitorMetricsJobs = {jobs}\n")
            monitor.start()
            done = run(cluster, folder, "-n1", "--topo-monitor=sw,hz=20", command=(
                "sh", "-c", f"for i in $(seq 300); do grep -q 'steps_recorded 1' {path} && break; sleep 0.1; done; "
                f"echo $SLURM_JOB_ID; cat {path}"))
            job, _, found = done.stdout.partition("\n")
            assert "topiary_monitor_steps_recorded 1\n" in found and "topiary_node_busy_ratio{" in found
            pus = re.findall(rf'^topiary_node_job_pus{{domain="\w+",jobid="{job}"}} (\d+)$', found, re.M)
            assert sum(map(int, pus)) >= 1 if jobs == "yes" else "job" not in found
    finally:
        monitor.stop()
        conf.write_text(text)
        monitor.start()
    assert not path.exists()


def test_phases_are_beside_the_trace(cluster, monitor, folder):
    """Of all processes of the node, in the trace's time."""
    program = shutil.copy(cluster.build / "tests" / "phases", cluster.folder / "bin")
    library = shutil.copy(cluster.build / "libtopiary_phase.so.0", cluster.folder / "bin")
    done = run(cluster, folder, "-n1", "--topo-monitor=sw,hz=20",
               command=("sh", "-c", f"umask 0; LD_LIBRARY_PATH={os.path.dirname(library)} {program} 400 3"))
    assert done.stderr == "", "the folder that the program makes is not for all to write to"
    trace, = folder.glob("topiary-*.0/*.trace")
    marks = trace.with_suffix(".phases")
    assert marks.name == f"{NODE}.phases" and marks.stat().st_uid == trace.stat().st_uid != 0
    found = json.loads(cluster.command([cluster.build / "topiary", "trace", "phases", trace, "--json"]).stdout)
    assert found["processes"] == 1
    assert {p["phase"]: p["times"] for p in found["phases"]} == {"step": 3, "compute": 3, "wait": 3, "done": 0}
    assert all(p["ticks"] > 0 for p in found["phases"] if p["phase"] != "done"), found
    run(cluster, folder, "-n1", "--topo-monitor=off",
        command=("env", f"LD_LIBRARY_PATH={os.path.dirname(library)}", program, "1", "1"))
    assert {path.suffix for path in folder.glob("*/*")} == {".trace", ".phases", ".tasks"}
