# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Slurm binds a plugin's functions when they are first called, in a daemon: each must be there in whatever loads the
plugin."""
import re
import shutil
import subprocess

import pytest
from rig.paths import BUILD

pytestmark = pytest.mark.slow
LOADED_BY = [(plugin, program) for plugin, programs in {
    "select_cons_tres": ["slurmctld"],
    "job_submit_topiary": ["slurmctld"],
    "spank_topiary": ["slurmstepd", "slurmd", "srun", "sbatch", "salloc"],
}.items() for program in programs]


def symbols(file, which):
    """Names in the dynamic table of a file, without their versions; weak ones may stay undefined."""
    told = subprocess.run(["nm", "-D", which, file], capture_output=True, text=True, check=True).stdout
    return {name.partition("@")[0] for kind, name in re.findall(r"\b([A-Za-z]) (\S+)$", told, re.M)
            if which == "--defined-only" or kind not in "vw"}


def libraries(file):
    """Those that are loaded with it; one that is not found is an error of its own."""
    told = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    assert "not found" not in told, told
    return set(re.findall(r"(/\S+) \(", told))


@pytest.mark.parametrize("plugin, program", LOADED_BY)
def test_program_has_all_that_the_plugin_calls(plugin, program):
    file, host = BUILD / "slurm" / f"{plugin}.so", shutil.which(program, path="/usr/sbin:/usr/bin")
    there = set().union(*(symbols(other, "--defined-only") for other in {host} | libraries(host) | libraries(file)))
    wanted = symbols(file, "--undefined-only")
    missing = wanted - there
    assert wanted and not missing
