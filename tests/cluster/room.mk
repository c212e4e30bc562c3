# The rig's own programs; the tests, the demo. `check` and `demo` begin with set-up, so that the rest sees what it brought.
UNITS += $(BUILD)/tests/cpus.so $(BUILD)/tests/where
$(eval $(call linked,cpus,$(BUILD)/tests/cpus.so,tests/rig/cpus.c,,,,-shared))
$(eval $(call linked,where,$(BUILD)/tests/where,tests/rig/where.c,,ompi-c hwloc,,))
UNITS += $(BUILD)/tests/set_clock.so
$(eval $(call linked,set_clock,$(BUILD)/tests/set_clock.so,tests/rig/set_clock.c,,,,-shared))
UNITS += $(BUILD)/tests/threads $(BUILD)/tests/touch $(BUILD)/tests/saw
$(eval $(call linked,saw,$(BUILD)/tests/saw,tests/rig/saw.c,,,,))
$(eval $(call linked,threads,$(BUILD)/tests/threads,tests/rig/threads.c,,hwloc,,-fopenmp))
$(call objects,tests/rig/threads.c): ROOM_CFLAGS := -fopenmp
$(eval $(call linked,touch,$(BUILD)/tests/touch,tests/rig/touch.c,,,,))
UNITS += $(BUILD)/tests/adopt
$(eval $(call linked,adopt,$(BUILD)/tests/adopt,tests/cluster/adopt.c,,hwloc,-L$(BUILD) -ltopiary,-Xlinker -rpath='$$$$ORIGIN'))
$(BUILD)/tests/adopt: $(BUILD)/libtopiary.so
$(call objects,tests/cluster/adopt.c): ROOM_CFLAGS := -Ilib/app
UNITS += $(BUILD)/tests/spank_project.so
$(eval $(call linked,spank_project,$(BUILD)/tests/spank_project.so,tests/recipe/spank_site.c,,,-z lazy,-shared))
$(call objects,tests/recipe/spank_site.c): ROOM_CFLAGS := -fvisibility=default
UNITS += $(BUILD)/tests/job_submit_site.so
$(eval $(call linked,job_submit_site,$(BUILD)/tests/job_submit_site.so,tests/rig/job_submit_site.c,,,-z lazy,-shared))
$(call objects,tests/rig/job_submit_site.c): ROOM_CFLAGS = -DNDEBUG -Iselect_plugin -isystem $(SLURM_SRC)

RIG_ENV = CACHE=$(CACHE) TOPIARY_CACHE=$(CACHE) TOPIARY_BUILD=$(abspath $(BUILD)) PYTHONDONTWRITEBYTECODE=1
# Debian's, for which setup brings what is needed: a user's own may come first in PATH.
PYTHON ?= /usr/bin/python3
PYTEST = $(RIG_ENV) $(PYTHON) tools/pytest
# Tests that start daemons wait most of the time: so many files of tests at once, each with clusters of its own (about 1 GB).
WORKERS ?= $(shell awk -v cores=$$(nproc) '/^MemAvailable/ { n = int($$2 / 3000000); m = 2 * cores; print (n < 1 ? 1 : n > m ? m : n) }' /proc/meminfo)
SIDE_BY_SIDE = $(PYTEST) -n $(WORKERS) --dist loadfile

setup:
	@$(RIG_ENV) packaging/setup $(SETUP)
built: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all units
# The releases of Slurm that `make check` tries besides this machine's; of another one at a time, all: make check-cluster SLURM=25.11.
CHECK_RELEASES ?= 24.11 26.05
# Side by side; more targets in MORE, as .ci/run names them. The logs are in $(BUILD)/lanes. With each release of Slurm and for each
# package the same files are compiled: once, where ccache is installed.
check: export PATH := /usr/lib/ccache:$(PATH)
check: export CCACHE_DIR ?= $(CACHE)/ccache
check: export CCACHE_NOHASHDIR := 1
check: built
	@$(RIG_ENV) tools/lanes $(CHECK_RELEASES:%=check-release-%) $(MORE) check-tests check-programs check-suite
check-programs:
	@$(PYTEST) $(wildcard tests/unit/test_*.c)
check-tests:
	@TOPIARY_RECORD=check $(SIDE_BY_SIDE) --durations=25 --ignore-glob='*.c' tests/cluster tests/store tests/unit tests/whole
check-suite:
	@$(RIG_ENV) tests/suite/slurm_suite.py --telling
check-release-%:
	@$(RIG_ENV) packaging/check-releases check-smoke $*
# What was tested here last with each release.
releases:
	@$(RIG_ENV) packaging/check-releases
# Every option set beside stock Slurm, as before a release, and `make tool` for each architecture; `make check` has a sample.
check-battery: built
	@TOPIARY_BATTERY=whole $(PYTEST) tests/cluster/compose/test_battery.py tests/unit/test_offline_audit.py::test_one_file_to_carry
# Random machines, loads and requests, judged apart from the code: as many as N= says, drawn from SEED=.
check-whole: built
	@$(RIG_ENV) tests/whole/run.py $(if $(N),--cases $(N)) $(if $(SEED),--seed $(SEED))
check-store: built
	@$(SIDE_BY_SIDE) tests/store

# What only releases from 26.05 on have all of.
SMOKE_2605 := $(addprefix tests/cluster/compose/test_,metrics.py exclusive_topology.py::test_blocks \
	network.py::test_why_warns_of_nodes_in_several_blocks network.py::test_why_says_which_blocks_are_waited_for \
	network.py::test_why_says_which_nodes_of_rings_are_waited_for network.py::test_audit_counts_the_switches_of_the_partition)
