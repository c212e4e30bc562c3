# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary-monitor and a RunDir, without Slurm: many steps, steps that overlap, and what else is in such a folder; and
kernels that let nobody count."""
import base64
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rig.command import run, topiary
from rig.forbidden import forbid, known
from rig.paths import BUILD
from rig.processes import Daemon, wait_until

ASK = "topiary monitor 1\nuid {uid}\nhz {hz}\nset {set}\n"
PUS = sorted(os.sched_getaffinity(0))

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="the files are root's")]


@pytest.fixture(scope="module", name="tree")
def fixture_tree():
    return subprocess.run(["lstopo-no-graphics", "--of", "xml", "-"], capture_output=True, timeout=60,
                          check=True).stdout


class RunDir:
    def __init__(self, path, tree):
        self.path, self.tree, self.log = path / "run", tree, path / "log"
        self.conf = path / "topiary.conf"
        self.conf.write_text(f"RunDir={self.path}\n")

    def start(self, wrapper=()):
        self.daemon = Daemon.run("topiary-monitor", [*wrapper, BUILD / "topiary-monitor", "--config", self.conf],
                                 self.log)
        assert wait_until((self.path / "monitor.lock").exists, 30), self.said()

    def said(self):
        return self.log.read_text(errors="replace")

    def begin(self, name, hz=100, sets="sw", uid=0):
        """As slurmstepd does: the topology first, then the request, complete from its first moment."""
        home = self.path / name
        home.mkdir(mode=0o755)
        (home / "topology.xml").write_bytes(self.tree)
        (home / "new").write_text(ASK.format(uid=uid, hz=hz, set=sets))
        os.link(home / "new", home / "monitor.ask")
        return home

    @staticmethod
    def end(home):
        (home / "monitor.ask").unlink()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.pid}/fd"))

    def kilobytes(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.daemon.pid}/status").read_text())[1])


@pytest.fixture(name="run_dir")
def fixture_run_dir(tmp_path, tree):
    run_dir = RunDir(tmp_path, tree)
    run_dir.start()
    yield run_dir
    run_dir.daemon.stop()


def totals(path):
    done = topiary("trace", "summary", path, "--json", status=0)
    found = json.loads(done.stdout)
    return found, {m["metric"]: m["total"] for m in found["metrics"]}


def recorded(home):
    return wait_until((home / "monitor.done").exists, 30, 0.01)


def test_thousand_short_steps(run_dir):
    """Up to eight at a time, each there for some milliseconds: nothing is left of them in the daemon."""
    warm = run_dir.begin("1.0")
    assert wait_until((warm / "monitor.trace").exists, 30)
    run_dir.end(warm)
    assert recorded(warm)
    descriptors, kilobytes, running = run_dir.descriptors(), run_dir.kilobytes(), []
    for i in range(1000):
        running.append(run_dir.begin(f"{i + 2}.0"))
        if i % 3 == 0:
            time.sleep(0.002)
        if len(running) == 8 or i % 7 == 0:
            run_dir.end(running.pop(i % len(running)))
    for home in running:
        run_dir.end(home)
    last = run_dir.begin("2000.0")
    assert wait_until((last / "monitor.trace").exists, 60)
    run_dir.end(last)
    assert recorded(last) and run_dir.daemon.alive()
    done = [home for home in run_dir.path.glob("*.0") if (home / "monitor.done").exists()]
    assert not list(run_dir.path.glob("*/monitor.trace")) and len(done) > 100
    assert all(totals(home / "monitor.done")[0]["complete"] for home in done[::40])
    for home in run_dir.path.glob("*.0"):
        shutil.rmtree(home)     # as slurmstepd does
    assert wait_until(lambda: run_dir.descriptors() <= descriptors, 30), run_dir.descriptors()
    # The address sanitizer keeps what was freed.
    assert "ASAN_OPTIONS" in os.environ or run_dir.kilobytes() < kilobytes + 8192
    assert "not recorded" not in run_dir.said()
    print(f"{len(done) - 2} of 1000 steps were recorded, the others ended before")


def test_steps_that_overlap_have_the_same_counts(run_dir):
    """Two steps on the same PUs, of one user: each has all that was done there."""
    homes = [run_dir.begin(name, hz=20) for name in ("7.0", "7.1")]
    assert all(wait_until((home / "monitor.trace").exists, 30) for home in homes)
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True, timeout=60)
    for home in homes:
        run_dir.end(home)
    assert all(recorded(home) for home in homes)
    assert all(totals(home / "monitor.done")[1]["busy"] >= 0.4e9 for home in homes)


def test_overlapping_steps_of_a_user_are_limited(run_dir):
    """Each holds descriptors for all its PUs. Another user's is recorded, and so is one when there is room again."""
    homes = [run_dir.begin(f"8.{i}", hz=1) for i in range(16)]
    assert all(wait_until((home / "monitor.trace").exists, 30) for home in homes)
    run_dir.begin("8.16", hz=1)
    assert wait_until(lambda: "step 8.16: not recorded: 16 steps of uid 0" in run_dir.said(), 30)
    other = run_dir.begin("9.0", hz=1, uid=65534)
    assert wait_until((other / "monitor.trace").exists, 30)
    run_dir.end(homes[0])
    last = run_dir.begin("8.17", hz=1)
    assert wait_until((last / "monitor.trace").exists, 30)
    assert not (run_dir.path / "8.16" / "monitor.trace").exists()


