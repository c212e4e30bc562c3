# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The cluster: one folder, private ports, every daemon known by pid."""
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

from .machines import MachineError, individual, machine, memory_indexes, os_indexes
from .paths import SLURM_PREFIX
from .postgres import POSTGRES, REGISTRY_USER, as_user, copied_data
from .processes import Daemon, end_steps, guarded, patience, wait_until

ROOT = Path(__file__).resolve().parents[2]


def stock_plugins(prefix):
    return prefix / "lib/slurm" if prefix else Path("/usr/lib/x86_64-linux-gnu/slurm-wlm")


STOCK_PLUGINS = stock_plugins(SLURM_PREFIX)
SLURM_RELEASE = tuple(map(int, subprocess.run([SLURM_PREFIX / "sbin/slurmctld" if SLURM_PREFIX else "slurmctld", "-V"],
                                              check=True, capture_output=True,
                                              text=True).stdout.split()[-1].split(".")[:2]))
JOB_USER = "nobody"
LONGEST_FOLDER = 60     # a Unix socket's path has at most 107 bytes
PORTS = range(20000, 32000)

SLURM_CONF = """\
ClusterName=topiary
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/nodes/%n/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/nodes/%n/spool
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmctldDebug=debug
SlurmdDebug=debug
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/bin/task-prolog
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PluginDir={plugins}
{submit}
PlugStackConfig={folder}/etc/plugstack.conf
SchedulerParameters=bf_interval=5,batch_sched_delay=0,sched_min_interval=10000
DefMemPerCPU=10
KillWait=2
MailProg=/bin/true
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP
"""

TOPIARY_CONF = """\
SnapshotFile = {folder}/registry/snapshot
FabricFile = {folder}/registry/fabric
CostsFile = {folder}/registry/costs
SnapshotPoll = 1
RunDir = {folder}/nodes/%h/run
TopologyFile = {folder}/nodes/%h/run/topology.xml
TopiaryCommand = {folder}/bin/topiary
RegistryURL = http://127.0.0.1:{http_port}
RegistryUser = {registry_user}
MungeSocket = {folder}/munge/socket
Listen = 127.0.0.1:{http_port}
Database = host={folder}/postgres dbname=topiary
SchemaDir = {folder}/sql
"""

# Tasks on a node of other hardware see its CPUs; Open MPI stays on this machine's loopback. What its ranks share in
# memory is named after node, user, job and rank, which are the same in another cluster on this machine: each has a
# folder of its own for it.
TASK_PROLOG = """\
#!/bin/sh
echo "export OMPI_MCA_oob_tcp_if_include=lo"
echo "export OMPI_MCA_btl_tcp_if_include=lo"
echo "export OMPI_MCA_btl=self,vader,tcp"
echo "export OMPI_MCA_btl_vader_backing_directory={folder}/shm"
echo "export OMPI_MCA_btl_sm_backing_directory={folder}/shm"
echo "export OMPI_MCA_mpi_yield_when_idle=1"
test -r {folder}/nodes/$SLURMD_NODENAME/cpus || exit 0
echo "export LD_PRELOAD={folder}/bin/cpus.so"
echo "export HWLOC_THISSYSTEM=1"
echo "export RIG_CPUS_DIR={folder}/cpus"
echo "export RIG_CPUS=$(cat {folder}/nodes/$SLURMD_NODENAME/cpus)"
echo "export RIG_MEMS=$(cat {folder}/nodes/$SLURMD_NODENAME/mems)"
"""


class RigError(Exception):
    """A step that failed, why, and the log that tells more."""

    def __init__(self, step, reason, log=None):
        super().__init__(f"{step}: {reason}" + (f" (log: {log})" if log else ""))
        self.step, self.reason, self.log = step, reason, log


