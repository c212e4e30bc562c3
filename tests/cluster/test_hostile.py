# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A user who means harm: on a node he gets at most one warning and a job as without us, and leaves nothing behind."""
import ctypes
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from rig import Cluster
from rig.ask import wait_running
from rig.cluster import JOB_USER, SLURM_RELEASE, as_user
from rig.node import STAMP, cgroups_removed, configured, little_room, log_of, own_disk
from rig.paths import ROOT, SLURM_PREFIX
from rig.processes import Daemon, descendants, wait_until

NODES = {"cn1": "amd-4x16", "cn5": None}
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
# Seconds after which Slurm drains a node whose step does not end: well below MapTimeout's default.
UNKILLABLE = 45


def compiled(source, target, *flags):
    headers = [f"-I{SLURM_PREFIX}/include"] if SLURM_PREFIX else []
    subprocess.run(["gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", *headers, *flags, "-o", target,
                    ROOT / "tests/cluster" / source],
                   check=True)


class Watched(Cluster):
    """cn5, this machine itself, tells who parses XML there; and a user may bring a client of his own."""

    def prepare(self):
        super().prepare()
        # What slurmstepd forks is not in the step's container, as with proctrack/cgroup, which needs a machine's own
        # cgroups.
        conf = self.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text().replace("proctrack/linuxproc", "proctrack/pgid"))
        compiled("hostile_watch.c", self.folder / "bin" / "watch.so", f'-DWATCH_FILE="{self.watch_file}"')
        compiled("hostile_client.c", self.folder / "work" / "client.so")
        (self.folder / "work" / "plugstack.conf").write_text(f"required {self.folder}/work/client.so\n")
        conf = (self.folder / "etc" / "slurm.conf").read_text()
        (self.folder / "work" / "slurm.conf").write_text(
            re.sub("PlugStackConfig=.*", f"PlugStackConfig={self.folder}/work/plugstack.conf", conf))
        self.watch_file.write_bytes(b"\0")

    @property
    def watch_file(self):
        return self.folder / "work" / "watch"

    def node_env(self, node):
        env = super().node_env(node)
        return {**env, "LD_PRELOAD": f"{self.folder}/bin/watch.so"} if node == "cn5" else env

    def run_dir(self, node):
        return self.folder / "nodes" / node / "run"

    def own_client(self):
        """The environment of a user whose commands load his own plugin in place of ours."""
        return self.env(SLURM_CONF=str(self.folder / "work" / "slurm.conf"))


@pytest.fixture(scope="module")
def whole(folders):
    assert os.geteuid() == 0, "only root can start a cluster with daemons and jobs of several users"
    with Watched(folders(), NODES, registry=False, conf=f"UnkillableStepTimeout={UNKILLABLE}\n") as made:
        yield made


def srun(cluster, *words, env=None, check=True):
    return cluster.command(["srun", *words], user=JOB_USER, env=env, check=check)


def own_job(cluster, script, *options, env=None):
    """A batch job by the user's own client: its number and the lines of its output."""
    work = cluster.folder / "work"
    number = cluster.command(["sbatch", "--parsable", f"--output={work}/out.%j", *options, f"--wrap={script}"],
                             user=JOB_USER, env={**cluster.own_client(), **(env or {})}).stdout.strip()
    assert cluster.wait_job(number) == "COMPLETED"
    return number, (work / f"out.{number}").read_text().split("\n")


def ours(log):
    return [line for line in log if "topiary: " in line]


# --- what arrives on the node has been checked by nobody

LONG = "a" * 100000
FORGED = "\n[2026-01-01T00:00:00.000] error: forged\x1b[2J"


UNCHECKED = [
    ("topo-place", "junk", "--topo-place=junk: invalid value, expected one of: "),
    ("topo-place", f"compact:{LONG}", "--topo-place=compact:aaa"),
    ("topo-place", f"compact:{FORGED}", "--topo-place=compact: [2026"),
    ("topo-membind", "%n%s%n%s", "--topo-membind=%n%s%n%s: invalid value, expected one of: "),
    ("topo-omp", "", "--topo-omp=: invalid value, expected one of: "),
    ("topo-hugepages", "thp\t", "--topo-hugepages=thp : invalid value, expected one of: "),
    ("topo-nic", "one,strict,strict", "--topo-nic=one,strict,strict: invalid value, expected one of: "),
    ("topo-report", "../../etc/passwd", "--topo-report=../../etc/passwd: invalid value, expected one of: "),
    ("topo-matrix", f"/{LONG}", "--topo-matrix: longer than 4095 bytes"),
    ("topo-order", "junk", "--topo-order=junk: expected off or fabric"),
    ("topo-capture", f"/{LONG}", "--topo-capture: longer than "),
]


@pytest.mark.parametrize("batch, option, value, words", [
    *((False, *row) for row in UNCHECKED), (True, *UNCHECKED[2]), (True, *UNCHECKED[-1])],
    ids=lambda v: re.sub(r"[^\w,.:/-]", "_", v)[:24] if isinstance(v, str) else "sbatch" if v else "srun")
