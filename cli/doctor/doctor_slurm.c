/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <elf.h>
#include <glob.h>
#include <hwloc.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/file.h"
#include "child.h"
#include "doctor.h"
#include "replay/scontrol.h"
#include "slurm_conf.h"

/* The checks of slurm.conf, plugstack.conf and mpi.conf, of the plugins in PluginDir, and of Slurm's daemons. */
#define SELECT "select_cons_tres.so"
#define SUBMIT "job_submit_topiary.so"
#define SPANK "spank_topiary.so"
#define MAX_BYTES (64u << 20)

#define each_dir(dir, list) \
	(const char *dir = (list); *dir; dir += strcspn(dir, ":"), dir += *dir == ':')
#define RELEASE "%u.%02u.%u"
#define RELEASE_PARTS(n) (n) >> 16 & 255, (n) >> 8 & 255, (n) & 255

/* --- slurm.conf, and what slurmctld runs with --- */

/* Controllers have a key each, or in what slurmctld reports a number: SlurmctldHost[1]. The others replace a former. */
static void key_set(json_t *keys, const char *key, const char *value)
{
	const char *before = json_string_value(json_object_get(keys, "slurmctldhost"));
	char low[64], list[1024];
	size_t n = 0;

	for (; key[n] && key[n] != '[' && n < sizeof(low) - 1; n++)
		low[n] = tolower((unsigned char) key[n]);
	low[n] = '\0';
	if (cmd_has_word("slurmctldhost controlmachine backupcontroller", ' ', low)) {
		snprintf(list, sizeof(list), "%s%s%s", before ? before : "", before ? "," : "", value);
		json_object_set_new(keys, "slurmctldhost", json_string(list));
		return;
	}
	json_object_set_new(keys, low, json_string(strcmp(value, "(null)") ? value : ""));
}

static void repeated_report(void *d, const char *finding)
{
	doctor_error(d, "make one line of both", "%s", finding);
}

void doctor_slurm_conf(struct doctor *d)
{
	static const char *const once[] = { "PluginDir", "JobSubmitPlugins", "SelectType", "SelectTypeParameters",
					    "TaskPlugin", "PlugStackConfig" };
	char program[PATH_MAX];
	struct slurm_conf c;
	struct err e;

	d->slurm_conf = slurm_conf_path();
	d->in_file = json_object();
	if (slurm_conf_read(&c, d->slurm_conf, CONF_SLURM, &e) == 0) {
		for (size_t i = 0; i < c.nkeys; i++)
			key_set(d->in_file, c.keys[i].name, c.keys[i].value);
		for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
			slurm_conf_repeated(&c, once[i], repeated_report, d);
		doctor_ok(d, "%s%s", d->slurm_conf,
			  strcmp(d->slurm_conf, SLURM_CONF_CONFIGLESS) ? "" : ", from the controller");
	} else if (!getenv("SLURM_CONF") && access(d->slurm_conf, F_OK) && !child_program("scontrol", program)) {
		d->without_slurm = true;
		doctor_ok(d, "no %s and no scontrol: a host without Slurm", d->slurm_conf);
	} else {
		doctor_error(d, "install this cluster's slurm.conf on this host, readable by everybody, or set "
			     "SLURM_CONF", "%s", e.text);
	}
	slurm_conf_free(&c);
}

static void node_word(void *user, const char *key, char *value, const char *, bool begins)
{
	json_t **node = user;

	if (begins) {
		json_object_set_new(node[0], value, json_object());
		node[1] = json_object_get(node[0], value);
	}
	key_set(node[1], key, value);
}

