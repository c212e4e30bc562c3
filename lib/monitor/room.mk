# Counts what the hardware does, by perf events, into traces.
$(eval $(call archive,monitor,$(wildcard lib/monitor/*.c),hwloc))
$(eval $(call unit,test_ask,tests/unit/test_ask.c,monitor base,,))
# NVML for machines without it.
UNITS += $(BUILD)/tests/libnvidia-ml.so.1
$(eval $(call linked,nvml,$(BUILD)/tests/libnvidia-ml.so.1,tests/rig/nvml.c,,,,-shared -Wl$(comma)-soname=libnvidia-ml.so.1))
$(eval $(call unit,test_source,tests/unit/test_source.c,monitor trace base,hwloc jansson libzstd libcrypto,-lm))
$(eval $(call unit,test_live,tests/unit/test_live.c,monitor trace base,hwloc jansson libzstd,))
$(eval $(call unit,test_planted,tests/unit/test_planted.c,monitor trace base,hwloc jansson libzstd libcrypto,-lm))
$(eval $(call unit,test_pu_counters,tests/unit/test_pu_counters.c,monitor trace base,hwloc jansson libzstd libcrypto,\
	-lm $(addprefix -Wl$(comma)--wrap=,syscall read monitor_this_cpu monitor_selftest)))