def test_unchecked_option_is_one_warning(cluster, option, value, words, batch):
    """By the user's own client; and as a variable of the job's environment, which is how a batch job carries its
    options."""
    show = "echo ran $TOPIARY_STEP_DIR"
    with log_of(cluster, "cn1") as log:
        if batch:
            variable = f"_SLURM_SPANK_OPTION_topiary_{option.replace('-', '_')}"
            said = "\n".join(own_job(cluster, show, "-w", "cn1", "-n1", env={variable: value})[1])
        else:
            said = srun(cluster, "-w", "cn1", "-n1", f"--{option}={value}", "sh", "-c", show,
                        env=cluster.own_client()).stdout
    assert re.fullmatch(rf"ran {cluster.run_dir('cn1')}/\d+\.\w+\n", said)
    assert len(ours(log)) == 1 and words in ours(log)[0] and ours(log)[0].endswith("; ignored"), ours(log)
    assert not [line for line in log if line and not (STAMP.match(line) and line.isprintable())]


@pytest.mark.parametrize("option, value, words", [
    ("topo-fit", f"require{FORGED}", "--topo-fit=require?[2026"),
    ("topo-request", LONG, "not of the form /package=1"),
], ids=lambda text: re.sub(r"[^\w,.:/-]", "_", text)[:24])
def test_unchecked_request_is_refused(cluster, option, value, words):
    """slurmctld checks what it acts on, before there is a job."""
    log = cluster.folder / "log" / "slurmctld.log"
    size = log.stat().st_size
    done = srun(cluster, "-w", "cn1", "-n1", f"--{option}={value}", "true", env=cluster.own_client(), check=False)
    assert done.returncode and words in done.stderr, done.stderr
    said = log.read_bytes()[size:]
    assert b"\x1b" not in said + done.stderr.encode() and b"\n[2026-01-01T" not in said


# --- files that are not what they should be

def place_matrix(work, kind):
    """A path for --topo-matrix, and the words about it."""
    path = work / f"matrix.{kind}"
    if kind == "fifo":
        os.mkfifo(path, 0o666)
    elif kind == "root's":
        secret = work / "secret"
        secret.write_text("0 1\n1 0\ntop-secret\n")
        secret.chmod(0o600)
        path.symlink_to(secret)
        return path, "Permission denied"
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
        return path, "File too large"
    elif kind == "relative":
        return Path("../../etc/shadow"), "not an absolute path"
    elif kind == "control characters":
        return Path(str(path) + FORGED), "No such file"
    return path, "not a regular file"


@pytest.mark.parametrize("kind", ["fifo", "root's", "huge", "relative", "control characters"])
def test_invalid_matrix_is_one_warning(cluster, kind):
    path, words = place_matrix(cluster.folder / "work", kind)
    _, said = own_job(cluster, "echo ran $TOPIARY_RANKFILE", "-w", "cn1", "-n2", f"--topo-matrix={path}")
    assert "ran" in said, said
    assert len(ours(said)) == 1 and "has no rank file: " in ours(said)[0] and words in ours(said)[0], said
    assert all(line.isprintable() for line in said) and "top-secret" not in str(said), said


def place_capture(work, kind, number):
    """What already stands where the job's ranks would write."""
    folder = work / f"capture.{kind}.{number}"
    if kind == "link":
        (work / "victim").mkdir(mode=0o777, exist_ok=True)
        (work / "victim" / "rank.0").touch()
        folder.symlink_to(work / "victim")
    elif kind == "fifo":
        os.mkfifo(folder, 0o666)
    elif kind != "nowhere":
        folder.mkdir()
        folder.chmod(0o755 if kind == "root" else 0o777)
        (folder / "rank.0").touch()
        shutil.chown(folder, kind)


@pytest.mark.parametrize("kind", ["link", "fifo", "root", "games", "nowhere"])
def test_capture_into_what_is_not_the_users(cluster, kind):
    work = cluster.folder / "work"
    path = work / f"capture.{kind}" if kind != "nowhere" else Path("/proc/nowhere/capture")
    number = cluster.command(["sbatch", "--parsable", "--hold", "-w", "cn1", "-n1", f"--output={work}/out.%j",
                              f"--topo-capture={path}", "--wrap=echo ran $TOPIARY_CAPTURE"], user=JOB_USER,
                             env=cluster.own_client()).stdout.strip()
    place_capture(work, kind, number)
    cluster.command(["scontrol", "release", number])
    assert cluster.wait_job(number) == "COMPLETED"
    said = (work / f"out.{number}").read_text().split("\n")
    assert "ran" in said and len(ours(said)) == 1 and f"job {number} is not captured: " in ours(said)[0], said
    assert kind != "link" or (work / "victim" / "rank.0").exists()
    assert kind not in ("root", "games") or [file.name for file in (work / f"capture.{kind}.{number}").iterdir()] == [
        "rank.0"]


# --- the environment is the user's