/* What slurmctld runs with fills what the file lacks, after what differs is reported. */
void doctor_controller(struct doctor *d)
{
	static const char *const argv[] = { "scontrol", "show", "config", NULL };
	static const char *const keys[] = { "plugindir", "selecttype", "selecttypeparameters", "jobsubmitplugins",
					    "taskplugin" };
	static const char *const nodes[] = { "scontrol", "-a", "-o", "show", "nodes", NULL };
	static const char as_of[] = "Configuration data as of ";
	struct buf out = {0};
	struct err e;
	json_t *running;

	if (doctor_run(argv, &out, &e)) {
		doctor_error(d, "start slurmctld, or correct SlurmctldHost and the firewall; correct first what is "
			     "reported about slurm.conf and PluginDir; after an authentication error compare the "
			     "clocks and munge's keys", "scontrol show config: %s", e.text);
		return buf_free(&out);
	}
	running = json_object();
	for (char *rest = out.data, *line, *value; (line = strsep(&rest, "\n"));)
		if (!strncmp(line, as_of, strlen(as_of)))
			doctor_compare_clock(d, "the controller", doctor_seconds(line + strlen(as_of), false));
		else if ((value = strstr(line, " = "))) {
			*value = '\0';
			for (size_t n = strlen(line); n && isspace((unsigned char) line[n - 1]); n--)
				line[n - 1] = '\0';
			key_set(running, line, value + 3);
		}
	buf_free(&out);
	doctor_ok(d, "slurmctld of Slurm %s answers",
		  json_string_value(json_object_get(running, "slurm_version")) ?: "?");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *file = json_string_value(json_object_get(d->in_file, keys[i]));
		const char *now = json_string_value(json_object_get(running, keys[i]));

		if (file && now && strcasecmp(file, now))
			doctor_warn(d, "make slurm.conf the same on all hosts, then restart slurmctld and run scontrol "
				    "reconfigure", "slurmctld runs with %s=%s, %s has %s", keys[i], now, d->slurm_conf,
				    file);
	}
	/* A path of the controller's host, which is there by default. */
	json_object_del(running, "plugstackconfig");
	json_object_update_missing(d->in_file, running);
	json_decref(running);
	if (doctor_run(nodes, &out, &e) == 0 && out.len) {
		d->nodes = json_object();
		scontrol_words(out.data, "NodeName", node_word, (json_t *[]){ d->nodes, NULL });
	}
	buf_free(&out);
}

void doctor_select(struct doctor *d)
{
	const char *type = doctor_slurm(d, "selecttype"), *how = doctor_slurm(d, "selecttypeparameters");

	if (*type && strcasecmp(type, "select/cons_tres"))
		doctor_error(d, "set SelectType=select/cons_tres in slurm.conf and restart slurmctld: only that plugin "
			     "is extended", "%s: SelectType=%s", d->slurm_conf, type);
	else if (!strcasestr(how, "CR_Core"))
		doctor_warn(d, "set SelectTypeParameters=CR_Core_Memory: Topiary places jobs only where cores are "
			    "allocated", "%s: SelectTypeParameters=%s", d->slurm_conf, *how ? how : "(not set)");
	else
		doctor_ok(d, "%s, %s", *type ? type : "select/cons_tres", how);
}

void doctor_task(struct doctor *d)
{
	const char *plugin = doctor_slurm(d, "taskplugin"), *param = doctor_slurm(d, "taskpluginparam");

	if (!strcasestr(plugin, "affinity") && !strcasestr(plugin, "cgroup"))
		doctor_warn(d, "set TaskPlugin=task/cgroup,task/affinity: otherwise tasks may run outside the cores of "
			    "their job", "%s: TaskPlugin=%s", d->slurm_conf, *plugin ? plugin : "(not set)");
	else if (strcasestr(param, "autobind"))
		doctor_warn(d, "remove autobind from TaskPluginParam, and use TopoPlace for a default: tasks that "
			    "Slurm has bound are not placed", "%s: TaskPluginParam=%s", d->slurm_conf, param);
	else
		doctor_ok(d, "TaskPlugin=%s", plugin);
}

/* mpi.conf(5) is beside slurm.conf, and most sites have none. */
void doctor_mpi(struct doctor *d)
{
	static const char *const yes[] = { "true", "yes", "up", "1" };
	const struct conf_key *share;
	struct slurm_conf c = {0};
	char path[PATH_MAX];
	struct err e;

	if (access(doctor_beside(d, "mpi.conf", path), F_OK) == 0 && slurm_conf_read(&c, path, CONF_SLURM, &e))
		doctor_warn(d, "make it readable: srun and slurmstepd read it", "%s", e.text);
	share = slurm_conf_find(&c, "PMIxShareServerTopology");
	for (size_t i = 0; share && i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!strcasecmp(share->value, yes[i]))
			doctor_warn(d, "remove PMIxShareServerTopology: PMIx then gives ranks the topology of the "
				    "node, not of their step", "%s: PMIxShareServerTopology=%s", path, share->value);
	slurm_conf_free(&c);
}

