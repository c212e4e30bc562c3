/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "doctor.h"

#include <stdarg.h>

#include "base/settings_here.h"
#include "bind/request.h"
#include "child.h"
#include "monitor/ask.h"
#include "score/request.h"
#include "shape/hostlist.h"
#include "table.h"

/*
 * The frame of `topiary doctor`: the table of checks, what checks ask of the host, the report; and the checks of
 * topiary.conf. doctor_slurm.c has those of Slurm's files and plugins, doctor_site.c those of the registry, the
 * controller and the node. Nothing of what is checked is changed, and no probe takes longer than DOCTOR_SECONDS.
 */
#define MAX_BYTES (256u << 20)	/* of scontrol about all nodes */
#define MUNGE_TTL 300		/* seconds that a credential is valid for: MUNGE_DEFAULT_TTL of munged */

static const struct cmd_syntax syntax = {
	.operands = "",
	.help = "Check this host's part of the installation, and report what to do.",
};

static doctor_check check_settings, check_account, check_values;

/* In the order of the report: later checks use what earlier ones read. */
static const struct check {
	const char *group, *key;
	doctor_check *run;
	enum { ANYWHERE, WITH_SLURM, ON_CONTROLLER, ON_NODE } where;
} checks[] = {
	{ "configuration", "settings", check_settings, ANYWHERE },
	{ "configuration", "account", check_account, ANYWHERE },
	{ "slurm", "slurm-conf", doctor_slurm_conf, ANYWHERE },
	{ "slurm", "plugindir", doctor_plugindir, WITH_SLURM },
	{ "slurm", "controller", doctor_controller, WITH_SLURM },
	{ "slurm", "plugins", doctor_plugins, WITH_SLURM },
	{ "slurm", "select", doctor_select, WITH_SLURM },
	{ "slurm", "task", doctor_task, WITH_SLURM },
	{ "slurm", "mpi", doctor_mpi, WITH_SLURM },
	{ "slurm", "submit", doctor_submit, WITH_SLURM },
	{ "slurm", "plugstack", doctor_plugstack, WITH_SLURM },
	{ "slurm", "preloaded libraries", doctor_preloaded, WITH_SLURM },
	{ "topiary.conf", "commands", check_values, ANYWHERE },
	{ "munge", "munge", doctor_munge, ANYWHERE },
	{ "registry", "registry", doctor_registry, ANYWHERE },
	{ "registry", "names", doctor_names, ANYWHERE },
	{ "registry", "exports", doctor_exports, ANYWHERE },
	{ "controller", "loaded", doctor_loaded, ANYWHERE },
	{ "controller", "snapshot", doctor_snapshot, ON_CONTROLLER },
	{ "controller", "readable", doctor_readable, ON_CONTROLLER },
	{ "node", "name", doctor_name, ANYWHERE },
	{ "node", "topology", doctor_topology, ON_NODE },
	{ "node", "rundir", doctor_run_dir, ON_NODE },
	{ "node", "monitor", doctor_monitor, ON_NODE },
	{ "node", "hwloc", doctor_hwloc, ANYWHERE },
};

static const struct {
	const char *word;
	enum table_colour colour;
	int status;
} levels[] = {
	[DOCTOR_OK] = { "ok", COLOUR_GREEN, 0 },
	[DOCTOR_NOTE] = { "note", COLOUR_NONE, 0 },
	[DOCTOR_WARNING] = { "warning", COLOUR_YELLOW, 1 },
	[DOCTOR_ERROR] = { "error", COLOUR_RED, 2 },
};

void doctor_add(struct doctor *d, enum doctor_level level, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	json_array_append_new(d->findings, json_pack("{s:s, s:s, s:s, s:o, s:s?}", "group", d->group, "check", d->key,
						     "level", levels[level].word, "finding", json_vsprintf(fmt, ap),
						     "remedy", remedy));
	va_end(ap);
	if (level > d->worst)
		d->worst = level;
}

/* --- what checks ask of the host --- */

const char *doctor_slurm(const struct doctor *d, const char *key)
{
	return json_string_value(json_object_get(d->in_file, key)) ?: "";
}

const char *doctor_beside(const struct doctor *d, const char *name, char path[static PATH_MAX])
{
	const char *slash = strrchr(d->slurm_conf, '/');

	snprintf(path, PATH_MAX, "%.*s%s", slash ? (int) (slash - d->slurm_conf) + 1 : 0, d->slurm_conf, name);
	return path;
}

