# The recorders, one for each MPI ABI: that of mpicc, usually Open MPI's, and that of MPICH, which Intel MPI shares. They are not linked with an
# MPI library. `make capture MPICC=...` builds the first for another one.
MPICC ?= $(shell command -v mpicc)
MPICC_MPICH ?= $(filter-out $(realpath $(shell command -v $(firstword $(MPICC) mpicc))),$(realpath $(shell command -v mpicc.mpich)))
CAPTURE = $(BUILD)/libtopiary-capture.so
CAPTURE_MPICH = $(BUILD)/libtopiary-capture-mpich.so
CAPTURES = $(if $(MPICC),$(CAPTURE)) $(if $(MPICC_MPICH),$(CAPTURE_MPICH))
CAPTURE_SOURCES := $(wildcard lib/capture/*.c)

$(CAPTURE): CAPTURE_CC = $(MPICC)
$(CAPTURE_MPICH): CAPTURE_CC = $(MPICC_MPICH)
$(CAPTURE) $(CAPTURE_MPICH): $(CAPTURE_SOURCES) $(wildcard lib/capture/*.h) lib/base/array.h lib/base/build_id.h
	@mkdir -p $(@D)
	@echo "  MPICC   $@"
	$(Q)$(CAPTURE_CC) -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -D_GNU_SOURCE -Ilib $(CPPFLAGS) $(CFLAGS) -shared $(LDFLAGS) \
		-Wl,--as-needed -o $@.new $(CAPTURE_SOURCES) && mv $@.new $@
capture: $(CAPTURE)
all: $(CAPTURES)
.PHONY: capture
$(eval $(call unit,test_counters,tests/unit/test_counters.c,,ompi-c,))