/* --- plugins --- */

/* The first file of that name in PluginDir, ours or not ours. */
static bool plugin_find(const struct doctor *d, const char *name, bool ours, char path[static PATH_MAX])
{
	for each_dir (dir, doctor_slurm(d, "plugindir")) {
		struct buf b = {0};
		struct err e;
		bool found;

		snprintf(path, PATH_MAX, "%.*s/%s", (int) strcspn(dir, ":"), dir, name);
		found = access(path, F_OK) == 0 &&
			(file_read(path, MAX_BYTES, &b, &e) == 0 && memmem(b.data, b.len, "topiary", 7)) == ours;
		buf_free(&b);
		if (found)
			return true;
	}
	return false;
}

void doctor_plugindir(struct doctor *d)
{
	const char *dirs = doctor_slurm(d, "plugindir");
	char path[PATH_MAX], ours[PATH_MAX], theirs[PATH_MAX];
	bool missing = false;
	struct stat st;

	if (!*dirs)
		return doctor_warn(d, "set PluginDir as topiary-select(8) shows; until then Slurm's own plugin places "
				   "all jobs", "%s: no PluginDir", d->slurm_conf);
	for each_dir (dir, dirs) {
		snprintf(path, sizeof(path), "%.*s", (int) strcspn(dir, ":"), dir);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			continue;
		missing = true;
		doctor_error(d, "install topiary-common on this host, or create the directory: every Slurm program "
			     "fails without it", "%s: PluginDir names %s: no such directory", d->slurm_conf, path);
	}
	if (missing)
		return;
	if (!plugin_find(d, SELECT, true, ours))
		return doctor_warn(d, "put the directory with Topiary's " SELECT " first in PluginDir and install "
				   "topiary-slurm; until then Slurm's own plugin places all jobs",
				   "%s: PluginDir=%s has no plugin of Topiary", d->slurm_conf, dirs);
	if (!plugin_find(d, SELECT, false, theirs))
		return doctor_error(d, "add the directory of Slurm's own plugins to PluginDir, after Topiary's",
				    "%s: PluginDir=%s has no " SELECT " of Slurm", d->slurm_conf, dirs);
	if (memmem(dirs, strlen(dirs), ours, strlen(ours) - strlen("/" SELECT)) >
	    memmem(dirs, strlen(dirs), theirs, strlen(theirs) - strlen("/" SELECT)))
		return doctor_error(d, "put Topiary's directory before Slurm's in PluginDir and restart slurmctld",
				    "%s: PluginDir=%s: Slurm's own " SELECT " comes first", d->slurm_conf, dirs);
	doctor_ok(d, "%s", dirs);
}

static const void *elf_at(const struct buf *b, uint64_t offset, uint64_t bytes)
{
	return offset <= b->len && bytes <= b->len - offset ? b->data + offset : NULL;
}

/* plugin_version (slurm/spank.h, src/common/plugin.h) as the file has it, 0 where it has none: nothing of it is run. */
static uint32_t plugin_version(const struct buf *b)
{
	const Elf64_Ehdr *h = elf_at(b, 0, sizeof(*h));
	const Elf64_Sym *found = NULL;

	if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (unsigned i = 0; i < h->e_shnum && !found; i++) {
		const Elf64_Shdr *s = elf_at(b, h->e_shoff + i * sizeof(*s), sizeof(*s)), *names;

		if (!s || s->sh_type != SHT_DYNSYM)
			continue;
		names = elf_at(b, h->e_shoff + s->sh_link * sizeof(*s), sizeof(*s));
		for (uint64_t k = 0; names && !found && k < s->sh_size / sizeof(Elf64_Sym); k++) {
			const Elf64_Sym *sym = elf_at(b, s->sh_offset + k * sizeof(*sym), sizeof(*sym));
			const char *name = sym ? elf_at(b, names->sh_offset + sym->st_name, sizeof("plugin_version")) :
						 NULL;

			if (name && !strcmp(name, "plugin_version") && sym->st_shndx != SHN_UNDEF)
				found = sym;
		}
	}
	/* The file's bytes of an address of its memory image. */
	for (unsigned i = 0; found && i < h->e_phnum; i++) {
		const Elf64_Phdr *p = elf_at(b, h->e_phoff + i * sizeof(*p), sizeof(*p));
		const uint32_t *version;

		if (p && p->p_type == PT_LOAD && found->st_value - p->p_vaddr < p->p_filesz &&
		    (version = elf_at(b, p->p_offset + (found->st_value - p->p_vaddr), sizeof(*version))))
			return *version;
	}
	return 0;
}

