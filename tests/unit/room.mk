# The watch as slurmctld has it: there is no Slurm in it.
$(eval $(call unit,test_watch,tests/unit/test_watch.c select_plugin/snapshot_watch.c,$(TOPOLOGY),libcrypto,-pthread))
$(eval $(call unit,test_step_topology,tests/unit/test_step_topology.c $(addprefix spank_plugin/step/,topology.c run_dir.c),$(TOPOLOGY),hwloc libxml-2.0 libzstd libcrypto,))
$(eval $(call unit,test_run_dir,tests/unit/test_run_dir.c spank_plugin/step/run_dir.c,base,libcrypto,))
# What decisions cost, counted. Slurm's tables of nodes are those of its own library; slurmctld's are the test's.
DECIDE_COUNTED = fit_cost job_request_need job_request_capacity score_pick score_table_new
$(eval $(call unit,test_decide,tests/unit/test_decide.c $(filter-out %/hooks.c,$(SELECT_SLURM)) $(SELECT_PURE),$(SCORE),\
	libcrypto,-pthread -L$(SLURM_OWN_PLUGINDIR) -lslurmfull -Wl$(comma)-rpath=$(SLURM_OWN_PLUGINDIR) \
	$(addprefix -Wl$(comma)--wrap=,$(DECIDE_COUNTED))))
$(call objects,tests/unit/test_decide.c): ROOM_CFLAGS = -DNDEBUG -Wno-unused-parameter -isystem \
	$(checked_slurm_src)

# T=name: the unit program or the file of that name, else what pytest's -k selects by it.
NAMED = $(if $(T),$(or $(wildcard $(foreach d,unit store,tests/$d/test_$(T:test_%=%).c tests/$d/test_$(T:test_%=%).py)),$(1) -k "$(T)"),$(1))
check-unit: built
	@$(PYTEST) $(call NAMED,tests/unit)

# The unit and store tests under the address and undefined behaviour sanitizers, in a build of their own. A report fails the target
# whichever process wrote it, and whatever became of the test.
ASAN_REPORTS = $(abspath $(BUILD))/reports
ASAN_ENV = TOPIARY_UNIT_TIMEOUT=1200 UBSAN_OPTIONS=print_stacktrace=1:log_path=$(ASAN_REPORTS)/ubsan \
	ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:log_path=$(ASAN_REPORTS)/asan
check-asan: setup
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan OPT="-O1 -g -fno-omit-frame-pointer" \
		SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined" all units sanitized
sanitized: all units
	@rm -rf $(ASAN_REPORTS) && mkdir -p -m 1777 $(ASAN_REPORTS)
	@$(ASAN_ENV) $(PYTEST) $(call NAMED,tests/unit tests/store); status=$$?; \
	for r in $(ASAN_REPORTS)/*; do test ! -e "$$r" || { cat "$$r"; status=1; }; done; exit $$status

# The unit tests and lint without root, network or set-up, in a minute or little more on two cores once built. Without Slurm's source, which set-up brings, neither
# the command nor the select plugin can be built: then only the unit programs run that need neither. Two programs switch users, as root.
FAST_PROGRAMS = $(filter-out $(addprefix %/test_,run_dir step_topology $(if $(SLURM_SRC),,decide)),$(filter $(BUILD)/tests/test_%,$(UNITS)))
# In four parts at once, because many wait, without the tests that are marked as slow (tests/pytest.ini). What passed is not run again until
# it, or what all of its part use, has changed.
# fast PART, PROGRAMS or TESTS, what all of them use
define fast
FAST_PARTS += $(BUILD)/fast-$(1)
$(BUILD)/fast-$(1): $(2) $(3)
	@$$(PYTEST) $$(patsubst $(BUILD)/tests/%,tests/unit/%.c,$$(filter $(2),$$(if $$(filter $(3),$$?),$$^,$$?))) -m 'not slow' || \
		test $$$$? = 5	# all are marked
	@touch $$@
endef
FAST_USED = $(wildcard tests/*.* tests/data/*.* tests/data/*/*.*)
FAST_PYTHON_USED = $(FAST_USED) $(PROGRAMS) $(PLUGINS) $(filter-out $(BUILD)/tests/test_%,$(UNITS)) $(wildcard Makefile *.md \
	*/room.mk */*/room.mk bench/*.* docs/*.* packaging/* packaging/*/* sql/* tests/rig/*.* tools/*)
$(eval $(call fast,1,$(FAST_PROGRAMS),$(FAST_USED)))
ifneq ($(SLURM_SRC),)
$(eval $(call fast,2,$(wildcard tests/unit/test_offline_[a-m]*.py),$(FAST_PYTHON_USED)))
$(eval $(call fast,3,$(wildcard tests/unit/test_offline_[n-z]*.py),$(FAST_PYTHON_USED)))
$(eval $(call fast,4,$(filter-out tests/unit/test_offline_%,$(wildcard tests/unit/test_*.py)),$(FAST_PYTHON_USED)))
endif
check-fast: $(if $(SLURM_SRC),all units,$(FAST_PROGRAMS))
	@$(MAKE) --no-print-directory -j5 $(FAST_PARTS) lint
	@test "$(SLURM_SRC)" || \
		echo "check-fast: NOT TESTED: what needs the command or the select plugin; packaging/setup brings Slurm's source for them" >&2

.PHONY: check-unit check-asan sanitized check-fast
