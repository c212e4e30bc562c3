# Each part only of what it needs: slurmctld's plugin draws shape and snapshot, and neither hwloc nor libxml2.
$(eval $(call archive,topo,$(wildcard lib/topo/*.c),libxml-2.0 libzstd hwloc))
$(foreach t,$(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_shape.c tests/unit/test_snapshot.c)),\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,topo base,libcrypto inih)))
$(foreach t,$(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_canon.c tests/unit/test_pack.c tests/unit/test_restrict.c)),\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,topo base,libxml-2.0 libzstd hwloc libcrypto inih)))