/* "22.05.8", with words before or after it, as SLURM_VERSION_NUMBER (slurm.h); 0 when there is none. */
static uint32_t release_number(const char *text)
{
	unsigned major, minor, micro;

	text += strcspn(text, "0123456789");
	return sscanf(text, "%u.%u.%u", &major, &minor, &micro) == 3 ? major << 16 | minor << 8 | micro : 0;
}

/*
 * Plugins name the release of Slurm in three bytes; SPANK compares only the first two (spank.c). Packages of two
 * releases of Topiary may be on one host: lib/base/settings.c has the release in each program and plugin.
 */
static bool plugin_is_good(struct doctor *d, const char *path, uint32_t slurm)
{
	const char *name = strrchr(path, '/') + 1, *release = NULL;
	int shift = strcmp(name, SPANK) ? 0 : 8;
	struct buf b = {0};
	uint32_t version;
	struct err e;

	if (file_read(path, MAX_BYTES, &b, &e)) {
		doctor_error(d, "make the plugin readable, or reinstall topiary-slurm", "%s", e.text);
		return false;
	}
	version = plugin_version(&b);
	if (!strcmp(name, SPANK) || !strcmp(name, SELECT))
		release = memmem(b.data, b.len, SETTINGS_RELEASE, strlen(SETTINGS_RELEASE));
	if (release && strcmp(release += strlen(SETTINGS_RELEASE), TOPIARY_VERSION))
		doctor_warn(d, "install topiary and topiary-slurm of one release", "%s is of Topiary %.20s, this "
			    "command of " TOPIARY_VERSION, path, release);
	buf_free(&b);
	if (!version && strstr(path, "topiary"))
		doctor_error(d, "reinstall topiary-slurm", "%s: not a plugin of Slurm", path);
	else if (version && version >> shift != slurm >> shift)
		doctor_error(d, "install topiary-slurm built for exactly this release; Slurm skips this plugin, or "
			     "fails at its start", "%s was built for Slurm " RELEASE ", but " RELEASE " is installed",
			     path, RELEASE_PARTS(version), RELEASE_PARTS(slurm));
	else
		return true;
	return false;
}

void doctor_plugins(struct doctor *d)
{
	static const char *const argv[] = { "scontrol", "--version", NULL };
	const char *running = doctor_slurm(d, "slurm_version");
	uint32_t slurm, controller = release_number(running);
	struct buf out = {0};
	size_t n = 0;
	bool good = true;
	struct err e;

	slurm = doctor_run(argv, &out, &e) == 0 && out.len ? release_number(out.data) : 0;
	buf_free(&out);
	if (!slurm)
		return doctor_note(d, "install Slurm's commands here to have the plugins' releases checked",
				   "scontrol --version names no release");
	if (controller && controller != slurm)
		doctor_warn(d, "restart slurmctld after an upgrade, or install the same release on this host",
			    "slurmctld runs %s, this host has " RELEASE, running, RELEASE_PARTS(slurm));
	for each_dir (dir, doctor_slurm(d, "plugindir")) {
		char pattern[PATH_MAX];
		glob_t files = {0};

		snprintf(pattern, sizeof(pattern), "%.*s/*.so", (int) strcspn(dir, ":"), dir);
		glob(pattern, 0, NULL, &files);
		for (size_t i = 0; i < files.gl_pathc; i++, n++)
			good &= plugin_is_good(d, files.gl_pathv[i], slurm);
		globfree(&files);
	}
	if (good && n)
		doctor_ok(d, "%zu plugins of Slurm " RELEASE, n, RELEASE_PARTS(slurm));
}