bool doctor_is_here(const struct doctor *d, const char *name)
{
	size_t n = strcspn(name, "(.,");

	return n && n == strlen(d->host) && !strncasecmp(name, d->host, n);
}

/* Does SlurmctldHost name this host? */
static bool doctor_is_controller(const struct doctor *d)
{
	for (const char *name = doctor_slurm(d, "slurmctldhost"); *name; name += strcspn(name, ","),
	     name += *name == ',')
		if (doctor_is_here(d, name))
			return true;
	return false;
}

int doctor_run(const char *const argv[], struct buf *out, struct err *e)
{
	int rc = cmd_program(argv, STDERR_TOO, DOCTOR_SECONDS, MAX_BYTES, out, e);

	if (rc <= 0)
		return rc;
	/* All lines: the first of several is often not the one with the reason. */
	while (out->len && out->data[out->len - 1] == '\n')
		out->data[--out->len] = '\0';
	for (char *end; out->len && (end = strchr(out->data, '\n'));)
		*end = ';';
	return err_set(e, "%s", out->len ? out->data : "failed");
}

time_t doctor_seconds(const char *text, bool utc)
{
	struct tm tm = { .tm_isdst = -1 };

	return !strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? 0 : utc ? timegm(&tm) : mktime(&tm);
}

void doctor_compare_clock(struct doctor *d, const char *whose, time_t theirs)
{
	long ahead = (long) (time(NULL) - theirs);

	if (theirs && labs(ahead) <= DOCTOR_CLOCK_LIMIT)
		doctor_ok(d, "the clock differs by %ld s from %s's", labs(ahead), whose);
	else if (theirs)
		doctor_add(d, labs(ahead) >= MUNGE_TTL ? DOCTOR_ERROR : DOCTOR_WARNING,
			   "synchronise the clocks (chrony, NTP): munge rejects credentials from 300 s on",
			   "the clock of %s is %ld s %s %s's", d->host, labs(ahead), ahead > 0 ? "ahead of" : "behind",
			   whose);
}

/* --- topiary.conf: its values, and who reads which file --- */

static void check_settings(struct doctor *d)
{
	const char *command = d->cmd->settings.topiary_command;

	if (access(command, X_OK))
		doctor_warn(d, "install the package topiary, or correct TopiaryCommand: jobs with --topo-matrix run "
			    "unmapped", "TopiaryCommand=%s: %s", command, strerror(errno));
	else
		doctor_ok(d, "TopiaryCommand=%s", command);
}

static void check_account(struct doctor *d)
{
	const char *user = d->cmd->settings.registry_user;
	struct err e;
	uid_t uid;

	if (settings_uid(user, &uid, &e))
		doctor_error(d, "install topiary-common, or set RegistryUser to the uid that topiaryd has on the "
			     "registry's host", "%s", e.text);
	else
		doctor_ok(d, "RegistryUser=%s has uid %u", user, (unsigned) uid);
}

#define SELECT_OFF "correct this line, then restart slurmctld: jobs are placed as without Topiary"

/* The commands come first: the others are compared with them, and have no line where they read the same file. */
enum { COMMANDS, SELECT, SPANK };
static const struct reader {
	const char *key, *name, *remedy;
	const char *keys; /* separated by spaces, or NULL: all */
} readers[] = {
	/* Its errors are reported where the command line is read. */
	[COMMANDS] = { "commands", "the commands and daemons", NULL, NULL },
	[SELECT] = { "select", "the select plugin", SELECT_OFF,
		     "SnapshotFile SnapshotPoll TopoMode TopoPartitions TopoQos TopoAccounts ObserveFile ObserveShare "
		     "TopoFit TopoLevel TopoMem TopoWeight TopoGpuCores TopoVerdicts WithoutSnapshot" },
	[SPANK] = { "spank", "the SPANK plugin", "correct this line: steps have no topology meanwhile",
		    "TopoMode TopoPartitions TopoQos TopoAccounts RunDir TopologyFile TopoTasks TopoPlace TopoMembind "
		    "TopoMems TopoOmp TopoNic TopoHwloc TopoMatrix TopoMonitor TopiaryCommand MapTimeout NicPlanes" },
};

