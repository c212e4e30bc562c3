# make fuzz T=60: each parser of foreign bytes for so many seconds. Needs clang-14 and libclang-rt-14-dev; what it finds stays
# in $(BUILD)/fuzz.
T ?= 60
FUZZ = clang-14 -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -D_GNU_SOURCE -Ilib
FUZZ_PKGS = libxml-2.0 libzstd libcrypto
FUZZ_canon = $(addprefix lib/,topo/canon.c topo/xml_grammar.c topo/xml_ids.c topo/xml_outline.c topo/shape.c topo/level.c base/err.c base/buf.c)
FUZZ_pack = $(addprefix lib/,topo/pack.c topo/linediff.c base/err.c base/buf.c)

$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c
	@mkdir -p $@.corpus
	$(Q)$(FUZZ) $(call pkg_cflags,$(FUZZ_PKGS)) -o $@ $< $(FUZZ_$*) $(call pkg_libs,$(FUZZ_PKGS))
fuzz: $(BUILD)/fuzz/canon $(BUILD)/fuzz/pack
	@for f in $^; do $$f -max_total_time=$(T) -print_final_stats=1 -verbosity=0 -artifact_prefix=$$f. $$f.corpus || exit 1; done

.PHONY: fuzz
