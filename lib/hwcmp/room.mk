$(eval $(call archive,hwcmp,$(wildcard lib/hwcmp/*.c),libxml-2.0 hwloc jansson))
$(eval $(call unit,test_compare,tests/unit/test_compare.c,$(TOPOLOGY),libxml-2.0 libzstd hwloc libcrypto))
