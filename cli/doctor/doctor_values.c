/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings_here.h"
#include "base/user.h"
#include "bind/request.h"
#include "doctor.h"
#include "monitor/ask.h"
#include "score/request.h"
#include "shape/hostlist.h"

#define SELECT_OFF "correct this line, then restart slurmctld: jobs are placed as without Topiary"
#define DEFAULT_OFF "correct this line: it is ignored meanwhile"
#define REGISTRY_OFF "correct this line: topiaryd does not start"

/* Who reads topiary.conf, from which file, and which keys. */
struct reader {
	const char *key, *name, *remedy;
	const char *keys; /* separated by spaces, or NULL: all */
	/* How the path was chosen, NULL where this host has no such reader. */
	const char *(*path)(const struct doctor *d, char path[static PATH_MAX]);
};

static const char *beside_slurm_conf(const struct doctor *d, char path[static PATH_MAX])
{
	doctor_beside(d, "topiary.conf", path);
	return "beside slurm.conf";
}

static const char *path_of_commands(const struct doctor *d, char path[static PATH_MAX])
{
	char space[PATH_MAX];

	snprintf(path, PATH_MAX, "%s", d->cmd->config ? d->cmd->config : settings_path(space, sizeof(space)));
	return d->cmd->config ? "--config" : getenv("TOPIARY_CONF") ? "TOPIARY_CONF" : "beside slurm.conf";
}

/* select_plugin/steer.c */
static const char *path_of_select(const struct doctor *d, char path[static PATH_MAX])
{
	return doctor_is_controller(d) ? beside_slurm_conf(d, path) : NULL;
}

/* spank_plugin/step/step.c */
static const char *path_of_spank(const struct doctor *d, char path[static PATH_MAX])
{
	if (!*d->spank)
		return NULL;
	if (!*d->spank_config)
		return beside_slurm_conf(d, path);
	snprintf(path, PATH_MAX, "%s", d->spank_config);
	return "config= in plugstack.conf";
}

/* The commands come first: the others are compared with them. */
static const struct reader readers[] = {
	/* Its errors are reported where the command line is read. */
	{ "commands", "the commands and daemons", NULL, NULL, path_of_commands },
	{ "select", "the select plugin",
	  SELECT_OFF,
	  "SnapshotFile SnapshotPoll TopoFit TopoLevel TopoMem TopoGpuCores TopoVerdicts WithoutSnapshot",
	  path_of_select },
	{ "spank", "the SPANK plugin", "correct this line: steps have no topology meanwhile",
	  "RunDir TopologyFile TopoTasks TopoPlace TopoMembind TopoMems TopoOmp TopoNic TopoHwloc TopoMonitor "
	  "MonitorSummaries TopiaryCommand MapTimeout NicPlanes",
	  path_of_spank },
};

static bool reads(const struct reader *r, const char *key)
{
	const char *at = r->keys ? strstr(r->keys, key) : key;
	size_t n = strlen(key);

	return at && (!r->keys || ((at == r->keys || at[-1] == ' ') && (!at[n] || at[n] == ' ')));
}

/* --- values that are checked where they are used, by the same functions --- */

static int check_request(const char *key, const char *value, struct err *e)
{
	struct request r = {0};

	return request_set(&r, key, value, e);
}

static int check_bind(const char *key, const char *value, struct err *e)
{
	struct bind_request r = {0};

	return bind_request_set(&r, key, value, e);
}

static int check_monitor(const char *key, const char *value, struct err *e)
{
	struct monitor_request r;

	return monitor_request_parse(key, value, &r, e);
}

static int ignore_node(const char *name, void *user)
{
	(void) name, (void) user;
	return 0;
}

static int check_nodes(const char *key, const char *value, struct err *e)
{
	return *value && hostlist_expand(value, ignore_node, NULL, e) ? err_within(e, "%s", key) : 0;
}

static const struct {
	const char *key;
	int (*check)(const char *key, const char *value, struct err *e);
	const char *remedy;
} checks[] = {
	{ "TopoFit", check_request, SELECT_OFF },
	{ "TopoLevel", check_request, SELECT_OFF },
	{ "TopoMem", check_request, SELECT_OFF },
	{ "TopoTasks", check_bind, DEFAULT_OFF },
	{ "TopoPlace", check_bind, DEFAULT_OFF },
	{ "TopoMembind", check_bind, DEFAULT_OFF },
	{ "TopoMems", check_bind, DEFAULT_OFF },
	{ "TopoOmp", check_bind, DEFAULT_OFF },
	{ "TopoNic", check_bind, DEFAULT_OFF },
	{ "TopoHwloc", check_bind, DEFAULT_OFF },
	{ "TopoMonitor", check_monitor, DEFAULT_OFF },
	{ "KnownNodes", check_nodes, REGISTRY_OFF },
};

