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

# The select plugin's own, with Slurm's internal headers as the plugin itself; nothing but these targets needs it.
SELECT_PROBES = $(addprefix $(BUILD)/bench/,select_probe.so select_record.so)
$(eval $(call linked,select_probe,$(BUILD)/bench/select_probe.so,bench/select_probe.c,,,,-shared))
$(eval $(call linked,select_record,$(BUILD)/bench/select_record.so,bench/select_record.c,,,,-shared))
$(call objects,bench/select_probe.c bench/select_record.c): ROOM_CFLAGS = -DNDEBUG -isystem \
	$(or $(SLURM_SRC),$(error Slurm's own source is not here: run packaging/setup first))

BENCH_SELECT = $(addprefix bench-select-,time trace)
select-probes: built
	@$(MAKE) --no-print-directory $(SELECT_PROBES)
$(BENCH_SELECT): bench-select-%: select-probes
	@$(RIG_ENV) python3 bench/select_plugin.py $* $(B)
bench-select: select-probes
	@$(RIG_ENV) python3 bench/select_plugin.py all $(B)
bench: bench-registry bench-select

.PHONY: bench bench-registry bench-select select-probes $(BENCH) $(BENCH_SELECT)
