/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "doctor.h"

#define CONF_MAX (64u << 20)
#define DEPTH 4 /* of Include */

static void set(json_t *keys, const char *key, const char *value)
{
	char low[64];
	size_t n = 0;

	for (; key[n] && n < sizeof(low) - 1; n++)
		low[n] = tolower((unsigned char) key[n]);
	low[n] = '\0';
	json_object_set_new(keys, low, json_string(strcmp(value, "(null)") ? value : ""));
}

static void trim(char *s)
{
	for (size_t n = strlen(s); n && isspace((unsigned char) s[n - 1]); n--)
		s[n - 1] = '\0';
}

static int read_conf(json_t *keys, const char *path, int depth, struct err *e);

/* Nodes and partitions have lines of several keys, which are those of `scontrol show nodes`. */
static int read_line(json_t *keys, char *line, const char *path, int depth, struct err *e)
{
	char *value, other[PATH_MAX];

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t");
	trim(line);
	if (!strncasecmp(line, "Include", 7) && isspace((unsigned char) line[7])) {
		const char *name = line + 7 + strspn(line + 7, " \t"), *slash = strrchr(path, '/');

		snprintf(other, sizeof(other), "%.*s%s", *name == '/' || !slash ? 0 : (int) (slash - path) + 1, path,
			 name);
		return depth < DEPTH ? read_conf(keys, other, depth + 1, e) : 0;
	}
	if (!(value = strchr(line, '=')))
		return 0;
	*value++ = '\0';
	trim(line);
	if (strcasecmp(line, "NodeName") && strcasecmp(line, "PartitionName") && strcasecmp(line, "NodeSet"))
		set(keys, line, value + strspn(value, " \t"));
	return 0;
}

static int read_conf(json_t *keys, const char *path, int depth, struct err *e)
{
	struct buf text = { 0 };
	char *rest, *line;
	int rc = 0;

	if (file_read(path, CONF_MAX, &text, e))
		return -1;
	rest = text.data;
	while (rc == 0 && (line = strsep(&rest, "\n")))
		rc = read_line(keys, line, path, depth, e);
	buf_free(&text);
	return rc;
}

const char *doctor_slurm(const struct doctor *d, const char *key)
{
	const char *s = json_string_value(json_object_get(d->in_file, key));

	return s ? s : "";
}

void doctor_check_slurm_conf(struct doctor *d)
{
	static const char configless[] = "/run/slurm/conf/slurm.conf";
	const char *named = getenv("SLURM_CONF");
	struct err e = { "" }, second;

	d->slurm_conf = named ? named : "/etc/slurm/slurm.conf";
	d->in_file = json_object();
	if (read_conf(d->in_file, d->slurm_conf, 0, &e) == 0)
		return doctor_add(d, DOCTOR_OK, NULL, "%s", d->slurm_conf);
	if (!named && read_conf(d->in_file, configless, 0, &second) == 0) {
		d->slurm_conf = configless;
		return doctor_add(d, DOCTOR_OK, NULL, "%s, from the controller", configless);
	}
	doctor_add(d, DOCTOR_ERROR,
		   "install this cluster's slurm.conf on this host, readable by everybody, or set "
		   "SLURM_CONF",
		   "%s", e.text);
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
	json_t *keys = json_object();
	char path[PATH_MAX];
	bool shares = false;
	struct err e;

	if (access(doctor_beside(d, "mpi.conf", path), F_OK) == 0 && read_conf(keys, path, 0, &e))
		doctor_add(d, DOCTOR_WARNING, "make it readable: srun and slurmstepd read it", "%s", e.text);
	share = json_string_value(json_object_get(keys, "pmixshareservertopology"));
	for (size_t i = 0; share && i < sizeof(yes) / sizeof(yes[0]); i++)
		shares |= !strcasecmp(share, yes[i]);
	if (shares)
		doctor_add(d, DOCTOR_WARNING,
			   "remove PMIxShareServerTopology: PMIx then gives ranks the topology of the node, not of "
			   "their step",
			   "%s: PMIxShareServerTopology=%s", path, share);
	json_decref(keys);
}
