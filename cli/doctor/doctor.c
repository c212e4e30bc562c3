/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "table.h"

#define MAX_BYTES (256u << 20)	/* of scontrol about all nodes */
#define MUNGE_TTL 300		/* seconds that a credential is valid for: MUNGE_DEFAULT_TTL of munged */

static const struct cmd_syntax syntax = {
	.operands = "",
	.help = "Check this host's part of the installation, and report what to do.",
};

/* In the order of the report: later checks use what earlier ones read. */
static const struct check {
	const char *group, *key;
	void (*run)(struct doctor *d);
} checks[] = {
	{ "configuration", "settings", doctor_check_settings },
	{ "configuration", "account", doctor_check_account },
	{ "slurm", "slurm-conf", doctor_check_slurm_conf },
	{ "slurm", "plugindir", doctor_check_plugindir },
	{ "slurm", "controller", doctor_check_controller },
	{ "slurm", "plugins", doctor_check_plugins },
	{ "slurm", "select", doctor_check_select },
	{ "slurm", "task", doctor_check_task },
	{ "slurm", "mpi", doctor_check_mpi },
	{ "slurm", "submit", doctor_check_submit },
	{ "slurm", "plugstack", doctor_check_plugstack },
	{ "slurm", "recorders", doctor_check_recorders },
	{ "topiary.conf", "commands", doctor_check_values },
	{ "munge", "munge", doctor_check_munge },
	{ "registry", "registry", doctor_check_registry },
	{ "registry", "names", doctor_check_names },
	{ "registry", "exports", doctor_check_exports },
	{ "controller", "loaded", doctor_check_loaded },
	{ "controller", "snapshot", doctor_check_snapshot },
	{ "controller", "readable", doctor_check_readable },
	{ "node", "name", doctor_check_name },
	{ "node", "topology", doctor_check_topology },
	{ "node", "rundir", doctor_check_run_dir },
	{ "node", "monitor", doctor_check_monitor },
	{ "node", "hwloc", doctor_check_hwloc },
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
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	json_array_append_new(d->findings,
			      json_pack("{s:s, s:s, s:s, s:s, s:s?}", "group", d->group, "check", d->key, "level",
					levels[level].word, "finding", text ? text : "out of memory", "remedy",
					remedy));
	free(text);
	if (level > d->worst)
		d->worst = level;
}

/* --- what checks ask of the host --- */

const char *doctor_beside(const struct doctor *d, const char *name, char path[static PATH_MAX])
{
	const char *slash = strrchr(d->slurm_conf, '/');

	snprintf(path, PATH_MAX, "%.*s%s", slash ? (int) (slash - d->slurm_conf) + 1 : 0, d->slurm_conf, name);
	return path;
}

struct probe {
	const char *const *argv; /* or NULL: work */
	int (*work)(const struct doctor *d, struct buf *out, struct err *e);
	const struct doctor *doctor;
};

static int probe_run(int to, void *arg)
{
	const struct probe *p = arg;
	struct buf out = {0};
	struct err e = {""};
	int rc;

	if (p->argv) {
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(to, STDOUT_FILENO);
		dup2(to, STDERR_FILENO);
		execvp(p->argv[0], (char **) p->argv);
		dprintf(to, "%s: %s", p->argv[0], strerror(errno));
		return 127;
	}
	rc = p->work(p->doctor, &out, &e);
	file_write(to, rc ? e.text : out.data, rc ? strlen(e.text) : out.len);
	return rc ? 1 : 0;
}

static int run(struct probe *p, struct buf *out, struct err *e)
{
	int rc = child_run(probe_run, p, DOCTOR_SECONDS, MAX_BYTES, out, e);

	/* All lines: the first of several is often not the one with the reason. */
	while (rc > 0 && out->len && out->data[out->len - 1] == '\n')
		out->data[--out->len] = '\0';
	for (char *end; rc > 0 && out->len && (end = strchr(out->data, '\n'));)
		*end = ';';
	if (rc > 0)
		err_set(e, "%s", out->len ? out->data : "failed");
	return rc ? -1 : 0;
}

int doctor_run(const char *const argv[], struct buf *out, struct err *e)
{
	return run(&(struct probe){ .argv = argv }, out, e);
}

