TOPIARY_ARCHIVES = hwbench bind monitor trace map fabric client replay $(SCORE)
TOPIARY_PKGS = hwloc libxml-2.0 libzstd libcurl jansson yaml-0.1 munge libcrypto ncursesw tinfo
TOPIARY_LIBS = -lslurm -lscotch -lscotcherr -lm
$(eval $(call program,topiary,$(filter-out cli/place/tool.c,$(wildcard cli/*.c cli/*/*.c)),$(TOPIARY_ARCHIVES),$(TOPIARY_PKGS),$(TOPIARY_LIBS)))
# `make tool`: the commands that need neither Slurm's library nor the registry, in one static file for login nodes without Topiary.
TOOL_ARCH ?= $(shell uname -m)
TOOL_LIBS = $(CACHE)/tool/$(TOOL_ARCH)
TOOL_SOURCES = lib/client/claim.c $(addprefix cli/,topiary.c common.c child.c progress.c table.c target.c nodes/shape.c) $(addprefix \
	cli/place/,audit.c bind.c cables.c fabric.c learned.c map.c matrix.c matrix_rule.c observed.c place.c replay.c tool.c)
$(eval $(call linked,tool,$(BUILD)/topiary-$(TOOL_ARCH),$(TOOL_SOURCES),bind trace map fabric replay $(SCORE),\
	hwloc libxml-2.0 libzstd jansson yaml-0.1 libcrypto,-lscotch -lscotcherr -lm -pthread))
tool:
	@env CACHE=$(CACHE) packaging/setup tool-$(TOOL_ARCH)
	@env PKG_CONFIG_PATH=$(TOOL_LIBS)/lib/pkgconfig PKG_CONFIG_SYSTEM_INCLUDE_PATH=/usr/include:/usr/include/$(shell uname -m)-linux-gnu \
		$(MAKE) --no-print-directory CC="$(patsubst cc,$(TOOL_ARCH)-linux-gnu-gcc,$(patsubst gcc,$(TOOL_ARCH)-linux-gnu-gcc,$(CC)))" \
		BUILD=$(BUILD)/tool/$(TOOL_ARCH) OPT="-Os -ffunction-sections -fdata-sections" CPPFLAGS=-I$(TOOL_LIBS)/include \
		LDFLAGS="-static -s -L$(TOOL_LIBS)/lib -Wl,--gc-sections,--defsym=HMAC=0,--defsym=EVP_sha256=0" $(BUILD)/tool/$(TOOL_ARCH)/topiary-$(TOOL_ARCH)
.PHONY: tool
$(eval $(call unit,test_why,tests/unit/test_why.c cli/place/verdict.c cli/place/slurm_asked.c cli/table.c,replay $(SCORE),jansson libcrypto,-lm))
$(BUILD)/obj/cli/place/cores.o: ROOM_CFLAGS = -DNDEBUG -isystem \
	$(checked_slurm_src)
$(BUILD)/obj/cli/doctor/enable.o: ROOM_CFLAGS = -DSLURM_PLUGINDIR='"$(SLURM_PLUGINDIR)"' \
	-DSLURM_OWN_PLUGINDIR='"$(SLURM_OWN_PLUGINDIR)"'
# Pages as C strings, a line of it a line.
define page
$(BUILD)/gen/$(notdir $(1)).inc: cli/$(1).html
	@mkdir -p $$(@D)
	$$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $$< > $$@
$(BUILD)/obj/cli/$(2).o: $(BUILD)/gen/$(notdir $(1)).inc
$(BUILD)/obj/cli/$(2).o: ROOM_CFLAGS = -I$(BUILD)/gen
endef
$(eval $(call page,watch/trace_page,watch/trace_html))
$(eval $(call page,place/audit_page,place/audit))
