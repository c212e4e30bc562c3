$(eval $(call program,topiaryd,$(wildcard registry/*.c registry/*/*.c),\
client fabric $(TOPOLOGY),libmicrohttpd libpq libseccomp jansson munge libxml-2.0 libzstd inih libcrypto,-lslurm))
$(eval $(call unit,test_parser,tests/unit/test_parser.c $(addprefix registry/ingest/,parser.c worker.c sandbox.c validate.c),$(TOPOLOGY),\
libseccomp jansson libxml-2.0 libzstd hwloc libcrypto inih,))
$(BUILD)/obj/registry/http/route.o: docs/openapi.yaml
