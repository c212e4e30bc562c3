# The watch as slurmctld has it: there is no Slurm in it.
$(eval $(call unit,test_watch,tests/unit/test_watch.c select_plugin/snapshot_watch.c,topo base,libcrypto inih,-pthread))