def set_as_told(**variables):
    """TOPIARY_TASK_ENV, forged: all of these are what a step around this one was given."""
    def fnv(text):
        value = 0xcbf29ce484222325
        for byte in text.encode():
            value = (value ^ byte) * 0x100000001b3 % (1 << 64)
        return value

    return {**variables, "TOPIARY_TASK_ENV": "".join(f"{name}:{fnv(value):016x} " for name, value in variables.items())}


ALL_OPTIONS = ["--topo-place=compact", "--topo-membind=bind", "--topo-omp=auto", "--topo-nic=all,strict",
               "--topo-hugepages=thp", "--topo-report=json"]


@pytest.mark.parametrize("forged, words, left", [
    ({"TOPIARY_TASK_ENV": "A" * 100000}, None, {}),
    ({"TOPIARY_TASK_ENV": "A " * 2000, "A": LONG}, None, {"A": True}),
    ({"TOPIARY_TASK_ENV": "%s%n:: :0 \n=: MINE:0", "MINE": "1"}, None, {"MINE": True}),
    ({**set_as_told(MINE="1"), "MINE": "2"}, None, {"MINE": True}),
    (set_as_told(MINE="1", PWD="/"), None, {"MINE": False}),
    ({"TOPIARY_STEP_DIR": "/etc", "HWLOC_XMLFILE": "/etc/shadow"}, None, {"HWLOC_XMLFILE": True}),
    ({"TOPIARY_STEP_DIR": LONG, "TOPIARY_CAPTURE": LONG, "TOPIARY_CAPTURE_PRELOAD": LONG, "TOPIARY_RANKFILE": LONG},
     None, {}),
    ({"TOPIARY_PLACES": "cn1:" + "9" * 100000}, "(TOPIARY_PLACES) has a syntax error at '999", {}),
    ({"TOPIARY_PLACES": "cn1:1-0%n\x1b[2J\n"}, "(TOPIARY_PLACES) has a syntax error at '", {}),
    ({"TOPIARY_PLACES": "cn1:60000,60001"}, "the step does not have all cores", {}),
    ({"TOPIARY_PLACES": "cn1:" + "0," * 50000 + "0"}, "the step does not have all cores or tasks", {}),
    ({"GLIBC_TUNABLES": LONG}, "GLIBC_TUNABLES is longer than 4095 bytes", {"GLIBC_TUNABLES": True}),
    ({"OMP_NUM_THREADS": "\x1b[2J\n" * 1000, "OMP_PLACES": "\xff"}, None, {"OMP_NUM_THREADS": True}),
    ({"CUDA_VISIBLE_DEVICES": "9" * 5000, "SLURM_STEP_GPUS": "-1,4294967297," * 300}, None, {}),
    ({"ROCR_VISIBLE_DEVICES": "GPU-%n,\x1b[2J,,,", "SLURMD_NODENAME": LONG}, None, {}),
    ({"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": "0x" + "f" * 100000}, None, {}),
], ids=lambda value: "+".join(value) if isinstance(value, dict) else "")
def test_forged_environment_is_at_most_one_warning(cluster, forged, words, left):
    command = ["srun", "-n2", *ALL_OPTIONS, "sh", "-c", "echo ran; env | cut -d= -f1"]
    if "TOPIARY_PLACES" in forged:
        hosts = cluster.folder / "work" / "hosts"
        hosts.write_text("cn1\ncn1\n")
        command = ["env", f"SLURM_HOSTFILE={hosts}", f"TOPIARY_HOSTFILE={hosts}", *command]
    with log_of(cluster, "cn1") as log:
        done = cluster.command(["salloc", "-Q", "-w", "cn1", "-n2", *command], user=JOB_USER, env=cluster.env(**forged))
    said = {line.partition("topiary: ")[2] for line in ours([*log, *done.stderr.split("\n")])}
    assert done.stdout.split("\n").count("ran") == 2
    assert len(said) == bool(words) and all(words in line for line in said), said
    assert {name: name in done.stdout.split("\n") for name in left} == left
    assert "\x1b" not in done.stderr + "".join(log)


