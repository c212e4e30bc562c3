# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The lines of README.md and docs/admin-guide.md as an administrator runs them: packages on four hosts with a Slurm of
their own. In order."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hosts import Site, steps
from rig.paths import BUILD
from rig.processes import wait_until

DEBS = Path(os.environ.get("TOPIARY_DEBS", BUILD / "deb"))
FOLDER = "/usr/lib/x86_64-linux-gnu/topiary/slurm"
# for slurmd to register again
WAITING = re.compile("Required node not available|queued and waiting|has been allocated resources")
SLURM = {"controller", "compute", "login"}


def packages(folder):
    found = [p for p in folder.glob("*topiary*.deb") if "dbgsym" not in p.name]
    assert len(found) == 6, f"{folder}: {found}: run make deb"
    return found


@pytest.fixture(scope="module")
def site():
    site = Site()
    try:
        site.boot()
        assert wait_until(lambda: site.on("login").says("sinfo -h -o %T") == "idle", 120,
                          0.5), "stock Slurm does not run"
        site.long = site.on("login").says("sbatch --parsable -n1 --mem=1 --output=/dev/null --wrap='sleep 3600'",
                                          user="alice")
        yield site
    finally:
        site.end()


def assert_slurm_works(site, *words):
    """From the login node a job runs to its end, without a word of complaint, and the one that began before all this
    still runs."""
    done = site.on("login").run(f"srun -n1 {' '.join(words)} hostname", user="alice")
    said = [line for line in done.stderr.split("\n") if not WAITING.search(line)]
    assert (done.stdout, said) == ("cn001\n", [""])
    assert site.on("login").says(f"squeue -h -o %T -j {site.long}") == "RUNNING"


def controller_is_up(site):
    assert wait_until(lambda: "UP" in site.on("login").run("scontrol ping", check=False).stdout, 120, 0.5)
    assert wait_until(lambda: site.on("login").says("sinfo -h -o %T") in ("mixed", "idle"), 120, 0.5)


def follow(site, *where):
    """Run a block, and see after each of its lines that every host that has Slurm can still ask the controller."""
    def after(role, line):
        if "restart" in line:
            controller_is_up(site)
        if role in SLURM and "slurm" in line:
            site.on(role).run("scontrol ping")
    site.follow(steps(*where), after)
    assert_slurm_works(site)


def newer(package, folder):
    """The same package with a higher version, as the next release would be."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN" / "control"
    version = re.search(r"^Version: (\S+)$", control.read_text(), re.MULTILINE)[1]
    text = control.read_text().replace(f"Version: {version}\n", f"Version: {version}.1\n")
    control.write_text(text.replace(f"(= {version})", f"(= {version}.1)"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree,
                    folder / package.name.replace("_amd64", ".1_amd64")],
                   check=True, capture_output=True)
    shutil.rmtree(tree)


def test_enable(site):
    site.bring(packages(DEBS))
    follow(site, "README.md", "Enable it on a cluster")


def test_account_is_the_same_everywhere(site):
    assert {host.says("getent passwd topiary").split(":")[2] for host in site.hosts} == {"824"}


def test_registry_knows_the_node(site):
    assert wait_until(lambda: "cn001" in site.on("login").says("topiary nodes"), 60, 0.5)
    controller = site.on("controller")
    assert wait_until(lambda: "cn001" in controller.says("cat /var/lib/topiary/snapshot || true"), 60, 0.5)
    assert site.on("compute").says("topiary verify") == ""


def test_job_of_the_login_node_is_placed(site):
    login = site.on("login")
    # slurmctld looks for a snapshot every ten seconds.
    assert wait_until(lambda: "snapshot: 1 nodes of 1 shapes"
                      in site.on("controller").says("cat /var/log/slurmctld.log"), 60, 0.5)
    # Its core is given to the next when a job before is gone, not only done.
    assert wait_until(lambda: not login.says("squeue -h -t CG"), 120, 0.5)
    number = login.says("sbatch --wait --parsable -n1 --topo-level=l3 --output=/dev/null --wrap='test -r "
                        "$HWLOC_XMLFILE'", user="alice")
    why = login.says(f"topiary why {number}")
    assert re.search(rf"job +{number}, .*placed by Topiary", why) and re.search(r"cores +cn001 \d", why), why


def test_installed_programs_find_their_libraries(site):
    login = site.on("login")
    login.run("apt-get install ./libtopiary0_*.deb")
    objects = login.says("find /usr/lib -path '*topiary*' -name '*.so*'").split()
    assert len(objects) >= 5
    assert "not found" not in login.says(f"ldd {' '.join(objects)}")
    for recorder in (path for path in objects if "capture" in path):
        done = login.run(f"LD_PRELOAD={recorder} true")
        assert done.stderr == ""
    login.run("apt-get purge libtopiary0")


def test_offline_snapshot_needs_no_registrys_host(site):
    """On a host on which topiaryd never ran, as the administrator's guide has it."""
    document = site.on("compute").path("/run/topiary/topology.xml").read_text()
    site.on("login").path("/root/packages/cn001.xml").write_text(document)
    site.on("login").run("topiary snapshot --offline 'cn[001-512]=cn001.xml' -o /var/lib/topiary/snapshot")