def test_run_dir_that_is_not_there(run_dir):
    """It is created below a directory that exists, and that is said."""
    assert f"RunDir={run_dir.path}: created; if it is mistyped" in run_dir.said()
    run_dir.daemon.stop()
    run_dir.conf.write_text(f"RunDir={run_dir.path}/no/run\n")
    done = run(BUILD / "topiary-monitor", "--config", run_dir.conf)
    assert done.returncode == 1 and f"RunDir={run_dir.path}/no/run: No such file or directory" in done.stderr, done
    run_dir.conf.write_text(f"RunDir={run_dir.path}\n")
    before = len(run_dir.said())
    run_dir.start()
    assert "created" not in run_dir.said()[before:]


def test_hangup_is_logged_and_ignored(run_dir):
    assert wait_until((run_dir.begin("7.0") / "monitor.trace").exists, 30)
    os.kill(run_dir.daemon.pid, signal.SIGHUP)
    assert wait_until(lambda: "SIGHUP ignored: restart topiary-monitor" in run_dir.said(), 30), run_dir.said()
    assert wait_until((run_dir.begin("7.1") / "monitor.trace").exists, 30), "it goes on"
    assert run_dir.said().count("SIGHUP") == 1


def test_what_else_is_in_run_dir(run_dir, tmp_path):
    """Links, folders that another user may write to, requests that are no files: none is followed, all are left."""
    secret = tmp_path / "secret"
    secret.write_text(ASK.format(uid=0, hz=1, set="sw"))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(run_dir.begin("1.0"), elsewhere, ignore=shutil.ignore_patterns("monitor.trace", "monitor.live"))
    (run_dir.path / "2.0").symlink_to(elsewhere)
    homes = {name: run_dir.path / name for name in ("3.0", "4.0", "5.0", "6.0")}
    for home in homes.values():     # complete when it is seen first
        made = tmp_path / home.name
        made.mkdir()
        made.chmod(0o777 if home.name == "5.0" else 0o755)
        (made / "topology.xml").write_bytes(run_dir.tree)
        made.rename(home)
    (homes["3.0"] / "monitor.ask").symlink_to(secret)
    os.mkfifo(homes["4.0"] / "monitor.ask")
    (homes["5.0"] / "monitor.ask").write_text(secret.read_text())
    (homes["6.0"] / "monitor.trace").symlink_to(secret)
    (homes["6.0"] / "new").write_text(secret.read_text())
    os.link(homes["6.0"] / "new", homes["6.0"] / "monitor.ask")
    for name in ("7", "8.0x", "9" * 200, "0.0\n", "%s%n.0"):
        (run_dir.path / name).mkdir()
    last = run_dir.begin("10.0")
    assert wait_until((last / "monitor.trace").exists, 30) and run_dir.daemon.alive()
    assert wait_until(lambda: run_dir.said().count("not recorded: ") >= 3, 30), run_dir.said()
    run_dir.end(last)
    assert recorded(last)
    assert secret.read_text() == ASK.format(uid=0, hz=1, set="sw")
    assert {path.name for path in elsewhere.iterdir()} == {"topology.xml", "new", "monitor.ask"}
    for name in ("3.0", "4.0", "5.0"):
        assert not (homes[name] / "monitor.done").exists() and not list(homes[name].glob("monitor.trace"))
    assert "step 6.0: not recorded: monitor.trace: " in run_dir.said()


