# The nodes that tests and benchmarks are made of, and a storm of them. Each figure of BENCHMARKS.md is one command:
# make bench-registry runs all of them, make bench-registry-storm one; B="--agents 1000" are options for them.
UNITS += $(BUILD)/tests/clone $(BUILD)/bench/storm $(BUILD)/bench/walk
$(eval $(call linked,clone,$(BUILD)/tests/clone,tests/rig/clone.c bench/clones.c,base,libcrypto,,))
$(eval $(call linked,storm,$(BUILD)/bench/storm,$(addprefix bench/,storm.c clones.c),client $(TOPOLOGY),\
hwloc libcrypto jansson munge libzstd,,-pthread))
$(eval $(call linked,walk,$(BUILD)/bench/walk,bench/walk.c,,hwloc,,-pthread))
$(call objects,tests/rig/clone.c): ROOM_CFLAGS = -I.

# bench_of NAME, PROGRAM, PARTS: bench-NAME-PART and bench-NAME, all of them; what they need of build/bench is BENCH_NAME_NEEDS.
# With SLURM=26.05 the same with that release, as check-cluster.
define bench_of
BENCH_TARGETS += bench-$(1)-needs bench-$(1) $(addprefix bench-$(1)-,$(3))
ifneq ($(SLURM),)
bench-$(1) $(addprefix bench-$(1)-,$(3)): setup
	@exec env $$(RIG_ENV) packaging/root $(SLURM) make -j$$$$(nproc) --no-print-directory SLURM= $$(if $$(B),B='$$(B)') $$@
else
bench-$(1)-needs: built
	@$$(if $$(BENCH_$(1)_NEEDS),$$(MAKE) --no-print-directory $$(addprefix $(BUILD)/bench/,$$(BENCH_$(1)_NEEDS)))
$(addprefix bench-$(1)-,$(3)): bench-$(1)-%: bench-$(1)-needs
	@$$(RIG_ENV) python3 bench/$(2).py $$* $$(B)
bench-$(1): bench-$(1)-needs
	@$$(RIG_ENV) python3 bench/$(2).py all $$(B)
endif
endef

$(eval $(call bench_of,registry,registry,ingest storm fleet compare kill))

# With Slurm's internal headers as the plugin itself; nothing but these targets needs it.
BENCH_select_NEEDS = select_probe.so select_record.so
$(eval $(call linked,select_probe,$(BUILD)/bench/select_probe.so,bench/select_probe.c,,,,-shared))
$(eval $(call linked,select_record,$(BUILD)/bench/select_record.so,bench/select_record.c,,,,-shared))
$(call objects,bench/select_probe.c bench/select_record.c): ROOM_CFLAGS = -DNDEBUG -Ilib -isystem \
	$(checked_slurm_src)
$(eval $(call bench_of,select,select_plugin,time hostile waits traces real trace memory gpu controller))

$(eval $(call bench_of,map,map,table time))
# Programs under SimGrid (libsimgrid-dev, gfortran), fetched by git once.
$(eval $(call bench_of,apps,apps,run))

# What a job gets: programs that want a topology, by every way, and a plugin with a clock around ours.
BENCH_topology_NEEDS = topology_probe topology_probe_ours topology_clock.so
$(eval $(call linked,topology_probe,$(BUILD)/bench/topology_probe,bench/topology_probe.c,,hwloc,,))
$(eval $(call linked,topology_probe_ours,$(BUILD)/bench/topology_probe_ours,bench/topology_probe_ours.c,,hwloc,\
	-L$(BUILD) -ltopiary,-Xlinker -rpath=$(abspath $(BUILD))))
$(eval $(call linked,topology_clock,$(BUILD)/bench/topology_clock.so,bench/topology_clock.c,,,,-shared))
$(BUILD)/bench/topology_probe_ours: $(BUILD)/libtopiary.so
$(eval $(call bench_of,topology,topology,start step))

# The monitor itself beside a program, and whole clusters of nodes that are this one.
BENCH_monitor_NEEDS = monitor_beside message topology_clock.so
$(eval $(call linked,message,$(BUILD)/bench/message,bench/message.c,,ompi-c,,))
$(eval $(call linked,monitor_beside,$(BUILD)/bench/monitor_beside,bench/monitor_beside.c node_agent/monitor_trace.c,monitor trace hwview base,\
hwloc libzstd jansson libcrypto,-lm))
$(eval $(call bench_of,monitor,monitor,size totals beside peers start messages))

bench: bench-registry bench-select bench-map bench-apps bench-topology bench-monitor

.PHONY: bench $(BENCH_TARGETS)
