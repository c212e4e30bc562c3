$(eval $(call program,topiary,$(wildcard cli/*.c),\
map fabric client replay $(SCORE),hwloc libxml-2.0 libzstd libcurl jansson yaml-0.1 munge inih libcrypto,-lslurm -lscotch -lscotcherr -lm))
$(eval $(call unit,test_why,tests/unit/test_why.c cli/verdict.c cli/table.c,$(SCORE),jansson libcrypto,))
$(BUILD)/obj/cli/cores.o: ROOM_CFLAGS = -DNDEBUG -isystem \
	$(checked_slurm_src)
