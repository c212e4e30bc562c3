/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "show.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "group.h"
#include "hosts.h"
#include "table.h"

struct args {
	const char *fact, *value, *hosts;	/* hosts is the node without a fact */
};

static const struct cmd_option options[] = {
	{ "fact", 0, "NAME", CMD_TEXT(fact), "Print this fact for all nodes, or for those in HOSTLIST" },
	{ "value", 0, "VALUE", CMD_TEXT(value), "Only nodes where the fact has this value" },
	{0},
};

static void check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (!a->fact && !a->hosts)
		argp_error(state, "a NODE or --fact=NAME is required");
	if (a->value && !a->fact)
		argp_error(state, "--value requires --fact");
}

static const struct cmd_syntax syntax = {
	options, "NODE\n--fact=NAME [HOSTLIST]", "Look up serial numbers, addresses, memory, kernels.", CMD_TEXT(hosts),
	NULL, check_together,
};

int facts_print(const json_t *facts, struct err *e)
{
	static const struct table_column columns[] = {
		{ "OBJECT", TABLE_LEFT }, { "FACT", TABLE_LEFT }, { "VALUE", TABLE_LEFT }, {0},
	};
	struct table *t = table_new(columns);
	const json_t *fact;
	size_t i;

	json_array_foreach(facts, i, fact)
		for (size_t k = 0; k < 3; k++)
			table_cell(t, "%s", cmd_text(fact, ((const char *[]){ "object", "fact", "value" })[k]));
	return table_finish(t, e);
}

static void describe_fact(const json_t *row, struct buf *out)
{
	buf_printf(out, "%s\n%s", cmd_text(row, "object"), cmd_text(row, "value"));
}

/* By object, then by number of nodes, descending. */
static int by_count(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int order = strcmp(cmd_text(x->rows->row, "object"), cmd_text(y->rows->row, "object"));

	if (order || x->n == y->n)
		return order ? order : host_compare(&x->rows->host, &y->rows->host);
	return x->n < y->n ? 1 : -1;
}

static void add_group(struct table *t, const struct group *g)
{
	struct buf hosts = {0};

	group_hosts(g, &hosts);
	table_cell(t, "%s", cmd_text(g->rows->row, "object"));
	table_cell(t, "%s", cmd_text(g->rows->row, "value"));
	table_cell(t, "%zu", g->n);
	table_cell(t, "%s", hosts.failed ? "?" : hosts.data);
	buf_free(&hosts);
}

static int print_groups(const json_t *facts, struct err *e)
{
	static const struct table_column columns[] = {
		{ "OBJECT", TABLE_LEFT }, { "VALUE", TABLE_LEFT }, { "NODES", TABLE_RIGHT }, { "HOSTS", TABLE_CUT },
		{0},
	};
	struct groups groups;
	struct table *t;
	int rc;

	if (groups_make(facts, describe_fact, &groups, e))
		return -1;
	qsort(groups.list, groups.n, sizeof(*groups.list), by_count);
	t = table_new(columns);
	for (size_t i = 0; i < groups.n; i++)
		add_group(t, &groups.list[i]);
	rc = table_finish(t, e);
	groups_free(&groups);
	return rc;
}

static json_t *facts_get(const struct cmd *c, const struct args *a, struct err *e)
{
	struct buf path = {0};

	if (a->fact) {
		buf_puts(&path, "/v1/facts");
		cmd_query(&path, "fact", a->fact);
		hosts_query(&path, a->hosts);
		cmd_query(&path, "value", a->value);
	} else {
		cmd_node_path(&path, a->hosts, "/facts");
	}
	return cmd_get_list(c, &path, "facts", e);
}

int cmd_facts(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	json_t *answer, *facts;
	int rc = 0;

	if (cmd_parse(c, &syntax, &a, argc, argv, e) || !(answer = facts_get(c, &a, e)))
		return -1;
	cmd_warn_truncated(answer, "select fewer nodes with a host list");
	if (a.fact && a.hosts)
		rc = hosts_keep(c, a.hosts, answer, "facts", false, e);
	facts = json_object_get(answer, "facts");
	if (rc == 0 && a.fact && !json_array_size(facts))
		log_warning("%s: %s has this fact%s; `topiary facts NODE` prints the facts of a node", a.fact,
			    a.hosts ? "none of these nodes" : "no node", a.value ? " with this value" : "");
	if (rc == 0)
		rc = c->json ? cmd_print_json(answer, e) : a.fact ? print_groups(facts, e) : facts_print(facts, e);
	json_decref(answer);
	return rc;
}