class Watch:
    """Who opens the files of a folder: only root can, and what is tried in vain is not seen."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(IN_NONBLOCK)
        for path in [folder, *folder.rglob("*")]:
            assert libc.inotify_add_watch(self.fd, str(path).encode(), IN_OPEN) > 0

    def seen(self):
        try:
            return os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def bait(cluster):
    """What a user may name in his environment for root to swallow; he cannot open it himself."""
    folder = cluster.folder / "bait"
    files = {"HWLOC_XMLFILE": "topology.xml", "HWLOC_FSROOT": "root/sys/devices/system/cpu/online",
             "HWLOC_CPUID_PATH": "cpuid/pu0", "HWLOC_PLUGINS_PATH": "plugins/hwloc_evil.so",
             "HWLOC_DUMPED_HWDATA_DIR": "hwdata/knl", "LD_PRELOAD": "preload.so",
             "LD_LIBRARY_PATH": "lib/libhwloc.so.15", "TOPIARY_CONF": "topiary.conf",
             "TOPIARY_STEP_DIR": "step/topology.xml", "TOPIARY_HOSTFILE": "hosts", "OPENSSL_CONF": "openssl.cnf",
             "XML_CATALOG_FILES": "catalog", "SGML_CATALOG_FILES": "sgml", "LOCPATH": "locale/C.UTF-8",
             "GCONV_PATH": "gconv/gconv-modules", "MALLOC_TRACE": "trace", "TMPDIR": "tmp/file", "HOME": "home/.config",
             "TOPIARY_CAPTURE": "capture/rank.0", "TOPIARY_RANKFILE": "rankfile"}
    for name in files.values():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("bait\n")
    folder.chmod(0o700)
    single = ("HWLOC_XMLFILE", "LD_PRELOAD", "TOPIARY_CONF", "TOPIARY_HOSTFILE", "OPENSSL_CONF", "XML_CATALOG_FILES",
              "SGML_CATALOG_FILES", "MALLOC_TRACE", "TOPIARY_RANKFILE")
    yield {name: str(folder / (file if name in single else file.split("/", maxsplit=1)[0]))
           for name, file in files.items()}
    shutil.rmtree(folder)


def test_root_reads_nothing_that_the_environment_names(cluster, bait, matrix):
    watch = Watch(cluster.folder / "bait")
    script = f"printenv HWLOC_XMLFILE; mpirun -n 2 true; srun -n2 {' '.join(ALL_OPTIONS)} echo step"
    number, state, output = cluster.job(script, "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}",
                                        f"--topo-capture={cluster.folder}/work/swallowed", variables=bait)
    assert state == "COMPLETED" and output.split("\n").count("step") == 2 and bait["HWLOC_XMLFILE"] in output, output
    assert watch.seen() == b""
    (cluster.folder / "bait" / "topiary.conf").read_text()
    assert watch.seen(), "the watch sees nothing at all"


# --- children

def status_of(text):
    """What the kernel says of a process: {key: the words}; the descriptors are a set."""
    rows = [line.split(":\t", 1) for line in text.split("\n") if ":\t" in line]
    told = {key: value.split() for key, value in rows if key != "fd"}
    return {**told, "fd": {value for key, value in rows if key == "fd"}}


def assert_is_the_users(child, shell):
    """Not only in effect: nothing of root is left to go back to, and there is nothing to become more by."""
    uid, gid = shell["Uid"][0], shell["Gid"][0]
    assert (child["Uid"], child["Gid"]) == ([uid] * 4, [gid] * 4)
    assert set(child["Groups"]) <= set(shell["Groups"])
    assert_can_gain_nothing(child)


def assert_can_gain_nothing(child):
    for kind in ("CapPrm", "CapEff", "CapAmb", "CapInh"):
        assert int(child[kind][0], 16) == 0, kind
    assert child["NoNewPrivs"] == ["1"]


SHELL = "cat /proc/self/status; id -G | sed 's/^/Groups:\t/'"


def processes_of(cluster, word, owner=JOB_USER):
    """
    The pids of a user's processes on this cluster with that in their name or command line, as root finds them. What
    slurmstepd forks has no environment from 26.05 on, but files of the cluster.
    """
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        home = Path("/proc") / entry
        try:
            texts = [(home / name).read_bytes() for name in ("comm", "cmdline", "environ")]
            texts += [os.readlink(file).encode() for file in (home / "fd").iterdir()]
            uid = (home / "status").read_text().split("Uid:\t")[1].split()[0]
        except (OSError, IndexError):
            continue
        if (uid == str(pwd.getpwnam(owner).pw_uid) and word.encode() in b"\0".join(texts[:2])
            and str(cluster.folder).encode() in b"\0".join(texts)):
            found.append(int(entry))
    return found


@pytest.mark.parametrize("options", [[], ["--topo-nic=auto"]], ids=["step", "node"])
def test_image_worker_belongs_to_no_user(cluster, options):
    """What it makes is kept for the steps of other users: none of them can disturb it, and it can do nothing but
    this."""
    shutil.rmtree(cluster.run_dir("cn5") / "cache", ignore_errors=True)
    done, attacks = [], [["kill", "-STOP"], ["kill", "-KILL"], ["prlimit", "--as=4096", "--pid"],
                         ["prlimit", "--nofile", "--pid"]]
    with ThreadPoolExecutor() as pool:
        cluster.watch_file.open("r+b").write(b"1")
        running = pool.submit(srun, cluster, "-w", "cn5", "-n1", *options, "true")
        try:
            assert wait_until(lambda: processes_of(cluster, "topiary-image", "root"), 60)
            pid, = processes_of(cluster, "topiary-image", "root")
            child = status_of(Path(f"/proc/{pid}/status").read_text())
            targets = sorted(os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2)
            for attack in attacks:
                done.append(cluster.command([*attack, pid], user=JOB_USER, check=False))
            readable = cluster.command(["head", "-c1", f"/proc/{pid}/environ"], user=JOB_USER, check=False)
        finally:
            cluster.watch_file.open("r+b").write(b"\0")
        running.result(60)
    assert child["Uid"] == ["0"] * 4 and child["Seccomp"] == ["2"]
    assert_can_gain_nothing(child)
    assert (len(targets) == 3 and all(f"{cluster.run_dir('cn5')}/" in name for name in targets[:2])
            and targets[2].startswith("pipe:")), targets
    assert all(one.returncode for one in [*done, readable])


RECORDER = """\
#!/bin/sh
ls -l /proc/$$/fd > {folder}/work/fds.$1
{{ cat /proc/self/status; sed -n 's/.* \\([0-9]*\\) -> /fd:\t\\1 /p' {folder}/work/fds.$1; \
tr '\\0' '\\n' < /proc/$$/environ | sed 's/^/env:\t/'
}} > {folder}/work/child.$1
exec {folder}/bin/topiary "$@"
"""


def test_files_of_the_user_are_read_as_the_user(cluster, matrix):
    """The commands about a matrix and a capture: these are programs of their own, with an environment of their own."""
    work, recorder = cluster.folder / "work", cluster.folder / "bin" / "recorder"
    recorder.write_text(RECORDER.format(folder=cluster.folder))
    recorder.chmod(0o755)
    for name in ("map", "matrix"):
        (work / f"child.{name}").unlink(missing_ok=True)
    with configured(cluster, f"TopiaryCommand = {recorder}\n"):
        output = cluster.output(SHELL, "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}",
                                f"--topo-capture={work}/users",
                                variables=dict.fromkeys(("LD_LIBRARY_PATH", "HWLOC_XMLFILE", "TOPIARY_REGISTRY"),
                                                        "/nowhere"))
    # 10 and 11 are the recording shell's own.
    for name in ("map", "matrix"):
        text = (work / f"child.{name}").read_text()
        child = status_of(text)
        assert_is_the_users(child, status_of(output))
        assert {line.split()[0] for line in child["fd"] } - {"10", "11"} == {"0", "1", "2"}, child["fd"]
        assert "/nowhere" not in text


@pytest.mark.parametrize("does, words", [
    ("exec 2>&-; kill -STOP $$", "took more than 2 seconds"),
    ("kill -STOP $$", "took more than 2 seconds"),
    ("exec yes >&2", "File too large"),
    ("kill -SEGV $$", "was killed by signal 11"),
    ("exit 3", "topiary matrix failed"),
], ids=["deaf", "stopped", "loud", "crash", "fails"])
def test_child_that_misbehaves_is_one_warning(cluster, matrix, does, words):
    """It is the user's, who may do with it what he likes; slurmstepd, which waits for it, goes on."""
    bad = cluster.folder / "bin" / "bad"
    bad.write_text(f"#!/bin/sh\ntest $1 = map && exec {cluster.folder}/bin/topiary \"$@\"\n{does}\n")
    bad.chmod(0o755)
    capture = cluster.folder / "work" / "misbehaved"
    with configured(cluster, f"TopiaryCommand = {bad}\nMapTimeout = 2\n"):
        number, state, output = cluster.job("echo ran", "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}",
                                            f"--topo-capture={capture}", timeout=20)
    said = output.split("\n")
    assert state == "COMPLETED" and "ran" in said and len(ours(said)) == 1, said
    assert f"job {number}: {capture} was not written: " in ours(said)[0] and words in ours(said)[0], said


