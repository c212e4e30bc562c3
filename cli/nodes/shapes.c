/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"
#include "table.h"

static const struct cmd_syntax syntax = {
	.operands = "", .help = "List the shapes of the nodes, and which nodes have each.",
};

static const struct table_column columns[] = {
	{ "SHAPE", TABLE_LEFT }, { "NODES", TABLE_RIGHT }, { "CORES", TABLE_RIGHT }, { "PUS", TABLE_RIGHT },
	{ "HOSTS", TABLE_CUT }, { "HIERARCHY", TABLE_CUT }, {0},
};

static int print_table(const json_t *shapes, struct err *e)
{
	static const char *const counts[] = { "nodes", "cores", "pus" };
	struct table *t = table_new(columns);
	const json_t *shape;
	size_t i;

	json_array_foreach(shapes, i, shape) {
		table_cell(t, "%s", cmd_text(shape, "shape"));
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
			table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(shape, counts[k]));
		table_cell(t, "%s", cmd_text(shape, "hosts"));
		table_cell(t, "%s", cmd_text(shape, "hierarchy"));
	}
	return table_finish(t, e);
}

int cmd_shapes(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct buf path = {0};
	json_t *answer;

	if (cmd_parse(c, &syntax, NULL, argc, argv, e))
		return -1;
	buf_puts(&path, "/v1/shapes");
	if (!(answer = cmd_get_list(c, &path, "shapes", e)))
		return -1;
	return cmd_print_list(c, answer, "shapes", print_table, e);
}