/* The file of a reader, and how it was chosen: NULL where this host has no such reader. */
static const char *reader_path(const struct doctor *d, size_t reader, char path[static PATH_MAX])
{
	char space[PATH_MAX];

	if (reader == COMMANDS) {
		snprintf(path, PATH_MAX, "%s", d->cmd->config ?: settings_path(space, sizeof(space)));
		return d->cmd->config ? "--config" : getenv("TOPIARY_CONF") ? "TOPIARY_CONF" : "beside slurm.conf";
	}
	if (reader == SPANK && *d->spank_config) {
		snprintf(path, PATH_MAX, "%s", d->spank_config);
		return "config= in plugstack.conf";
	}
	doctor_beside(d, "topiary.conf", path);
	return (reader == SELECT ? doctor_is_controller(d) : *d->spank) ? "beside slurm.conf" : NULL;
}

static int ignore_node(const char *, void *)
{
	return 0;
}

/* Of keys whose values are checked where they are used, by the same functions. */
static int value_check(const char *key, const char *value, const char **remedy, struct err *e)
{
	struct bind_request bind = {0};
	struct request request = {0};
	struct monitor_request monitor;

	*remedy = "correct this line: it is ignored meanwhile";
	if (cmd_has_word("TopoTasks TopoPlace TopoMembind TopoMems TopoOmp TopoNic TopoHwloc", ' ', key))
		return bind_request_set(&bind, key, value, e);
	if (!strcmp(key, "TopoMonitor"))
		return monitor_request_parse(key, value, &monitor, e);
	*remedy = SELECT_OFF;
	if (cmd_has_word("TopoFit TopoLevel TopoMem", ' ', key))
		return request_set(&request, key, value, e);
	*remedy = "correct this line: topiaryd does not start";
	if (!strcmp(key, "KnownNodes") && *value && hostlist_expand(value, ignore_node, NULL, e))
		return err_within(e, "%s", key);
	return 0;
}

struct values {
	struct doctor *doctor;
	const struct reader *reader;
	const char *path;
	bool first;	/* no reader before this one has this file */
	json_t *all;	/* key: its value, where it is from, and whether that is the file */
};

static void value_keep(void *user, const char *key, const char *value, struct settings_origin at)
{
	char origin[PATH_MAX + 16] = "default";
	struct values *v = user;
	const char *remedy;
	struct err e;

	if (v->reader->keys && !cmd_has_word(v->reader->keys, ' ', key))
		return;
	if (at.line)
		snprintf(origin, sizeof(origin), "%s:%u", v->path, at.line);
	if (strstr(value, "password"))
		value = "(not shown: it has a password)";
	if (v->first && at.line && value_check(key, value, &remedy, &e))
		doctor_error(v->doctor, remedy, "%s:%u: %s", v->path, at.line, e.text);
	if (v->first && at.before)
		doctor_warn(v->doctor, "remove one of the two lines", "%s:%u: %s=%s replaces the value of line %u",
			    v->path, at.line, key, value, at.before);
	json_object_set_new(v->all, key, json_pack("{s:s, s:s, s:b}", "value", value, "from", origin, "set",
						   at.line > 0));
}

/* What the reader has, and where a plugin and the commands differ in what both use, whichever files they read. */
static void values_report(struct doctor *d, const struct values *v, const char *chosen, const json_t *commands)
{
	struct buf defaults = {0};
	const char *key;
	json_t *one;

	json_object_foreach(v->all, key, one)
		if (json_is_true(json_object_get(one, "set")))
			doctor_ok(d, "%s=%s (%s)", key, cmd_text(one, "value"), cmd_text(one, "from"));
		else
			buf_printf(&defaults, " %s=%s", key, cmd_text(one, "value"));
	doctor_ok(d, "%s (%s)%s; by default:%s", v->path, chosen, access(v->path, F_OK) ? " does not exist" : "",
		  defaults.data ? defaults.data : " none");
	buf_free(&defaults);
	json_object_foreach(v->all, key, one) {
		const json_t *other = json_object_get(commands, key);

		if (other && strcmp(cmd_text(one, "value"), cmd_text(other, "value")))
			doctor_warn(d, "let all read one file: topiary.conf beside slurm.conf, config= in "
				    "plugstack.conf, TOPIARY_CONF", "%s=%s (%s) for %s, %s=%s (%s) for %s", key,
				    cmd_text(one, "value" ), cmd_text(one, "from" ), v->reader->name, key,
				    cmd_text(other, "value" ), cmd_text(other, "from" ), readers[COMMANDS].name);
	}
}

