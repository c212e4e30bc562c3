# What a task gets on its node: PUs, memory policy, threads, network device. No Slurm in here.
$(eval $(call archive,bind,$(wildcard lib/bind/*.c),hwloc))
$(foreach t,$(patsubst tests/unit/test_%.c,%,$(wildcard $(addprefix tests/unit/test_,bind.c place.c memory.c omp.c gpu.c gpu_own.c place_gpu.c nic.c))),\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,bind $(TOPOLOGY),hwloc libxml-2.0 libzstd libcrypto,)))
