/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_advise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "cmd.h"
#include "table.h"

static const char *const results[] = {
	[ADVICE_NONE] = "none",
	[ADVICE_FOUND] = "found",
	[ADVICE_UNKNOWN] = "not checked",
};

/* --- over nodes --- */

/* A check that was made on any node was made; the first node that it found something on is shown. */
static void check_add(struct trace_advised_check *c, const struct advice *advice, const char *node)
{
	bool is_found = advice->result == ADVICE_FOUND;

	if (!c->advice.kind || (is_found && !c->nodes) || (!c->nodes && c->advice.result == ADVICE_UNKNOWN)) {
		c->advice = *advice;
		snprintf(c->node, sizeof(c->node), "%s", node);
	}
	c->nodes += is_found;
}

int advise_found_add(struct trace_advised *a, const struct advice_node *node, const char *name, struct err *e)
{
	unsigned n;
	struct advice *list = advice_list(node, &n, e);

	if (!list)
		return -1;
	if (!a->n && !array_append(a->checks, a->n, n)) {
		free(list);
		return err_set(e, "out of memory");
	}
	for (unsigned i = 0; i < n; i++)
		check_add(&a->checks[i], &list[i], name);
	for (unsigned i = 0; i < node->n; i++) {
		if (node->traces[i]->open_end)
			log_warning("%s: has no index: it is still being written, or was cut short", node->names[i]);
		a->seconds = fmax(a->seconds, node->traces[i]->end * 1e-9);
	}
	a->nodes++;
	a->traces += node->n;
	free(list);
	return 0;
}

int advise_found_add_step(struct trace_advised *a, const struct advice *advice, struct err *e)
{
	struct trace_advised_check *c = array_add(a->checks, a->n);

	if (!c)
		return err_set(e, "out of memory");
	c->advice = *advice;
	c->nodes = advice->result == ADVICE_FOUND;
	return 0;
}

void advise_found_free(struct trace_advised *a)
{
	free(a->checks);
	*a = (struct trace_advised){0};
}

unsigned advise_found_count(const struct trace_advised *a)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++)
		n += a->checks[i].advice.result == ADVICE_FOUND;
	return n;
}

/* --- output --- */

json_t *advise_found_json(const struct trace_advised *a)
{
	json_t *rows = json_array();

	for (const struct trace_advised_check *c = a->checks; c < a->checks + a->n; c++) {
		bool is_found = c->advice.result == ADVICE_FOUND, is_unknown = c->advice.result == ADVICE_UNKNOWN;

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:i}", "kind", c->advice.kind, "result",
						results[c->advice.result], "evidence",
						is_found ? json_string(c->advice.evidence) : json_null(), "remedy",
						is_found ? json_string(c->advice.remedy) : json_null(), "missing",
						is_unknown ? json_string(c->advice.evidence) : json_null(), "node",
						is_found && *c->node ? json_string(c->node) : json_null(), "nodes",
						(int) c->nodes));
	}
	return rows;
}

static void evidence_cell(struct table *table, const struct trace_advised *a, const struct trace_advised_check *c)
{
	bool has_node = a->nodes > 1 && *c->node;

	if (has_node && c->nodes > 1)
		table_cell(table, "%s: %s (on %u of %u nodes)", c->node, c->advice.evidence, c->nodes, a->nodes);
	else
		table_cell(table, "%s%s%s", has_node ? c->node : "", has_node ? ": " : "", c->advice.evidence);
}

static int print_found(const struct trace_advised *a, struct err *e)
{
	static const struct table_column columns[] = { { "FOUND", TABLE_LEFT }, { "EVIDENCE", TABLE_LEFT }, { 0 } };
	struct table *table = table_new(columns);

	for (const struct trace_advised_check *c = a->checks; c < a->checks + a->n; c++) {
		if (c->advice.result != ADVICE_FOUND)
			continue;
		table_cell(table, "%s", c->advice.kind);
		table_colour(table, COLOUR_YELLOW);
		evidence_cell(table, a, c);
		table_cell(table, "%s", "");
		table_cell(table, "-> %s", c->advice.remedy);
	}
	return table_finish(table, e);
}

/* "not checked, for lack of the event, trace or file: far memory (near_fills), bandwidth (l3_misses)" */
static void print_unknown(const struct trace_advised *a)
{
	const char *before = "not checked, for lack of the event, trace or file: ";

	for (const struct trace_advised_check *c = a->checks; c < a->checks + a->n; c++)
		if (c->advice.result == ADVICE_UNKNOWN) {
			printf("%s%s (%s)", before, c->advice.kind, c->advice.evidence);
			before = ", ";
		}
	if (*before == ',')
		putchar('\n');
}

int advise_found_print(const struct trace_advised *a, const char *name, const char *what, struct err *e)
{
	unsigned found = advise_found_count(a);
	int rc = 0;

	printf("%s: %s, %.1f s: %u of %u checks found something\n\n", name, what, a->seconds, found, a->n);
	if (found)
		rc = print_found(a, e);
	print_unknown(a);
	return rc;
}

/* --- one node --- */

struct trace_tasks *trace_advise_tasks(const char *path)
{
	struct trace_tasks *t;
	struct err e;

	if (access(path, F_OK))
		return NULL;
	if (!(t = trace_tasks_read(path, &e)))
		log_warning("%s", e.text);
	return t;
}

static int node_print(const struct trace_advised *a, const struct trace *t, bool as_json, struct err *e)
{
	char what[32];

	if (!as_json) {
		snprintf(what, sizeof(what), "%u trace%s", a->traces, a->traces > 1 ? "s" : "");
		return advise_found_print(a, *t->head.node ? t->head.node : "node", what, e);
	}
	return cmd_print_new(json_pack("{s:s, s:I, s:f, s:o}", "node", t->head.node, "traces", (json_int_t) a->traces,
				       "seconds", a->seconds, "checks", advise_found_json(a)), e);
}

int trace_advise(struct trace *const *t, const char *const *names, unsigned n, bool as_json, struct err *e)
{
	char *path = trace_tasks_path(names[0]);
	struct trace_tasks *tasks = path ? trace_advise_tasks(path) : NULL;
	struct trace_advised a = {0};
	int rc = advise_found_add(&a, &(struct advice_node){ t, names, n, tasks, NULL }, t[0]->head.node, e);

	if (rc == 0)
		rc = node_print(&a, t[0], as_json, e);
	advise_found_free(&a);
	trace_tasks_free(tasks);
	free(path);
	return rc;
}
