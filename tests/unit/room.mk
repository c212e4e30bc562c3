# The watch as slurmctld has it: there is no Slurm in it.
$(eval $(call unit,test_watch,tests/unit/test_watch.c select_plugin/snapshot_watch.c,topo base,libcrypto inih,-pthread))
$(eval $(call unit,test_fits,tests/unit/test_fits.c select_plugin/fits.c,fit topo base,libcrypto inih,))
$(eval $(call unit,test_step_topology,tests/unit/test_step_topology.c $(addprefix spank_plugin/,topology.c export.c affinity.c images.c clip.c \
	child.c user.c run_dir.c),topo base,hwloc libxml-2.0 libzstd libcrypto inih,))
$(eval $(call unit,test_run_dir,tests/unit/test_run_dir.c spank_plugin/run_dir.c,base,libcrypto inih,))
