/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bench_node.h"

#include <stdlib.h>
#include <string.h>

#include "client/claim.h"
#include "table.h"
#include "target.h"

/* --- send --- */

int bench_node_send(const struct cmd *c, const char *node, const struct hwbench *b, struct err *e)
{
	json_t *j = hwbench_to_json(b), *answer = NULL;
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct buf path = {0};
	int rc = 0;

	cmd_node_path(&path, node, "/costs");
	if (!text)
		rc = err_set(e, "out of memory");
	else if (!(answer = cmd_put(c, &path, CLAIM_COSTS, node, text, strlen(text), e)))
		rc = -1;
	else if (c->json)
		rc = cmd_print_json(answer, e);
	else
		printf("%s: costs of %u cores and %u NUMA node%s sent\n", node, b->cores, b->numas,
		       b->numas == 1 ? "" : "s");
	json_decref(answer);
	json_decref(j);
	free(text);
	return rc;
}

/* --- show --- */

static void quantity_cell(struct table *t, const json_t *row, const char *key)
{
	const json_t *j = json_object_get(row, key);
	bool is_rate = !strncmp(cmd_text(row, "quantity"), HWBENCH_RATE, strlen(HWBENCH_RATE));

	if (json_is_number(j))
		table_cell(t, "%.1f %s", json_number_value(j) * (is_rate ? 1e-9 : 1e9), is_rate ? "GB/s" : "ns");
	else
		table_cell(t, "-");
}

static int print_costs(const json_t *list, struct err *e)
{
	static const struct table_column columns[] = {
		{ "QUANTITY", TABLE_LEFT }, { "VALUE", TABLE_RIGHT }, { "CLASS", TABLE_RIGHT },
		{ "SLOW BEYOND", TABLE_RIGHT }, { "", TABLE_LEFT }, {0},
	};
	struct table *t = table_new(columns);
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row) {
		bool is_slow = json_is_true(json_object_get(row, "slow"));

		table_cell(t, "%s", cmd_text(row, "quantity"));
		quantity_cell(t, row, "value");
		quantity_cell(t, row, "median");
		quantity_cell(t, row, "limit");
		table_cell(t, "%s", is_slow ? "slow" : "");
		table_severity(t, is_slow ? "slow" : "");
	}
	return table_finish(t, e);
}

static int print_node(const struct cmd *c, const char *node, const json_t *list, struct err *e)
{
	json_t *about = cmd_get_node(c, node, "", e);
	json_int_t measured = cmd_number(json_array_get(list, 0), "nodes");
	char when[WHEN_MAX];

	if (!about)
		return -1;
	printf("%s: measured %s; class %s, ", node, when_local(cmd_text(about, "costs_measured"), when),
	       cmd_text(about, "class"));
	if (measured)
		printf("%" JSON_INTEGER_FORMAT " of its nodes measured\n\n", measured);
	else
		puts("whose medians topiaryd has not computed yet\n");
	json_decref(about);
	return print_costs(list, e);
}

int bench_node_show(const struct cmd *c, const char *node, struct err *e)
{
	struct buf path = {0};
	json_t *answer, *list;
	int rc;

	cmd_node_path(&path, node, "/costs");
	if (!(answer = cmd_get_list(c, &path, "costs", e)))
		return -1;
	list = json_object_get(answer, "costs");
	if (c->json)
		rc = cmd_print_json(answer, e);
	else if (!json_array_size(list))
		rc = err_set(e, "%s: not measured with its present hardware; see topiary bench node --send", node);
	else
		rc = print_node(c, node, list, e);
	json_decref(answer);
	return rc;
}