def captured(cluster, name, *options, recorded=("--topo-capture={}",)):
    """A job with --topo-capture that sleeps; its number and who gathers what it exchanged, once it has ended."""
    file = cluster.folder / "work" / f"{name}.{time.monotonic_ns()}"
    number = cluster.batch("sleep 300", "-n1", f"--output={file}.out", *(word.format(file) for word in recorded),
                           *options).stdout.strip()
    assert wait_until(lambda: processes_of(cluster, "topiary-merge") and processes_of(cluster, "sleep"), 60)
    return number, processes_of(cluster, "topiary-merge"), Path(f"{file}.out")


@contextmanager
def stopped_command(cluster):
    """The user stops whatever runs as him on behalf of his job."""
    bad = cluster.folder / "bin" / "bad"
    bad.write_text("#!/bin/sh\nkill -STOP $$\n")
    bad.chmod(0o755)
    with configured(cluster, f"TopiaryCommand = {bad}\n"), log_of(cluster, "cn1") as log:
        yield bad
        for pid in [*processes_of(cluster, "topiary-merge"), *processes_of(cluster, str(bad))]:
            os.kill(pid, signal.SIGKILL)
    assert not [line for line in log if "NOT ENDING" in line]


LEARNED = "--topo-matrix=auto:b3", "--export=ALL,TOPIARY_MATRICES={}.kept"


@pytest.mark.parametrize("victim", ["command", "gatherer", "learner"])
def test_stopped_helper_drains_no_node(cluster, victim):
    """A user's other job stops what runs at the end of this one: the step ends without it, and Slurm has nothing to
    complain of."""
    with stopped_command(cluster):
        number, gatherers, output = captured(cluster, "stopped", "-w", "cn1",
                                             **({"recorded": LEARNED} if victim == "learner" else {}))
        if victim != "command":
            cluster.command(["kill", "-STOP", *gatherers], user=JOB_USER)
        cluster.command(["scancel", number])
        assert cluster.wait_job(number) == "CANCELLED"
        cluster.assert_at_rest()
    said = [line for line in ours(output.read_text().split("\n")) if "no libtopiary-capture" not in line]
    how = rf"learn --job={number} --tag=b3 \S+\.kept/recording\.{number}$" if victim == "learner" else "--format=prof "
    assert len(said) == 1 and re.search(rf"(was killed|did not end in time); run: topiary matrix {how}",
                                        said[0]), said


