# What fits where: requests, scores, verdicts. No Slurm, hwloc or XML in here: slurmctld's plugin draws it.
$(eval $(call archive,fit,$(wildcard lib/fit/*.c),))
$(foreach t,$(patsubst tests/unit/test_%.c,%,$(wildcard $(addprefix tests/unit/test_,fit.c request.c verdict.c replay.c))),\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,fit topo base,libcrypto inih,)))
