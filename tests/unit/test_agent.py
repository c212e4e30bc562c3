# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary-agent on a node that lacks what an export needs."""
import subprocess

from rig.paths import BUILD


def test_node_without_munged_is_one_line(tmp_path):
    """As where Slurm itself uses auth/slurm."""
    config = tmp_path / "topiary.conf"
    config.write_text(f"RegistryURL=http://127.0.0.1:1\nRegistryUser=nobody\nMungeSocket={tmp_path}/munge\n"
                      f"RunDir={tmp_path}\nTopologyFile={tmp_path}/topology.xml\n")
    done = subprocess.run([BUILD / "topiary-agent", "--once", "--config", config, "--node", "n1"],
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"n1: munge cannot sign: Failed to access \"{tmp_path}/munge\"" in done.stderr
    assert "munged must run on this host, also where Slurm uses auth/slurm" in done.stderr