def test_stopped_map_drains_no_node(cluster, matrix):
    with stopped_command(cluster) as bad:
        number = cluster.batch("true", "-w", "cn1", "-n2", f"--topo-matrix={matrix(2)}",
                               "--output=/dev/null").stdout.strip()
        assert wait_until(lambda: processes_of(cluster, str(bad)), 60)
        cluster.command(["scancel", number])
        assert cluster.wait_job(number) == "CANCELLED"
        cluster.assert_at_rest()


def test_gathering_process_runs_as_the_user_and_cannot_be_traced(cluster):
    """It is a copy of slurmstepd's: the user's other processes, which may signal it, neither read it nor what it has
    open."""
    number, (pid,), output = captured(cluster, "traced", "-w", "cn1")
    status = status_of(Path(f"/proc/{pid}/status").read_text())
    assert (set(status["Uid"]) == {str(pwd.getpwnam(JOB_USER).pw_uid)} and int(status["CapEff"][0], 16) == 0
            and status["NoNewPrivs"] == ["1"])
    targets = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert [targets.pop(fd) for fd in (0, 1, 2)] == ["/dev/null", "/dev/null", str(output)]
    assert sorted(target.split("[")[0] for target in targets.values()) == ["anon_inode:", "pipe:"], targets
    for file in ("environ", "mem", "fd/2"):
        assert cluster.command(["head", "-c1", f"/proc/{pid}/{file}"], user=JOB_USER, check=False).returncode, file
    cluster.command(["scancel", number])
    assert cluster.wait_job(number) == "CANCELLED"
    assert wait_until(lambda: not Path(f"/proc/{pid}").exists(), 60)


# --- what is left

def test_full_run_dir_is_one_warning_whatever_was_requested(cluster):
    options = [*ALL_OPTIONS, "sh", "-c",
               "echo ran; env | grep -E 'TOPIARY_(STEP|TASK_ENV)|HWLOC_XML|OMP_N|UCX_' || true"]
    with log_of(cluster, "cn1") as log, little_room(cluster.run_dir("cn1")):
        done = srun(cluster, "-Q", "-w", "cn1", "-n2", *options)
    assert done.stdout == "ran\nran\n"
    assert re.fullmatch(r"topiary: step \d+\.0: tasks run without --topo-place, --topo-membind, --topo-omp, "
                        r"--topo-hugepages, --topo-nic, --topo-report: this node has no topology for them; its "
                        r"administrator finds the reason in slurmd's log\n", done.stderr), done.stderr
    log = [line for line in ours(log) if "tasks run without" not in line]
    assert len(log) == 1 and re.search(r"step \d+.0 runs without its topology: .*No space left", log[0]), log


FILL = """\
cd $TOPIARY_STEP_DIR/user && pwd -P
head -c 1g /dev/zero > full 2> /dev/null
i=0; while true > file.$i; do i=$((i + 1)); done 2> /dev/null
stat -c %s full; ls | wc -l
while ! test -e {go}; do sleep 0.1; done
"""


def test_user_fills_his_part_alone(cluster, matrix):
    """RunDir has a file system of its own, and less room than the user's part: the steps of others go on as before."""
    run, go, output = cluster.run_dir("cn5"), cluster.folder / "work" / "go.fill", cluster.folder / "work" / "fill.out"
    with own_disk(run, "8m"), log_of(cluster, "cn5") as log:
        number = cluster.batch(FILL.format(go=go), "-w", "cn5", "-n1", f"--topo-matrix={matrix(1)}",
                               f"--output={output}").stdout.strip()
        assert wait_until(lambda: output.exists() and output.read_text().count("\n") == 3, 120), output.read_text()
        done = cluster.command(["srun", "-w", "cn5", "-n1", "sh", "-c",
                                "lstopo-no-graphics --only PU | wc -l; test -r $TOPIARY_STEP_DIR/topology.xml && "
                                "echo whole"], user="games")
        (run / "roots").write_bytes(bytes(1 << 20))
        go.touch()
        assert cluster.wait_job(number) == "COMPLETED"
        (run / "roots").unlink()
        left = sorted(entry.name for entry in run.iterdir())
    assert done.stdout == "1\nwhole\n" and not ours(log), (done, log)
    where, size, files = output.read_text().split()
    assert where == f"{run}/{number}.batch/user" and int(size) <= 64 << 20 and int(files) <= 1024
    assert left == ["cache", "topology.xml"] and f"{run}/" not in Path("/proc/mounts").read_text()