void doctor_submit(struct doctor *d)
{
	const char *plugins = doctor_slurm(d, "jobsubmitplugins");
	char path[PATH_MAX];

	if (!strstr(plugins, "topiary"))
		doctor_ok(d, "not enabled (optional)");
	else if (plugin_find(d, SUBMIT, true, path))
		doctor_ok(d, "%s", path);
	else
		doctor_error(d, "install topiary-slurm, or remove topiary from JobSubmitPlugins: slurmctld would not "
			     "start again", "%s: JobSubmitPlugins=%s, but no directory of PluginDir has " SUBMIT,
			     d->slurm_conf, plugins);
}

/* Topiary's line, of several the first: its file, which may be relative to PluginDir, and its config=. */
static bool read_plugstack(struct doctor *d, const struct slurm_conf *c, bool *optional)
{
	bool found = false;

	for (size_t i = 0; i < c->nkeys; i++) {
		const char *value = c->keys[i].value, *config = strstr(value, "config=");
		int len = strcspn(value, " \t");

		if (!memmem(value, len, SPANK, strlen(SPANK)))
			continue;
		if (found) {
			doctor_error(d, "keep one of the lines: each step loads the plugin twice meanwhile",
				     "%s:%u: another line with " SPANK, c->files[c->keys[i].file].path,
				     c->keys[i].line);
			continue;
		}
		found = true;
		*optional = !strcmp(c->keys[i].name, "optional");
		if (*value == '/' || !plugin_find(d, SPANK, true, d->spank))
			snprintf(d->spank, sizeof(d->spank), "%.*s", len, value);
		if (config)
			snprintf(d->spank_config, sizeof(d->spank_config), "%.*s", (int) strcspn(config + strlen(
				 "config=" ), " \t" ), config + strlen("config=" ));
	}
	return found;
}

void doctor_plugstack(struct doctor *d)
{
	const char *set = doctor_slurm(d, "plugstackconfig");
	char stack[PATH_MAX];
	struct slurm_conf c;
	bool optional = false, found;
	struct err e;

	doctor_beside(d, "plugstack.conf", stack);
	if (*set)
		snprintf(stack, sizeof(stack), "%s", set);
	found = slurm_conf_read(&c, stack, CONF_PLUGSTACK, &e) == 0;
	if (found && !(found = read_plugstack(d, &c, &optional)))
		err_set(&e, "%s: no line with " SPANK, stack);
	slurm_conf_free(&c);
	if (!found) {
		doctor_warn(d, "add `optional .../spank_topiary.so` to plugstack.conf: without it there are no options "
			    "--topo-... and no topology of steps", "%s", e.text);
	} else if (access(d->spank, R_OK)) {
		doctor_error(d, "install topiary-slurm on this host, or correct the path in plugstack.conf",
			     "%s names %s: %s", stack, d->spank, strerror(errno));
		*d->spank = '\0';
	} else if (!optional) {
		doctor_warn(d, "write `optional`: with `required` a failure of the plugin fails jobs",
			    "%s: required %s", stack, d->spank);
	} else if (*d->spank_config && access(d->spank_config, R_OK)) {
		doctor_warn(d, "correct config= in plugstack.conf, or install topiary.conf there; the defaults apply "
			    "meanwhile", "%s names config=%s: %s", stack, d->spank_config, strerror(errno));
	} else {
		doctor_ok(d, "%s: %s", stack, d->spank);
	}
}

/* Where the SPANK plugin looks for them (spank_plugin/step/capture.c). */
void doctor_preloaded(struct doctor *d)
{
	static const struct { const char *file, *option, *without; } libraries[] = {
		{ "libtopiary-capture*.so", "--topo-capture and --topo-matrix=auto",
		  "reinstall topiary-slurm: without it only programs of Open MPI 4 with monitoring are recorded" },
		{ "libtopiary-reorder*.so", "--topo-reorder",
		  "reinstall topiary-slurm: without it the option does nothing on this node, and MPI programs "
		  "that also run on other nodes can hang" },
	};

	for (size_t i = 0; *d->spank && i < sizeof(libraries) / sizeof(*libraries); i++) {
		char pattern[PATH_MAX + 32];
		glob_t files = {0};

		snprintf(pattern, sizeof(pattern), "%s", d->spank);
		for (int up = 0; up < 2; up++)
			*(strrchr(pattern, '/') ?: pattern) = '\0';
		snprintf(pattern + strlen(pattern), sizeof("/") + strlen(libraries[i].file), "/%s", libraries[i].file);
		if (glob(pattern, 0, NULL, &files))
			doctor_warn(d, libraries[i].without, "%s has no library: %s", libraries[i].option, pattern);
		else
			doctor_ok(d, "%zu of %s: %s", files.gl_pathc, libraries[i].option, pattern);
		globfree(&files);
	}
}

