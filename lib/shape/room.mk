# Each program links only what it uses: the select plugin links shapes and the snapshot, and neither hwloc nor libxml2.
$(eval $(call archive,shape,$(wildcard lib/shape/*.c),hwloc))
$(foreach t,shape snapshot,\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,$(TOPOLOGY),libcrypto)))
$(eval $(call unit,test_strings,tests/unit/test_strings.c,$(TOPOLOGY),libxml-2.0 libzstd hwloc libcrypto))
