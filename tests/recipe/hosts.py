# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Hosts of a cluster as a site has them: each a Debian with packages and with its own systemd as PID 1, in namespaces
of its own, joined by a network of their own."""
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rig.paths import CACHE, ROOT
from rig.processes import Daemon, descendants, wait_until

BASE = CACHE / "recipe"     # packaging/site-root
HERE = ROOT / "tests" / "recipe"
ENV = ["env", "-i", "PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
       "DEBIAN_FRONTEND=noninteractive"]
APT = 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\nAPT::Sandbox::User "root";\n'


class HostError(Exception):
    """A command on a host that failed, and what it said."""


class Host:
    """tests/recipe/boot: `folder` has its files, and beside it are those that all hosts share."""

    def __init__(self, name, folder, network=lambda host: None, names=()):
        self.name, self.folder, self.network = name, folder, network
        for part in ("upper/root/packages", "work", "root", "archives", "archives.work", "../shared", "../home/alice"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        shutil.chown(folder.parent / "home/alice", 1500, 1500)
        # What an administrator has done before it boots. The machine's own names are for apt.
        for file, text in {"hostname": name, "hosts": Path("/etc/hosts").read_text() + "".join(names),
                           "resolv.conf": Path("/etc/resolv.conf").read_text(), "apt/apt.conf.d/00recipe": APT}.items():
            path = folder / "upper/etc" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        self.start()

    def start(self):
        """To be waited for by await_boot(). Not in a thread, whose end would be the host's. It ends itself with this
        process, and removes its cgroups then, which nobody else does."""
        for mark in ("ready", "network"):
            (self.folder / mark).unlink(missing_ok=True)
        self.daemon = Daemon.run(self.name, ["setpriv", "--pdeathsig", "TERM", HERE / "boot", self.name,
                                             f"{BASE}/site:{BASE}/minimal", BASE / "archives"],
                                 self.folder / "boot.log", cwd=self.folder, guard=False)

    def await_boot(self):
        ready = self.folder / "ready"
        if not wait_until(lambda: ready.exists() or not self.daemon.alive(), 60) or not self.daemon.alive():
            raise HostError(f"{self.name}: {(self.folder / 'boot.log').read_text()}")
        self.pid = descendants(descendants(self.daemon.pid)[0])[0]
        self.network(self)
        (self.folder / "network").touch()
        state = "systemctl is-system-running"
        if not wait_until(lambda: self.run(state, check=False).stdout.strip() in ("running", "degraded"), 60, 0.2):
            raise HostError(f"{self.name} does not boot: {(self.folder / 'boot.log').read_text()}"
                            + self.run("systemctl list-jobs; systemctl --failed", check=False).stdout)
        return self

    def reboot(self):
        self.run("systemctl poweroff")
        if not wait_until(lambda: not self.daemon.alive(), 90):
            raise HostError(f"{self.name} does not shut down")
        self.start()
        self.await_boot()

    def path(self, path):
        return Path(f"/proc/{self.pid}/root{path}")

    def run(self, line, user="root", check=True):
        """A line of a shell. apt-get has the machine's own network: the way to Debian's mirror, which the hosts' does
        not lead to."""
        network = [] if line.startswith("apt-get ") else ["--net"]
        who = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        where = "/root/packages" if user == "root" else "/home/alice"
        done = subprocess.run(["nsenter", f"--target={self.pid}", "--mount", "--uts", "--ipc", "--pid", "--cgroup",
                               "--root", "--wd", *network, *ENV, *who, "sh", "-c", f"cd {where} && {line}"],
                              capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode:
            raise HostError(f"{self.name}: {line}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def rpm(self, *words, check=True):
        """This machine's rpm on the host's root; Debian's installs only with --force-debian."""
        return subprocess.run(["rpm", "--force-debian", f"--root=/proc/{self.pid}/root", "--dbpath=/var/lib/rpm",
                               *map(str, words)], capture_output=True, text=True, timeout=120, check=check)

    def says(self, line, **how):
        return self.run(line, **how).stdout.strip()

    def end(self):
        for package in (self.folder / "archives").glob("*.deb"):    # downloaded here, for those to come
            shutil.copy(package, BASE / "archives")
        self.daemon.stop(seconds=30)