int doctor_limited(int (*work)(const struct doctor *d, struct buf *out, struct err *e), const struct doctor *d,
		   struct buf *out, struct err *e)
{
	return run(&(struct probe){ .work = work, .doctor = d }, out, e);
}

time_t doctor_seconds(const char *text, bool utc)
{
	struct tm tm = { .tm_isdst = -1 };

	if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
		return 0;
	return utc ? timegm(&tm) : mktime(&tm);
}

void doctor_compare_clock(struct doctor *d, const char *whose, time_t theirs)
{
	long ahead = (long) (time(NULL) - theirs);

	if (!theirs)
		return;
	if (labs(ahead) > DOCTOR_CLOCK_LIMIT)
		doctor_add(d, labs(ahead) >= MUNGE_TTL ? DOCTOR_ERROR : DOCTOR_WARNING,
			   "synchronise the clocks (chrony, NTP): munge rejects credentials from 300 s on",
			   "the clock of %s is %ld s %s %s's", d->host, labs(ahead), ahead > 0 ? "ahead of" : "behind",
			   whose);
	else
		doctor_add(d, DOCTOR_OK, NULL, "the clock differs by %ld s from %s's", labs(ahead), whose);
}

static enum table_colour colour_of(const char *word)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(levels[i].word, word))
			return levels[i].colour;
	return COLOUR_NONE;
}

static int print_table(const struct doctor *d, struct err *e)
{
	static const struct table_column columns[] = { { "GROUP", TABLE_LEFT },
						       { "CHECK", TABLE_LEFT },
						       { "RESULT", TABLE_LEFT },
						       { "FINDING", TABLE_LEFT },
						       { 0 } };
	struct table *t = table_new(columns);
	const char *group = "";
	const json_t *f;
	size_t i;

	json_array_foreach(d->findings, i, f)
	{
		const char *remedy = json_string_value(json_object_get(f, "remedy"));

		table_cell(t, "%s", strcmp(group, cmd_text(f, "group")) ? cmd_text(f, "group") : "");
		group = cmd_text(f, "group");
		table_cell(t, "%s", cmd_text(f, "check"));
		table_cell(t, "%s", cmd_text(f, "level"));
		table_colour(t, colour_of(cmd_text(f, "level")));
		table_cell(t, "%s", cmd_text(f, "finding"));
		if (!remedy)
			continue;
		for (int blank = 0; blank < 3; blank++)
			table_cell(t, "%s", "");
		table_cell(t, "-> %s", remedy);
	}
	return table_finish(t, e);
}

static int report(struct doctor *d, struct err *e)
{
	if (!d->cmd->json)
		return print_table(d, e);
	return cmd_print_new(json_pack("{s:s, s:s, s:O}", "host", d->host, "result", levels[d->worst].word, "checks",
				       d->findings), e);
}

/* A topiary.conf that cannot be read is a finding; the rest is then checked with the defaults. */
static int parse(struct doctor *d, int argc, char **argv, struct err *e)
{
	struct err why = { "" };

	if (cmd_parse(d->cmd, &syntax, NULL, argc, argv, &why) == 0)
		return 0;
	d->group = checks[0].group;
	d->key = checks[0].key;
	doctor_add(d, DOCTOR_ERROR,
		   "correct this line or the file's permissions (topiary.conf(5)); until then the agent and the"
		   " commands do not run, and the plugins leave all jobs to Slurm",
		   "%s", why.text);
	return settings_load("/dev/null", &d->cmd->settings, e);
}

int cmd_doctor(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct doctor d = { .cmd = c, .findings = json_array() };
	int rc;

	settings_host(d.host, sizeof(d.host));
	rc = parse(&d, argc, argv, e);
	for (size_t i = 0; rc == 0 && i < sizeof(checks) / sizeof(checks[0]); i++) {
		d.group = checks[i].group;
		d.key = checks[i].key;
		/* Where nothing is known of Slurm, that is reported already. */
		if (d.in_file && !json_object_size(d.in_file) && !strcmp(d.group, "slurm") &&
		    (d.without_slurm || strcmp(d.key, "controller")))
			continue;
		checks[i].run(&d);
	}
	if (rc == 0)
		rc = report(&d, e);
	c->status = rc ? 2 : levels[d.worst].status;
	json_decref(d.findings);
	json_decref(d.in_file);
	json_decref(d.nodes);
	return rc;
}
