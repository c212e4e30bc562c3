TOPIARY_ARCHIVES = hwbench bind monitor trace map fabric client replay $(SCORE)
TOPIARY_PKGS = hwloc libxml-2.0 libzstd libcurl jansson yaml-0.1 munge libcrypto ncursesw tinfo
TOPIARY_LIBS = -lslurm -lscotch -lscotcherr -lm
$(eval $(call program,topiary,$(wildcard cli/*.c cli/*/*.c),$(TOPIARY_ARCHIVES),$(TOPIARY_PKGS),$(TOPIARY_LIBS)))
$(eval $(call unit,test_why,tests/unit/test_why.c cli/place/verdict.c cli/place/slurm_asked.c cli/table.c,$(SCORE),jansson libcrypto,))
$(BUILD)/obj/cli/place/cores.o: ROOM_CFLAGS = -DNDEBUG -isystem \
	$(checked_slurm_src)
$(BUILD)/obj/cli/doctor/enable.o: ROOM_CFLAGS = -DSLURM_PLUGINDIR='"$(SLURM_PLUGINDIR)"' \
	-DSLURM_OWN_PLUGINDIR='"$(SLURM_OWN_PLUGINDIR)"'
# The page as a C string, a line of it a line.
$(BUILD)/gen/trace_page.inc: cli/watch/trace_page.html
	@mkdir -p $(@D)
	$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< > $@
$(BUILD)/obj/cli/watch/trace_html.o: $(BUILD)/gen/trace_page.inc
$(BUILD)/obj/cli/watch/trace_html.o: ROOM_CFLAGS = -I$(BUILD)/gen
