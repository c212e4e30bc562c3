# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where Slurm authenticates by its own key (AuthType=auth/slurm, 23.11) and no munged runs, jobs are placed and bound
as ever, and topiary-agent, which needs munge, says so in one line."""
import json
import os
import subprocess

import pytest
from rig import Cluster
from rig.ask import cores_of, expand, wait_running
from rig.cluster import JOB_USER, STOCK_PLUGINS, as_user

CONF = "AuthType=auth/slurm\nCredType=cred/slurm\nAuthInfo=cred_expire=120\n"
NUMA_NODE = 8       # cores
# In a root of another Debian (packaging/root) "/" is no mount point, and all mounts are private already.
OWN_MOUNTS = ["unshare", "--mount"]
if subprocess.run([*OWN_MOUNTS, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
    OWN_MOUNTS += ["--propagation", "unchanged"]


class WithoutMunge(Cluster):
    """Slurm's plugin has its sockets below /run: the cluster has a /run of its own."""

    def prepare(self):
        super().prepare()
        (self.folder / "run").mkdir(exist_ok=True)
        key = self.folder / "etc" / "slurm.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))

    def within(self, command):
        return [*OWN_MOUNTS, "sh", "-c", 'mount --bind "$0" /run && exec "$@"', self.folder / "run", *command]

    def start_munge(self):
        pass

    def run_daemon(self, name, command, **how):
        return super().run_daemon(name, self.within(command), **how)

    def command(self, command, user=None, **how):
        return super().command(self.within(as_user(user, command) if user else command), **how)


# It needs libjwt, which not every Slurm was built with.
if (STOCK_PLUGINS / "auth_slurm.so").exists():
    @pytest.fixture(scope="module")
    def site(folders):
        with WithoutMunge(folders(), {"cn1": "amd-4x16"}, registry=False, conf=CONF) as cluster:
            assert "auth/slurm" in cluster.command(["scontrol", "show", "config"]).stdout
            yield cluster

    def test_jobs_are_placed(site):
        number = site.batch("sleep 60", "-n8", "--topo-fit=require", "--topo-level=numa",
                            "--output=/dev/null").stdout.strip()
        wait_running(site, number)
        (cores,) = cores_of(site, number).values()
        assert len(cores) == NUMA_NODE and len({core // NUMA_NODE for core in cores}) == 1
        (told,) = json.loads(site.topiary("why", "--json", number, user=JOB_USER).stdout)["jobs"]
        assert told["verdict"]["outcome"] == "placed"
        site.command(["scancel", number])

    def test_tasks_are_bound(site):
        done = site.command(["srun", "-n2", "-c4", "--topo-place=compact", "--topo-report=json", "sh", "-c",
                             'test -r "$HWLOC_XMLFILE"'], user=JOB_USER)
        reports = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        assert sorted(report["rank"] for report in reports) == [0, 1]
        assert all(len(expand(report["cpus_logical"])) == 4 for report in reports), reports

    def test_agent_needs_munge(site):
        done = site.command(site.on_node("cn1", [
            site.build / "topiary-agent", "--once", "--config", f"{site.folder}/etc/topiary.conf",
            "--input", f"{site.folder}/nodes/cn1/machine.xml"]), check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert "munged must run on this host, also where Slurm uses auth/slurm" in done.stderr
