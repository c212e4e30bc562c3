$(eval $(call archive,fabric,$(wildcard lib/fabric/*/*.c),yaml-0.1 jansson))
$(eval $(call unit,test_fabric,tests/unit/test_fabric.c,fabric $(TOPOLOGY),yaml-0.1 jansson,-lm))
