SLURM_PLUGINDIR ?= $(LIBDIR)/topiary/slurm
INSTALL ?= install

install: all
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/topiary
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin $(BUILD)/topiaryd $(BUILD)/topiary-agent
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/topiary/sql sql/*.sql
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system packaging/systemd/*.service
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary/examples packaging/examples/*
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary docs/sql.md docs/openapi.yaml
	$(INSTALL) -D -m 644 packaging/completion/topiary.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/topiary
	$(foreach n,1 5 7 8,$(if $(wildcard docs/*.$n),\
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$n $(wildcard docs/*.$n) &&)) true
	# Never over a plugin that a daemon has mapped: beside it, then renamed.
	$(INSTALL) -d $(DESTDIR)$(SLURM_PLUGINDIR)
	for p in $(notdir $(PLUGINS)); do \
		$(INSTALL) -m 644 $(BUILD)/slurm/$$p $(DESTDIR)$(SLURM_PLUGINDIR)/.$$p.new && \
		mv $(DESTDIR)$(SLURM_PLUGINDIR)/.$$p.new $(DESTDIR)$(SLURM_PLUGINDIR)/$$p || exit 1; done

deb: all
	packaging/make-deb $(BUILD)/deb

check-deb: deb
	packaging/try-deb $(BUILD)/deb

lint:
	$(Q)tools/lint

.PHONY: install deb check-deb lint
