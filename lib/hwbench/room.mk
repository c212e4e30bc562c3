# Measures what the hardware of a node takes.
$(eval $(call archive,hwbench,$(wildcard lib/hwbench/*.c),hwloc))
