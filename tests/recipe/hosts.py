# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Hosts of a cluster as a site has them: a Debian with packages each, in namespaces of its own, joined by a network of
their own."""
import fcntl
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from rig.paths import CACHE, ROOT
from rig.processes import Daemon, descendants, wait_until

BASE = CACHE / "recipe"     # packaging/site-root
ENV = ["env", "-i", "PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
       "DEBIAN_FRONTEND=noninteractive"]
# The first process, which also takes the orphans; killed, it takes with it all processes and mounts.
BOOT = """\
mount -t overlay overlay -o "lowerdir=$1,upperdir=upper,workdir=work" root
mount -t proc proc root/proc
mount --rbind /dev root/dev
mount -t tmpfs tmpfs root/dev/shm
mount --rbind /sys root/sys
mount -t tmpfs tmpfs root/run
mount --bind "$2" root/var/cache/apt/archives
hostname "$3"
ip link set lo up
touch booted
exec chroot root sh -c 'while :; do sleep 1000 & wait $!; done'
"""
APT = 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\nAPT::Sandbox::User "root";\n'
SLURM_CONF = """\
ClusterName=recipe
SlurmctldHost=controller
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=60
MailProg=/bin/true
{node}
PartitionName=main Nodes=ALL Default=YES
"""


class HostError(Exception):
    """A command on a host that failed, and what it said."""


class Host:
    def __init__(self, name, address, role, folder):
        self.name, self.address, self.role, self.folder = name, address, role, folder
        for part in ("upper/root/packages", "work", "root"):
            (folder / part).mkdir(parents=True)
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork",
                   "--kill-child", "sh", "-e", "-c", BOOT, "sh", f"{BASE}/site:{BASE}/minimal",
                   str(BASE / "archives"), name]
        self.daemon = Daemon.run(name, command, folder / "boot.log", cwd=folder)
        if (not wait_until(lambda: (folder / "booted").exists() or not self.daemon.alive(), 60)
            or not self.daemon.alive()):
            raise HostError(f"{name}: {(folder / 'boot.log').read_text()}")
        self.pid = descendants(self.daemon.pid)[0]

    def path(self, path):
        return Path(f"/proc/{self.pid}/root{path}")

    def run(self, line, user="root", check=True):
        """A line of a shell. apt-get has the machine's own network: the way to Debian's mirror, which the hosts' does
        not lead to."""
        network = [] if line.startswith("apt-get ") else ["--net"]
        who = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        where = "/root/packages" if user == "root" else "/home/alice"
        with open(BASE / "archives.lock", "w", encoding="utf-8") as lock:
            if not network:     # what apt downloads is shared, and apt does not wait for others
                fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run(["nsenter", f"--target={self.pid}", "--mount", "--uts", "--ipc", "--pid", "--root",
                                   "--wd", *network, *ENV, *who, "sh", "-c", f"cd {where} && {line}"],
                                  capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode:
            raise HostError(f"{self.name}: {line}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def says(self, line, **how):
        return self.run(line, **how).stdout.strip()


class Site:
    """Four hosts, one of each role, on which Slurm without Topiary runs."""

    ROLES = {"registry": "registry", "controller": "controller", "cn001": "compute", "login": "login"}
    # Of what all hosts are made of, what those of a role do not have.
    FOREIGN = {"registry": "slurmctld slurmd slurm-client slurm-wlm-basic-plugins", "controller": "slurmd",
               "compute": "slurmctld", "login": "slurmctld slurmd"}

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="topiary-recipe-"))
        self.folder.chmod(0o755)
        self.hosts = []

    def boot(self):
        for number, (name, role) in enumerate(self.ROLES.items(), 1):
            self.hosts.append(Host(name, f"10.77.0.{number}", role, self.folder / name))
        self._join()
        for host in self.hosts:
            self._furnish(host)
        node = self.on("compute").says("slurmd -C").split("\n")[0]
        for host in self.hosts[1:]:
            host.path("/etc/slurm/slurm.conf").write_text(SLURM_CONF.format(node=node))
            # Named, so that slurmd does not look for a mounted one.
            host.path("/etc/slurm/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        shutil.rmtree(self.on("registry").path("/etc/slurm"), ignore_errors=True)
        self.on("registry").run("pg_ctlcluster --skip-systemctl-redirect $(ls /etc/postgresql) main start")
        self.on("controller").run("systemctl start slurmctld")
        self.on("compute").run("mkdir -p /var/lib/slurm/slurmd && systemctl start slurmd")

    def _join(self):
        """A bridge on the first host, and a cable from each to it."""
        hub = self.hosts[0]
        for command in ("link add name cluster type bridge", "link set cluster up",
                        f"addr add {hub.address}/24 dev cluster"):
            self._ip(hub, command)
        for number, host in enumerate(self.hosts[1:]):
            self._ip(hub, f"link add name port{number} type veth peer name eth0 netns {host.pid}")
            self._ip(hub, f"link set port{number} master cluster up")
            self._ip(host, f"addr add {host.address}/24 dev eth0")
            self._ip(host, "link set eth0 up")

    @staticmethod
    def _ip(host, command):
        subprocess.run(["nsenter", f"--target={host.pid}", "--net", "ip", *command.split()], check=True,
                       capture_output=True, text=True)

    def _furnish(self, host):
        """What a site's administrator has done before: names, munge with one key, and here our systemctl."""
        names = "".join(f"{other.address} {other.name}\n" for other in self.hosts)
        # The machine's own names are for apt.
        host.path("/etc/hosts").write_text(Path("/etc/hosts").read_text() + names)
        shutil.copy("/etc/resolv.conf", host.path("/etc/resolv.conf"))
        host.path("/etc/hostname").write_text(host.name + "\n")
        host.path("/etc/apt/apt.conf.d/00recipe").write_text(APT)
        shutil.copy(ROOT / "tests" / "recipe" / "systemctl", host.path("/usr/local/sbin/systemctl"))
        host.run(f"dpkg --purge {self.FOREIGN[host.role]} && systemctl start munge")

    def on(self, role):
        return next(host for host in self.hosts if host.role == role)

    def bring(self, packages):
        """These files, and no others, are what ./ has on each host."""
        for host in self.hosts:
            folder = host.path("/root/packages")
            for old in folder.iterdir():
                old.unlink()
            for package in packages:
                shutil.copy(package, folder)

    def follow(self, steps, after=lambda role, line: None):
        """Steps of the documents, each (roles, line), on the hosts they are for; after(role, line) is called after
        each."""
        for roles, line in steps:
            for host in self.hosts:
                if host.role in roles:
                    host.run(line)
                    after(host.role, line)

    def end(self):
        for host in self.hosts:
            host.daemon.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


ON = re.compile(r"# --- on ([a-z, ]+?)(?:: .*)?$")


def steps(document, heading):
    """[({roles}, line)] of the block of shell below this heading of a document: lines "# --- on ROLE, ROLE: why" say
    where the next are run."""
    text = (ROOT / document).read_text()
    section = re.split(r"^##+ ", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    block = re.search(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL).group(1)
    roles, found = None, []
    for line in block.strip().split("\n"):
        where = ON.match(line)
        if where:
            roles = (set(Site.ROLES.values()) if where[1] == "every host"
                     else {word.strip() for word in where[1].split(",")})
            assert roles <= set(Site.ROLES.values()), f"{document}: {line}"
        else:
            assert roles, f"{document}: '{line}' is for no host"
            found.append((roles, line))
    return found
