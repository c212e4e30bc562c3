# Each part only of what it needs: slurmctld's plugin draws shape and snapshot, and neither hwloc nor libxml2.
$(eval $(call archive,topo,$(wildcard lib/topo/*.c),libxml-2.0 libzstd hwloc))
$(foreach t,shape snapshot,\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,topo base,libcrypto inih)))
$(foreach t,canon fields pack restrict tree compare strings,\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,topo base,libxml-2.0 libzstd hwloc libcrypto inih)))
