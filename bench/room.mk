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

# Mapping's own: bench-map writes what bench-map-table, bench-map-time and bench-map-sim tell, bench-map-best searches for hours and
# keeps what it found. SimGrid (libsimgrid-dev) is for bench-map-sim alone, which says so where it is missing.
HAVE_SIMGRID := $(wildcard /usr/include/simgrid/engine.h)
MAP_PROGRAMS = $(addprefix $(BUILD)/bench/,map_search $(if $(HAVE_SIMGRID),map_sim))
$(eval $(call linked,map_search,$(BUILD)/bench/map_search,bench/map_search.c,,,-lm,))
$(eval $(call linked,map_sim,$(BUILD)/bench/map_sim,bench/map_sim.c,,,-lsimgrid,))

BENCH_MAP = $(addprefix bench-map-,table time sim best)
map-programs: built
	@$(MAKE) --no-print-directory $(MAP_PROGRAMS)
$(BENCH_MAP): bench-map-%: map-programs
	@$(RIG_ENV) python3 bench/map.py $* $(B)
bench-map: map-programs
	@$(RIG_ENV) python3 bench/map.py all $(B)

# What a job gets: programs that want a topology, by every way, and a plugin with a clock around ours.
TOPOLOGY_PROBES = $(addprefix $(BUILD)/bench/,topology_start topology_make topology_probe topology_probe_ours topology_clock.so)
$(eval $(call linked,topology_start,$(BUILD)/bench/topology_start,bench/topology_start.c,,,,))
$(eval $(call linked,topology_make,$(BUILD)/bench/topology_make,bench/topology_make.c,topo base,hwloc libxml-2.0 libzstd libcrypto,,))
$(eval $(call linked,topology_probe,$(BUILD)/bench/topology_probe,bench/topology_probe.c,,hwloc,,))
$(eval $(call linked,topology_probe_ours,$(BUILD)/bench/topology_probe_ours,bench/topology_probe_ours.c,,hwloc,\
	-L$(BUILD) -ltopiary,-Xlinker -rpath=$(abspath $(BUILD))))
$(eval $(call linked,topology_clock,$(BUILD)/bench/topology_clock.so,bench/topology_clock.c,,,,-shared))
$(BUILD)/bench/topology_probe_ours: $(BUILD)/libtopiary.so

BENCH_TOPOLOGY = $(addprefix bench-topology-,start step)
topology-probes: built
	@$(MAKE) --no-print-directory $(TOPOLOGY_PROBES)
$(BENCH_TOPOLOGY): bench-topology-%: topology-probes
	@$(RIG_ENV) python3 bench/topology.py $* $(B)
bench-topology: topology-probes
	@$(RIG_ENV) python3 bench/topology.py all $(B)
.PHONY: bench-topology topology-probes $(BENCH_TOPOLOGY)
bench: bench-registry bench-select bench-map bench-topology

.PHONY: bench bench-registry bench-select bench-map select-probes map-programs $(BENCH) $(BENCH_SELECT) $(BENCH_MAP)
