# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The lines of README.md and docs/admin-guide.md as an administrator runs them: packages on a site with a Slurm, a
systemd and databases of its own. In order."""
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hosts import Site, steps
from rig.paths import BUILD
from rig.processes import wait_until

DEBS = Path(os.environ.get("TOPIARY_DEBS", BUILD / "deb"))
FOLDER = "/usr/lib/x86_64-linux-gnu/topiary/slurm"
# for slurmd to register again
WAITING = re.compile("Required node not available|queued and waiting|has been allocated resources")
CONTROLLERS = ("controller", "backup")
NODES = ("cn001", "cn002")
SLURM = (*CONTROLLERS, *NODES, "login")
# Of each host the units that run when it has been enabled, and those that have ended well.
ACTIVE = {"registry": ["topiaryd"], "controller": ["topiary-snapshot"], "backup": ["topiary-snapshot"],
          "cn001": ["topiary-recheck.timer", "run-topiary.mount", "topiary-monitor"],
          "cn002": ["topiary-recheck.timer", "run-topiary.mount", "topiary-monitor"]}
ENDED = {"cn001": ["topiary-agent", "topiary-recheck"], "cn002": ["topiary-agent", "topiary-recheck"]}
ERROR = re.compile(r"error|denied|not permitted|fail|cannot|refuse|invalid|dumped|killed", re.IGNORECASE)
# What asks every few seconds may do so while the registry is restarted.
AWAY = re.compile(r"no answer from .*Couldn't connect to server")


def packages(folder):
    found = [p for p in folder.glob("*topiary*.deb") if "dbgsym" not in p.name]
    assert len(found) == 6, f"{folder}: {found}: run make deb"
    return found


@pytest.fixture(scope="module")
def site():
    site = Site()
    try:
        site.boot()
        login = site.hosts["login"]
        assert wait_until(lambda: login.says("sinfo -h -p main -t idle -o %D") == "2", 120, 0.5), login.says("sinfo -N")
        site.long = login.says("sbatch --parsable -n1 -w cn002 --output=/dev/null --wrap='sleep 3600'", user="alice")
        yield site
    finally:
        site.end()


def srun(site, words, command="hostname", **how):
    return site.hosts["login"].run(f"srun {words} {command}", user="alice", **how)


def assert_slurm_works(site, words="-N2", nodes=NODES):
    """From the login node a job runs to its end on these nodes, without a word of complaint, and the one that began
    before all this still runs."""
    done = srun(site, words)
    said = [line for line in done.stderr.split("\n") if not WAITING.search(line)]
    assert (sorted(done.stdout.split()), said) == (list(nodes), [""])
    assert site.hosts["login"].says(f"squeue -h -o %T -j {site.long}") == "RUNNING"


def slurm_is_up(site, controllers=2):
    login = site.hosts["login"]
    assert wait_until(lambda: login.run("scontrol ping", check=False).stdout.count(" UP") == controllers, 120, 0.5)
    assert wait_until(lambda: set(login.says("sinfo -h -p main -N -o %T").split()) <= {"idle", "mixed", "allocated"},
                      120, 0.5), login.says("sinfo -N")


def follow(site, *where):
    """Run a block, and see after each of its lines that every host that has Slurm can still ask the controller."""
    def after(host, line):
        if "restart" in line and "slurm" in line:
            slurm_is_up(site)
        elif host.name in SLURM and "slurm" in line:
            host.run("scontrol ping")
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


def journal(host, units, since=0):
    """What the units of a host said that an administrator would look into."""
    return [line for unit in units
            for line in host.says(f"journalctl -q -b -o cat --no-pager --since=@{since} -u {unit}").split("\n")
            if ERROR.search(line) and not (unit == "topiary-snapshot" and AWAY.search(line))]


def test_boots(site):
    for host in site.hosts.values():
        assert host.says("systemctl is-system-running || systemctl --failed") == "running"
    assert_slurm_works(site)
    done = srun(site, "-N2 --project=apollo",
                """sh -c 'echo $SITE_PROJECT; ls -A /tmp; touch /var/tmp/x; ls /var/tmp'""")
    assert sorted(done.stdout.split()) == ["apollo", "apollo", "x", "x"], done
    assert "own rule" in srun(site, "--comment='forbidden by the site'", check=False).stderr


def test_steps_are_contained_by_cgroups(site):
    if not site.cgroups:
        pytest.skip("no freezer controller of cgroup v1 is mounted here")
    seen = srun(site, "-N2", "cat /proc/self/cgroup").stdout
    for controller in ("freezer", "cpuset"):
        assert len(re.findall(rf":{controller}:/slurm_cn00[12]/uid_1500/job_\d+/step_0", seen)) == 2, seen


def test_enable(site):
    site.bring(packages(DEBS))
    follow(site, "README.md", "Enable it on a cluster")


def test_account_is_the_same_everywhere(site):
    assert {host.says("getent passwd topiary").split(":")[2] for host in site.hosts.values()} == {"824"}


def registry_has_the_nodes(site):
    assert wait_until(lambda: site.hosts["login"].run("topiary nodes --names", check=False).stdout.split()
                      == list(NODES), 60, 0.5), site.hosts["login"].run("topiary nodes", check=False)
    for name in CONTROLLERS:
        snapshot = site.hosts[name].path("/var/lib/topiary/snapshot")
        assert wait_until(lambda: snapshot.exists() and "cn[001-002]" in snapshot.read_text(), 60, 0.5), (
            f"{name}: " + site.hosts[name].says("ls -l /var/lib/topiary; cat /var/lib/topiary/snapshot; "
                                                "journalctl -q -b -o cat -n 20 -u topiary-snapshot", check=False))


def test_registry_knows_the_nodes(site):
    registry_has_the_nodes(site)
    for name in NODES:
        assert site.hosts[name].says("topiary verify") == ""


def test_tls_of_the_sites_own_authority(site, tmp_path):
    def openssl(words):
        subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=site -keyout ca.key -out ca.pem")
    openssl("req -newkey rsa:2048 -nodes -subj /CN=registry -keyout registry.key -out registry.csr")
    (tmp_path / "names").write_text("subjectAltName=DNS:registry\n")
    openssl("x509 -req -in registry.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out "
            "registry.pem")
    for host in site.hosts.values():
        for name in ("ca.pem", *(("registry.pem", "registry.key") if host.name == "registry" else ())):
            shutil.copy(tmp_path / name, host.path("/root/packages"))
    follow(site, "docs/admin-guide.md", "TLS")
    assert "https" in site.hosts["login"].says("grep ^RegistryURL /etc/slurm/topiary.conf")
    site.hosts["cn002"].run("topiary-agent --recheck --deadline=60")
    for name in CONTROLLERS:
        site.hosts[name].path("/var/lib/topiary/snapshot").unlink()
        site.hosts[name].run("systemctl restart topiary-snapshot")
    registry_has_the_nodes(site)


def test_nodes_export_at_boot(site):
    node = site.hosts["cn001"]
    node.run("systemctl enable -q --now topiary-monitor")
    site.hosts["cn002"].run("systemctl enable -q --now topiary-monitor")
    node.reboot()
    assert node.says("systemctl is-system-running || systemctl --failed") == "running"
    assert wait_until(lambda: "acknowledged" in node.says("journalctl -q -b -o cat -u topiary-agent"), 60, 0.5)
    slurm_is_up(site)
    assert_slurm_works(site)


def test_units_restart_without_an_error(site):
    for name in ACTIVE:
        host, units = site.hosts[name], [*ACTIVE[name], *ENDED.get(name, ())]
        host.run(f"systemctl restart {' '.join(unit for unit in units if not unit.endswith('.mount'))}")
        for unit in ENDED.get(name, ()):
            assert wait_until(lambda: host.run(f"systemctl is-active {unit}", check=False).stdout == "inactive\n", 60,
                              0.5), host.run(f"systemctl status {unit}", check=False).stdout
        for unit in units:
            state = dict(line.split("=", 1) for line in host.says(
                f"systemctl show -p ActiveState -p Result -p NRestarts {unit}").split("\n"))
            assert state == {"ActiveState": "active" if unit in ACTIVE[name] else "inactive", "Result": "success"} | (
                {} if unit.endswith(("timer", "mount")) else {"NRestarts": "0"}), f"{name}: {unit}: {state}"
        assert journal(host, units) == [], name
        assert host.says("systemctl is-system-running || systemctl --failed") == "running"
    registry_has_the_nodes(site)


def test_jobs_are_placed_beside_all_that_the_site_has(site):
    login = site.hosts["login"]
    # slurmctld looks for a snapshot every ten seconds.
    assert wait_until(lambda: "snapshot: 2 nodes of 1 shape"
                      in site.hosts["controller"].says("cat /var/log/slurmctld.log"), 60, 0.5)
    number = login.says("sbatch --wait --parsable -N2 --topo-level=l3 --project=apollo --output=job --wrap='srun sh -c "
                        "\"test -r $HWLOC_XMLFILE; echo \\$SITE_PROJECT; ls -A /tmp\"'", user="alice")
    why = login.says(f"topiary why {number}")
    assert re.search(rf"job +{number}, .*placed by Topiary", why) and re.search(r"cores +cn001 \d", why), why
    assert login.path("/home/alice/job").read_text() == "apollo\n" * 2
    assert "seen by job_submit.lua" in login.says(f"scontrol show job {number}")
    assert "own rule" in srun(site, "--comment='forbidden by the site'", check=False).stderr
    assert wait_until(lambda: "COMPLETED" in login.says(f"sacct -nXPo state -j {number}"), 60, 0.5)


def test_partitions_that_share_and_preempt(site):
    """Two jobs on one core by OverSubscribe=FORCE, and one that is put back into the queue by a QOS."""
    login = site.hosts["login"]
    shared = [login.says("sbatch --parsable -p shared -w cn001 -n2 --output=/dev/null --wrap='sleep 600'", user="alice")
              for _ in range(2)]
    assert wait_until(lambda: login.says(f"squeue -h -o %T -j {','.join(shared)}") == "RUNNING\nRUNNING", 60, 0.5)
    login.run(f"scancel --wait {' '.join(shared)} || scancel {' '.join(shared)}")
    assert wait_until(lambda: not login.says("squeue -h -w cn001"), 60, 0.5)
    victim = login.says("sbatch --parsable -w cn001 -n2 --requeue --output=/dev/null --wrap='sleep 600'", user="alice")
    assert wait_until(lambda: login.says(f"squeue -h -o %T -j {victim}") == "RUNNING", 60, 0.5)
    urgent = srun(site, "-p preempting --qos=urgent -w cn001 -n2 --topo-level=l3")
    assert urgent.stdout == "cn001\n" * 2
    assert login.says(f"squeue -h -o %T -j {victim}") in ("PENDING", "RUNNING")
    assert "Restarts=1" in login.says(f"scontrol show job {victim}")
    login.run(f"scancel {victim}")


def test_takeover_and_failback_lose_no_job(site):
    login = site.hosts["login"]
    assert wait_until(lambda: not login.says("squeue -h -w cn001"), 120, 0.5)
    running = [login.says("sbatch --parsable -w cn001 -n1 --output=/dev/null --wrap='sleep 600'", user="alice")
               for _ in range(2)]
    waiting = [login.says(f"sbatch --parsable -w cn001 -n1 --topo-level=l3 "
                          "--output=/dev/null --wrap='sleep 600'", user="alice") for _ in range(4)]
    jobs = f"squeue -h -S i -o '%i %T' -j {','.join(running + waiting)}"
    assert wait_until(lambda: login.says(jobs).count("RUNNING") == 2, 60, 0.5), login.says(jobs)
    before = login.says(jobs)
    site.hosts["backup"].run("scontrol takeover")
    assert wait_until(lambda: "controller is DOWN" in login.says("scontrol ping || true"), 60, 0.5)
    slurm_is_up(site, 1)
    assert login.says(jobs) == before
    assert_slurm_works(site, "-n1 -w cn002", ["cn002"])
    site.hosts["controller"].run("systemctl start slurmctld")
    slurm_is_up(site)
    assert login.says(jobs) == before
    login.run(f"scancel {' '.join(running)}")
    assert wait_until(lambda: login.says(jobs).count("RUNNING") == 2, 120, 0.5), login.says(jobs)
    assert "placed by Topiary" in login.says(f"topiary why {waiting[0]}")
    login.run(f"scancel {' '.join(waiting)}")
    assert wait_until(lambda: not login.says("squeue -h -w cn001"), 120, 0.5)


def test_registry_that_was_away(site):
    registry = site.hosts["registry"]
    registry.run("systemctl stop topiaryd")
    assert site.hosts["login"].run("topiary nodes", check=False).returncode
    assert_slurm_works(site, "-N2 --topo-level=l3")
    registry.run("systemctl start topiaryd && systemctl restart postgresql")
    registry_has_the_nodes(site)
    for name in NODES:      # both, whatever has changed of the machine that they share
        site.hosts[name].run("systemctl restart topiary-agent topiary-recheck")
    assert_slurm_works(site, "-N2 --topo-level=l3")


def test_installed_programs_find_their_libraries(site):
    login = site.hosts["login"]
    login.run("apt-get install ./libtopiary0_*.deb")
    objects = login.says("find /usr/lib -path '*topiary*' -name '*.so*'").split()
    assert len(objects) >= 5
    assert "not found" not in login.says(f"ldd {' '.join(objects)}")
    for recorder in (path for path in objects if "capture" in path):
        assert login.run(f"LD_PRELOAD={recorder} true").stderr == ""
    login.run("apt-get purge libtopiary0")


def test_offline_snapshot_needs_no_registrys_host(site):
    """On a host on which topiaryd never ran, as the administrator's guide has it."""
    document = site.hosts["cn002"].path("/run/topiary/topology.xml").read_text()
    login = site.hosts["login"]
    login.path("/root/packages/cn001.xml").write_text(document)
    login.run("topiary snapshot --offline 'cn[001-512]=cn001.xml' -o /var/lib/topiary/snapshot")


