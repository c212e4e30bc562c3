$(eval $(call archive,fabric,$(wildcard lib/fabric/*.c),))
$(eval $(call unit,test_fabric,tests/unit/test_fabric.c,fabric topo base,,-lm))
