/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "doctor.h"
#include "slurm_conf.h"

/* Controllers have a key each, or in what slurmctld reports a number: SlurmctldHost[1]. The others replace a former. */
static void set(json_t *keys, const char *key, const char *value)
{
	static const char *const hosts[] = { "slurmctldhost", "controlmachine", "backupcontroller" };
	char low[64], list[1024];
	const char *before;
	size_t n = 0;

	for (; key[n] && key[n] != '[' && n < sizeof(low) - 1; n++)
		low[n] = tolower((unsigned char) key[n]);
	low[n] = '\0';
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (!strcmp(low, hosts[i])) {
			before = json_string_value(json_object_get(keys, hosts[0]));
			snprintf(list, sizeof(list), "%s%s%s", before ? before : "", before ? "," : "", value);
			json_object_set_new(keys, hosts[0], json_string(list));
			return;
		}
	json_object_set_new(keys, low, json_string(strcmp(value, "(null)") ? value : ""));
}

static void trim(char *s)
{
	for (size_t n = strlen(s); n && isspace((unsigned char) s[n - 1]); n--)
		s[n - 1] = '\0';
}

const char *doctor_slurm(const struct doctor *d, const char *key)
{
	const char *s = json_string_value(json_object_get(d->in_file, key));

	return s ? s : "";
}

