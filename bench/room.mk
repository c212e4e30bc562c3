# The nodes that tests and benchmarks are made of, and a storm of them. Each figure of BENCHMARKS.md is one command:
# make bench-registry runs all of them, make bench-registry-storm one; B="--agents 1000" are options for them.
CLONES_PKGS = libcrypto
UNITS += $(BUILD)/tests/clone $(BUILD)/bench/storm
$(eval $(call linked,clone,$(BUILD)/tests/clone,tests/rig/clone.c bench/clones.c,base,$(CLONES_PKGS),,))
$(eval $(call linked,storm,$(BUILD)/bench/storm,$(addprefix bench/,storm.c agenda.c wire.c clones.c),client $(TOPOLOGY),\
$(CLONES_PKGS) jansson munge libzstd,,-pthread))
$(call objects,tests/rig/clone.c): ROOM_CFLAGS = -I.

BENCH = $(addprefix bench-registry-,ingest storm size fleet compare snapshot reads jobs kill ablate)
$(BENCH): bench-registry-%: built
	@$(RIG_ENV) python3 bench/registry.py $* $(B)

bench-registry-ablate: $(BUILD)/bench/topiaryd_ablate
bench-registry: built
	@$(RIG_ENV) python3 bench/registry.py all $(B)

# The select plugin's own, with Slurm's internal headers as the plugin itself; nothing but these targets needs it.
BENCH_select_NEEDS = $(addprefix $(BUILD)/bench/,select_probe.so select_record.so)
$(eval $(call linked,select_probe,$(BUILD)/bench/select_probe.so,bench/select_probe.c,,,,-shared))
$(eval $(call linked,select_record,$(BUILD)/bench/select_record.so,bench/select_record.c,,,,-shared))
$(call objects,bench/select_probe.c bench/select_record.c): ROOM_CFLAGS = -DNDEBUG -Ilib -isystem \
	$(checked_slurm_src)

# bench_of NAME, PROGRAM, PARTS: bench-NAME-PART and bench-NAME, all of them; what they need beside the rest is BENCH_NAME_NEEDS.
# With SLURM=26.05 the same with that release, as check-cluster.
define bench_of
BENCH_TARGETS += bench-$(1)-needs bench-$(1) $(addprefix bench-$(1)-,$(3))
ifneq ($(SLURM),)
bench-$(1) $(addprefix bench-$(1)-,$(3)): setup
	@exec env $$(RIG_ENV) packaging/root $(SLURM) make -j$$$$(nproc) --no-print-directory SLURM= $$(if $$(B),B='$$(B)') $$@
else
bench-$(1)-needs: built
	@$$(MAKE) --no-print-directory $$(BENCH_$(1)_NEEDS)
$(addprefix bench-$(1)-,$(3)): bench-$(1)-%: bench-$(1)-needs
	@$$(RIG_ENV) python3 bench/$(2).py $$* $$(B)
bench-$(1): bench-$(1)-needs
	@$$(RIG_ENV) python3 bench/$(2).py all $$(B)
endif
endef

$(eval $(call bench_of,select,select_plugin,time hostile trace memory gpu controller))

# Mapping's own: bench-map writes what bench-map-table, bench-map-time and bench-map-sim tell, bench-map-best searches for hours and
# keeps what it found, bench-map-ablate leaves out each start and each stage in turn. SimGrid (libsimgrid-dev) is for bench-map-sim
# alone, which says so where it is missing.
HAVE_SIMGRID := $(wildcard /usr/include/simgrid/engine.h)
BENCH_map_NEEDS = $(addprefix $(BUILD)/bench/,map_search topiary_ablate $(if $(HAVE_SIMGRID),map_sim))
$(eval $(call linked,map_search,$(BUILD)/bench/map_search,bench/map_search.c,,,-lm,))
$(eval $(call linked,map_sim,$(BUILD)/bench/map_sim,bench/map_sim.c,,,-lsimgrid,))

$(eval $(call bench_of,map,map,table time sim best ablate))

# What a job gets: programs that want a topology, by every way, and a plugin with a clock around ours.
BENCH_topology_NEEDS = $(addprefix $(BUILD)/bench/,topology_start topology_make topology_probe topology_probe_ours topology_clock.so)
$(eval $(call linked,topology_start,$(BUILD)/bench/topology_start,bench/topology_start.c,,,,))
$(eval $(call linked,topology_make,$(BUILD)/bench/topology_make,bench/topology_make.c,$(TOPOLOGY),hwloc libxml-2.0 libzstd libcrypto,,))
$(eval $(call linked,topology_probe,$(BUILD)/bench/topology_probe,bench/topology_probe.c,,hwloc,,))
$(eval $(call linked,topology_probe_ours,$(BUILD)/bench/topology_probe_ours,bench/topology_probe_ours.c,,hwloc,\
	-L$(BUILD) -ltopiary,-Xlinker -rpath=$(abspath $(BUILD))))
$(eval $(call linked,topology_clock,$(BUILD)/bench/topology_clock.so,bench/topology_clock.c,,,,-shared))
$(BUILD)/bench/topology_probe_ours: $(BUILD)/libtopiary.so

$(eval $(call bench_of,topology,topology,start step))

# Traces of what the hardware does: made ones, because no machine of ours has 256 PUs; and what recording costs a program.
BENCH_trace_NEEDS = $(BUILD)/bench/trace_triad
$(eval $(call linked,trace_triad,$(BUILD)/bench/trace_triad,bench/trace_triad.c,,,,))
$(eval $(call bench_of,trace,trace,size summary overhead totals display))

# What jobs are recorded by: the monitor itself on as many PUs as no machine of ours has, and whole clusters of nodes that are this one.
BENCH_monitor_NEEDS = $(addprefix $(BUILD)/bench/,monitor_tick monitor_beside monitor_group topology_clock.so)
$(eval $(call linked,monitor_tick,$(BUILD)/bench/monitor_tick,bench/monitor_tick.c node_agent/monitor_trace.c,monitor trace hwview base,\
hwloc libzstd jansson libcrypto,-lm,-Xlinker --wrap=syscall))
$(eval $(call linked,monitor_beside,$(BUILD)/bench/monitor_beside,bench/monitor_beside.c node_agent/monitor_trace.c,monitor trace hwview base,\
hwloc libzstd jansson libcrypto,-lm))
UNITS += $(BUILD)/bench/monitor_group
$(eval $(call linked,monitor_group,$(BUILD)/bench/monitor_group,bench/monitor_group.c,monitor trace base,\
hwloc libzstd jansson libcrypto,-lm))
$(eval $(call bench_of,monitor,monitor,cost beside peers start live group))

# Copies between each GPU and each NUMA node: B=MIB for blocks of another size than 256 MiB. The tests have a driver of their own for it.
UNITS += $(BUILD)/bench/gpu
$(eval $(call linked,bench_gpu,$(BUILD)/bench/gpu,bench/gpu.c,base,hwloc,))
BENCH_TARGETS += bench-gpu
bench-gpu: built
	@$(BUILD)/bench/gpu $(B); status=$$?; test $$status = 77 || exit $$status

bench: bench-registry bench-select bench-map bench-topology bench-trace bench-monitor bench-gpu

.PHONY: bench bench-registry $(BENCH) $(BENCH_TARGETS)
