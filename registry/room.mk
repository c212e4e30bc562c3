TOPIARYD = $(wildcard registry/*.c registry/*/*.c)
TOPIARYD_ARCHIVES = hwbench client fabric $(TOPOLOGY)
TOPIARYD_PKGS = libmicrohttpd libpq libseccomp jansson munge hwloc libxml-2.0 libzstd libcrypto
$(eval $(call program,topiaryd,$(TOPIARYD),$(TOPIARYD_ARCHIVES),$(TOPIARYD_PKGS),-lslurm -lm))
$(eval $(call unit,test_parser,tests/unit/test_parser.c $(addprefix registry/ingest/,parser.c worker.c),$(TOPOLOGY),\
libseccomp jansson libxml-2.0 libzstd hwloc libcrypto,))
$(BUILD)/obj/registry/http/route.o: docs/openapi.yaml
