$(eval $(call plugin,spank_topiary,$(addprefix spank_plugin/,dispatch.c options.c submit.c step.c run_dir.c child.c \
	clip.c rank_file.c user.c capture.c),fit topo base,hwloc inih jansson libxml-2.0 libzstd libcrypto,\
	-Xlinker --version-script=spank_plugin/exports.map))
$(BUILD)/slurm/spank_topiary.so: spank_plugin/exports.map
