$(eval $(call plugin,spank_topiary,$(wildcard spank_plugin/*.c spank_plugin/*/*.c),bind monitor $(SCORE),\
	hwloc jansson libxml-2.0 libzstd libcrypto,\
	-Xlinker --version-script=spank_plugin/exports.map))
$(BUILD)/slurm/spank_topiary.so: spank_plugin/exports.map
$(eval $(call unit,test_srun_side,tests/unit/test_srun_side.c spank_plugin/launch/srun_options.c,base,,))
