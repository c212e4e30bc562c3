$(eval $(call archive,hwxml,$(wildcard lib/hwxml/*.c),libxml-2.0))
$(foreach t,canon tree redact,\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,$(TOPOLOGY),libxml-2.0 libzstd hwloc libcrypto)))
