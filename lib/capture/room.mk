# The recorder for an MPI without monitoring of its own: `make capture MPICC=...` builds it for another one. It is linked with none.
MPICC ?= $(shell command -v mpicc)
CAPTURE = $(BUILD)/libtopiary-capture.so
CAPTURE_SOURCES := $(wildcard lib/capture/*.c)

$(CAPTURE): $(CAPTURE_SOURCES) $(wildcard lib/capture/*.h)
	@mkdir -p $(@D)
	@echo "  MPICC   $@"
	$(Q)$(MPICC) -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -D_GNU_SOURCE -shared $(LDFLAGS) -Wl,--as-needed \
		-o $@.new $(CAPTURE_SOURCES) && mv $@.new $@
capture: $(CAPTURE)
$(if $(MPICC),$(eval all: $(CAPTURE)))
.PHONY: capture
