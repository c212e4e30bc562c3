# Recorded events on the hardware tree: format, sums, formulas, exports. Nothing in it measures.
$(eval $(call archive,trace,$(wildcard lib/trace/*.c),hwloc jansson libzstd))
$(eval $(call unit,test_trace,tests/unit/test_trace.c,trace hwview base,hwloc jansson libzstd libcrypto,-lm))
$(eval $(call unit,test_advice,tests/unit/test_advice.c,trace hwview base,hwloc jansson libzstd libcrypto,-lm))
$(eval $(call unit,test_join,tests/unit/test_join.c,trace base,hwloc jansson libzstd,-lm))
# Made traces, for tests of the command and for bench-trace.
UNITS += $(BUILD)/tests/trace_make
$(eval $(call linked,trace_make,$(BUILD)/tests/trace_make,tests/rig/trace_make.c,trace hwview base,\
hwloc jansson libzstd libcrypto,-lm,))