static void check_value(struct doctor *d, const char *path, unsigned line, const char *key, const char *value)
{
	struct err e;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].key, key) && checks[i].check(key, value, &e))
			doctor_add(d, DOCTOR_ERROR, checks[i].remedy, "%s:%u: %s", path, line, e.text);
}

static void report_here(void *user, const char *finding)
{
	doctor_add(user, DOCTOR_WARNING, "correct it in topiary.conf, then restart topiaryd", "%s", finding);
}

/* Only where topiaryd is installed: other hosts need not have its users and files. */
static void check_here(struct doctor *d)
{
	const struct settings *s = &d->cmd->settings;
	uid_t uid;

	if (access(s->schema_dir, F_OK) == 0 && user_uid(s->registry_user, &uid, NULL) == 0)
		settings_check_here(s, uid, report_here, d);
}

/* --- the files --- */

struct values {
	struct doctor *doctor;
	const struct reader *reader;
	const char *path, *chosen; /* chosen: how */
	bool first; /* no reader before this one has this file */
	json_t *all; /* key: its value, where it is from, and whether that is the file */
};

static void keep(void *user, const char *key, const char *value, struct settings_origin at)
{
	struct values *v = user;
	char origin[PATH_MAX + 16] = "default";

	if (!reads(v->reader, key))
		return;
	if (at.line)
		snprintf(origin, sizeof(origin), "%s:%u", v->path, at.line);
	if (strstr(value, "password"))
		value = "(not shown: it has a password)";
	if (v->first && at.line)
		check_value(v->doctor, v->path, at.line, key, value);
	if (v->first && at.before)
		doctor_add(v->doctor, DOCTOR_WARNING, "remove one of the two lines",
			   "%s:%u: %s=%s replaces the value of line %u", v->path, at.line, key, value, at.before);
	json_object_set_new(v->all, key, json_pack("{s:s, s:s, s:b}", "value", value, "from", origin, "set",
						   at.line > 0));
}

static void report(struct doctor *d, const struct values *v)
{
	struct buf defaults = { 0 };
	const char *key;
	json_t *one;

	json_object_foreach(v->all, key, one)
	{
		if (json_is_true(json_object_get(one, "set")))
			doctor_add(d, DOCTOR_OK, NULL, "%s=%s (%s)", key, cmd_text(one, "value"),
				   cmd_text(one, "from"));
		else
			buf_printf(&defaults, " %s=%s", key, cmd_text(one, "value"));
	}
	doctor_add(d, DOCTOR_OK, NULL, "%s (%s)%s; by default:%s", v->path, v->chosen,
		   access(v->path, F_OK) ? " does not exist" : "", defaults.data ? defaults.data : " none");
	buf_free(&defaults);
}

/* A plugin and the commands are to agree on what both use, whichever files they read. */
static void compare(struct doctor *d, const struct values *v, const json_t *commands)
{
	const char *key;
	json_t *one;

	json_object_foreach(v->all, key, one)
	{
		const json_t *other = json_object_get(commands, key);

		if (other && strcmp(cmd_text(one, "value"), cmd_text(other, "value")))
			doctor_add(d, DOCTOR_WARNING,
				   "let all read one file: topiary.conf beside slurm.conf, config= in plugstack.conf, "
				   "TOPIARY_CONF",
				   "%s=%s (%s) for %s, %s=%s (%s) for %s", key, cmd_text(one, "value"),
				   cmd_text(one, "from"), v->reader->name, key, cmd_text(other, "value"),
				   cmd_text(other, "from"), readers[0].name);
	}
}

void doctor_check_values(struct doctor *d)
{
	char first[PATH_MAX] = "", path[PATH_MAX];
	json_t *commands = json_object();

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		const char *chosen = readers[i].path(d, path);
		struct values v = { d, &readers[i], path, chosen, !i || strcmp(path, first),
				    i ? json_object() : json_incref(commands) };
		struct err e;

		d->key = readers[i].key;
		if (chosen && settings_each(path, keep, &v, &e) == 0) {
			report(d, &v);
			compare(d, &v, commands);
			if (i == 0)
				check_here(d);
		} else if (chosen && i && v.first) {
			doctor_add(d, DOCTOR_ERROR, readers[i].remedy, "%s", e.text);
		}
		if (i == 0)
			memcpy(first, path, sizeof(first));
		json_decref(v.all);
	}
	json_decref(commands);
}
