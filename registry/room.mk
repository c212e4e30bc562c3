$(eval $(call program,topiaryd,$(filter-out registry/topiary.c registry/cmd_%,$(wildcard registry/*.c)),\
client fabric topo base,libmicrohttpd libpq libseccomp jansson munge libxml-2.0 libzstd inih libcrypto,-lslurm))
$(eval $(if $(wildcard registry/topiary.c),$(call program,topiary,registry/topiary.c $(wildcard registry/cmd_*.c),\
map fabric client fit topo base,hwloc libxml-2.0 libzstd libcurl jansson yaml-0.1 munge inih libcrypto,-lslurm -lscotch -lscotcherr -lm)))
$(eval $(call unit,test_parser,tests/unit/test_parser.c $(addprefix registry/,parser.c worker.c sandbox.c belief.c),topo base,\
libseccomp jansson libxml-2.0 libzstd hwloc libcrypto inih,))
$(eval $(call unit,test_why,tests/unit/test_why.c registry/cmd_verdict.c registry/cmd_table.c,fit topo base,jansson libcrypto,))
$(BUILD)/obj/registry/cmd_cores.o: ROOM_CFLAGS = -DNDEBUG -isystem \
	$(or $(SLURM_SRC),$(error Slurm's own source is not here: run packaging/setup first))
$(BUILD)/obj/registry/openapi.o: docs/openapi.yaml