class Cluster:
    """
    machines: {node: name of a machine, XML text, or None for this host's own hardware}. stock=True leaves out all of
    Topiary; registry=False its daemons: the nodes' files and the snapshot are then made without a network. conf: lines
    for slurm.conf, before its own, of which those with the same key are left out; nodes: {node: words for its NodeName
    line}, before what slurmd says of it; files: {name: text} beside slurm.conf. {folder} in these is the cluster's.
    prefix: where its Slurm is installed, None for the machine's own. Use as a context manager, or call start() and
    stop().
    """

    def __init__(self, folder, machines, build=None, stock=False, registry=True, conf="", nodes=None, files=None,
                 prefix=SLURM_PREFIX):
        self.folder = Path(folder)
        self.build = Path(build or os.environ.get("TOPIARY_BUILD", ROOT / "build")).resolve()
        self.stock, self.registry, self.conf = stock, registry and not stock, conf
        self.words, self.files, self.prefix = nodes or {}, files or {}, prefix
        self.xml = {}
        for node, what in machines.items():
            self.xml[node] = what if what is None or what.startswith("<") else individual(machine(what), node)
        self.daemons = {}
        self.ports = {}
        if len(str(self.folder)) > LONGEST_FOLDER:
            raise RigError("folder", f"{folder} is too long for the paths of sockets")

    # --- life

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def start(self):
        for step in (self.prepare, self.start_munge, self.start_registry, self.start_agents, self.start_slurm):
            step()
        return self

    def stop(self):
        if any(name.startswith("slurmd.") for name in self.daemons):
            end_steps(self.folder)
        for _, names in itertools.groupby(reversed(list(self.daemons)), lambda name: name.partition(".")[0]):
            names = list(names)
            how = signal.SIGINT if names == ["postgres"] else signal.SIGTERM
            for name in names:      # a node's slurmd does not wait for another's
                self.daemons[name].send(how)
            for name in names:
                self.end(name, how)

    def run_daemon(self, name, command, env=None, log=None):
        log = log or self.folder / "log" / f"{name}.log"
        daemon = Daemon.run(name, [str(c) for c in command], log, env=env or self.env())
        self.daemons[name] = daemon
        self.save()
        return daemon

    def end(self, name, how=signal.SIGTERM):
        daemon = self.daemons.pop(name, None)
        if daemon:
            daemon.stop(how)
            self.save()

    def save(self):
        state = {"build": str(self.build), "stock": self.stock, "registry": self.registry, "ports": self.ports,
                 "nodes": list(self.xml), "real": [n for n, x in self.xml.items() if x is None],
                 "daemons": [d.record() for d in self.daemons.values()]}
        new = self.folder / "rig.json.new"
        new.write_text(json.dumps(state, indent=1))
        new.rename(self.folder / "rig.json")

    @classmethod
    def attach(cls, folder):
        """The cluster that another process started in this folder; None when there is none."""
        try:
            state = json.loads((Path(folder) / "rig.json").read_text())
        except FileNotFoundError:
            return None
        cluster = cls(folder, {}, build=state["build"], stock=state["stock"], registry=state["registry"])
        for node in state["nodes"]:
            path = cluster.folder / "nodes" / node / "machine.xml"
            cluster.xml[node] = None if node in state["real"] else path.read_text()
        cluster.ports = state["ports"]
        cluster.daemons = {d["name"]: Daemon(**d) for d in state["daemons"]}
        return cluster

    def alive(self):
        return bool(self.daemons) and all(d.alive() for d in self.daemons.values())

    # --- the folder

    def prepare(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        guarded(self.folder)
        for name in ("bin", "etc", "log", "munge", "plugins", "doors", "registry", "postgres", "state", "nodes", "cpus",
                     "work", "shm"):
            (self.folder / name).mkdir(exist_ok=True)
        for name in ("cpus", "work", "shm"):
            (self.folder / name).chmod(0o1777)
        self._install()
        self.ports = dict(zip(["ctld", "slurmd", "http", *self.xml], free_ports(3 + len(self.xml))))
        for node, xml in self.xml.items():
            self._prepare_node(node, xml)
        self._configure()
        self.save()

    def change(self, prefix, build):
        """Another Slurm, or Topiary as built for another, for what starts from now on."""
        self.prefix, self.build = prefix, Path(build)
        self._install()
        self._configure()

    def _install(self):
        """What runs as other users is copied: the checkout may be out of their reach."""
        built = ["tests/cpus.so", "tests/where"]
        if not self.stock:
            built += ["topiary", "slurm/select_cons_tres.so", "slurm/spank_topiary.so", "slurm/job_submit_topiary.so"]
        if self.registry:
            built += ["topiaryd", "topiary-agent"]
        for name in built:
            if not (self.build / name).exists():
                raise RigError("install", f"{self.build / name} is missing: run make all units")
            into = "doors" if "job_submit" in name else "plugins" if name.startswith("slurm/") else "bin"
            to = self.folder / into / Path(name).name
            shutil.copy(self.build / name, to.with_suffix(".new")).rename(to)     # never over what a process has mapped
        if self.registry:
            shutil.copytree(ROOT / "sql", self.folder / "sql", dirs_exist_ok=True)
        prolog = self.folder / "bin" / "task-prolog"
        prolog.write_text(TASK_PROLOG.format(folder=self.folder))
        prolog.chmod(0o755)

    def _prepare_node(self, node, xml):
        home = self.folder / "nodes" / node
        for name in ("spool", "run"):
            (home / name).mkdir(parents=True, exist_ok=True)
        if xml is None:
            return
        (home / "machine.xml").write_text(xml)
        (home / "cpus").write_text(",".join(str(i) for i in os_indexes(xml)) + "\n")
        (home / "mems").write_text(",".join(str(i) for i in memory_indexes(xml)) + "\n")

    def _configure(self):
        etc = self.folder / "etc"
        # The door stands beside Slurm's own plugins, as the package puts it: without the first folder all of Slurm is
        # stock.
        plugins = f"{'' if self.stock else f'{self.folder}/plugins:'}{self.folder}/doors:{stock_plugins(self.prefix)}"
        for name, text in self.files.items():
            (etc / name).write_text(text.replace("{folder}", str(self.folder)))
        self._make_devices()
        given = {line.partition("=")[0] for line in self.conf.split("\n")} - {"", "NodeName", "PartitionName"}
        given |= {"PartitionName=main"} if "PartitionName=main " in self.conf else set()
        own = "".join(line for line in SLURM_CONF.splitlines(keepends=True)
                      if not {line.partition("=")[0], line.split(" ")[0]} & given)
        (etc / "slurm.conf").write_text(self.conf.replace("{folder}", str(self.folder)) + own.format(
            folder=self.folder, host=socket.gethostname(), ctld_port=self.ports["ctld"],
            slurmd_port=self.ports["slurmd"], plugins=plugins, submit="" if self.stock else "JobSubmitPlugins=topiary",
            nodes="\n".join(self.node_line(node) for node in self.xml)))
        (etc / "plugstack.conf").write_text(
            "" if self.stock else f"optional {self.folder}/plugins/spank_topiary.so config={etc}/topiary.conf\n")
        (etc / "topiary.conf").write_text(TOPIARY_CONF.format(
            folder=self.folder, http_port=self.ports["http"], registry_user=REGISTRY_USER))
        # Named, so that slurmd does not look for a mounted one: most tests use no cgroups, and a chroot may have none.
        if "cgroup.conf" not in self.files:
            (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def _make_devices(self):
        """The files that gres.conf names here: Slurm accepts character devices only, and any does."""
        for file in re.findall(r"\bFile=\{folder\}/(\S+)", self.files.get("gres.conf", "")):
            os.mknod(self.folder / file, 0o666 | stat.S_IFCHR, os.stat("/dev/null").st_rdev)

    def node_line(self, node):
        """The NodeName line that slurmd itself gives for this hardware."""
        told = subprocess.run(["slurmd", "-C"], env=self.node_env(node), capture_output=True, text=True, check=False)
        words = dict(w.split("=", 1) for w in told.stdout.split("\n", 1)[0].split() if "=" in w)
        if "error" in told.stderr or "CPUs" not in words:
            raise MachineError(f"{node}: slurmd cannot describe this machine: "
                               f"{told.stderr.strip() or told.stdout.strip()}")
        sockets = int(words["Boards"]) * int(words["SocketsPerBoard"])
        cores, threads = int(words["CoresPerSocket"]), int(words["ThreadsPerCore"])
        if sockets * cores * threads != int(words["CPUs"]):
            raise MachineError(f"{node}: slurmd cannot describe this machine: {words['CPUs']} CPUs, "
                               f"but {sockets} x {cores} x {threads}")
        line = {"NodeName": node, "NodeAddr": "127.0.0.1", "NodeHostname": node, "Port": self.ports[node],
                "Sockets": sockets, "CoresPerSocket": cores, "ThreadsPerCore": threads,
                "RealMemory": int(words["RealMemory"]) * 9 // 10}
        line.update(word.split("=", 1) for word in self.words.get(node, "").split())
        return " ".join(f"{key}={value}" for key, value in line.items())

    # --- environments

    def env(self, **more):
        slurm = f"{self.prefix}/sbin:{self.prefix}/bin:" if self.prefix else ""
        return {"PATH": f"{self.folder}/bin:{slurm}/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                "HOME": "/nonexistent", "SLURM_CONF": f"{self.folder}/etc/slurm.conf",
                "TOPIARY_CONF": f"{self.folder}/etc/topiary.conf", **more}

    def node_env(self, node):
        if self.xml[node] is None:
            return self.env()
        home = self.folder / "nodes" / node
        return self.env(HWLOC_XMLFILE=str(home / "machine.xml"), LD_PRELOAD=f"{self.folder}/bin/cpus.so",
                        RIG_CPUS=(home / "cpus").read_text().strip(), RIG_MEMS=(home / "mems").read_text().strip(),
                        RIG_CPUS_DIR=f"{self.folder}/cpus")

    def on_node(self, node, command):
        """The command as it runs on a node: a host name of its own."""
        return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', node, *command]

    # --- daemons

    def start_munge(self):
        home = self.folder / "munge"
        key = home / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(128))
        self.run_daemon("munged", ["munged", "--foreground", f"--socket={home}/socket", f"--key-file={key}",
                                   f"--pid-file={home}/pid", f"--log-file={home}/log", f"--seed-file={home}/seed"])
        self._expect("munged", lambda: (home / "socket").exists(), 10, home / "log")

    def start_registry(self):
        if not self.registry:
            return
        self.start_postgres()
        self.start_topiaryd()

    def start_postgres(self):
        home = self.folder / "postgres"
        postgres = pwd.getpwnam("postgres")
        if not POSTGRES:
            raise RigError("postgres", "PostgreSQL is not installed: run packaging/setup")
        os.chown(home, postgres.pw_uid, postgres.pw_gid)
        if not (home / "data").exists():
            copied_data(home / "data")
        self.run_daemon("postgres", as_user("postgres", [f"{POSTGRES}/postgres", "-D", f"{home}/data",
                                                         "-k", str(home), "-c", "listen_addresses="]))
        self._expect("postgres", lambda: self._psql_ready(home), 30)

    def _psql_ready(self, home):
        return not subprocess.run([f"{POSTGRES}/pg_isready", "-q", "-h", str(home)], check=False).returncode

    def start_topiaryd(self):
        shutil.chown(self.folder / "registry", REGISTRY_USER, REGISTRY_USER)
        self.run_daemon("topiaryd", as_user(REGISTRY_USER, [f"{self.folder}/bin/topiaryd", "--config",
                                                            f"{self.folder}/etc/topiary.conf"]))
        self._expect("topiaryd", lambda: port_open(self.ports["http"]), 20)

    def start_agents(self):
        """Every node exports its hardware and is acknowledged, as at boot."""
        if self.stock:
            return
        if not self.registry:
            self.write_offline()
            return
        running = {node: subprocess.Popen(self.agent_command(node), env=self.env(), stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True) for node in self.xml}
        for node, agent in running.items():
            said = agent.communicate(timeout=300)[0]
            (self.folder / "log" / f"agent.{node}.log").write_text(said)
            if agent.returncode:
                raise RigError("agent", f"{node}: {said.strip() or agent.returncode}",
                               self.folder / "log" / "topiaryd.log")

    def write_offline(self):
        """The nodes' own files and the snapshot, without a registry."""
        pairs = []
        for node in self.xml:
            file = self.topology_file(node)
            source = ["--input", self.folder / "nodes" / node / "machine.xml"] if self.xml[node] else []
            self.command(["lstopo-no-graphics", *source, "--of", "xml", "--force", file])
            pairs.append(f"{node}={file}")
        self.topiary("snapshot", "--offline", *pairs, "-o", self.snapshot_file)

    def topology_file(self, node):
        return self.folder / "nodes" / node / "run" / "topology.xml"

    @property
    def snapshot_file(self):
        return self.folder / "registry" / "snapshot"

    def agent_command(self, node):
        command = [f"{self.folder}/bin/topiary-agent", "--config", f"{self.folder}/etc/topiary.conf",
                   "--deadline", "60"]
        if self.xml[node] is not None:
            command += ["--input", f"{self.folder}/nodes/{node}/machine.xml"]
        return self.on_node(node, command)

    def start_slurm(self):
        for node in self.xml:
            self.start_slurmd(node)
        self.start_slurmctld()
        wait_until(lambda: self.nodes_idle() or not self.slurm_alive(), 60)
        for name in [name for name in self.daemons if name.startswith("slurm")]:
            self._expect(name, self.nodes_idle, 1)
        self._expect("slurmctld", self.knows_hardware, 20)

    def knows_hardware(self):
        """slurmctld has read a snapshot that tells of each node: one before may lack those that registered last."""
        log = self.folder / "log" / "slurmctld.log"
        return self.stock or f"snapshot: {len(self.xml)} node" in log.read_text(errors="replace")

    def start_slurmctld(self):
        self.run_daemon("slurmctld", ["slurmctld", "-D", "-f", f"{self.folder}/etc/slurm.conf"],
                        log=self.folder / "log" / "slurmctld.out")

    def start_slurmd(self, node, env=None):
        self.run_daemon(f"slurmd.{node}", self.on_node(node, ["slurmd", "-D", "-N", node, "-f",
                                                              f"{self.folder}/etc/slurm.conf"]),
                        env=env or self.node_env(node), log=self.folder / "log" / f"slurmd.{node}.out")

    def add_node(self, node, what, words):
        """
        A node that slurm.conf does not know; words as for its line. It listens where SlurmdPort says, so there is one
        at a time. Without a registry, the snapshot is made anew.
        """
        self.xml[node] = individual(machine(what), node)
        self._prepare_node(node, self.xml[node])
        if not self.stock:
            self.write_offline()
        self.run_daemon(f"slurmd.{node}",
                        self.on_node(node, ["slurmd", "-D", "-Z", "-N", node, "-f", f"{self.folder}/etc/slurm.conf",
                                            "--conf", words]),
                        env=self.node_env(node), log=self.folder / "log" / f"slurmd.{node}.out")

    def remove_node(self, node):
        self.end(f"slurmd.{node}")
        del self.xml[node]
        self.command(["scontrol", "delete", f"NodeName={node}"])

    def assert_at_rest(self, pause=0.05):
        """Whatever was done to it, every daemon of Slurm lives and every node is free again."""
        assert self.slurm_alive(), f"a daemon of Slurm ended: {self.folder}"
        assert wait_until(self.nodes_idle, 30, pause), self.command(["sinfo", "-N", "-l"]).stdout

    def nodes_idle(self):
        """All nodes are up and without jobs. sinfo has a line for each partition; a plan of backfill's is forgotten in
        its next round."""
        states = self.command(["sinfo", "-h", "-N", "-o", "%N %T"],
                              check=False).stdout.replace("planned", "idle").split("\n")
        return {s.strip() for s in states if s} == {f"{node} idle" for node in self.xml}

    def _expect(self, name, true, seconds, log=None):
        daemon = self.daemons[name]
        if wait_until(lambda: true() or not daemon.alive(), seconds) and daemon.alive():
            return
        reason = "is not ready" if daemon.alive() else "ended"
        raise RigError(name, f"{reason} after at most {patience(seconds)} s", log or daemon.log)

    # --- use

    def command(self, command, user=None, check=True, timeout=300, env=None, cwd=None):
        """Run a command with this cluster's environment, as root or another user."""
        if user:
            command = as_user(user, command)
        done = subprocess.run([str(c) for c in command], env=env or self.env(), cwd=cwd or self.folder / "work",
                              capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode:
            raise RigError(str(command[0]), (done.stderr or done.stdout).strip())
        return done

    def topiary(self, *arguments, **how):
        return self.command([f"{self.folder}/bin/topiary", *arguments], **how)

    def batch(self, script, *options, user=JOB_USER, check=True, variables=None):
        """
        Submit a script's text, for sh unless it names its shell: Slurm 25.05 leaves SIGCHLD blocked in a step, which
        dash's wait, unlike bash's, needs. The finished process, whose stdout is the job's number. variables: added to
        the environment of sbatch, and so of the job; --export=NAME=VALUE would ask for the login environment too, of a
        user who cannot log in.
        """
        path = self.folder / "work" / f"script.{time.monotonic_ns()}"
        path.write_text(script if script.startswith("#!") else "#!/bin/sh\n" + script)
        path.chmod(0o755)
        more = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
        return self.command([*more, "sbatch", "--parsable", *options, path], user=user, check=check)

    def job(self, script, *options, user=JOB_USER, timeout=90, variables=None):
        """Run a script to its end as a batch job: its number, its state and its output."""
        output = self.folder / "work" / f"out.{time.monotonic_ns()}"
        number = self.batch(script, f"--output={output}", *options, user=user, variables=variables).stdout.strip()
        state = self.wait_job(number, timeout)
        return number, state, output.read_text() if output.exists() else ""

    def output(self, script, *options, **how):
        """Of a job that completes."""
        _, state, output = self.job(script, *options, **how)
        assert state == "COMPLETED", output
        return output

    def wait_job(self, number, timeout=90):
        if not wait_until(lambda: self.job_state(number) not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"),
                          timeout, 0.1):
            raise RigError("job", f"{number} is {self.job_state(number)} after {patience(timeout)} s",
                           self.folder / "log" / "slurmctld.log")
        return self.job_state(number)

    def job_state(self, number):
        return self.job_record(number).get("JobState", "UNKNOWN")

    def job_record(self, number):
        told = self.command(["scontrol", "-d", "-o", "show", "job", str(number)], check=False).stdout
        return dict(word.split("=", 1) for word in told.split() if "=" in word)

    def slurm_alive(self):
        return all(d.alive() for name, d in self.daemons.items() if name.startswith("slurm"))


def port_open(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


reserved = {}     # port: the abstract Unix socket of its number, which this process has until it ends


def reserve(port):
    """Whether nobody listens on the port, and no other process of this machine reserved it, in whatever root."""
    marker = socket.socket(socket.AF_UNIX)
    with socket.socket() as listener:
        try:
            marker.bind(f"\0topiary-port-{port}")
            listener.bind(("127.0.0.1", port))
        except OSError:
            marker.close()
            return False
    reserved[port] = marker
    return True


def free_ports(count):
    """Ports for the daemons of this process, below those that the kernel gives to clients."""
    start = os.getpid() * 31 % len(PORTS)
    found = list(itertools.islice(filter(reserve, [*PORTS[start:], *PORTS[:start]]), count))
    if len(found) == count:
        return found
    raise RigError("ports", f"no {count} free ports between {PORTS[0]} and {PORTS[-1]}")
