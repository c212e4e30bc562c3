# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Jobs whose steps the first node manages (--stepmgr, since 24.05), and steps that nobody waits for (srun --async,
since 26.05)."""
import re

import pytest
from rig import Cluster
from rig.cluster import SLURM_RELEASE
from rig.paths import ROOT

from .test_rank_file import SRUN, compare, seat  # noqa: F401: a fixture

CONF = "SlurmctldParameters=enable_stepmgr\nPrologFlags=contain\n"
OPTIONS = ROOT / "spank_plugin" / "launch" / "srun_options.c"


@pytest.fixture(scope="module")
def whole(folders):
    with Cluster(folders(), {"cn1": "amd-4x16", "cn2": "amd-4x16"}, registry=False,
                 conf=CONF if SLURM_RELEASE >= (24, 5) else "") as made:
        yield made


def test_every_option_of_this_srun_is_known(cluster):
    """The value of one that is not known would be taken for the command."""
    ask = "--autocomplete=--" if SLURM_RELEASE >= (23, 2) else "--help"
    names = {name for name in re.findall(r"^.*?--([a-z0-9_-]+)", cluster.command(["srun", ask]).stdout, re.M)
             if not name.startswith("topo-")}
    assert len(names) > 80
    assert names - set(re.findall(r'\{ "([a-z0-9_-]+)"', OPTIONS.read_text())) == set()


if SLURM_RELEASE >= (24, 5):
    JOB = ["--stepmgr", "-w", "cn1,cn2", "-N2", "-n8", "--ntasks-per-node=4"]

    def test_step_of_the_step_manager_follows_the_map(cluster, matrix, seat):  # noqa: F811
        number, state, output = cluster.job(SRUN.format(options="", seat=seat), *JOB, f"--topo-matrix={matrix(8)}")
        assert state == "COMPLETED", output
        assert "StepMgrEnabled=Yes" in cluster.command(["scontrol", "show", "job", number]).stdout
        compare(cluster, output, 8)

    def test_tasks_of_the_step_manager_have_their_places(cluster):
        options = ["--stepmgr", "-w", "cn1", "-N1", "-n4", "-c4"]
        script = "srun --topo-place=scatter sh -c 'echo rank $SLURM_PROCID $(taskset -cp $$)'"
        output = cluster.output(script, *options)
        assert re.findall(r"^rank (\d) .*: (\S+)$", "\n".join(sorted(output.split("\n"))), re.M) == \
            [("0", "0-3"), ("1", "8-11"), ("2", "4-7"), ("3", "12-15")]

if SLURM_RELEASE >= (26, 5):
    def test_step_that_nobody_waits_for_follows_the_map(cluster, matrix, seat):  # noqa: F811
        written = cluster.folder / "work" / "written"
        script = SRUN.format(options=f"--async -o {written}", seat=seat) + f"""
        until [ "$(grep -c ^rank {written})" = 8 ]; do sleep 0.1; done
        cat {written}
        """
        output = cluster.output(script, *JOB, f"--topo-matrix={matrix(8)}")
        compare(cluster, output, 8)
