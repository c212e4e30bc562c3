# The rig's own programs; the tests, the demo. `check` and `demo` begin with set-up, so that the rest sees what it brought.
UNITS += $(BUILD)/tests/cpus.so $(BUILD)/tests/where
$(eval $(call linked,cpus,$(BUILD)/tests/cpus.so,tests/rig/cpus.c,,,,-shared))
$(eval $(call linked,where,$(BUILD)/tests/where,tests/rig/where.c,,ompi-c hwloc,,))
UNITS += $(BUILD)/tests/threads $(BUILD)/tests/touch
$(eval $(call linked,threads,$(BUILD)/tests/threads,tests/rig/threads.c,,hwloc,,-fopenmp))
$(call objects,tests/rig/threads.c): ROOM_CFLAGS := -fopenmp
$(eval $(call linked,touch,$(BUILD)/tests/touch,tests/rig/touch.c,,,,))
UNITS += $(BUILD)/tests/adopt
$(eval $(call linked,adopt,$(BUILD)/tests/adopt,tests/cluster/adopt.c,,hwloc,-L$(BUILD) -ltopiary,-Xlinker -rpath='$$$$ORIGIN'))
$(BUILD)/tests/adopt: $(BUILD)/libtopiary.so
$(call objects,tests/cluster/adopt.c): ROOM_CFLAGS := -Ilib/app

RIG_ENV = CACHE=$(CACHE) TOPIARY_CACHE=$(CACHE) TOPIARY_BUILD=$(abspath $(BUILD)) PYTHONDONTWRITEBYTECODE=1
PYTEST = $(RIG_ENV) python3 -m pytest -c tests/pytest.ini --rootdir=.

setup:
	@$(RIG_ENV) packaging/setup $(SETUP)
built: setup
	@$(MAKE) --no-print-directory all units
check: built
	@$(PYTEST) tests/unit tests/store tests/cluster
	@$(MAKE) --no-print-directory check-other SLURM=24.11
check-unit: built
	@$(PYTEST) tests/unit
check-store: built
	@$(PYTEST) tests/store

# With SLURM=24.11 the same on the Debian that has this release.
SMOKE := $(addprefix tests/cluster/,test_select.py::test_fewest_domains test_select.py::test_jobs_share_no_core \
	test_select.py::test_running_jobs_survive_a_restart_of_slurmctld test_topology.py::test_step_on_each_node_has_that_nodes \
	test_topology.py::test_exports_come_back_byte_for_byte test_rank_file.py::test_plain_mpirun_starts_every_rank \
	test_rank_file.py::test_plain_srun_starts_each_rank_where_the_file_says \
	test_bad_input.py::test_option_is_refused_at_submission test_fit.py::test_required_boundary_is_waited_for \
	test_fit.py::test_what_no_node_can_ever_give_is_refused test_why.py::test_placed_job)
ifeq ($(SLURM),)
check-cluster: built
	@$(PYTEST) tests/cluster
check-smoke: built
	@$(PYTEST) $(SMOKE)
else
check-cluster check-smoke: setup
	@exec env $(RIG_ENV) packaging/root $(SLURM) make -j$$(nproc) --no-print-directory WERROR=$(WERROR) SLURM= $@
# Where the mirror cannot give that Debian now, the rest has been tested all the same: said last, and loud.
check-other:
	@if $(RIG_ENV) packaging/root $(SLURM) true; then $(MAKE) --no-print-directory check-smoke; \
	else echo "check: NOT TESTED with Slurm $(SLURM): its Debian could not be set up here, for the reason above" >&2; fi
endif

demo:
	@$(RIG_ENV) tools/demo up
demo-down:
	@$(RIG_ENV) tools/demo down

.PHONY: setup built check check-unit check-store check-cluster check-smoke check-other demo demo-down