/* --- daemons --- */

/* The pid in a daemon's file, where %h and %n are this host, if that is one; 0 where none runs. */
static int daemon_pid(const struct doctor *d, const char *name, const char *key, const char *usual)
{
	const char *file = doctor_slurm(d, key);
	struct buf path = {0}, text = {0};
	char comm[64];
	int pid = 0;

	for (const char *p = *file ? file : usual; *p; p++)
		if (*p == '%' && (p[1] == 'h' || p[1] == 'n'))
			buf_puts(&path, *++p == 'h' ? d->host : d->cmd->settings.node_name);
		else
			buf_add(&path, p, 1);
	if (!path.failed && file_read(path.data, MAX_BYTES, &text, NULL) == 0 && text.len)
		pid = atoi(text.data);
	buf_free(&text);
	snprintf(comm, sizeof(comm), "/proc/%d/comm", pid);
	if (file_read(comm, MAX_BYTES, &text, NULL) || strncmp(text.data ?: "", name, strlen(name)))
		pid = 0;
	buf_free(&path);
	buf_free(&text);
	return pid;
}

static int read_maps(int pid, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return file_read(path, MAX_BYTES, out, NULL);
}

/* What a slurmctld of this host has mapped, against the file that it would load now. */
void doctor_loaded(struct doctor *d)
{
	int pid = daemon_pid(d, "slurmctld", "slurmctldpidfile", "/var/run/slurmctld.pid");
	char ours[PATH_MAX], removed[PATH_MAX + sizeof(" (deleted)")];
	struct buf text = {0};

	if (!pid || !plugin_find(d, SELECT, true, ours))
		return;
	snprintf(removed, sizeof(removed), "%s (deleted)", ours);
	if (read_maps(pid, &text))
		doctor_ok(d, "not checked: only root can read what slurmctld (pid %d) has loaded", pid);
	else if (!memmem(text.data, text.len, ours, strlen(ours)))
		doctor_error(d, "restart slurmctld: a plugin is loaded at its start only", "slurmctld (pid %d) has not "
			     "loaded %s", pid, ours);
	else if (memmem(text.data, text.len, removed, strlen(removed)))
		doctor_warn(d, "restart slurmctld to load the file that is installed now",
			    "slurmctld (pid %d) runs with a removed file: %s", pid, removed);
	else
		doctor_ok(d, "slurmctld (pid %d) runs with %s", pid, ours);
	buf_free(&text);
}

#define HWLOC "/libhwloc.so."

/* The number in the name of a loaded hwloc (15 of hwloc 2) that is not other_than; -1: none, or not readable. */
static int loaded_hwloc(int pid, int other_than)
{
	const char *at = NULL;
	struct buf text = {0};
	int number = -1;

	if (pid && read_maps(pid, &text) == 0)
		at = text.data;
	while (at && (at = memmem(at, text.data + text.len - at, HWLOC, strlen(HWLOC))))
		if ((number = atoi(at += strlen(HWLOC))) != other_than)
			break;
	buf_free(&text);
	return number == other_than ? -1 : number;
}

void doctor_hwloc(struct doctor *d)
{
	int pid = daemon_pid(d, "slurmd", "slurmdpidfile", "/var/run/slurmd.pid");
	int own = loaded_hwloc(getpid(), -1), slurms = loaded_hwloc(pid, own);
	unsigned built = HWLOC_API_VERSION >> 16, runs = hwloc_get_api_version() >> 16;

	if (built != runs)
		doctor_error(d, "install packages of Topiary that were built for this host's hwloc",
			     "built with hwloc %u, runs with %u", built, runs);
	else if (own >= 0 && slurms >= 0)
		doctor_error(d, "build Topiary with the hwloc that Slurm is built with",
			     "slurmd (pid %d) has libhwloc.so.%d loaded, Topiary has libhwloc.so.%d: steps run without "
			     "their topology", pid, slurms, own);
	else
		doctor_ok(d, "hwloc %u", runs);
}