static bool is_program(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	for (const char *dir = path ? path : ""; *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		snprintf(file, sizeof(file), "%.*s/%s", (int) strcspn(dir, ":"), dir, name);
		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* Of these keys Slurm uses the last, and says so in slurmctld's log alone. */
static void report_repeated(struct doctor *d, const struct slurm_conf *c)
{
	static const char *const once[] = { "PluginDir", "JobSubmitPlugins", "SelectType", "SelectTypeParameters",
					    "TaskPlugin", "PlugStackConfig" };

	for (size_t i = 0; i < c->nkeys; i++)
		for (size_t k = 0; k < sizeof(once) / sizeof(once[0]); k++) {
			const struct conf_key *key = &c->keys[i], *last = slurm_conf_find(c, once[k]);

			if (!strcasecmp(key->name, once[k]) && key != last)
				doctor_add(d, DOCTOR_ERROR, "make one line of both",
					   "%s:%u: %s=%s has no effect: %s:%u sets it again to %s",
					   c->files[key->file].path, key->line, once[k], key->value,
					   c->files[last->file].path, last->line, last->value);
		}
}

void doctor_check_slurm_conf(struct doctor *d)
{
	struct slurm_conf c;
	struct err e;

	d->slurm_conf = slurm_conf_path();
	d->in_file = json_object();
	if (slurm_conf_read(&c, d->slurm_conf, CONF_SLURM, &e) == 0) {
		for (size_t i = 0; i < c.nkeys; i++)
			set(d->in_file, c.keys[i].name, c.keys[i].value);
		report_repeated(d, &c);
		doctor_add(d, DOCTOR_OK, NULL, "%s%s", d->slurm_conf,
			   strcmp(d->slurm_conf, SLURM_CONF_CONFIGLESS) ? "" : ", from the controller");
	} else if (!getenv("SLURM_CONF") && access(d->slurm_conf, F_OK) && !is_program("scontrol")) {
		d->without_slurm = true;
		doctor_add(d, DOCTOR_OK, NULL, "no %s and no scontrol: a host without Slurm", d->slurm_conf);
	} else {
		doctor_add(d, DOCTOR_ERROR,
			   "install this cluster's slurm.conf on this host, readable by everybody, or set SLURM_CONF",
			   "%s", e.text);
	}
	slurm_conf_free(&c);
}

static void read_words(json_t *nodes, char *line)
{
	json_t *node = json_object();
	char *word, *value;

	while ((word = strsep(&line, " ")))
		if ((value = strchr(word, '='))) {
			*value++ = '\0';
			set(node, word, value);
		}
	if (json_object_get(node, "nodename"))
		json_object_set(nodes, json_string_value(json_object_get(node, "nodename")), node);
	json_decref(node);
}

static void read_nodes(struct doctor *d)
{
	static const char *const argv[] = { "scontrol", "-a", "-o", "show", "nodes", NULL };
	struct buf out = { 0 };
	struct err e;
	char *rest, *line;

	if (doctor_run(argv, &out, &e) == 0 && out.len) {
		d->nodes = json_object();
		for (rest = out.data; (line = strsep(&rest, "\n"));)
			read_words(d->nodes, line);
	}
	buf_free(&out);
}

/* What slurmctld runs with fills what the file lacks, after what differs is reported. */
static void compare_running(struct doctor *d, json_t *running)
{
	static const char *const keys[] = { "plugindir", "selecttype", "selecttypeparameters", "jobsubmitplugins",
					    "taskplugin" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *file = json_string_value(json_object_get(d->in_file, keys[i]));
		const char *now = json_string_value(json_object_get(running, keys[i]));

		if (file && now && strcasecmp(file, now))
			doctor_add(d, DOCTOR_WARNING,
				   "make slurm.conf the same on all hosts, then restart slurmctld "
				   "and run scontrol reconfigure",
				   "slurmctld runs with %s=%s, %s has %s", keys[i], now, d->slurm_conf, file);
	}
	/* A path of the controller's host, which is there by default. */
	json_object_del(running, "plugstackconfig");
	json_object_update_missing(d->in_file, running);
}

void doctor_check_controller(struct doctor *d)
{
	static const char *const argv[] = { "scontrol", "show", "config", NULL };
	static const char now[] = "Configuration data as of ";
	struct buf out = { 0 };
	struct err e;
	char *rest, *line, *value;
	json_t *running;

	if (doctor_run(argv, &out, &e)) {
		doctor_add(d, DOCTOR_ERROR,
			   "start slurmctld, or correct SlurmctldHost and the firewall; correct first what is "
			   "reported about slurm.conf and PluginDir; after an authentication error compare the clocks "
			   "and munge's keys",
			   "scontrol show config: %s", e.text);
		return buf_free(&out);
	}
	running = json_object();
	for (rest = out.data; (line = strsep(&rest, "\n"));)
		if (!strncmp(line, now, strlen(now)))
			doctor_compare_clock(d, "the controller", doctor_seconds(line + strlen(now), false));
		else if ((value = strstr(line, " = "))) {
			*value = '\0';
			trim(line);
			set(running, line, value + 3);
		}
	buf_free(&out);
	doctor_add(d, DOCTOR_OK, NULL, "slurmctld of Slurm %s answers",
		   json_string_value(json_object_get(running, "slurm_version")) ?: "?");
	compare_running(d, running);
	json_decref(running);
	read_nodes(d);
}

void doctor_check_select(struct doctor *d)
{
	const char *type = doctor_slurm(d, "selecttype"), *how = doctor_slurm(d, "selecttypeparameters");

	if (*type && strcasecmp(type, "select/cons_tres"))
		doctor_add(d, DOCTOR_ERROR,
			   "set SelectType=select/cons_tres in slurm.conf and restart slurmctld: only "
			   "that plugin is extended",
			   "%s: SelectType=%s", d->slurm_conf, type);
	else if (!strcasestr(how, "CR_Core"))
		doctor_add(d, DOCTOR_WARNING,
			   "set SelectTypeParameters=CR_Core_Memory: Topiary places jobs only where "
			   "cores are allocated",
			   "%s: SelectTypeParameters=%s", d->slurm_conf, *how ? how : "(not set)");
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s, %s", *type ? type : "select/cons_tres", how);
}

void doctor_check_task(struct doctor *d)
{
	const char *plugin = doctor_slurm(d, "taskplugin"), *param = doctor_slurm(d, "taskpluginparam");

	if (!strcasestr(plugin, "affinity") && !strcasestr(plugin, "cgroup"))
		doctor_add(d, DOCTOR_WARNING,
			   "set TaskPlugin=task/cgroup,task/affinity: otherwise tasks may run "
			   "outside the cores of their job",
			   "%s: TaskPlugin=%s", d->slurm_conf, *plugin ? plugin : "(not set)");
	else if (strcasestr(param, "autobind"))
		doctor_add(d, DOCTOR_WARNING,
			   "remove autobind from TaskPluginParam, and use TopoPlace for a default: "
			   "tasks that Slurm has bound "
			   "are not placed",
			   "%s: TaskPluginParam=%s", d->slurm_conf, param);
	else
		doctor_add(d, DOCTOR_OK, NULL, "TaskPlugin=%s", plugin);
}

/* mpi.conf(5) is beside slurm.conf, and most sites have none. */
void doctor_check_mpi(struct doctor *d)
{
	static const char *const yes[] = { "true", "yes", "up", "1" };
	const char *share;
	struct slurm_conf c = {0};
	const struct conf_key *key;
	char path[PATH_MAX];
	bool shares = false;
	struct err e;

	if (access(doctor_beside(d, "mpi.conf", path), F_OK) == 0 && slurm_conf_read(&c, path, CONF_SLURM, &e))
		doctor_add(d, DOCTOR_WARNING, "make it readable: srun and slurmstepd read it", "%s", e.text);
	share = (key = slurm_conf_find(&c, "PMIxShareServerTopology")) ? key->value : NULL;
	for (size_t i = 0; share && i < sizeof(yes) / sizeof(yes[0]); i++)
		shares |= !strcasecmp(share, yes[i]);
	if (shares)
		doctor_add(d, DOCTOR_WARNING,
			   "remove PMIxShareServerTopology: PMIx then gives ranks the topology of the node, not of "
			   "their step",
			   "%s: PMIxShareServerTopology=%s", path, share);
	slurm_conf_free(&c);
}
