# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary-agent on a node that lacks what an export needs, or loses a CPU."""
import os
import subprocess

import pytest
from rig.paths import BUILD


def agent(folder, *options, before=""):
    config = folder / "topiary.conf"
    config.write_text(f"RegistryURL=http://127.0.0.1:1\nRegistryUser=nobody\nMungeSocket={folder}/munge\n"
                      f"RunDir={folder}\nTopologyFile={folder}/topology.xml\n")
    command = [BUILD / "topiary-agent", *options, "--config", config, "--node", "n1"]
    if before:
        command = ["unshare", "-m", "sh", "-ec", f'{before}\nexec "$@"', "sh", *command]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


@pytest.mark.parametrize("options, ends", [(["--once"], ""), (["--deadline=4"], "n1: not acknowledged within 4 s")])
def test_node_without_munged_is_one_line(tmp_path, options, ends):
    """As where Slurm itself uses auth/slurm; a failure that lasts is logged once, not each try."""
    done = agent(tmp_path, *options)
    assert done.returncode == 1 and done.stderr.count("\n") == (2 if ends else 1) and ends in done.stderr, done.stderr
    assert done.stderr.count(f"n1: munge cannot sign: Failed to access \"{tmp_path}/munge\"") == 1
    assert "munged must run on this host, also where Slurm uses auth/slurm" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or os.cpu_count() < 2, reason="needs root and two CPUs")
def test_recheck_names_a_cpu_that_went_offline(tmp_path):
    """As SMT that is switched off after the boot."""
    assert agent(tmp_path, "--local", "--node", os.uname().nodename).returncode == 0
    (tmp_path / "online").write_text("0\n")
    said = [agent(tmp_path, "--recheck", "--once", before=before).stderr for before in (
        "true", f"mount --bind {tmp_path}/online /sys/devices/system/cpu/online")]
    assert "went offline" not in said[0]
    assert "went offline after the topology was exported, and Slurm still allocates them" in said[1], said
    assert "chcpu --enable 1" in said[1]
