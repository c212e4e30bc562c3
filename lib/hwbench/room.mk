# Measures what the hardware of a node takes.
$(eval $(call archive,hwbench,$(wildcard lib/hwbench/*.c),hwloc jansson))
$(eval $(call unit,test_hwbench,tests/unit/test_hwbench.c,hwbench shape base,hwloc jansson libcrypto,-lm))
