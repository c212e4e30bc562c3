$(eval $(call archive,delta,$(wildcard lib/delta/*.c),libzstd))
$(foreach t,fields pack,\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,$(TOPOLOGY),libxml-2.0 libzstd hwloc libcrypto)))
