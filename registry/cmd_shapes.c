/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"
#include "cmd_table.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void) key, (void) arg, (void) state;
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = { NULL, parse, "", "List the kinds of node.", NULL, NULL, NULL };

static const struct table_column columns[] = {
	{ "SHAPE", false }, { "NODES", true }, { "CORES", true }, { "PUS", true }, { "HOSTS", false }, { "SYNTHETIC", false },
	{0},
};

static const char *text(const json_t *shape, const char *key)
{
	const char *s = json_string_value(json_object_get(shape, key));

	return s ? s : "-";
}

static int print_table(const json_t *shapes, struct err *e)
{
	static const char *const counts[] = { "nodes", "cores", "pus" };
	struct table *t = table_new(columns);
	const json_t *shape;
	size_t i;
	int rc;

	json_array_foreach(shapes, i, shape) {
		table_cell(t, "%s", text(shape, "shape"));
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
			table_cell(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(shape, counts[k])));
		table_cell(t, "%s", text(shape, "hosts"));
		table_cell(t, "%s", text(shape, "synthetic"));
	}
	rc = table_print(t, stdout);
	table_free(t);
	return rc ? err_set(e, "the table cannot be written") : 0;
}

int cmd_shapes(struct cmd *c, int argc, char **argv, struct err *e)
{
	json_t *answer, *shapes;
	int rc;

	if (cmd_parse(c, &argp, NULL, argc, argv, e) || !(answer = cmd_get_json(c, "/v1/shapes", e)))
		return -1;
	shapes = json_object_get(answer, "shapes");
	if (!json_is_array(shapes))
		rc = err_set(e, "the registry's answer has no list of shapes");
	else
		rc = c->json ? cmd_print_json(answer, e) : print_table(shapes, e);
	json_decref(answer);
	return rc;
}
