TOPIARYD = $(wildcard registry/*.c registry/*/*.c)
TOPIARYD_ARCHIVES = hwbench client fabric $(TOPOLOGY)
TOPIARYD_PKGS = libmicrohttpd libpq libseccomp jansson munge hwloc libxml-2.0 libzstd libcrypto
$(eval $(call program,topiaryd,$(TOPIARYD),$(TOPIARYD_ARCHIVES),$(TOPIARYD_PKGS),-lslurm -lm))
# topiaryd with one part switched off, for bench-registry-ablate: see bench/registry_ablate.c.
ABLATED = rebase_patches baseline_vote_run rebase_accepted rebase_layouts bases_match base_encode pack_make
$(eval $(call linked,topiaryd_ablate,$(BUILD)/bench/topiaryd_ablate,$(TOPIARYD) bench/registry_ablate.c,$(TOPIARYD_ARCHIVES),\
$(TOPIARYD_PKGS),-lslurm -lm,$(addprefix -Xlinker --wrap=,$(ABLATED))))
$(eval $(call unit,test_parser,tests/unit/test_parser.c $(addprefix registry/ingest/,parser.c worker.c sandbox.c validate.c),$(TOPOLOGY),\
libseccomp jansson libxml-2.0 libzstd hwloc libcrypto,))
$(BUILD)/obj/registry/http/route.o: docs/openapi.yaml