def test_more_steps_than_it_keeps(run_dir):
    """A RunDir that nobody cleans: what is beyond the limit is not recorded, and does no harm."""
    for i in range(4200):
        (run_dir.path / f"{i + 1}.0").mkdir()
    assert wait_until(lambda: run_dir.descriptors() > 500, 60) and run_dir.daemon.alive()
    for i in range(4200):
        (run_dir.path / f"{i + 1}.0").rmdir()
    last = run_dir.begin("5000.0")
    assert wait_until((last / "monitor.trace").exists, 60), run_dir.said()[-500:]
    run_dir.end(last)
    assert recorded(last)


# --- kernels that let nobody count: seccomp of containers, kernel.perf_event_paranoid, lockdown, none of it built in


FORBIDDEN = pytest.mark.parametrize("error", [errno.EPERM, errno.EACCES, errno.ENOSYS],
                                    ids=lambda error: errno.errorcode[error])
WRAPPER = ("import os, sys; sys.path.insert(0, {rig!r}); from rig.forbidden import forbid; "
           "forbid('perf_event_open', {error})(); os.execv(sys.argv[1], sys.argv[1:])")


@pytest.mark.skipif(not known(), reason="the number of the system call is not known here")
@FORBIDDEN
def test_monitor_without_perf(tmp_path, tree, error):
    """The busy time is /proc/stat's, and the reason for the rest is in the log, once a step."""
    run_dir = RunDir(tmp_path, tree)
    run_dir.start([sys.executable, "-c", WRAPPER.format(rig=str(Path(__file__).resolve().parents[1]), error=error)])
    try:
        home = run_dir.begin("1.0", hz=20, sets="cpu")
        assert wait_until((home / "monitor.trace").exists, 30), run_dir.said()
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True,
                       timeout=60)
        run_dir.end(home)
        assert recorded(home)
    finally:
        run_dir.daemon.stop()
    found, metrics = totals(home / "monitor.done")
    assert found["complete"] and metrics["busy"] >= 0.2e9
    assert not {"context_switches", "cycles", "minor_faults"} & set(metrics)
    assert run_dir.said().count("step 1.0: recorded at 20 Hz") == 1
    assert os.strerror(error) in run_dir.said(), run_dir.said()


@pytest.mark.skipif(not known(), reason="the number of the system call is not known here")
@FORBIDDEN
def test_record_without_perf(tmp_path, error):
    """The command runs as without it."""
    done = topiary("record", "-o", tmp_path / "trace", "sh", "-c", "echo out; exit 3",
                   preexec_fn=forbid("perf_event_open", error))
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert done.stderr.count("\n") == 1 and "not recorded: " in done.stderr and os.strerror(error) in done.stderr


def test_feed_of_a_large_node_is_whole(run_dir):
    """What `topiary top` reads from a node: of 128 PUs it takes several lines a tick."""
    run_dir.tree = subprocess.run(["lstopo-no-graphics", "--input", "package:2 core:32 pu:2", "--of", "xml", "-"],
                                  capture_output=True, timeout=60, check=True).stdout
    home = run_dir.begin("7.0", hz=20)
    assert wait_until((home / "monitor.live").exists, 30), run_dir.said()
    with subprocess.Popen([BUILD / "topiary", "top", "--feed", "cn1=7.0", "--config", run_dir.conf],
                          stdout=subprocess.PIPE, text=True) as feed:
        words = [feed.stdout.readline().split() for _ in range(20)]
        feed.kill()
    run_dir.end(home)
    assert any(word == ["cn1", "data"] for word, in ([w[:2]] for w in words)), words
    trace = home.parent.parent / "fed"
    trace.write_bytes(b"".join(base64.b64decode(w[2]) for w in words if w[1] in ("data", "tick")))
    found, _ = totals(trace)
    assert found["ticks"] > 0