def test_reasons_of_refused_jobs(site):
    follow(site, "docs/admin-guide.md", "Explain refused jobs")
    done = site.on("login").run("sbatch -n1 --topo-fit=require --topo-request=/package=64 --wrap=true", user="alice",
                                check=False)
    assert done.returncode and "package" in done.stderr, done.stderr


@pytest.mark.parametrize("role, file",
                         [("controller", "slurm.conf"), ("compute", "plugstack.conf"), ("login", "plugstack.conf")])
def test_configured_plugins_are_not_removed(site, role, file):
    done = site.on(role).run("apt-get remove topiary-slurm", check=False)
    assert (done.returncode and f"topiary-slurm: not removed, because /etc/slurm/{file} still names it" in done.stdout
            + done.stderr), done
    assert_slurm_works(site, "--topo-level=l3")


def test_upgrade(site, tmp_path):
    for package in packages(DEBS):
        newer(package, tmp_path)
    site.bring(packages(tmp_path))
    follow(site, "docs/admin-guide.md", "Upgrade")
    assert {host.says("dpkg-query -W -f '${Version}' topiary")[-2:] for host in site.hosts} == {".1"}
    assert_slurm_works(site, "--topo-level=l3")
    assert "cn001" in site.on("login").says("topiary nodes")


def test_rollback_and_enable_again(site):
    follow(site, "docs/admin-guide.md", "Roll back")
    assert "topiary" not in site.on("login").says("scontrol show config | grep -e ^PluginDir -e ^JobSubmit")
    enable = steps("README.md", "Enable it on a cluster")
    site.follow(enable[[line for _, line in enable].index(next(line for _, line in enable if "PluginDir" in line)):])
    controller_is_up(site)
    assert FOLDER in site.on("login").says("scontrol show config | grep ^PluginDir")


@pytest.mark.parametrize("role", ["login", "compute", "controller"])
def test_removed_and_purged_while_plugindir_names_it(site, role):
    """Slurm goes on, also from anew, and as it is without us."""
    host = site.on(role)
    host.run("sed -i /spank_topiary/d /etc/slurm/plugstack.conf")
    for what in ("remove topiary-slurm", "purge topiary-common"):
        host.run(f"apt-get {what}")
        if role != "login":
            host.run(f"systemctl restart {'slurmd' if role == 'compute' else 'slurmctld'}")
            controller_is_up(site)
        assert_slurm_works(site)
    assert host.says(f"ls {FOLDER}") == "README"
    site.follow([(roles & {role}, line) for roles, line in steps("README.md", "Enable it on a cluster")
                 if re.search("apt-get|plugstack", line)])
    assert "README" not in host.says(f"ls {FOLDER}")


def test_remove(site):
    follow(site, "docs/admin-guide.md", "Remove")
    for host in site.hosts:
        left = host.says("find / -xdev -name '*topiary*' -not -path '/root/packages*' -not -path '/var/log/*' -not "
                         "-path '/var/lib/dpkg/*' -not -path '/run/*' -not -path '/var/lib/postgresql/*'")
        assert left == "", f"{host.name}: {left}"
    site.on("controller").run("systemctl restart slurmctld")
    site.on("compute").run("systemctl restart slurmd")
    controller_is_up(site)
    assert_slurm_works(site)