SLURM_CONF = """\
ClusterName=recipe
SlurmctldHost=controller
SlurmctldHost=backup
SlurmctldParameters=enable_configless
SlurmUser=slurm
StateSaveLocation=/shared/slurmctld
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
SlurmdSpoolDir=/var/lib/slurm/slurmd
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=controller
AccountingStorageEnforce=qos
JobSubmitPlugins=lua
PrologFlags=Contain
JobContainerType=job_container/tmpfs
ProctrackType=proctrack/{proctrack}
TaskPlugin={task}
TopologyPlugin=topology/tree
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/qos
PreemptMode=REQUEUE
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=60
MailProg=/bin/true
{nodes}
PartitionName=main Nodes=ALL Default=YES
PartitionName=shared Nodes=ALL OverSubscribe=FORCE:2
PartitionName=preempting Nodes=ALL QOS=urgent
"""
SLURMDBD_CONF = """\
DbdHost=controller
SlurmUser=slurm
LogFile=/var/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageUser=slurm
StoragePass=recipe
StorageLoc=slurm
"""
# What a job is without, as a site's own rule.
JOB_SUBMIT_LUA = """\
function slurm_job_submit(job, partitions, uid)
	if job.comment == "forbidden by the site" then
		slurm.log_user("the site's own rule refuses this job")
		return slurm.ERROR
	end
	if job.admin_comment == nil then job.admin_comment = "seen by job_submit.lua" end
	return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
	return slurm.SUCCESS
end
return slurm.SUCCESS
"""
PLUGSTACK = """\
required /shared/spank_project.so
include /etc/slurm/plugstack.conf.d/*.conf
optional /shared/spank_scratch.so
"""
ACCOUNTS = ("add cluster recipe", "add account site", "add user alice account=site", "add qos urgent preempt=normal "
            "priority=100", "modify user alice set qos=normal,urgent")


class Site:
    """A cluster on which Slurm without Topiary runs: two controllers that share their state, slurmdbd, a node that
    reads the controller's files and one with files of its own, a login node, and a host without Slurm."""

    ROLES = {"registry": "registry", "backup": "controller", "controller": "controller", "cn001": "compute",
             "cn002": "compute", "login": "login"}
    CONFIGLESS = "cn001"
    # Of what all hosts are made of, what those of a role do not have.
    FOREIGN = {"registry": "slurmctld slurmd slurmdbd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin",
               "controller": "slurmd", "compute": "slurmctld slurmdbd", "login": "slurmctld slurmd slurmdbd"}

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="topiary-recipe-"))
        self.folder.chmod(0o755)
        self.hosts = {}
        self.switch = Daemon.run("switch", ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-ec",
                                            "ip link add name cluster type bridge; ip link set cluster up; "
                                            "exec sleep infinity"], self.folder / "switch.log")

    def boot(self):
        for number, name in enumerate(self.ROLES, 1):
            self.hosts[name] = Host(name, self.folder / name, lambda host, number=number: self._join(host, number),
                                    [f"10.77.0.{n} {other}\n" for n, other in enumerate(self.ROLES, 1)])
        self.on_all(Host.await_boot)
        self._share()
        self.on_all(self._furnish)
        self._start_slurm()

    def on_all(self, function, names=ROLES):
        with ThreadPoolExecutor(len(self.ROLES)) as pool:
            return list(pool.map(lambda name: function(self.hosts[name]), names))

    def _join(self, host, number):
        """A cable from the host to the switch."""
        def ip(pid, command):
            subprocess.run(["nsenter", f"--target={pid}", "--net", "ip", *command.split()], check=True,
                           capture_output=True, text=True)
        port = f"port{number}"
        # Of a host that was shut down, the kernel removes it later.
        subprocess.run(["nsenter", f"--target={self.switch.pid}", "--net", "ip", "link", "del", port], check=False,
                       capture_output=True)
        ip(self.switch.pid, f"link add name {port} type veth peer name eth0 netns {host.pid}")
        ip(self.switch.pid, f"link set {port} master cluster up")
        ip(host.pid, f"addr add 10.77.0.{number}/24 dev eth0")
        ip(host.pid, "link set eth0 up")

    def _share(self):
        shared = self.folder / "shared"
        for name, flags in (("project", []), ("scratch", ["-DSCRATCH"])):
            subprocess.run(["gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", *flags, "-o", shared / f"spank_{name}.so",
                            HERE / "spank_site.c"], check=True)
        self.hosts["controller"].run("install -d -o slurm -g slurm /shared/slurmctld")
        node = self.hosts["cn001"].says("slurmd -C").split("\n")[0]
        self.cgroups = self.hosts["cn001"].path("/sys/fs/cgroup/freezer").is_dir()
        self.files = {
            "slurm.conf": SLURM_CONF.format(
                nodes=node + "\n" + node.replace("cn001", "cn002"), proctrack="cgroup" if self.cgroups else "linuxproc",
                task="task/affinity,task/cgroup" if self.cgroups else "task/affinity"),
            "cgroup.conf": "CgroupPlugin=cgroup/v1\nConstrainCores=yes\n",
            "job_container.conf": "AutoBasePath=true\nBasePath=/var/lib/job_container\n",
            "topology.conf": "SwitchName=leaf Nodes=cn[001-002]\n", "plugstack.conf": PLUGSTACK,
            "job_submit.lua": JOB_SUBMIT_LUA}

    def _furnish(self, host):
        host.run(f"dpkg --purge {self.FOREIGN[self.ROLES[host.name]]} && rm -rf /etc/slurm")
        if host.name not in ("registry", self.CONFIGLESS):
            host.run("mkdir -p /etc/slurm/plugstack.conf.d")
            for name, text in self.files.items():
                host.path(f"/etc/slurm/{name}").write_text(text)
        host.run("systemctl enable -q --now munge")

    def _start_slurm(self):
        on = self.hosts
        on["controller"].path("/etc/slurm/slurmdbd.conf").write_text(SLURMDBD_CONF)
        on["controller"].run("chown slurm /etc/slurm/slurmdbd.conf && chmod 600 /etc/slurm/slurmdbd.conf && "
                             "systemctl enable -q --now mariadb && mariadb -e \"create database slurm; "
                             "grant all on slurm.* to slurm@localhost identified by 'recipe'\" && "
                             "systemctl enable -q --now slurmdbd")
        assert wait_until(lambda: not on["controller"].run("sacctmgr -i show cluster", check=False).returncode, 60, 0.2)
        for words in ACCOUNTS:
            on["controller"].run(f"sacctmgr -i -Q {words}")
        on[self.CONFIGLESS].run("mkdir -p /etc/systemd/system/slurmd.service.d && cd /etc/systemd/system && "
                                "printf '[Unit]\\nConditionPathExists=\\n' > slurmd.service.d/site.conf && "
                                "echo 'SLURMD_OPTIONS=\"--conf-server controller,backup\"' > /etc/default/slurmd")
        on["registry"].run("systemctl enable -q --now postgresql")
        for name in ("controller", "backup", "cn001", "cn002"):
            on[name].run(f"mkdir -p /var/lib/slurm/slurmd && systemctl enable -q --now "
                         f"{'slurmd' if name.startswith('cn') else 'slurmctld'}")

    def bring(self, packages):
        """These files, and no others, are what ./ has on each host."""
        for host in self.hosts.values():
            folder = host.path("/root/packages")
            for old in folder.iterdir():
                old.unlink()
            for package in packages:
                shutil.copy(package, folder)

    def follow(self, steps, after=lambda host, line: None):
        """Steps of the documents, each (names of hosts, line); after(host, line) is called after each."""
        def step(host, line):
            # A controller that has just started, or that reconfigures for the other one, may answer none.
            if not line.startswith("scontrol") or not wait_until(lambda: not host.run(line, check=False).returncode,
                                                                 10, 0.5):
                host.run(line)
            after(host, line)
        for names, line in steps:
            if "slurmctld" in line or line.startswith("scontrol"):     # one after the other, the primary last
                for name in names:
                    step(self.hosts[name], line)
            else:
                self.on_all(lambda host, line=line: step(host, line), names)

    def end(self):
        self.on_all(Host.end, list(self.hosts))
        self.switch.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


