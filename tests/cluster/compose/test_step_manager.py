# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Steps that the job's first node manages (--stepmgr), waited for or not (--async), share no core; as under stock."""
import re

import pytest
from rig.ask import expand, fields, jobs
from rig.cluster import SLURM_RELEASE

from .conftest import a_pair
from .pair import cores, cuts
from ..test_step_manager import CONF

STEPS, TASKS = 4, 2
WAYS = {(24, 5): "", (26, 5): "--async"}
SCRIPT = f"""#!/bin/bash
for step in $(seq {STEPS}); do
	srun --exact -n{TASKS} -c1 --mem=10 $WAY -o $WORK/step.$step sh -c 'echo cpus $(taskset -cp $$); sleep 2' &
done
wait
until [ "$(cat $WORK/step.* | grep -c ^cpus)" = {STEPS * TASKS} ]; do sleep 0.1; done
"""

if SLURM_RELEASE >= (24, 5):
    managed_pair, managed = a_pair("managed", {"big1": "amd-4x16"}, conf=f"{CONF}TaskPlugin=task/affinity\n")

    @pytest.mark.parametrize("way", [way for since, way in WAYS.items() if SLURM_RELEASE >= since])
    def test_steps_share_no_core(managed, way):
        def run(cluster):
            work = cluster.folder / "work" / f"steps{way}"
            work.mkdir()
            work.chmod(0o777)
            options = ["--stepmgr", "-n8", "--mem=1000"]
            number, state, output = cluster.job(SCRIPT, *options, variables={"WAY": way, "WORK": work})
            record = jobs(cluster, number)[0]
            assert state == "COMPLETED" and fields(record)["StepMgrEnabled"] == "Yes", output
            bound = [re.findall(r"^cpus .*: (\S+)$", file.read_text(), re.M) for file in work.iterdir()]
            return cores(cluster, record)["big1"], [{cpu for task in step for cpu in expand(task)} for step in bound]

        ours, stock = managed.both(run)
        for _, steps in (ours, stock):
            assert [len(cpus) for cpus in steps] == [TASKS] * STEPS and len(set.union(*steps)) == STEPS * TASKS, steps
        assert not cuts({"big1": ours[0]})

if SLURM_RELEASE >= (26, 5):
    def test_job_whose_memory_is_to_shrink_has_the_same_fate(managed):
        """--mem-update needs the memory controller's count of what the job uses; test_resize.py reduces it by hand."""
        ours, _ = managed.fates(["--stepmgr -n8 --mem=1000 --mem-update=20@1", "--stepmgr -n8 --mem=1000"], start=True)
        assert not [record for record in ours if cuts(cores(managed.ours, record))]