static void report_here(void *user, const char *finding)
{
	doctor_warn(user, "correct it in topiary.conf, then restart topiaryd", "%s", finding);
}

static void check_values(struct doctor *d)
{
	const struct settings *s = &d->cmd->settings;
	char first[PATH_MAX] = "", path[PATH_MAX];
	json_t *commands = json_object();
	struct err e;
	uid_t uid;

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		const char *chosen = reader_path(d, i, path);
		struct values v = { d, &readers[i], path, i == COMMANDS || strcmp(path, first),
				    i == COMMANDS ? json_incref(commands) : json_object() };

		d->key = readers[i].key;
		if (chosen && settings_each(path, value_keep, &v, &e) == 0)
			values_report(d, &v, chosen, commands);
		else if (chosen && i != COMMANDS && v.first)
			doctor_error(d, readers[i].remedy, "%s", e.text);
		/* Only where topiaryd is installed: other hosts need not have its users and files. */
		if (i == COMMANDS && access(s->schema_dir, F_OK) == 0 && !settings_uid(s->registry_user, &uid, NULL))
			settings_check_here(s, uid, report_here, d);
		if (i == COMMANDS)
			memcpy(first, path, sizeof(first));
		json_decref(v.all);
	}
	json_decref(commands);
}

/* --- the command --- */

static int print_table(const struct doctor *d, struct err *e)
{
	struct table *t = table_new("GROUP|CHECK|RESULT|FINDING");
	const char *group = "";
	const json_t *f;
	size_t i, level;

	json_array_foreach(d->findings, i, f) {
		const char *remedy = json_string_value(json_object_get(f, "remedy")), *word = cmd_text(f, "level");

		table_cell(t, "%s", strcmp(group, cmd_text(f, "group")) ? cmd_text(f, "group") : "");
		group = cmd_text(f, "group");
		table_cell(t, "%s|%s", cmd_text(f, "check"), word);
		for (level = DOCTOR_OK; strcmp(levels[level].word, word); level++)
			;
		table_colour(t, levels[level].colour);
		table_cell(t, "%s", cmd_text(f, "finding"));
		if (remedy)
			table_cell(t, "|||-> %s", remedy);
	}
	return table_finish(t, e);
}

/* Where nothing is known of Slurm, that is reported already. */
static bool is_due(const struct doctor *d, const struct check *check)
{
	switch (check->where) {
	case WITH_SLURM:
		return json_object_size(d->in_file) || (!d->without_slurm && check->run == doctor_controller);
	case ON_CONTROLLER:
		return doctor_is_controller(d);
	case ON_NODE:	/* one of slurm.conf, or where slurm.conf's nodes are unknown, one with a topology of its own */
		return d->nodes ? json_object_get(d->nodes, d->cmd->settings.node_name) != NULL
				: access(d->cmd->settings.topology_file, F_OK) == 0;
	default:
		return true;
	}
}

int cmd_doctor(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct doctor d = { .cmd = c, .findings = json_array(), .group = checks[0].group, .key = checks[0].key };
	struct err why = {""};
	int rc = 0;

	settings_host(d.host, sizeof(d.host));
	/* A topiary.conf that cannot be read is a finding; the rest is then checked with the defaults. */
	if (cmd_parse(c, &syntax, NULL, argc, argv, &why)) {
		doctor_error(&d, "correct this line or the file's permissions (topiary.conf(5)); until then the agent "
			     "and the commands do not run, and the plugins leave all jobs to Slurm", "%s", why.text);
		rc = settings_load("/dev/null", &c->settings, e);
	}
	for (size_t i = 0; rc == 0 && i < sizeof(checks) / sizeof(checks[0]); i++) {
		d.group = checks[i].group;
		d.key = checks[i].key;
		if (is_due(&d, &checks[i]))
			checks[i].run(&d);
	}
	if (rc == 0)
		rc = !c->json ? print_table(&d, e) :
		     cmd_print_new(json_pack("{s:s, s:s, s:O}", "host", d.host, "result", levels[d.worst].word,
					     "checks", d.findings), e);
	c->status = rc ? 2 : levels[d.worst].status;
	json_decref(d.findings);
	json_decref(d.in_file);
	json_decref(d.nodes);
	return rc;
}
