SLURM_PLUGINDIR ?= $(LIBDIR)/topiary/slurm
# Slurm's own folder: the door of job_submit stands there, so that slurm.conf without our folder is still a whole one.
SLURM_OWN_PLUGINDIR ?= $(if $(SLURM_PREFIX),$(SLURM_LIBDIR)/slurm,$(LIBDIR)/slurm-wlm)
plugindir = $(if $(findstring job_submit,$(1)),$(SLURM_OWN_PLUGINDIR),$(SLURM_PLUGINDIR))
LOCALSTATEDIR ?= /var
INSTALL ?= install

install: all
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/topiary
	$(INSTALL) -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin $(BUILD)/topiaryd $(BUILD)/topiary-agent $(BUILD)/topiary-monitor
	# topiaryd applies all that are there: none of another version may stay.
	rm -f $(DESTDIR)$(PREFIX)/share/topiary/sql/[0-9]*.sql
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/topiary/sql sql/*.sql
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system packaging/systemd/*.service packaging/systemd/*.timer \
		packaging/systemd/*.mount
	$(INSTALL) -D -m 644 packaging/systemd/topiary.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/topiary.conf
	$(INSTALL) -d $(DESTDIR)$(LOCALSTATEDIR)/lib/topiary $(DESTDIR)$(SLURM_PLUGINDIR)
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary/examples packaging/examples/*
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary docs/sql.md docs/openapi.yaml docs/user-guide.md docs/admin-guide.md docs/operations.md
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/topiary/monitoring packaging/monitoring/*
	$(INSTALL) -D -m 644 packaging/completion/topiary.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/topiary
	$(INSTALL) -D -m 644 packaging/completion/topiary-slurm.bash $(DESTDIR)$(SYSCONFDIR)/bash_completion.d/topiary-slurm
	$(foreach n,1 3 5 7 8,$(if $(wildcard docs/*.$n),\
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$n $(wildcard docs/*.$n) &&)) true
	# Never over a plugin that a daemon has mapped: beside it, then renamed.
	$(foreach p,$(notdir $(PLUGINS)),$(INSTALL) -D -m 644 $(BUILD)/slurm/$p $(DESTDIR)$(call plugindir,$p)/.$p.new && \
		mv $(DESTDIR)$(call plugindir,$p)/.$p.new $(DESTDIR)$(call plugindir,$p)/$p &&) true
	$(foreach c,$(CAPTURES),$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR)/topiary $c &&) true
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR) $(LIBTOPIARY)
	ln -sf $(notdir $(LIBTOPIARY)) $(DESTDIR)$(LIBDIR)/libtopiary.so
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR) $(LIBPHASE)
	ln -sf $(notdir $(LIBPHASE)) $(DESTDIR)$(LIBDIR)/libtopiary_phase.so
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(PREFIX)/include lib/app/topiary.h lib/phase/topiary_phase.h lib/phase/topiary_phase.f90
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' lib/app/topiary.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/topiary.pc

# For this machine's Slurm, or for another: SLURM_SRC, and SLURM_PREFIX if it is not installed in /usr.
deb rpm: SETUP = packages slurm
deb rpm: $(if $(filter file,$(origin SLURM_SRC)),setup)
	@env $(if $(SLURM_PREFIX),SLURM_PREFIX=$(SLURM_PREFIX)) CACHE=$(CACHE) $(if $(SLURM_SRC),SLURM_SRC=$(SLURM_SRC)) packaging/make-$@ $(BUILD)/$@

# README.md's recipe and the administrator's guide, with the packages, on a site of six hosts, each with its own systemd.
check-recipe: deb rpm
	@$(RIG_ENV) packaging/site-root
	@$(PYTEST) tests/recipe

lint:
	$(Q)tools/lint

.PHONY: install deb rpm check-recipe lint
