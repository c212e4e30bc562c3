# make fuzz T=60: each parser of foreign bytes for so many seconds; make check-fuzz: each briefly, as CI does. What it finds stays in
# $(BUILD)/fuzz. Of readers of several forms there is a target for each.
FUZZ = $(FUZZ_CC) -std=gnu11 -Wno-c2x-extensions -g -O1 -fsanitize=$(1),address,undefined -fno-sanitize-recover=undefined -D_GNU_SOURCE -DTOPIARY_VERSION='"$(VERSION)"' -Ilib -MMD -MP \
	$(call pkg_cflags,$(FUZZ_PKGS))
FUZZ_CC ?= clang
FUZZ_PKGS = libxml-2.0 libzstd hwloc libcrypto yaml-0.1 jansson
FUZZ_OBJECTS = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(wildcard lib/base/*.c lib/hwxml/*.c lib/delta/*.c lib/shape/*.c lib/hwcmp/*.c \
	lib/hwview/*.c lib/score/*.c lib/replay/*.c lib/trace/*.c lib/fabric/*/*.c lib/map/matrix/*.c lib/map/places/*.c) lib/client/claim.c)
FABRIC_FORMS = $(addprefix $(BUILD)/fuzz/fabric_,discovered paper ports slurm yaml)
MATRIX_FORMS = $(addprefix $(BUILD)/fuzz/matrix_,dense graph market prof)
FUZZERS_OF_ONE = $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZERS = $(FUZZERS_OF_ONE) $(FABRIC_FORMS) $(MATRIX_FORMS)

$(BUILD)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(call FUZZ,fuzzer-no-link) -c -o $@ $<
$(BUILD)/fuzz/libtopo.a: $(FUZZ_OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^
$(FUZZERS_OF_ONE): $(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c
$(FABRIC_FORMS): tests/fuzz/fuzz_fabric.c
$(MATRIX_FORMS): tests/fuzz/fuzz_matrix.c
$(FUZZERS): $(BUILD)/fuzz/libtopo.a
	@mkdir -p $@.corpus
	$(Q)$(call FUZZ,fuzzer) -DFORM=$(or $(lastword $(filter-out $(@F),$(subst _, ,$(@F)))),any) -o $@ $(filter %.c,$^) $(filter %.a,$^) \
		$(call pkg_libs,$(FUZZ_PKGS))
fuzz: $(FUZZERS:%=%.ran)
$(FUZZERS:%=%.ran): %.ran: %
	@words=tests/fuzz/$(*F).dict; \
	$(abspath $*) -max_total_time=$(or $(T),60) -print_final_stats=1 -verbosity=0 $$(test ! -e $$words || echo -dict=$$words) \
		-artifact_prefix=$*. $*.corpus >$*.log 2>&1 || { tail -n 60 $*.log; exit 1; }
	@echo "  FUZZ    $(*F): $$(sed -n 's/stat::number_of_executed_units: *//p' $*.log) inputs"
check-fuzz:
	@$(MAKE) --no-print-directory -j$$(nproc) fuzz T=$(or $(T),1)

-include $(FUZZ_OBJECTS:.o=.d)
.PHONY: fuzz check-fuzz $(FUZZERS:%=%.ran)