def stepds(cluster, number):
    """Those of a job, by the titles that they give themselves."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            title = Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
            environment = (Path(f"/proc/{entry}/environ").read_bytes()
                           if title.startswith(f"slurmstepd: [{number}.".encode()) else b"")
        except OSError:
            continue
        if f"{cluster.folder}/".encode() in environment:
            found.append(int(entry))
    return found


def killed_in_mid_step(cluster, number):
    """slurmstepd ends without a chance to tidy up, and what ran under it, too."""
    for pid in stepds(cluster, number):
        below = descendants(pid)
        for one in [pid, *below]:
            with suppress(ProcessLookupError):      # it went with the one before
                os.kill(one, signal.SIGKILL)


def steps(cluster, node):
    return sorted(entry.name for entry in cluster.run_dir(node).iterdir() if entry.name[0].isdigit())


MESS = """\
import os, socket, time
os.chdir(os.environ["TOPIARY_STEP_DIR"] + "/user")
for i in range(700):
    os.close(os.open(f"file.{i}", os.O_CREAT | os.O_WRONLY))
os.mkfifo("fifo")
os.symlink("/etc", "etc")
os.symlink("..", "up")
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("shut")
os.mkdir("shut/in")
os.chmod("shut", 0)
for i in range(60):
    os.mkdir("deep")
    os.chdir("deep")
    open("file", "w").close()
