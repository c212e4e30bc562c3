$(eval $(call plugin,spank_topiary,$(addprefix spank_plugin/,dispatch.c options.c submit.c step.c run_dir.c child.c \
	clip.c export.c images.c topology.c told.c plain.c rank_file.c rank_file_told.c mapped.c mapped_fill.c mapped_read.c proxies.c srun_side.c \
	srun_options.c user.c capture.c task.c affinity.c placed.c bound.c nic.c report.c site.c),bind fit topo base,\
	hwloc inih jansson libxml-2.0 libzstd libcrypto,\
	-Xlinker --version-script=spank_plugin/exports.map))
$(BUILD)/slurm/spank_topiary.so: spank_plugin/exports.map
$(eval $(call unit,test_srun_side,tests/unit/test_srun_side.c $(addprefix spank_plugin/,srun_options.c mapped_read.c),base,,))