def test_files_elsewhere(site):
    follow(site, "docs/admin-guide.md", "Files elsewhere")
    registry_has_the_nodes(site)


def test_reasons_of_refused_jobs(site):
    for _ in range(2):      # a line of the guide may be repeated
        follow(site, "docs/admin-guide.md", "Explain refused jobs")
    submitted = site.hosts["login"].run("sbatch -n1 --topo-fit=require --topo-request=/package=64 --wrap=true",
                                        user="alice", check=False)
    assert submitted.returncode and "package" in submitted.stderr, submitted.stderr
    assert "own rule" in srun(site, "--comment='forbidden by the site'", check=False).stderr


@pytest.mark.parametrize("name, file", [("controller", "slurm.conf"), ("backup", "slurm.conf"),
                                        ("cn002", "plugstack.conf"), ("login", "plugstack.conf")])
def test_configured_plugins_are_not_removed(site, name, file):
    done = site.hosts[name].run("apt-get remove topiary-slurm", check=False)
    assert (done.returncode and f"topiary-slurm: not removed, because /etc/slurm/{file} still names it" in done.stdout
            + done.stderr), done
    assert_slurm_works(site, "-N2 --topo-level=l3")


def test_upgrade(site, tmp_path):
    began = int(time.time())
    for package in packages(DEBS):
        newer(package, tmp_path)
    site.bring(packages(tmp_path))
    follow(site, "docs/admin-guide.md", "Upgrade")
    assert {host.says("dpkg-query -W -f '${Version}' topiary")[-2:] for host in site.hosts.values()} == {".1"}
    assert_slurm_works(site, "-N2 --topo-level=l3")
    registry_has_the_nodes(site)
    for name in ACTIVE:
        assert journal(site.hosts[name], ACTIVE[name] + ENDED.get(name, []), began) == [], name


