# The nodes that tests and benchmarks are made of, and a storm of them. Each figure of BENCHMARKS.md is one command:
# make bench-registry runs all of them, make bench-registry-storm one; B="--agents 1000" are options for them.
CLONES_PKGS = inih libcrypto
UNITS += $(BUILD)/tests/clone $(BUILD)/bench/storm
$(eval $(call linked,clone,$(BUILD)/tests/clone,tests/rig/clone.c bench/clones.c,base,$(CLONES_PKGS),,))
$(eval $(call linked,storm,$(BUILD)/bench/storm,$(addprefix bench/,storm.c agenda.c wire.c clones.c),client topo base,\
$(CLONES_PKGS) jansson munge libzstd,,-pthread))
$(call objects,tests/rig/clone.c): ROOM_CFLAGS = -I.

BENCH = $(addprefix bench-registry-,ingest storm size fleet compare snapshot kill)
$(BENCH): bench-registry-%: built
	@$(RIG_ENV) python3 bench/registry.py $* $(B)
bench-registry: built
	@$(RIG_ENV) python3 bench/registry.py all $(B)
bench: bench-registry

.PHONY: bench bench-registry $(BENCH)
