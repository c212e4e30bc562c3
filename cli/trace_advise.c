/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_advise.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"
#include "table.h"
#include "trace/advice.h"

static const char *const results[] = {
	[ADVICE_NONE] = "none",
	[ADVICE_FOUND] = "found",
	[ADVICE_UNKNOWN] = "not checked",
};

static int print_json(struct trace *const *t, unsigned traces, const struct advice *list, unsigned n, struct err *e)
{
	json_t *rows = json_array(), *all;
	int rc;

	for (unsigned i = 0; i < n; i++) {
		const struct advice *a = &list[i];
		bool found = a->result == ADVICE_FOUND, unknown = a->result == ADVICE_UNKNOWN;

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:o, s:o, s:o}", "kind", a->kind, "result",
						results[a->result], "evidence",
						found ? json_string(a->evidence) : json_null(), "remedy",
						found ? json_string(a->remedy) : json_null(), "missing",
						unknown ? json_string(a->evidence) : json_null()));
	}
	all = json_pack("{s:s, s:I, s:f, s:o}", "node", t[0]->head.node, "traces", (json_int_t) traces, "seconds",
			t[0]->end * 1e-9, "checks", rows);
	rc = all ? cmd_print_json(all, e) : err_set(e, "out of memory");
	json_decref(all);
	return rc;
}

static int print_found(const struct advice *list, unsigned n, struct err *e)
{
	static const struct table_column columns[] = { { "FOUND", TABLE_LEFT }, { "EVIDENCE", TABLE_LEFT }, { 0 } };
	struct table *table = table_new(columns);

	for (unsigned i = 0; i < n; i++) {
		if (list[i].result != ADVICE_FOUND)
			continue;
		table_cell(table, "%s", list[i].kind);
		table_colour(table, COLOUR_YELLOW);
		table_cell(table, "%s", list[i].evidence);
		table_cell(table, "%s", "");
		table_cell(table, "-> %s", list[i].remedy);
	}
	return table_finish(table, e);
}

/* "not checked: far memory (near_fills), bandwidth (l3_misses)" */
static void print_unknown(const struct advice *list, unsigned n)
{
	const char *before = "not checked, because the trace lacks the event: ";

	for (unsigned i = 0; i < n; i++)
		if (list[i].result == ADVICE_UNKNOWN) {
			printf("%s%s (%s)", before, list[i].kind, list[i].evidence);
			before = ", ";
		}
	if (*before == ',')
		putchar('\n');
}

int trace_advise(struct trace *const *t, const char *const *names, unsigned n, bool as_json, struct err *e)
{
	unsigned checks, found = 0;
	struct advice *list = advice_list(t, names, n, &checks, e);
	int rc = 0;

	if (!list)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (t[i]->open_end)
			log_warning("%s: has no index: it is still being written, or was cut short", names[i]);
	for (unsigned i = 0; i < checks; i++)
		found += list[i].result == ADVICE_FOUND;
	if (as_json) {
		rc = print_json(t, n, list, checks, e);
	} else {
		printf("%s: %u trace%s, %.1f s: %u of %u checks found something\n\n",
		       *t[0]->head.node ? t[0]->head.node : "node", n, n > 1 ? "s" : "", t[0]->end * 1e-9, found,
		       checks);
		if (found)
			rc = print_found(list, checks, e);
		print_unknown(list, checks);
	}
	free(list);
	return rc;
}
