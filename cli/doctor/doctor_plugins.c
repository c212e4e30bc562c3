/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <elf.h>
#include <errno.h>
#include <glob.h>
#include <hwloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "doctor.h"
#include "slurm_conf.h"

#define SELECT "select_cons_tres.so"
#define SUBMIT "job_submit_topiary.so"
#define SPANK "spank_topiary.so"
#define MAX_BYTES (64u << 20)

static const void *at(const struct buf *b, uint64_t offset, uint64_t bytes)
{
	return offset <= b->len && bytes <= b->len - offset ? b->data + offset : NULL;
}

/* The file's bytes of an address of its memory image. */
static const void *at_address(const struct buf *b, const Elf64_Ehdr *h, uint64_t address, uint64_t bytes)
{
	for (unsigned i = 0; i < h->e_phnum; i++) {
		const Elf64_Phdr *p = at(b, h->e_phoff + i * sizeof(*p), sizeof(*p));

		if (p && p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
			return at(b, p->p_offset + (address - p->p_vaddr), bytes);
	}
	return NULL;
}

/* plugin_version (slurm/spank.h, src/common/plugin.h) as the file has it, 0 where it has none: nothing of it is run. */
static uint32_t plugin_version(const struct buf *b)
{
	const Elf64_Ehdr *h = at(b, 0, sizeof(*h));

	if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (unsigned i = 0; i < h->e_shnum; i++) {
		const Elf64_Shdr *s = at(b, h->e_shoff + i * sizeof(*s), sizeof(*s));
		const Elf64_Shdr *names =
			s && s->sh_type == SHT_DYNSYM ? at(b, h->e_shoff + s->sh_link * sizeof(*s), sizeof(*s)) : NULL;

		for (uint64_t k = 0; names && k < s->sh_size / sizeof(Elf64_Sym); k++) {
			const Elf64_Sym *sym = at(b, s->sh_offset + k * sizeof(*sym), sizeof(*sym));
			const char *name =
				sym ? at(b, names->sh_offset + sym->st_name, sizeof("plugin_version")) : NULL;
			const uint32_t *version;

			if (!name || strcmp(name, "plugin_version") || sym->st_shndx == SHN_UNDEF)
				continue;
			version = at_address(b, h, sym->st_value, sizeof(*version));
			return version ? *version : 0;
		}
	}
	return 0;
}

static bool is_ours(const char *path)
{
	struct buf b = { 0 };
	struct err e;
	bool ours = file_read(path, MAX_BYTES, &b, &e) == 0 && memmem(b.data, b.len, "topiary", 7);

	buf_free(&b);
	return ours;
}

/* The first file of that name in PluginDir, ours or not ours. */
static bool find(const struct doctor *d, const char *name, bool ours, char path[static PATH_MAX])
{
	for (const char *dir = doctor_slurm(d, "plugindir"); *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		snprintf(path, PATH_MAX, "%.*s/%s", (int) strcspn(dir, ":"), dir, name);
		if (access(path, F_OK) == 0 && is_ours(path) == ours)
			return true;
	}
	return false;
}

static void check_order(struct doctor *d)
{
	char ours[PATH_MAX], theirs[PATH_MAX];
	const char *dirs = doctor_slurm(d, "plugindir");
	bool stock = find(d, SELECT, false, theirs);

	if (!find(d, SELECT, true, ours))
		doctor_add(d, DOCTOR_WARNING,
			   "put the directory with Topiary's " SELECT " first in PluginDir and "
			   "install topiary-slurm; "
			   "until then Slurm's own plugin places all jobs",
			   "%s: PluginDir=%s has no plugin of Topiary", d->slurm_conf, dirs);
	else if (!stock)
		doctor_add(d, DOCTOR_ERROR, "add the directory of Slurm's own plugins to PluginDir, after Topiary's",
			   "%s: PluginDir=%s has no " SELECT " of Slurm", d->slurm_conf, dirs);
	else if (memmem(dirs, strlen(dirs), ours, strlen(ours) - strlen("/" SELECT)) >
		 memmem(dirs, strlen(dirs), theirs, strlen(theirs) - strlen("/" SELECT)))
		doctor_add(d, DOCTOR_ERROR, "put Topiary's directory before Slurm's in PluginDir and restart slurmctld",
			   "%s: PluginDir=%s: Slurm's own " SELECT " comes first", d->slurm_conf, dirs);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s", dirs);
}

void doctor_check_plugindir(struct doctor *d)
{
	const char *dirs = doctor_slurm(d, "plugindir");
	bool missing = false;

	if (!*dirs)
		return doctor_add(d, DOCTOR_WARNING,
				  "set PluginDir as topiary-select(8) shows; until then Slurm's own "
				  "plugin places all jobs",
				  "%s: no PluginDir", d->slurm_conf);
	for (const char *dir = dirs; *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		char path[PATH_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%.*s", (int) strcspn(dir, ":"), dir);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			continue;
		missing = true;
		doctor_add(d, DOCTOR_ERROR,
			   "install topiary-common on this host, or create the directory: every Slurm "
			   "program fails without it",
			   "%s: PluginDir names %s: no such directory", d->slurm_conf, path);
	}
	if (!missing)
		check_order(d);
}

/* "22.05.8", with words before or after it, as SLURM_VERSION_NUMBER (slurm.h); 0 when there is none. */
static uint32_t release_number(const char *text)
{
	unsigned major, minor, micro;

	text += strcspn(text, "0123456789");
	return sscanf(text, "%u.%u.%u", &major, &minor, &micro) == 3 ? major << 16 | minor << 8 | micro : 0;
}

static uint32_t installed_release(void)
{
	static const char *const argv[] = { "scontrol", "--version", NULL };
	struct buf out = { 0 };
	struct err e;
	uint32_t n = doctor_run(argv, &out, &e) == 0 && out.len ? release_number(out.data) : 0;

	buf_free(&out);
	return n;
}

/* Packages of two releases of Topiary on one host: lib/base/settings.c has the release in each program and plugin. */
static void check_topiary_release(struct doctor *d, const char *path, const struct buf *b)
{
	const char *name = strrchr(path, '/') + 1, *at;

	if (strcmp(name, SPANK) && strcmp(name, SELECT))
		return;
	at = memmem(b->data, b->len, SETTINGS_RELEASE, strlen(SETTINGS_RELEASE));
	if (at && strcmp(at += strlen(SETTINGS_RELEASE), TOPIARY_VERSION))
		doctor_add(d, DOCTOR_WARNING, "install topiary and topiary-slurm of one release",
			   "%s is of Topiary %.20s, this command of " TOPIARY_VERSION, path, at);
}

/* Plugins name the release of Slurm in three bytes; SPANK compares only the first two (spank.c). */
static bool check_release(struct doctor *d, const char *path, uint32_t slurm)
{
	struct buf b = { 0 };
	struct err e;
	uint32_t version = 0;
	int shift = strstr(path, SPANK) ? 8 : 0;

	if (file_read(path, MAX_BYTES, &b, &e)) {
		doctor_add(d, DOCTOR_ERROR, "make the plugin readable, or reinstall topiary-slurm", "%s", e.text);
		return false;
	}
	version = plugin_version(&b);
	check_topiary_release(d, path, &b);
	buf_free(&b);
	if (!version && strstr(path, "topiary"))
		doctor_add(d, DOCTOR_ERROR, "reinstall topiary-slurm", "%s: not a plugin of Slurm", path);
	else if (version && version >> shift != slurm >> shift)
		doctor_add(d, DOCTOR_ERROR,
			   "install topiary-slurm built for exactly this release; Slurm skips this "
			   "plugin, or fails at its start",
			   "%s was built for Slurm %u.%02u.%u, but %u.%02u.%u is installed", path, version >> 16 & 255,
			   version >> 8 & 255, version & 255, slurm >> 16 & 255, slurm >> 8 & 255, slurm & 255);
	else
		return true;
	return false;
}

static unsigned check_directory(struct doctor *d, const char *dir, int len, uint32_t slurm, bool *good)
{
	char pattern[PATH_MAX];
	glob_t files = { 0 };
	unsigned n = 0;

	snprintf(pattern, sizeof(pattern), "%.*s/*.so", len, dir);
	if (glob(pattern, 0, NULL, &files) == 0)
		for (n = 0; n < files.gl_pathc; n++)
			*good &= check_release(d, files.gl_pathv[n], slurm);
	globfree(&files);
	return n;
}

void doctor_check_plugins(struct doctor *d)
{
	const char *running = doctor_slurm(d, "slurm_version");
	uint32_t slurm = installed_release(), controller = release_number(running);
	unsigned n = 0;
	bool good = true;

	if (!slurm)
		return doctor_add(d, DOCTOR_NOTE, "install Slurm's commands here to have the plugins' releases checked",
				  "scontrol --version names no release");
	if (controller && controller != slurm)
		doctor_add(d, DOCTOR_WARNING,
			   "restart slurmctld after an upgrade, or install the same release on this "
			   "host",
			   "slurmctld runs %s, this host has %u.%02u.%u", running, slurm >> 16, slurm >> 8 & 255,
			   slurm & 255);
	for (const char *dir = doctor_slurm(d, "plugindir"); *dir; dir += strcspn(dir, ":"), dir += *dir == ':')
		n += check_directory(d, dir, strcspn(dir, ":"), slurm, &good);
	if (good && n)
		doctor_add(d, DOCTOR_OK, NULL, "%u plugins of Slurm %u.%02u.%u", n, slurm >> 16, slurm >> 8 & 255,
			   slurm & 255);
}

void doctor_check_submit(struct doctor *d)
{
	const char *plugins = doctor_slurm(d, "jobsubmitplugins");
	char path[PATH_MAX];

	if (!strstr(plugins, "topiary"))
		doctor_add(d, DOCTOR_OK, NULL, "not enabled (optional)");
	else if (find(d, SUBMIT, true, path))
		doctor_add(d, DOCTOR_OK, NULL, "%s", path);
	else
		doctor_add(d, DOCTOR_ERROR,
			   "install topiary-slurm, or remove topiary from JobSubmitPlugins: slurmctld "
			   "would not start again",
			   "%s: JobSubmitPlugins=%s, but no directory of PluginDir has " SUBMIT, d->slurm_conf,
			   plugins);
}

/* The pid in a daemon's file, where %h and %n are this host, if that is one; 0 where none runs. */
static int daemon_pid(const struct doctor *d, const char *name, const char *file)
{
	struct buf path = { 0 }, text = { 0 };
	size_t n = strlen(name);
	char comm[64];
	struct err e;
	int pid = 0;

	for (const char *p = file; *p; p++)
		if (*p == '%' && (p[1] == 'h' || p[1] == 'n'))
			buf_puts(&path, *++p == 'h' ? d->host : d->cmd->settings.node_name);
		else
			buf_add(&path, p, 1);
	if (!path.failed && file_read(path.data, MAX_BYTES, &text, &e) == 0 && text.len)
		pid = atoi(text.data);
	text.len = 0;
	snprintf(comm, sizeof(comm), "/proc/%d/comm", pid);
	if (file_read(comm, MAX_BYTES, &text, &e) || text.len < n || memcmp(text.data, name, n))
		pid = 0;
	buf_free(&path);
	buf_free(&text);
	return pid;
}

static int controller_pid(const struct doctor *d)
{
	const char *file = doctor_slurm(d, "slurmctldpidfile");

	return daemon_pid(d, "slurmctld", *file ? file : "/var/run/slurmctld.pid");
}

/* What a slurmctld of this host has mapped, against the file that it would load now. */
void doctor_check_loaded(struct doctor *d)
{
	char maps[64], ours[PATH_MAX], removed[PATH_MAX + sizeof(" (deleted)")];
	int pid = controller_pid(d);
	struct buf text = { 0 };
	struct err e;

	if (!pid || !find(d, SELECT, true, ours))
		return;
	snprintf(maps, sizeof(maps), "/proc/%d/maps", pid);
	if (file_read(maps, MAX_BYTES, &text, &e)) {
		doctor_add(d, DOCTOR_OK, NULL, "not checked: only root can read what slurmctld (pid %d) has loaded",
			   pid);
		return buf_free(&text);
	}
	snprintf(removed, sizeof(removed), "%s (deleted)", ours);
	if (!memmem(text.data, text.len, ours, strlen(ours)))
		doctor_add(d, DOCTOR_ERROR, "restart slurmctld: a plugin is loaded at its start only",
			   "slurmctld (pid %d) has not loaded %s", pid, ours);
	else if (memmem(text.data, text.len, removed, strlen(removed)))
		doctor_add(d, DOCTOR_WARNING, "restart slurmctld to load the file that is installed now",
			   "slurmctld (pid %d) runs with a removed file: %s", pid, removed);
	else
		doctor_add(d, DOCTOR_OK, NULL, "slurmctld (pid %d) runs with %s", pid, ours);
	buf_free(&text);
}

#define HWLOC "/libhwloc.so."

/* The number in the name of a loaded hwloc (15 of hwloc 2) that is not other_than; -1: none, or not readable. */
static int loaded_hwloc(int pid, int other_than)
{
	struct buf text = { 0 };
	const char *at = NULL;
	int number = -1;
	char maps[64];
	struct err e;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", pid);
	if (pid && file_read(maps, MAX_BYTES, &text, &e) == 0)
		at = text.data;
	while (at && (at = memmem(at, text.data + text.len - at, HWLOC, strlen(HWLOC))))
		if ((number = atoi(at += strlen(HWLOC))) != other_than)
			break;
	buf_free(&text);
	return number == other_than ? -1 : number;
}

void doctor_check_hwloc(struct doctor *d)
{
	const char *file = doctor_slurm(d, "slurmdpidfile");
	int pid = daemon_pid(d, "slurmd", *file ? file : "/var/run/slurmd.pid");
	int own = loaded_hwloc(getpid(), -1), slurms = loaded_hwloc(pid, own);
	unsigned built = HWLOC_API_VERSION >> 16, runs = hwloc_get_api_version() >> 16;

	if (built != runs)
		doctor_add(d, DOCTOR_ERROR, "install packages of Topiary that were built for this host's hwloc",
			   "built with hwloc %u, runs with %u", built, runs);
	else if (own >= 0 && slurms >= 0)
		doctor_add(d, DOCTOR_ERROR, "build Topiary with the hwloc that Slurm is built with",
			   "slurmd (pid %d) has libhwloc.so.%d loaded, Topiary has libhwloc.so.%d: steps run without "
			   "their topology", pid, slurms, own);
	else
		doctor_add(d, DOCTOR_OK, NULL, "hwloc %u", runs);
}

/* The file of Topiary's line, which may be relative to PluginDir; of several the first. False without a line. */
static bool read_plugstack(struct doctor *d, const char *stack, char word[static 16], struct err *e)
{
	struct slurm_conf c;
	unsigned first = 0;

	if (slurm_conf_read(&c, stack, CONF_PLUGSTACK, e)) {
		slurm_conf_free(&c);
		return false;
	}
	err_set(e, "%s: no line with " SPANK, stack);
	for (size_t i = 0; i < c.nkeys; i++) {
		const char *value = c.keys[i].value, *more = strstr(value, "config=");
		int len = strcspn(value, " \t");

		if (!memmem(value, len, SPANK, strlen(SPANK)))
			continue;
		if (first++) {
			doctor_add(d, DOCTOR_ERROR, "keep one of the lines: each step loads the plugin twice meanwhile",
				   "%s:%u: another line with " SPANK, c.files[c.keys[i].file].path, c.keys[i].line);
			continue;
		}
		snprintf(word, 16, "%s", c.keys[i].name);
		if (*value == '/' || !find(d, SPANK, true, d->spank))
			snprintf(d->spank, sizeof(d->spank), "%.*s", len, value);
		if (more)
			snprintf(d->spank_config, sizeof(d->spank_config), "%.*s", (int) strcspn(more + 7, " \t"),
				 more + 7);
	}
	slurm_conf_free(&c);
	return first;
}

static void check_line(struct doctor *d, const char *stack, const char *word)
{
	const char *config = d->spank_config;

	if (access(d->spank, R_OK)) {
		doctor_add(d, DOCTOR_ERROR, "install topiary-slurm on this host, or correct the path in plugstack.conf",
			   "%s names %s: %s", stack, d->spank, strerror(errno));
		*d->spank = '\0';
	} else if (strcmp(word, "optional")) {
		doctor_add(d, DOCTOR_WARNING, "write `optional`: with `required` a failure of the plugin fails jobs",
			   "%s: %s %s", stack, word, d->spank);
	} else if (*config && access(config, R_OK)) {
		doctor_add(d, DOCTOR_WARNING,
			   "correct config= in plugstack.conf, or install topiary.conf there; the "
			   "defaults apply meanwhile",
			   "%s names config=%s: %s", stack, config, strerror(errno));
	} else {
		doctor_add(d, DOCTOR_OK, NULL, "%s: %s", stack, d->spank);
	}
}

void doctor_check_plugstack(struct doctor *d)
{
	const char *set = doctor_slurm(d, "plugstackconfig");
	char stack[PATH_MAX], word[16] = "";
	struct err e;

	doctor_beside(d, "plugstack.conf", stack);
	if (*set)
		snprintf(stack, sizeof(stack), "%s", set);
	if (read_plugstack(d, stack, word, &e))
		check_line(d, stack, word);
	else
		doctor_add(d, DOCTOR_WARNING,
			   "add `optional .../spank_topiary.so` to plugstack.conf: without it there "
			   "are no options --topo-... "
			   "and no topology of steps",
			   "%s", e.text);
}

/* Where the SPANK plugin looks for them (spank_plugin/step/capture.c). */
void doctor_check_recorders(struct doctor *d)
{
	char pattern[PATH_MAX + 32];
	glob_t files = { 0 };

	if (!*d->spank)
		return;
	snprintf(pattern, sizeof(pattern), "%s", d->spank);
	for (int i = 0; i < 2; i++)
		*(strrchr(pattern, '/') ?: pattern) = '\0';
	strcat(pattern, "/libtopiary-capture*.so");
	if (glob(pattern, 0, NULL, &files))
		doctor_add(d, DOCTOR_NOTE,
			   "reinstall topiary-slurm; only programs of Open MPI 4 with monitoring can "
			   "be recorded without them",
			   "no recorder: %s", pattern);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%zu of --topo-capture: %s", files.gl_pathc, pattern);
	globfree(&files);
}
