# What is loaded into MPI programs, the recorder and the order of ranks (lib/reorder): one for each MPI ABI, that of mpicc, usually
# Open MPI's, and that of MPICH, which Intel MPI shares. They are not linked with an MPI library. `make capture MPICC=...` and `make
# reorder MPICC=...` build the first for another one.
MPICC ?= $(shell command -v mpicc)
MPICC_MPICH ?= $(filter-out $(realpath $(shell command -v $(firstword $(MPICC) mpicc))),$(realpath $(shell command -v mpicc.mpich)))
CAPTURES = $(foreach l,capture reorder,$(if $(MPICC),$(BUILD)/libtopiary-$(l).so) $(if $(MPICC_MPICH),$(BUILD)/libtopiary-$(l)-mpich.so))
# Name, sources.
define mpi_library
$(BUILD)/libtopiary-$(1).so: CAPTURE_CC = $$(MPICC)
$(BUILD)/libtopiary-$(1)-mpich.so: CAPTURE_CC = $$(MPICC_MPICH)
$(BUILD)/libtopiary-$(1).so $(BUILD)/libtopiary-$(1)-mpich.so: $(2) $(wildcard lib/capture/*.h lib/reorder/*.h lib/base/*.h)
	@mkdir -p $$(@D)
	@echo "  MPICC   $$@"
	$$(Q)$$(CAPTURE_CC) -std=gnu11 $$(OPT) -flto=auto $$(WARN) -fPIC -fvisibility=hidden -D_GNU_SOURCE -Ilib $$(CPPFLAGS) $$(CFLAGS) -shared $$(LDFLAGS) \
		-Wl,--as-needed -o $$@.new $(2) && mv $$@.new $$@
$(1): $(BUILD)/libtopiary-$(1).so
.PHONY: $(1)
endef
$(eval $(call mpi_library,capture,$(wildcard lib/capture/*.c)))
$(eval $(call mpi_library,reorder,$(wildcard lib/reorder/*.c) lib/capture/symbols.c $(addprefix lib/base/,buf.c err.c file.c)))
all: $(CAPTURES)
$(eval $(call unit,test_counters,tests/unit/test_counters.c,,ompi-c,))
