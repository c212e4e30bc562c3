# The watch as slurmctld has it: there is no Slurm in it.
$(eval $(call unit,test_watch,tests/unit/test_watch.c select_plugin/snapshot_watch.c,topo base,libcrypto inih,-pthread))
$(eval $(call unit,test_fits,tests/unit/test_fits.c select_plugin/fits.c,fit topo base,libcrypto inih,))
