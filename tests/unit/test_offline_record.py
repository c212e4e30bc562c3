# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary record: a command runs as without it, and what the kernel counted of it is in the trace, on the PU where it
was."""
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from rig.command import topiary
from rig.paths import BUILD
from rig.processes import wait_until

TOPIARY = BUILD / "topiary"
BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
PARANOID = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
PUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def needs_a_kernel_that_counts(tmp_path_factory):
    """Containers may forbid it, and kernel.perf_event_paranoid of 3 or more forbids it to users."""
    done = topiary("record", "--output", tmp_path_factory.mktemp("probe") / "trace", "true", status=0)
    if re.search(r"not recorded: perf_event_open: (Operation not permitted|Permission denied)", done.stderr):
        pytest.skip("the kernel lets nobody count here")


def record(tmp_path, *command, options=(), **how):
    return topiary("record", "--output", tmp_path / "trace", *options, *command, **{"cwd": tmp_path, **how})


def totals(tmp_path, level="Machine", warning=""):
    """{(metric, object): total} of the trace, which is complete if there is to be no warning."""
    done = topiary("trace", "summary", tmp_path / "trace", "--level", level, "--json", status=0)
    assert warning in done.stderr if warning else not done.stderr
    return {(m["metric"], m["object"]): m["total"] for m in json.loads(done.stdout)["metrics"]}


@pytest.mark.parametrize("command, status", [
    (["true"], 0), (["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -9 $$"], 137), (["no-such-program"], 127),
    (["/"], 126),
    (["printf", "%s", "--output=x", "-h"], 0),
], ids=str)
def test_command_is_as_without_us(tmp_path, command, status):
    done = record(tmp_path, *command)
    assert done.returncode == status, done.stderr
    assert done.stdout == "".join(command[2:] if command[0] == "printf" else [])


def test_input_and_environment_are_the_commands(tmp_path):
    done = record(tmp_path, "sh", "-c", "cat; ulimit -n; echo $X", input="in\n", env={**os.environ, "X": "x"})
    assert done.stdout == f"in\n{resource.getrlimit(resource.RLIMIT_NOFILE)[0]}\nx\n"


@pytest.mark.parametrize("pu", PUS[:2])
def test_run_time_is_that_of_the_kernel_on_that_pu(tmp_path, pu):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert record(tmp_path, "taskset", "-c", str(pu), sys.executable, "-c", BURN.format(0.5),
                  options=["--hz=20"]).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    busy = {index: total * 1e-9 for (metric, index), total in totals(tmp_path, "PU").items() if metric == "busy"}
    assert 0.5 <= busy[PUS.index(pu)] <= spent + 0.01
    assert sum(busy.values()) - busy[PUS.index(pu)] < 0.1


def test_what_the_command_starts_is_counted(tmp_path):
    assert record(tmp_path, "sh", "-c",
                  f"for i in 1 2 3; do {sys.executable} -c '{BURN.format(0.2)}' & done; wait").returncode == 0
    found = totals(tmp_path)
    assert 0.6 <= found["busy", 0] * 1e-9 < 2
    assert found["minor_faults", 0] > 1000


def test_page_faults_are_all_counted(tmp_path):
    touch = ("import mmap, sys; m = mmap.mmap(-1, 4096 * {0}); m.madvise(mmap.MADV_NOHUGEPAGE)\nfor i in range({0}): "
             "m[4096 * i] = 1")
    counted = []
    for pages in (1, 20001):
        assert record(tmp_path, sys.executable, "-c", touch.format(pages)).returncode == 0
        counted.append(totals(tmp_path)["minor_faults", 0])
    assert abs(counted[1] - counted[0] - 20000) < 500


def test_events_that_a_machine_does_not_have_are_left_out(tmp_path):
    done = record(tmp_path, sys.executable, "-c", BURN.format(0.3), options=["--set=cpu"])
    assert done.returncode == 0
    found = {metric for metric, _ in totals(tmp_path)}
    for name in ("cycles", "instructions", "near_fills", "far_fills", "l3_misses", "flops"):
        assert (name in found) != bool(re.search(rf"\b{name}\b[^:]* not counted: ", done.stderr))
        assert name not in found or totals(tmp_path)[name, 0] is not None


def interface_bytes(way):
    """Of the Ethernet devices that are hardware."""
    return {path.name: int((path / "statistics" / f"{way}_bytes").read_text())
            for path in Path("/sys/class/net").iterdir()
            if (path / "device").exists() and (path / "type").read_text().strip() == "1"}


def test_what_lies_above_the_pu(tmp_path):
    """Memory, disks and network of this machine, if all its PUs are ours; a source with nothing here has its reason."""
    before = {way: interface_bytes(way) for way in ("rx", "tx")}
    done = record(tmp_path, "sh", "-c", "dd if=/dev/zero of=file bs=1M count=8 oflag=dsync 2> /dev/null",
                  options=["--set=power+net+gpu", "--hz=10"])
    after = {way: interface_bytes(way) for way in ("rx", "tx")}
    assert done.returncode == 0
    found = totals(tmp_path)
    if len(PUS) != os.cpu_count():
        assert "no net: the job has only a part of the node" in done.stderr
        return
    assert ("memory_used", 0) in found
    for event, way in (("net_received", "rx"), ("net_sent", "tx")):
        for device, counted in before[way].items():
            name = re.sub(r"[^\w.:]", "_", device)
            assert found[f"{event}.{name}", 0] <= after[way][device] - counted
    if "no disk_read" not in done.stderr:
        assert found["disk_written", 0] > 0 or os.stat(tmp_path).st_dev >> 8 == 0, "a file system in memory"
    told = done.stderr.splitlines()
    assert sum("no gpu: " in line for line in told) == 1 or any(name.startswith("gpu_") for name, _ in found)
    assert sum("no power: " in line for line in told) == 1 or any(name.endswith("_energy") for name, _ in found)


@pytest.mark.skipif(os.geteuid() != 0 or PARANOID != 2, reason="needs root, and kernel.perf_event_paranoid of 2")
def test_user_who_may_not_count_in_the_kernel(tmp_path):
    """A count of context switches without the kernel is always 0: it is left out, not shown."""
    tmp_path.chmod(0o777)
    for folder in [*tmp_path.parents][:-2]:
        folder.chmod(folder.stat().st_mode | 0o011)
    done = record(tmp_path, "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", user="nobody",
                  group="nogroup", extra_groups=[])
    assert (done.returncode == 0 and "context_switches and migrations are not counted: " in done.stderr
            and "perf_event_paranoid is 2" in done.stderr)
    found = totals(tmp_path)
    assert found["busy", 0] > 0.05e9 and found["minor_faults", 0] > 0 and ("context_switches", 0) not in found


@pytest.mark.parametrize("options, why", [
    (["--output", "/no/such/folder/trace"], "not recorded: /no/such/folder/trace: No such file or directory"),
    (["--output", "/dev/full"], "not recorded: /dev/full: not a regular file"),
])
def test_command_does_not_notice_that_nothing_is_recorded(tmp_path, options, why):
    done = record(tmp_path, "sh", "-c", "sleep 0.3; echo out; exit 4", options=[*options, "--hz=1000"])
    assert (done.returncode, done.stdout) == (4, "out\n")
    assert why in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command, status", [
    (["record", "-o", "pipe", "sh", "-c", "exit 4"], 4), (["record", "-o", "pipe", f"--pid={os.getpid()}"], 1),
    (["top", "-o", "pipe", "true"], 1),
], ids=["record", "record --pid", "top"])
def test_pipe_without_a_reader_is_refused(tmp_path, command, status):
    os.mkfifo(tmp_path / "pipe")
    done = topiary(*command, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert done.stderr.endswith(": pipe: not a regular file\n") and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("before", [None, "a trace"])
def test_command_that_does_not_run_leaves_the_file_alone(tmp_path, before):
    if before:
        (tmp_path / "trace").write_text(before)
        (tmp_path / "trace.phases").write_text("its phases")
    assert record(tmp_path, "no-such-program").stderr == "topiary: no-such-program: No such file or directory\n"
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == ({"trace": before, "trace.phases": "its phases"} if before else {})


@pytest.mark.parametrize("command", ["record", "top"])
def test_full_disk_leaves_no_empty_trace(tmp_path, command):
    done = topiary(command, "-o", "trace", "echo", "out", cwd=tmp_path,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert "trace: File too large" in done.stderr and "out" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_too_few_descriptors_for_the_counters(tmp_path):
    done = record(tmp_path, "echo", "out", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert "not recorded: " in done.stderr and "limit of open files is 40" in done.stderr


@pytest.mark.parametrize("status", [0, 4])
def test_trace_at_the_limit_of_a_files_size(tmp_path, status):
    """ulimit -f: room for the head of a trace, which differs by some bytes in its time, and for no block."""
    assert record(tmp_path, "true").returncode == 0
    head = 40 + struct.unpack_from("<I", (tmp_path / "trace").read_bytes(), 16)[0]
    done = record(tmp_path, "sh", "-c", f"sleep 1; echo out; exit {status}", options=["--hz=100"],
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (head + 50, head + 50)))
    assert (done.returncode, done.stdout) == (status, "out\n")
    assert "trace: File too large" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "trace").exists()


def test_caller_that_ignores_sigchld(tmp_path):
    done = record(tmp_path, "sh", "-c", "exit 4", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 4 and totals(tmp_path)


def start(tmp_path, *command, options=("--hz=50",)):
    return subprocess.Popen([TOPIARY, "record", "--output", tmp_path / "trace", *options, *command],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ticks_of(tmp_path):
    done = topiary("trace", "summary", tmp_path / "trace", "--json")
    return json.loads(done.stdout)["ticks"] if done.returncode == 0 else 0


def wait_for_ticks(tmp_path, n):
    assert wait_until(lambda: ticks_of(tmp_path) >= n, 30)


def test_recorder_that_is_killed_leaves_the_command_and_what_was_recorded(tmp_path):
    recorder = start(tmp_path, "sh", "-c", "echo $$; sleep 60")
    child = int(recorder.stdout.readline())
    wait_for_ticks(tmp_path, 60)
    recorder.kill()
    recorder.wait(10)
    os.kill(child, signal.SIGTERM)
    found = totals(tmp_path, warning="has no index")
    with open(tmp_path / "trace", "ab") as trace:
        trace.write(bytes(8192))    # as a power failure leaves it
    assert found and totals(tmp_path, warning="has no index") == found


def test_live_trace_has_each_tick_at_once(tmp_path):
    """Without --live a block of 60 ticks is written together, here after 12 s."""
    recorder = start(tmp_path, "sleep", "60", options=["--hz=5", "--live"])
    for n in (1, 2, 5):
        wait_for_ticks(tmp_path, n)
    assert ticks_of(tmp_path) < 50
    recorder.terminate()
    recorder.communicate(timeout=30)


def test_signal_to_end_reaches_the_command(tmp_path):
    recorder = start(tmp_path, "sh", "-c", "trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    assert recorder.stdout.readline() == "ready\n"
    recorder.terminate()
    assert recorder.communicate(timeout=30)[0] == "term\n" and recorder.returncode == 5
    assert totals(tmp_path)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("ended_by", ["its own end", "SIGINT"])
def test_process_that_runs_already(tmp_path, ended_by):
    threads = ("import threading\ndef burn():\n    while True: sum(range(10000))\nfor _ in range(3): "
               "threading.Thread(target=burn).start()\n")
    watched = subprocess.Popen([sys.executable, "-c", threads])
    try:
        recorder = start(tmp_path, options=["--hz=50", f"--pid={watched.pid}"])
        wait_for_ticks(tmp_path, 60)
        used = cpu_seconds(watched.pid)
        assert wait_until(lambda: cpu_seconds(watched.pid) > used + 0.3, 60)
        if ended_by == "SIGINT":
            recorder.send_signal(signal.SIGINT)
        else:
            watched.kill()
        recorder.communicate(timeout=30)
        assert recorder.returncode == 0 and totals(tmp_path)["busy", 0] > 0.2e9
        assert (watched.poll() is None) == (ended_by == "SIGINT")
    finally:
        watched.kill()
        watched.wait()


@pytest.mark.parametrize("options, why", [
    ([], "expected a COMMAND, or --pid"),
    (["--pid=1", "true"], "expected a COMMAND, or --pid"),
    (["--set=all", "true"], "--set=all: expected sw, cpu, power, net or gpu, or several joined by +"),
    (["--set=cpu+", "true"], "--set=cpu+: expected sw"),
    (["--hz=0", "true"], "--hz"),
    ([f"--pid={2**31 - 1}"], f"process {2**31 - 1}: No such process"),
])
def test_bad_input(tmp_path, options, why):
    done = record(tmp_path, *options)
    assert done.returncode != 0 and why in done.stderr, done.stderr


def advised(*traces):
    """{kind: evidence} of what is found in the traces."""
    done = topiary("trace", "advise", *traces, "--json", status=0)
    return {check["kind"]: check["evidence"] for check in json.loads(done.stdout)["checks"]
            if check["result"] == "found"}


def at_high_priority(script):
    """Within the session and as a session, so that what else runs on this machine takes little of the PUs."""
    return ["setsid", "--wait", "nice", "-n", "-20", "sh", "-c",
            f"test ! -w /proc/self/autogroup || echo -20 > /proc/self/autogroup; {script}"]


if len(PUS) > 1 and not os.geteuid():
    LOOP = "timeout 2 sh -c 'while :; do :; done'"
    PLACES = pytest.mark.parametrize("places, shared", [((0, 0), True), ((0, 1), False)],
                                     ids=["two threads on a PU", "a PU each"])

    @PLACES
    def test_advice_about_where_threads_were(tmp_path, places, shared):
        loops = " & ".join(f"taskset -c {PUS[n]} {LOOP}" for n in places)
        assert record(tmp_path, *at_high_priority(f"{loops} & wait"), options=["--hz=10"]).returncode == 0
        found = advised(tmp_path / "trace")
        assert ("shared PU" in found) == ("idle cores" in found) == shared, found
        assert not shared or f"1 of {len(PUS)} PUs were full" in found["shared PU"]

    @PLACES
    def test_advice_about_ranks_that_are_recorded_apart(tmp_path, places, shared):
        """As by srun topiary record: only together they show which cores are idle. Of a shared PU, each has half."""
        ranks = " & ".join(f"{TOPIARY} record -r 10 -o {tmp_path}/{rank} taskset -c {PUS[n]} {LOOP}"
                           for rank, n in enumerate(places))
        subprocess.run(at_high_priority(f"{ranks} & wait"), capture_output=True, timeout=60, check=True)
        assert shared or all("idle cores" in advised(tmp_path / str(rank)) for rank in (0, 1))
        found = advised(tmp_path / "0", tmp_path / "1")
        assert ("shared PU" in found) == ("idle cores" in found) == shared, found
