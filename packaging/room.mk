SLURM_PLUGINDIR ?= $(LIBDIR)/topiary/slurm
# Slurm's own folder: the door of job_submit stands there, so that slurm.conf without our folder is still a whole one.
SLURM_OWN_PLUGINDIR ?= $(LIBDIR)/slurm-wlm
plugindir = $(if $(findstring job_submit,$(1)),$(SLURM_OWN_PLUGINDIR),$(SLURM_PLUGINDIR))
INSTALL ?= install

install: all
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/topiary
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin $(BUILD)/topiaryd $(BUILD)/topiary-agent
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/topiary/sql sql/*.sql
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system packaging/systemd/*.service
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary/examples packaging/examples/*
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary docs/sql.md docs/openapi.yaml
	$(INSTALL) -D -m 644 packaging/completion/topiary.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/topiary
	$(foreach n,1 3 5 7 8,$(if $(wildcard docs/*.$n),\
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$n $(wildcard docs/*.$n) &&)) true
	# Never over a plugin that a daemon has mapped: beside it, then renamed.
	$(foreach p,$(notdir $(PLUGINS)),$(INSTALL) -D -m 644 $(BUILD)/slurm/$p $(DESTDIR)$(call plugindir,$p)/.$p.new && \
		mv $(DESTDIR)$(call plugindir,$p)/.$p.new $(DESTDIR)$(call plugindir,$p)/$p &&) true
	$(foreach c,$(CAPTURES),$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR)/topiary $c &&) true
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR) $(LIBTOPIARY)
	ln -sf $(notdir $(LIBTOPIARY)) $(DESTDIR)$(LIBDIR)/libtopiary.so
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/include lib/app/topiary.h
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' lib/app/topiary.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/topiary.pc

deb: all
	packaging/make-deb $(BUILD)/deb

check-deb: deb
	packaging/try-deb $(BUILD)/deb

lint:
	$(Q)tools/lint

.PHONY: install deb check-deb lint
