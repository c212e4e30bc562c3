/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "changes.h"
#include "cmd.h"
#include "group.h"
#include "hosts.h"
#include "table.h"
#include "target.h"

struct args {
	int severity;		/* 0: any */
	const char *hosts;
};

static const struct cmd_option options[] = {
	{ "severity", 0, "SEVERITY", CMD_KEYWORD(severity, drift_severity_parse, "cosmetic, wiring, slow, capacity"),
	  "Only nodes whose most severe change is this: cosmetic, wiring, slow or capacity" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "[HOSTLIST]", "List nodes that have drifted from the baseline of their class, grouped by change.",
	CMD_TEXT(hosts), NULL, NULL,
};

static const struct table_column columns[] = {
	{ "SEVERITY", TABLE_LEFT }, { "CLASS", TABLE_LEFT }, { "SINCE", TABLE_LEFT }, { "NODES", TABLE_RIGHT },
	{ "CHANGE", TABLE_LEFT }, { "HOSTS", TABLE_CUT }, {0},
};
enum { CHANGE = 4 };

static void describe_changes(const json_t *node, struct buf *out)
{
	const json_t *change;
	size_t i;

	buf_printf(out, "%s\n%s", cmd_text(node, "severity"), cmd_text(node, "class"));
	json_array_foreach(json_object_get(node, "changes"), i, change)
		buf_printf(out, "\n%s", cmd_text(change, "words"));
}

static int severity_of(const struct group *g)
{
	return severity_parse(cmd_text(g->rows->row, "severity"));
}

/* By severity, then by number of nodes, both descending. */
static int by_gravity(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int order = severity_of(y) - severity_of(x);

	if (order || x->n == y->n)
		return order ? order : host_compare(&x->rows->host, &y->rows->host);
	return x->n < y->n ? 1 : -1;
}

/* The earliest; RFC 3339 in UTC sorts as text. */
static const char *group_since(const struct group *g)
{
	const char *first = cmd_text(g->rows->row, "since");

	for (size_t i = 1; i < g->n; i++) {
		const char *other = cmd_text(g->rows[i].row, "since");

		if (strcmp(other, first) < 0)
			first = other;
	}
	return first;
}

static void add_group(struct table *t, const struct group *g)
{
	const json_t *node = g->rows->row, *changes = json_object_get(node, "changes");
	struct buf hosts = {0};
	char when[WHEN_MAX];

	group_hosts(g, &hosts);
	table_cell(t, "%s", cmd_text(node, "severity"));
	table_severity(t, cmd_text(node, "severity"));
	table_cell(t, "%s", cmd_text(node, "class"));
	table_cell(t, "%s", when_local(group_since(g), when));
	table_cell(t, "%zu", g->n);
	table_cell(t, "%s", cmd_text(json_array_get(changes, 0), "words"));
	table_cell(t, "%s", hosts.failed ? "?" : hosts.data);
	for (size_t i = 1; i < json_array_size(changes); i++)
		for (size_t column = 0; columns[column].head; column++)
			table_cell(t, "%s", column == CHANGE ? cmd_text(json_array_get(changes, i), "words") : "");
	buf_free(&hosts);
}

static void print_total(const struct groups *g)
{
	size_t nodes[SEVERITY_COUNT] = {0}, all = 0;

	for (size_t i = 0; i < g->n; i++) {
		int severity = severity_of(&g->list[i]);

		all += g->list[i].n;
		if (severity >= 0)
			nodes[severity] += g->list[i].n;
	}
	printf("%zu node%s with drift: %zu capacity, %zu slow, %zu wiring, %zu cosmetic\n", all, all == 1 ? "" : "s",
	       nodes[SEVERITY_CAPACITY], nodes[SEVERITY_SLOW], nodes[SEVERITY_WIRING], nodes[SEVERITY_COSMETIC]);
}

static int print_table(const json_t *drift, struct err *e)
{
	struct groups groups;
	struct table *t;
	int rc;

	if (groups_make(drift, describe_changes, &groups, e))
		return -1;
	qsort(groups.list, groups.n, sizeof(*groups.list), by_gravity);
	t = table_new(columns);
	for (size_t i = 0; i < groups.n; i++)
		add_group(t, &groups.list[i]);
	rc = table_finish(t, e);
	if (rc == 0)
		print_total(&groups);
	groups_free(&groups);
	return rc;
}

int cmd_drift(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct buf path = {0};
	struct args a = {0};
	json_t *answer;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	buf_puts(&path, "/v1/drift");
	cmd_query(&path, "severity", a.severity ? severity_name(a.severity) : NULL);
	if (!(answer = cmd_get_list(c, &path, "drift", e)))
		return -1;
	cmd_warn_truncated(answer, "select one severity with --severity");
	rc = a.hosts ? hosts_keep(c, a.hosts, answer, "drift", false, e) : 0;
	if (rc == 0)
		rc = c->json ? cmd_print_json(answer, e) : print_table(json_object_get(answer, "drift"), e);
	json_decref(answer);
	return rc;
}
