# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary enable and disable on the configurations that sites have."""
import os
import subprocess

import pytest
from rig.command import topiary
from rig.paths import BUILD


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return Site(tmp_path)


class Site:
    def __init__(self, folder):
        self.folder, self.ours, self.theirs = folder, folder / "ours", folder / "theirs"
        for plugins in (self.ours, self.theirs):
            plugins.mkdir()
            (plugins / "select_cons_tres.so").touch()
        (self.ours / "spank_topiary.so").touch()
        self.etc = folder / "etc"
        self.etc.mkdir()

    def expand(self, text):
        return text.replace("OURS", str(self.ours)).replace("THEIRS", str(self.theirs))

    def write(self, **files):
        for name, text in files.items():
            (self.etc / f"{name}.conf").write_text(self.expand(text))

    def read(self):
        return {path.stem: path.read_bytes().decode() for path in self.etc.glob("*.conf")}

    def run(self, *words):
        env = {**os.environ, "SLURM_CONF": str(self.etc / "slurm.conf"), "TOPIARY_CONF": "/dev/null"}
        return topiary(*words, "--plugins", self.ours, "--slurm-plugins", self.theirs, env=env)


MARK = " # added by topiary enable"

# what the site has, and what `topiary enable placement messages` makes of it
CONFIGURATIONS = {
    "neither": ("ClusterName=x\n", f"ClusterName=x\nPluginDir=OURS:THEIRS{MARK}\nJobSubmitPlugins=topiary{MARK}\n"),
    "both": ("PluginDir=/site:THEIRS\nJobSubmitPlugins=lua\n",
             "PluginDir=OURS:/site:THEIRS\nJobSubmitPlugins=lua,topiary\n"),
    "spelt otherwise": ("plugindir = \"THEIRS\"  # ours\njobsubmitplugins\t=\t\"lua,logging\" # both\n",
                        "plugindir = \"OURS:THEIRS\"  # ours\njobsubmitplugins\t=\t\"lua,logging,topiary\" # both\n"),
    "several a line": ("JobSubmitPlugins=lua PluginDir=THEIRS ClusterName=x\n",
                       "JobSubmitPlugins=lua,topiary PluginDir=OURS:THEIRS ClusterName=x\n"),
    "continued": ("PluginDir=/site:\\\nTHEIRS\n#PluginDir=/no\nJobSubmitPlugins=lua\\\n,logging\n",
                  "PluginDir=OURS:/site:\\\nTHEIRS\n#PluginDir=/no\nJobSubmitPlugins=lua\\\n,logging,topiary\n"),
    "continued in an element": ("PluginDir=/site:TH\\\nEIRS\nJobSubmitPlugins=lu\\\na\n",
                                "PluginDir=OURS:/site:TH\\\nEIRS\nJobSubmitPlugins=lu\\\na,topiary\n"),
    "with carriage returns": ("PluginDir=/site:\\\r\nTHEIRS\r\nJobSubmitPlugins=lua\r\n",
                              "PluginDir=OURS:/site:\\\r\nTHEIRS\r\nJobSubmitPlugins=lua,topiary\r\n"),
    "no partition's": ("NodeName=n PluginDir=no\nPluginDir=THEIRS # \\\nJobSubmitPlugins=a\\#b\n",
                       "NodeName=n PluginDir=no\nPluginDir=OURS:THEIRS # \\\nJobSubmitPlugins=a\\#b,topiary\n"),
    "without an end": ("PluginDir=THEIRS\nClusterName=x",
                       f"PluginDir=OURS:THEIRS\nClusterName=x\nJobSubmitPlugins=topiary{MARK}\n"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_enable_and_disable(site, name):
    before, after = map(site.expand, CONFIGURATIONS[name])
    site.write(slurm=before)
    shown = site.run("enable", "placement", "messages", "--dry-run")
    assert shown.returncode == 0 and site.read() == {"slurm": before}
    done = site.run("enable", "placement", "messages")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(shown.stdout)
    assert site.read()["slurm"] == after
    assert (site.etc / "slurm.conf.before-topiary").read_bytes().decode() == before
    assert "+" in shown.stdout and all(line[0] in " -+@\\" for line in shown.stdout.splitlines())
    again = site.run("enable", "placement", "messages")
    assert again.stdout == "nothing to change\n" and site.read()["slurm"] == after
    assert site.run("disable").returncode == 0
    assert site.read()["slurm"] == before + ("" if before.endswith("\n") else "\n")
    assert site.run("disable").stdout == "nothing to change\n"


def test_by_default_placement_and_options(site):
    site.write(slurm="PluginDir=THEIRS\nPlugStackConfig=stack.conf\n",
               stack="# the site's\nrequired private-tmp.so base=/tmp # spank_topiary.so\ninclude more.conf\n",
               more="optional x.so\n")
    before = site.read()
    assert site.run("enable", "--config", "/dev/null").returncode == 0
    after = site.read()
    assert after == {"slurm": before["slurm"].replace("=", f"={site.ours}:", 1), "more": before["more"],
                     "stack": before["stack"] + f"optional {site.ours}/spank_topiary.so config=/dev/null\n"}
    assert site.run("enable").stdout == "nothing to change\n"
    assert site.run("disable", "placement").returncode == 0
    assert site.read() == {**after, "slurm": before["slurm"]}
    assert site.run("disable").returncode == 0 and site.read() == before


def test_plugstack_conf_is_created_and_holds_one_line(site):
    site.write(slurm="ClusterName=x\n")
    assert site.run("enable", "options").returncode == 0
    line = f"optional {site.ours}/spank_topiary.so\n"
    assert site.read() == {"slurm": "ClusterName=x\n", "plugstack": line}
    site.write(plugstack=2 * line)
    assert site.run("enable", "options").returncode == 0 and site.read()["plugstack"] == line


def test_included_files_links_and_owners_stay(site):
    site.write(real="include plugins.conf\nClusterName=x\n", plugins="PluginDir=THEIRS\nJobSubmitPlugins=lua\n")
    (site.etc / "slurm.conf").symlink_to("real.conf")
    plugins = site.etc / "plugins.conf"
    plugins.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(plugins, 65534, 65534)
    before = plugins.stat()
    assert site.run("enable", "placement", "messages").returncode == 0
    assert plugins.read_text() == site.expand("PluginDir=OURS:THEIRS\nJobSubmitPlugins=lua,topiary\n")
    assert (plugins.stat().st_uid, plugins.stat().st_mode) == (before.st_uid, before.st_mode)
    assert (site.etc / "slurm.conf").is_symlink()
    assert site.run("disable").returncode == 0
    assert plugins.read_text() == site.expand("PluginDir=THEIRS\nJobSubmitPlugins=lua\n")


@pytest.mark.parametrize("split", ["topi\\\nary", "job_submit/\\\ntopiary", "\"topia\\\r\nry\""])
def test_a_name_in_two_lines_is_ours(site, split):
    site.write(slurm=f"JobSubmitPlugins={split}\nPluginDir=OU\\\nRS:THEIRS\n".replace("OU", str(site.ours)[:-2])
               .replace("RS:", f"{str(site.ours)[-2:]}:"))
    assert site.run("enable", "placement", "messages").stdout == "nothing to change\n"
    assert site.run("disable").returncode == 0
    assert site.read()["slurm"] == site.expand("PluginDir=THEIRS\n")


def test_a_key_given_twice_is_reported(site):
    """As after `echo JobSubmitPlugins=topiary >> slurm.conf` on a site with a plugin of its own."""
    site.write(slurm="JobSubmitPlugins=lua\nJobSubmitPlugins=topiary\n")
    done = site.run("enable", "messages")
    assert "slurm.conf:1: JobSubmitPlugins=lua has no effect" in done.stderr and done.returncode == 0
    assert site.run("disable").returncode == 0 and site.read()["slurm"] == "JobSubmitPlugins=lua\n"


@pytest.mark.parametrize("words, says", [
    (["--plugins", "plugins"], "--plugins=plugins: expected an absolute path"),
    (["--plugins", "/a:/b"], "--plugins=/a:/b: expected an absolute path"),
    (["--slurm-plugins", "/a b"], "--slurm-plugins=/a b: expected an absolute path"),
    (["options", "--config", "topiary.conf"], "--config=topiary.conf: expected an absolute path")])
def test_paths_that_slurm_would_not_find_are_refused(site, words, says):
    """A relative directory in PluginDir ends every command of Slurm."""
    site.write(slurm="PluginDir=THEIRS\n")
    (site.etc / "topiary.conf").touch()
    done = subprocess.run([BUILD / "topiary", "enable", "--plugins", site.ours, *words], capture_output=True, text=True,
                          env={**os.environ, "SLURM_CONF": str(site.etc / "slurm.conf")}, cwd=site.etc, check=False)
    assert done.returncode == 1 and says in done.stderr, done
    assert site.read() == {"slurm": site.expand("PluginDir=THEIRS\n"), "topiary": ""}


def test_a_directory_with_a_slash_and_parts_named_twice(site):
    site.write(slurm="PluginDir=THEIRS\n")
    site.ours = f"{site.ours}/"
    for _ in range(2):
        assert site.run("enable", "placement", "placement").returncode == 0
    assert site.read()["slurm"] == site.expand("PluginDir=OURS:THEIRS\n").replace("/:", ":")
    done = topiary("disable", "placement", env={**os.environ, "SLURM_CONF": str(site.etc / "slurm.conf")})
    assert done.stdout == "nothing to change\n" and f"use --plugins={site.ours[:-1]}\n" in done.stderr, done


def test_ours_comes_first(site):
    site.write(slurm="PluginDir=THEIRS:OURS\n")
    assert site.run("enable", "placement").returncode == 0
    assert site.read()["slurm"] == site.expand("PluginDir=OURS:THEIRS\n")


@pytest.mark.parametrize("missing, says", [("ours", "install topiary-slurm"), ("theirs", "--slurm-plugins")])
def test_nothing_is_named_that_is_not_there(site, missing, says):
    site.write(slurm="ClusterName=x\n")
    (site.folder / missing / "select_cons_tres.so").unlink()
    done = site.run("enable")
    assert done.returncode == 1 and says in done.stderr and site.read() == {"slurm": "ClusterName=x\n"}


def test_usage(site):
    assert site.run("enable", "everything").returncode == 64
    site.etc.joinpath("slurm.conf").unlink(missing_ok=True)
    done = site.run("enable")
    assert done.returncode == 1 and "slurm.conf: No such file" in done.stderr
    site.write(slurm="\ufeffClusterName=x\n")
    assert "slurm.conf:1: starts with a byte order mark" in site.run("enable").stderr
