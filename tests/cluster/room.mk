# The rig's own programs; the tests, the demo. `check` and `demo` begin with set-up, so that the rest sees what it brought.
UNITS += $(BUILD)/tests/cpus.so $(BUILD)/tests/where
$(eval $(call linked,cpus,$(BUILD)/tests/cpus.so,tests/rig/cpus.c,,,,-shared))
$(eval $(call linked,where,$(BUILD)/tests/where,tests/rig/where.c,,ompi-c hwloc,,))

RIG_ENV = CACHE=$(CACHE) TOPIARY_CACHE=$(CACHE) TOPIARY_BUILD=$(abspath $(BUILD)) PYTHONDONTWRITEBYTECODE=1
PYTEST = $(RIG_ENV) python3 -m pytest -c tests/pytest.ini --rootdir=.

setup:
	@$(RIG_ENV) packaging/setup
built: setup
	@$(MAKE) --no-print-directory all units
check: built
	@$(PYTEST) tests/unit tests/store tests/cluster
check-unit: built
	@$(PYTEST) tests/unit
check-store: built
	@$(PYTEST) tests/store
check-cluster: built
	@$(PYTEST) tests/cluster
demo:
	@$(RIG_ENV) tools/demo up
demo-down:
	@$(RIG_ENV) tools/demo down

.PHONY: setup built check check-unit check-store check-cluster demo demo-down