def test_rollback_and_enable_again(site):
    shown = "scontrol show config | grep -e ^PluginDir -e ^JobSubmit"
    follow(site, "docs/admin-guide.md", "Roll back")
    said = site.hosts["login"].says(shown)
    assert "topiary" not in said and "lua" in said
    assert "own rule" in srun(site, "--comment='forbidden by the site'", check=False).stderr
    enable = steps("README.md", "Enable it on a cluster")
    site.follow(enable[[line for _, line in enable].index(next(line for _, line in enable
                                                               if re.search("PluginDir|topiary enable", line))):])
    slurm_is_up(site)
    assert FOLDER in site.hosts["login"].says(shown)


@pytest.mark.parametrize("name", ["login", "cn002", "controller"])
def test_removed_and_purged_while_plugindir_names_it(site, name):
    """Slurm goes on, also from anew, and as it is without us."""
    host = site.hosts[name]
    host.run("sed -i /spank_topiary/d /etc/slurm/plugstack.conf")
    for what in ("remove topiary-slurm", "purge topiary-common"):
        host.run(f"apt-get {what}")
        if name != "login":
            host.run(f"systemctl restart {'slurmd' if name in NODES else 'slurmctld'}")
            slurm_is_up(site)
        assert_slurm_works(site)
    assert host.says(f"ls {FOLDER}") == "README"
    site.follow([([name], line) for names, line in steps("README.md", "Enable it on a cluster")
                 if name in names and re.search("apt-get|plugstack|topiary enable", line)])
    assert "README" not in host.says(f"ls {FOLDER}")


def test_remove(site):
    follow(site, "docs/admin-guide.md", "Remove")
    for host in site.hosts.values():
        left = host.says("find / -xdev -name '*topiary*' -not -path '/root/packages*' -not -path '/var/log/*' -not "
                         "-path '/var/lib/dpkg/*' -not -path '/run/*' -not -path '/var/lib/postgresql/*' -not -path "
                         "'/etc/systemd/system/topiaryd.service.d*' -not -name '*.before-topiary'")
        assert left == "", f"{host.name}: {left}"
    for name, unit in (("controller", "slurmctld"), ("cn001", "slurmd"), ("cn002", "slurmd")):
        site.hosts[name].run(f"systemctl restart {unit}")
        slurm_is_up(site)       # slurmd waits for ever for the files of a controller that ends while it sends them
    assert_slurm_works(site)
    site.hosts["login"].run(f"scancel {site.long}")