# What is tried with each other Slurm, too: of every feature the tests in which Slurm, Open MPI or the kernel has a say.
smoke = $(addprefix tests/cluster/test_$(strip $(1)).py::test_,$(2))
SMOKE := tests/unit/test_decide.c \
	$(call smoke, fit, fewest_domains level_off_is_stock required_boundary_is_waited_for impossible_requirement_is_refused path_is_kept comment_equals_options) \
	$(call smoke, why, placed_job) $(call smoke, audit, is_right) tests/cluster/compose/test_accounting.py \
	$(call smoke, numa_memory, memory_is_near require_waits_until_memory_is_free running_jobs_survive_a_restart_of_slurmctld) \
	$(call smoke, topology, step_on_each_node_has_that_nodes environment_names_the_topology_and_its_quickest_reader \
		program_adopts_the_image steps_with_the_same_cores_share_one_image exports_come_back_byte_for_byte) \
	$(call smoke, tools_see, lstopo openmpi mpich likwid openmp) \
	$(call smoke, place, tasks_run_where_requested tasks_stay_within_the_users_binding memory_policy_outlives_exec \
		pages_follow_the_policy large_pages threads_stay_within_their_task variables_of_the_user_are_kept \
		report_is_a_table_of_all_nodes batch_script_is_left_alone) \
	$(call smoke, nic, libfabric_keeps_to_the_device ucx_keeps_to_the_device exports_what_the_user_left_open report_names_the_device \
		each_task_has_the_device_near_to_it) \
	$(call smoke, rank_file, each_rank_is_where_the_file_says plain_mpirun_starts_every_rank \
		plain_srun_starts_each_rank_where_the_file_says srun_with_other_options_ignores_the_map) \
	$(call smoke, capture, next_job_is_mapped_by_the_captured_matrix recorder_is_loaded_and_the_users_own_stays \
		folder_that_the_job_replaces_is_one_warning killed_job_keeps_what_it_recorded) \
	$(call smoke, learned, site_and_user_choose) \
	$(call smoke, reorder, users_preload_stays_and_a_later_job_has_none) \
	$(call smoke, gpus, gpus_that_slurm_bound_by_cgroup each_task_is_near_its_gpu what_slurm_bound_stays without_gpus_memory_comes_first) \
	$(call smoke, top, job_in_a_pipe other_user_reads_nothing) \
	$(call smoke, monitor, step_has_a_trace both_steps_of_a_batch_job node_without_a_monitor phases_are_beside_the_trace \
		a_line_of_advice_at_the_end) \
	$(call smoke, monitor_gpus, only_the_gpus_that_slurm_granted what_a_user_claims_is_not_believed) \
	$(call smoke, fabric, slurmctld_reports_the_same_topology slurmctld_accepts_the_export a_job_that_needs_one_switch_gets_one \
		a_job_is_mapped_by_the_registrys_fabric ranks_in_the_order_of_the_fabric) \
	$(call smoke, bad_input, option_is_refused_at_submission deleted_matrix_is_one_warning) \
	$(call smoke, slurm_upgrade, jobs_live_on_and_are_placed_again) \
	tests/cluster/test_auth_slurm.py \
	$(addprefix tests/cluster/compose/test_,daemons.py::test_to_stock_and_back_with_running_jobs gres.py::test_cores_are_at_the_gpu \
		gres.py::test_job_without_gpus_spares_the_cores_near_free_ones \
		gres.py::test_why_names_gpus_that_are_far gres_choice.py::test_the_gpu_is_near_the_cores_where_the_first_free_one_is_not \
		gres_choice.py::test_a_job_that_is_requeued_gives_its_gpu_back \
		gres_choice.py::test_a_plan_does_not_change_the_weights_of_nodes network.py::test_one_switch_holds_the_job \
		network.py::test_the_best_nodes_of_a_switch \
		network.py::test_uneven_shares_stay_on_one_switch) \
	$(if $(findstring /26.05.,$(SLURM_SRC)),$(SMOKE_2605))
smoke-names:
	@printf '%s\n' $(filter-out %.c,$(SMOKE)) $(SMOKE_2605)
ifeq ($(SLURM),)
check-cluster: built
	@TOPIARY_RECORD=check-cluster $(SIDE_BY_SIDE) tests/cluster
# Of the unit programs, those that it runs.
check-smoke: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all $(filter-out $(BUILD)/tests/test_%,$(UNITS)) $(patsubst \
		tests/unit/%.c,$(BUILD)/tests/%,$(filter %.c,$(SMOKE)))
	@$(PYTEST) $(filter %.c,$(SMOKE))
	@$(SIDE_BY_SIDE) $(filter-out %.c,$(SMOKE))
# Slurm's own test suite, with stock Slurm and with Topiary: about half an hour in three clusters of each side.
check-slurm-suite: built
	@set -f; $(RIG_ENV) tests/suite/slurm_suite.py --shards 3 $(T)
else
# With SLURM=24.11 the same on the Debian that has this release, with SLURM=26.05 with what is built from its source.
check-cluster check-smoke check-slurm-suite: setup
	@exec env $(RIG_ENV) packaging/root $(SLURM) make -j$$(nproc) --no-print-directory WERROR=$(WERROR) SLURM= $(if $(T),T='$(T)') $@
endif

demo:
	@$(RIG_ENV) tools/demo up
demo-down:
	@$(RIG_ENV) tools/demo down

.PHONY: setup built check check-programs check-tests check-suite check-store check-battery check-whole check-cluster check-smoke check-slurm-suite releases demo demo-down
