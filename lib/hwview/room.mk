$(eval $(call archive,hwview,$(wildcard lib/hwview/*.c),hwloc))
$(eval $(call unit,test_restrict,tests/unit/test_restrict.c,$(TOPOLOGY),libxml-2.0 libzstd hwloc libcrypto))
