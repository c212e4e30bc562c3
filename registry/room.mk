$(eval $(call program,topiaryd,$(addprefix registry/,topiaryd.c server.c service.c ingest.c reads.c store.c publish.c db.c \
migrate.c parser.c sandbox.c),client topo base,libmicrohttpd libpq libseccomp jansson munge libxml-2.0 libzstd inih libcrypto,-lslurm))
$(eval $(if $(wildcard registry/topiary.c),$(call program,topiary,registry/topiary.c $(wildcard registry/cmd_*.c),\
map client topo base,hwloc libxml-2.0 libzstd libcurl jansson munge inih libcrypto,-lslurm -lscotch -lscotcherr -lm)))
