/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_phases.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd.h"
#include "table.h"

/* is_found: whether or not the program named some; what they are is set. */
static struct trace_phases *phases_read(const struct trace *t, const char *path, bool *is_found, struct err *e)
{
	char *file = trace_phases_path(path);
	struct trace_phases *p = NULL;

	if (!file)
		err_set(e, "out of memory");
	else if (*is_found |= access(file, F_OK) && errno == ENOENT)
		p = trace_phases_found(t, e);
	else if ((p = trace_phases_read(file, t, e)) && p->left_out)
		log_warning("%s: %llu lines are left out: they are incomplete, or there are more than %u names", file,
			    (unsigned long long) p->left_out, TRACE_PHASES_MAX);
	free(file);
	return p;
}

struct trace_phases *trace_phases_beside(const struct trace *t, const char *path, bool is_wanted)
{
	bool is_found = is_wanted;
	struct trace_phases *p;
	char *file = trace_phases_path(path);
	struct err e;

	if (!is_wanted && (!file || access(file, F_OK)))
		p = NULL;
	else if (!(p = phases_read(t, path, &is_found, &e)))
		log_warning("%s", e.text);
	free(file);
	return p;
}

int trace_phases_choose(struct trace *t, const char *path, const char *phase, bool is_found, bool is_joined,
			struct err *e)
{
	struct trace_phases *p = phases_read(t, path, &is_found, e);
	int at = p ? trace_phases_find(p, phase) : -1, rc = -1;

	if (p && at < 0)
		err_set(e, "no phase '%s'; `topiary trace phases%s` lists them", phase, is_found ? " --found" : "");
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

static int print_json(const struct trace *t, const struct trace_phases *p, const int64_t *ticks, bool is_found,
		      struct err *e)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < p->n; i++)
		json_array_append_new(rows, phase_json(&p->list[i], ticks[i]));
	return cmd_print_new(json_pack("{s:s, s:b, s:I, s:f, s:I, s:o}", "node", t->head.node, "found", is_found,
				       "processes", (json_int_t) p->processes, "seconds", t->end * 1e-9, "ticks",
				       (json_int_t) t->ticks, "phases", rows), e);
}

/* Times are a process's: the mean, and those of the processes that have least and most. */
static int print_table(const struct trace *t, const struct trace_phases *p, const int64_t *ticks, bool is_found,
		       struct err *e)
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
	printf("%s: ", *t->head.node ? t->head.node : "node");
	if (is_found)
		printf("phases found in the trace");
	else
		printf("%u processes", p->processes);
	printf(", %llu ticks in %.1f s\n\n", (unsigned long long) t->ticks, t->end * 1e-9);
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

int trace_phases_print(const struct trace *t, const char *path, bool is_found, bool as_json, struct err *e)
{
	struct trace_phases *p = phases_read(t, path, &is_found, e);
	int64_t ticks[TRACE_PHASES_MAX];
	int rc = p ? count_ticks(t, p, ticks, e) : -1;

	if (rc == 0)
		rc = as_json ? print_json(t, p, ticks, is_found, e) : print_table(t, p, ticks, is_found, e);
	trace_phases_free(p);
	return rc;
}
