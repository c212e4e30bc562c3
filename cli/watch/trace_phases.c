/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_phases.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd.h"
#include "table.h"

static struct trace_phases *phases_read(const struct trace *t, const char *path, bool is_optional, struct err *e)
{
	char *file = trace_phases_path(path);
	struct trace_phases *p = NULL;

	if (!file)
		err_set(e, "out of memory");
	else if (access(file, F_OK) && errno == ENOENT && !is_optional)
		err_set(e, "%s: %s: the program named no phase, topiary_phase(3)", file, strerror(ENOENT));
	else if (access(file, F_OK) == 0 && (p = trace_phases_read(file, t, e)) && p->left_out)
		log_warning("%s: %llu lines are left out: they are incomplete, or there are more than %u names", file,
			    (unsigned long long) p->left_out, TRACE_PHASES_MAX);
	free(file);
	return p;
}

struct trace_phases *trace_phases_beside(const struct trace *t, const char *path)
{
	struct err e = {""};
	struct trace_phases *p = phases_read(t, path, true, &e);

	if (!p && *e.text)
		log_warning("%s", e.text);
	return p;
}

int trace_phases_choose(struct trace *t, const char *path, const char *phase, bool is_joined, struct err *e)
{
	struct trace_phases *p = phases_read(t, path, false, e);
	int at = p ? trace_phases_find(p, phase) : -1, rc = -1;

	if (p && at < 0)
		err_set(e, "no phase '%s'; `topiary trace phases` lists them", phase);
	else if (p)
		rc = trace_phases_restrict(p, at, t, is_joined, e);
	trace_phases_free(p);
	return rc;
}

/* --- the list --- */

static const struct table_column columns[] = {
	{ "PHASE", TABLE_LEFT }, { "PROCESSES", TABLE_RIGHT }, { "TIMES", TABLE_RIGHT }, { "MARKS", TABLE_RIGHT },
	{ "SECONDS", TABLE_RIGHT }, { "LEAST", TABLE_RIGHT }, { "GREATEST", TABLE_RIGHT }, { "TICKS", TABLE_RIGHT },
	{0},
};

static json_t *phase_json(const struct trace_phase *x, int64_t ticks)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "phase", x->name, "depth",
			 (json_int_t) x->depth, "processes", (json_int_t) x->processes, "times", (json_int_t) x->times,
			 "marks", (json_int_t) x->marks, "seconds", x->seconds / x->processes, "least", x->least,
			 "greatest", x->greatest, "ticks", (json_int_t) ticks);
}

static int print_json(const struct trace *t, const struct trace_phases *p, const int64_t *ticks, struct err *e)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < p->n; i++)
		json_array_append_new(rows, phase_json(&p->list[i], ticks[i]));
	return cmd_print_new(json_pack("{s:s, s:I, s:f, s:I, s:o}", "node", t->head.node, "processes",
				       (json_int_t) p->processes, "seconds", t->end * 1e-9, "ticks",
				       (json_int_t) t->ticks, "phases", rows), e);
}

/* Times are a process's: the mean, and those of the processes that have least and most. */
static int print_table(const struct trace *t, const struct trace_phases *p, const int64_t *ticks, struct err *e)
{
	struct table *table = table_new(columns);

	for (unsigned i = 0; i < p->n; i++) {
		const struct trace_phase *x = &p->list[i];

		table_cell(table, "%*s%s", 2 * (int) x->depth, "", x->name);
		table_cell(table, "%u", x->processes);
		table_cell(table, "%llu", (unsigned long long) x->times);
		table_cell(table, "%llu", (unsigned long long) x->marks);
		table_cell(table, "%.3f", x->seconds / x->processes);
		table_cell(table, "%.3f", x->least);
		table_cell(table, "%.3f", x->greatest);
		table_cell(table, "%lld", (long long) ticks[i]);
	}
	printf("%s: %u processes, %llu ticks in %.1f s\n\n", *t->head.node ? t->head.node : "node", p->processes,
	       (unsigned long long) t->ticks, t->end * 1e-9);
	return table_finish(table, e);
}

static int count_ticks(const struct trace *t, const struct trace_phases *p, int64_t *counts, struct err *e)
{
	struct trace_interval *ticks = trace_intervals(t, e);
	bool *is_in = calloc(t->ticks + 1, sizeof(*is_in));
	int rc = ticks ? is_in ? 0 : err_set(e, "out of memory") : -1;

	for (unsigned i = 0; rc == 0 && i < p->n; i++)
		if ((counts[i] = trace_phases_ticks(p, i, ticks, t->ticks, is_in)) < 0)
			rc = err_set(e, "out of memory");
	free(is_in);
	free(ticks);
	return rc;
}

int trace_phases_print(const struct trace *t, const char *path, bool as_json, struct err *e)
{
	struct trace_phases *p = phases_read(t, path, false, e);
	int64_t ticks[TRACE_PHASES_MAX];
	int rc = p ? count_ticks(t, p, ticks, e) : -1;

	if (rc == 0)
		rc = as_json ? print_json(t, p, ticks, e) : print_table(t, p, ticks, e);
	trace_phases_free(p);
	return rc;
}