ON = re.compile(r"# --- on ([a-z, ]+?)(?:: (.*))?$")


def hosts_of(words, why):
    """The hosts that a line "# --- on WORDS: WHY" is for: roles, or "every host". A node without files of its own has
    none of those that all hosts share."""
    names = set()
    for word in words.split(","):
        word = word.strip()
        found = [name for name, role in Site.ROLES.items() if word in ("every host", role, name, f"{name} controller")]
        assert found, f"'{word}' is no host of the site"
        names.update(found)
    return [name for name in Site.ROLES if name in names and not (name == Site.CONFIGLESS and "files" in (why or ""))]


def is_whole(command):
    """Whether a shell reads no further."""
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    return not done.returncode and not done.stderr and not command.endswith("\\")


def steps(document, heading):
    """[(names of hosts, command)] of the blocks of shell below this heading of a document: lines "# --- on ROLE, ROLE:
    why" say where the next are run."""
    text = (ROOT / document).read_text()
    section = re.split(r"^##+ ", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    names, command, found = None, "", []
    for block in re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
        for line in block.strip().split("\n"):
            where = ON.match(line)
            if where:
                names = hosts_of(where[1], where[2])
                continue
            command += line
            if is_whole(command):
                assert names, f"{document}: '{command}' is for no host"
                found.append((names, command))
                command = ""
            else:
                command += "\n"
        assert not command, f"{document}: '{command}' does not end"
    assert found, f"{document}: no shell below '{heading}'"
    return found
