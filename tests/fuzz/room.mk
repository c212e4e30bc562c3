# make fuzz T=60: each parser of foreign bytes for so many seconds; make check-fuzz: each briefly. Needs clang-14 and
# libclang-rt-14-dev; what it finds stays in $(BUILD)/fuzz. Of readers of several forms there is a target for each.
T ?= 60
FUZZ = clang-14 -std=gnu11 -g -O1 -fsanitize=$(1),address,undefined -fno-sanitize-recover=undefined -D_GNU_SOURCE -Ilib -MMD -MP \
	$(call pkg_cflags,$(FUZZ_PKGS))
FUZZ_PKGS = libxml-2.0 libzstd hwloc inih libcrypto yaml-0.1 jansson
FUZZ_OBJECTS = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(wildcard lib/base/*.c lib/topo/*.c lib/fit/*.c lib/fabric/*.c lib/map/matrix*.c \
	lib/map/places*.c lib/map/numbers.c) lib/client/claim.c)
FUZZERS = $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(call FUZZ,fuzzer-no-link) -c -o $@ $<
$(BUILD)/fuzz/libtopo.a: $(FUZZ_OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^
$(FUZZERS): $(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/libtopo.a
	@mkdir -p $@.corpus
	$(Q)$(call FUZZ,fuzzer) -o $@ $^ $(call pkg_libs,$(FUZZ_PKGS))
fuzz: $(FUZZERS)
	@for f in $^; do words=tests/fuzz/$${f##*/}.dict; \
		$$f -max_total_time=$(T) -print_final_stats=1 -verbosity=0 $$(test ! -e $$words || echo -dict=$$words) \
			-artifact_prefix=$$f. $$f.corpus || exit 1; done
check-fuzz: T = 5
check-fuzz: fuzz

-include $(FUZZ_OBJECTS:.o=.d)
.PHONY: fuzz check-fuzz
