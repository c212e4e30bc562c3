# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""With Slurm's own slurmdbd and MariaDB: what `topiary why` says of a job lasts after slurmctld has forgotten it."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rig import Cluster
from rig.ask import jobs, wait_running
from rig.cluster import JOB_USER, STOCK_PLUGINS, free_ports, port_open
from rig.node import configured
from rig.processes import wait_until

DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=localhost
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/log/slurmdbd.log
PluginDir={plugins}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""

# Of MariaDB 10. That of Debian 13, 11.8, answers the first question of its slurmdbd with an error.
TABLES = Path("/usr/share/mysql/mysql_system_tables.sql")


class WithAccounting(Cluster):
    """MariaDB listens on a Unix socket alone, and writes nothing through to the disk."""

    def prepare(self):
        (port,) = (self.dbd_port,) = free_ports(1)
        self.conf += (f"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStoragePort={port}\n"
                      "AccountingStoragePass={folder}/munge/socket\n")
        super().prepare()
        conf = self.folder / "etc" / "slurmdbd.conf"
        conf.write_text(DBD_CONF.format(folder=self.folder, port=port, plugins=STOCK_PLUGINS))
        conf.chmod(0o600)

    def start_slurm(self):
        data, socket = self.folder / "mariadb", self.folder / "mariadb.sock"
        server = ["mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", "--innodb-log-file-size=8M",
                  "--innodb-flush-method=nosync"]
        data.mkdir()
        tables = TABLES.read_text(encoding="utf-8")
        subprocess.run([*server, "--bootstrap"], check=True, capture_output=True, text=True,
                       input=f"create database mysql;\nuse mysql;\n{tables}")
        self.run_daemon("mariadbd", [*server, f"--socket={socket}", "--skip-networking", "--skip-grant-tables"],
                        log=self.folder / "log" / "mariadbd.log")
        self._expect("mariadbd", socket.exists, 60)
        self.run_daemon("slurmdbd", ["slurmdbd", "-D"], log=self.folder / "log" / "slurmdbd.out",
                        env=self.env(MYSQL_UNIX_PORT=str(socket), SLURM_CONF=f"{self.folder}/etc/slurm.conf"))
        self._expect("slurmdbd", lambda: port_open(self.dbd_port), 60)
        super().start_slurm()


@pytest.fixture(scope="module")
def cluster(folders):
    if not (shutil.which("mariadbd") and TABLES.exists()
            and (STOCK_PLUGINS / "accounting_storage_mysql.so").exists()):
        pytest.skip("no mariadbd 10, or this Slurm has no accounting_storage/mysql")
    conf = "MinJobAge=2\n"
    with WithAccounting(folders(), {"cn1": "intel-2x8"}, registry=False, conf=conf) as made:
        yield made


def forgotten(cluster, number):
    return "Invalid job id" in cluster.command(["scontrol", "show", "job", number], check=False).stderr


def test_verdicts_last_in_accounting(cluster):
    placed = cluster.batch("sleep 600", "-N1", "-n4", "--output=/dev/null").stdout.strip()
    wait_running(cluster, placed)
    verdict = re.search(" AdminComment=(.* end)", jobs(cluster, placed)[0])[1]
    cluster.command(["scontrol", "update", f"JobId={placed}", f"AdminComment=bay 7 | row 3 {verdict} or so"])
    waits = cluster.batch("true", "-N1", "-n16", "--topo-fit=require", "--topo-level=node", "--output=/dev/null")
    held = cluster.batch("true", "--hold", "-n1", "--output=/dev/null").stdout.strip()

    def told(without="$"):
        """As a user sees it who prefers other times."""
        return re.sub(without, "", cluster.command(["env", "SLURM_TIME_FORMAT=relative", cluster.folder / "bin/topiary",
                                                    "why", "-v", placed], user=JOB_USER, check=False).stdout)
    running = told("cost .*\n")
    assert "placed by Topiary" in running, running
    cluster.command(["scancel", placed, waits.stdout.strip(), held])
    assert wait_until(lambda: forgotten(cluster, placed) and forgotten(cluster, held), 60)
    assert wait_until(lambda: told("cost .*\n") == running.replace("running", "ended"), 30), cluster.command(
        ["sacct", "-j", placed, "-o", "JobID,State,AdminComment%600,SystemComment"]).stdout
    ran = cluster.command(["sacct", "-nPXj", placed, "-o", "AllocCPUS,ElapsedRaw"]).stdout.strip().split("|")
    assert re.search(r"cost +waited \d+ s, had {} CPUs for {} s: ".format(*ran), told()), (ran, told())
    refused = cluster.topiary("why", "-v", held, check=False)
    assert refused.returncode == 1 and "no verdict: it ended before it started" in refused.stderr, refused.stderr
    unknown = cluster.topiary("why", "999999", check=False)
    assert unknown.stderr.endswith("slurmctld does not know this job, or no longer, and neither does accounting\n")


def test_audit_of_past_days(cluster):
    """As a user: Slurm's records, each job that ran replayed once."""
    for cores in (3, 5, 7):
        cluster.job("true", "-N1", f"-n{cores}")

    def ran():
        words = ["sacct", "-anXP", "-S", "now-7days", "-o", "JobID,End,NodeList"]
        return [line for line in cluster.command(words, user=JOB_USER).stdout.split("\n") if line.endswith("|cn1")]
    assert wait_until(lambda: len(ran()) >= 3 and "Unknown" not in str(ran()), 30), ran()
    told = json.loads(cluster.topiary("audit", "--json", "--days", "7", user=JOB_USER).stdout)["past"]
    assert {policy["policy"]: policy["jobs"] for policy in told["policies"]} == dict.fromkeys(
        ("stock", "block", "prefer"), len(ran())), (told, ran())


def test_one_qos_at_first(cluster):
    """A QOS exists in accounting alone."""
    cluster.command(["sacctmgr", "-i", "add", "qos", "pilot"])
    with configured(cluster, f"TopoQos=Pilot\nObserveFile={cluster.folder}/work/observed\n"):
        cluster.command(["scontrol", "reconfigure"])
        for options, there in (((), False), (("--qos=pilot",), True)):
            ran = cluster.command(["srun", "-n1", *options, "--topo-omp=auto", "sh", "-c",
                                   "env; scontrol show job $SLURM_JOB_ID"], user=JOB_USER)
            assert there == ("OMP_PLACES=" in ran.stdout) == ("AdminComment=" in ran.stdout), ran.stdout
            assert there != ("no effect: --topo-omp: TopoQos in topiary.conf does not have" in ran.stderr), ran.stderr
    cluster.command(["scontrol", "reconfigure"])
