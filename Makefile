# SPDX-License-Identifier: GPL-2.0-or-later
# Topiary: the rules. Each room.mk holds the facts of its room: what is built, from which sources, with which libraries.

VERSION   := 0.1.0
BUILD     ?= build
CACHE     ?= $(CURDIR)/.cache
PREFIX    ?= /usr
LIBDIR    ?= $(PREFIX)/lib/$(shell $(CC) -print-multiarch 2>/dev/null)
SYSCONFDIR ?= /etc
CC        ?= gcc
PKGCONFIG ?= pkg-config
# The exact source of the installed Slurm, configured: packaging/setup leads there.
SLURM_SRC ?= $(wildcard $(CACHE)/src/slurm/)
# Where that Slurm is installed, if it is not a package: its headers and libslurm are found there.
SLURM_PREFIX ?=
SLURM_LIBDIR = $(patsubst %/,%,$(dir $(firstword $(wildcard $(addprefix $(SLURM_PREFIX)/,lib64/libslurm.so lib/libslurm.so)))))

WARN := -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
OPT  ?= -O2 -g
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -D_GNU_SOURCE -DTOPIARY_VERSION='"$(VERSION)"' \
	-Ilib $(if $(SLURM_PREFIX),-isystem $(SLURM_PREFIX)/include) -MMD -MP $(SAN) $(CPPFLAGS) $(CFLAGS)
LINKED_SLURM = $(if $(SLURM_PREFIX),-L$(SLURM_LIBDIR) -Wl$(comma)-rpath=$(SLURM_LIBDIR))

# The plugins need the internal headers of the very micro release that loads them.
slurm_number = $(shell sed -n 's/^.define SLURM_VERSION_NUMBER *//p' $(wildcard $(1)/slurm/slurm_version.h))
slurm_installed = $(or $(SLURM_PREFIX),/usr)/include
slurm_lacks = $(if $(wildcard $(SLURM_SRC)/$(1)),,$(2))
slurm_src_fault = $(or $(call slurm_lacks,META,no source of Slurm: it has no META),\
	$(call slurm_lacks,src/common/slurm_xlator.h,it has no internal headers below src: take the whole source$(comma) not a -dev package),\
	$(call slurm_lacks,slurm/slurm_version.h,it is not configured: run ./configure in it),\
	$(if $(call slurm_number,$(slurm_installed)),,no Slurm is installed in $(or $(SLURM_PREFIX),/usr): \
	$(slurm_installed)/slurm/slurm_version.h is not there),\
	$(if $(filter-out $(call slurm_number,$(slurm_installed)),$(call slurm_number,$(SLURM_SRC))),it and the Slurm installed \
	in $(or $(SLURM_PREFIX),/usr) are of different micro releases ($(call slurm_number,$(SLURM_SRC)) and $(call \
	slurm_number,$(slurm_installed)) in slurm_version.h): use the source of the installed one))
checked_slurm_src = $(if $(SLURM_SRC),$(if $(slurm_src_fault),$(error SLURM_SRC=$(SLURM_SRC): $(slurm_src_fault)),$(SLURM_SRC)),\
	$(error Slurm's own source is not here: run packaging/setup$(comma) or name it in SLURM_SRC))

# What is not Slurm's, PostgreSQL's or Scotch's: each archive before those that it uses.
TOPOLOGY := hwview hwcmp shape delta hwxml base
SCORE := score $(TOPOLOGY)

comma := ,

all:

# archive NAME, SOURCES, PKGS          -> build/lib/libtopiary-NAME.a
# program NAME, SOURCES, ARCHIVES, PKGS, LIBS  -> build/NAME
# plugin  NAME, SOURCES, ARCHIVES, PKGS, LIBS  -> build/slurm/NAME.so
# unit    NAME, SOURCES, ARCHIVES, PKGS, LIBS  -> build/tests/NAME, run by `make check-unit`
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
archives = $(foreach a,$(1),$(BUILD)/lib/libtopiary-$(a).a)
# Silent on a machine that is still to be set up, where `make demo` and `make check` begin.
HAVE_PKGCONFIG := $(shell command -v $(PKGCONFIG))
pkg_libs = $(if $(HAVE_PKGCONFIG),$(if $(strip $(1)),$(shell $(PKGCONFIG) --libs $(1))))
pkg_cflags = $(if $(HAVE_PKGCONFIG),$(if $(strip $(1)),$(shell $(PKGCONFIG) --cflags $(1))))

define archive
ARCHIVE_SOURCES += $(2)
$(call objects,$(2)): PKG_CFLAGS := $(call pkg_cflags,$(3))
$(BUILD)/lib/libtopiary-$(1).a: $(call objects,$(2))
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
endef

define linked
SOURCES += $(3)
$(call objects,$(3)): PKG_CFLAGS := $(call pkg_cflags,$(5))
$(2): $(call objects,$(3)) $(call archives,$(4))
	@mkdir -p $$(@D)
	@echo "  LD      $$@"
	$$(Q)$(CC) $(7) $$(SAN) $$(LDFLAGS) $(if $(findstring -lslurm,$(6)),$$(LINKED_SLURM)) -o $$@.new $(call objects,$(3)) \
		-Wl,--as-needed $(call archives,$(4)) $(call pkg_libs,$(5)) $(6) && mv $$@.new $$@
endef
# Plugins bind lazily: Slurm's clients load them too and lack the daemons' symbols. Whatever LDFLAGS has, programs do not.
define program
PROGRAMS += $(BUILD)/$(1)
$(call linked,$(1),$(BUILD)/$(1),$(2),$(3),$(4),$(5) -Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now,)
$(BUILD)/$(1): Makefile
endef
define plugin
PLUGINS += $(BUILD)/slurm/$(1).so
$(call linked,$(1),$(BUILD)/slurm/$(1).so,$(2),$(3),$(4),$(5),-shared)
endef
define unit
UNITS += $(BUILD)/tests/$(1)
$(call linked,$(1),$(BUILD)/tests/$(1),$(2),$(3),cmocka $(4),$(5),)
endef

include $(sort $(wildcard lib/*/room.mk *_plugin/room.mk node_agent/room.mk registry/room.mk cli/room.mk tests/*/room.mk \
	packaging/room.mk bench/room.mk docs/room.mk))

Q := $(if $(V),,@)
# A unit program spends its time in what it tests: its own file is compiled in a third of the time without optimization.
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CFLAGS_ALL) $(if $(filter tests/unit/test_%,$<),-O0) -I$(firstword $(subst /, ,$<)) $(PKG_CFLAGS) $(ROOM_CFLAGS) -MT $@ -c -o $@ $<

all: $(PROGRAMS) $(PLUGINS)
units: $(UNITS)
clean:
	rm -rf $(BUILD)
# For clangd and other readers of the code: the build's own commands, benchmarks and fuzz targets included.
compile_commands.json:
	@$(MAKE) --no-print-directory -nB V=1 $(sort $(call objects,$(ARCHIVE_SOURCES) $(SOURCES))) $(CAPTURES) $(FUZZERS) | \
		tools/compile-commands >$@.new && mv $@.new $@

# The size of each room beside its budget; lint checks the budgets.
house:
	@tools/house

.PHONY: all units clean compile_commands.json house
.DEFAULT_GOAL := all
-include $(patsubst %.c,$(BUILD)/obj/%.d,$(ARCHIVE_SOURCES) $(SOURCES))