print("made", flush=True)
time.sleep(300)
"""

LOCKS = """\
import fcntl, glob, os, sys, time
held = []
while True:
    for name in glob.glob(sys.argv[1] + "/*") + glob.glob(sys.argv[1] + "/*/*"):
        try:
            held.append(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
            fcntl.flock(held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            pass
    while len(held) > 500:
        os.close(held.pop(0))
    time.sleep(0.01)
"""

# Eight at a time, a step each, until there are enough or the time is over.
STEPS, SECONDS = 160, 75
FLOOD = f"""\
#!/bin/bash
end=$(($(date +%s) + {SECONDS}))
loop() {{
	for i in $(seq {STEPS // 8}); do
		[ $(date +%s) -lt $end ] &&
		srun -Q --overlap -n1 --mem=1 sh -c 'test -r $TOPIARY_STEP_DIR/topology.xml && echo step'
	done
}}
for i in 1 2 3 4 5 6 7 8; do loop & done
wait
"""


@pytest.fixture
def attacker(cluster):
    """Another user, who holds on to all that he can in cn5's RunDir."""
    work = cluster.folder / "work"
    (work / "locks.py").write_text(LOCKS)
    command = as_user("games", ["/usr/bin/python3", f"{work}/locks.py", str(cluster.run_dir("cn5"))])
    daemon = Daemon.run("attacker", command, work / "attacker.log")
    yield daemon
    daemon.stop()


def test_dead_steps_leave_nothing(cluster, matrix, attacker):
    """Of killed ones, with whatever the user had put there: the next ones take it away."""
    work, run = cluster.folder / "work", cluster.run_dir("cn5")
    (work / "mess.py").write_text(MESS)
    killed = []
    for script, options in ((f"python3 {work}/mess.py", [f"--topo-matrix={matrix(1)}"]),
                            ("srun sh -c 'echo made; sleep 300'", [])):
        output = work / f"killed.{len(killed)}"
        killed.append(cluster.batch(script, "-w", "cn5", "-n1", f"--output={output}", *options).stdout.strip())
        assert wait_until(lambda file=output: file.exists() and "made" in file.read_text(), 30)
    for number in killed:
        killed_in_mid_step(cluster, number)
    assert not [pid for number in killed for pid in stepds(cluster, number)]
    assert {name.split(".")[0] for name in steps(cluster, "cn5")} == set(killed)
    cluster.command(["scancel", *killed])
    for _ in range(4):
        srun(cluster, "-w", "cn5", "-n1", "true")
    assert sorted(entry.name for entry in run.iterdir()) == ["cache", "topology.xml"]
    assert attacker.alive()


def growing(cluster):
    """What may not grow with the number of steps."""
    pid, run = cluster.daemons["slurmd.cn5"].pid, cluster.run_dir("cn5")
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")), "kept": len(list((run / "cache").iterdir())),
            "shared memory": sum(not name.startswith("PostgreSQL.") for name in os.listdir("/dev/shm"))}


def test_hundreds_of_steps_leave_nothing(cluster):
    srun(cluster, "-w", "cn5", "-n1", "true")
    before = growing(cluster)
    output = cluster.output(FLOOD, "-w", "cn5", "-n1", timeout=SECONDS + 30)
    assert set(output.split()) == {"step"}
    print(f"{output.count('step')} steps")
    assert output.count("step") > STEPS // 8
    after = growing(cluster)
    assert sorted(entry.name for entry in cluster.run_dir("cn5").iterdir()) == ["cache", "topology.xml"]
    assert all(after[what] <= before[what] + 4 for what in before), (before, after)


def test_step_outlives_slurmd(cluster):
    """Its folder stays for as long as it runs, and goes with it."""
    go = cluster.folder / "work" / "go.restart"
    output = cluster.folder / "work" / "restart.out"
    number = cluster.batch(f"while ! test -e {go}; do sleep 0.1; done; lstopo-no-graphics --only PU | wc -l",
                           "-w", "cn5", "-n1", f"--output={output}").stdout.strip()
    wait_running(cluster, number)
    assert wait_until(lambda: steps(cluster, "cn5") == [f"{number}.batch"], 10)
    cluster.end("slurmd.cn5", signal.SIGKILL)
    cluster.start_slurmd("cn5")
    srun(cluster, f"--jobid={number}", "--overlap", "-n1", "true")
    # The step's folder goes when its slurmstepd ends, which may be after srun has.
    left = wait_until(lambda: steps(cluster, "cn5") == [f"{number}.batch"], 10)
    go.touch()
    assert left
    assert cluster.wait_job(number) == "COMPLETED" and int(output.read_text()) >= 1
    assert wait_until(lambda: steps(cluster, "cn5") == [], 10)


# --- what the kernel fences in

CPUSETS = Path("/sys/fs/cgroup/cpuset")
UNIFIED = Path("/sys/fs/cgroup/unified")  # of cgroup v2, beside v1: it groups processes, its controllers are v1's


class Unified(Cluster):
    """Steps are cgroups of v2, by which Slurm finds and ends their processes."""

    def prepare(self):
        super().prepare()
        compiled("hostile_unified.c", self.folder / "bin" / "unified.so")

    def node_env(self, node):
        return {**super().node_env(node), "LD_PRELOAD": f"{self.folder}/bin/unified.so"}


@contextmanager
def fence(kind, folder, above, conf, cgroup):
    node = f"fenced{os.getpid()}"
    with (cgroups_removed(above, node),
          kind(folder, {node: None}, registry=False, conf=conf, files={"cgroup.conf": cgroup}) as cluster):
        yield cluster
        cluster.assert_at_rest()


@pytest.fixture
def fenced(folders):
    """Steps are confined by the kernel."""
    if not os.access(CPUSETS / "cpuset.cpus", os.R_OK) or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("no cpuset controller of cgroup v1 is mounted here, or there is one CPU only")
    with fence(Cluster, folders(), CPUSETS, "TaskPlugin=task/cgroup,task/affinity\n",
               "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainCores=yes\n") as cluster:
        yield cluster


@pytest.fixture
def unified(folders):
    if not os.access(UNIFIED / "cgroup.procs", os.W_OK):
        pytest.skip("no cgroup v2 is mounted beside v1 here")
    (UNIFIED / "system.slice").mkdir(exist_ok=True)
    try:
        with fence(Unified, folders(), UNIFIED / "system.slice",
                   "TaskPlugin=task/affinity\nProctrackType=proctrack/cgroup\n",
                   f"CgroupPlugin=cgroup/v2\nCgroupMountpoint={UNIFIED}\nIgnoreSystemd=yes\n") as cluster:
            yield cluster
    finally:
        with suppress(OSError):
            (UNIFIED / "system.slice").rmdir()


def test_step_within_a_cpuset(fenced):
    """The second CPU is all that the kernel lets it have: so say its topology, its place and its memory, and there is
    no way out."""
    holder = fenced.batch("sleep 300", "-n1", "--output=/dev/null").stdout.strip()
    wait_running(fenced, holder)
    show = ("grep -h -E '^(Cpus|Mems)_allowed_list' /proc/self/status; lstopo-no-graphics --only PU; "
            "taskset -pc 0 $$ > /dev/null 2>&1 || echo shut")
    done = srun(fenced, "-Q", "-n1", *ALL_OPTIONS, "sh", "-c", show)
    fenced.command(["scancel", holder])
    fence, memory = re.findall(r"allowed_list:\t(\S+)", done.stdout)
    report = json.loads(done.stderr)
    assert fence == "1" and f"PU L#0 (P#{fence})\n" in done.stdout and "L#1" not in done.stdout, done.stdout
    assert (report["cpus_os"], report["memory"], report["threads"]) == (fence, f"bind:{memory}", "1")
    assert done.stdout.endswith("\nshut\n")
    both = [json.loads(line) for line in srun(fenced, "-Q", "-n2", *ALL_OPTIONS, "true").stderr.splitlines()]
    assert sorted(task["cpus_os"] for task in both) == ["0", "1"]


@pytest.mark.parametrize("kind", ["fenced", "unified"], ids=["v1", "v2"])
def test_gathering_process_is_in_the_steps_cgroup(request, kind):
    cluster = request.getfixturevalue(kind)
    number, (pid,), _ = captured(cluster, "cgroup")
    held = Path(f"/proc/{pid}/cgroup").read_text()
    # From 26.05 on cgroup/v2 names the job's cgroup by its SLUID.
    job = r"s\w+" if (kind, SLURM_RELEASE >= (26, 5)) == ("unified", True) else f"job_{number}"
    assert (re.search(f"/{job}/step_batch", held)
            and held == Path(f"/proc/{processes_of(cluster, 'sleep')[0]}/cgroup").read_text())
    cluster.command(["scancel", number])
    assert cluster.wait_job(number) == "CANCELLED" and not processes_of(cluster, "topiary-merge")
