/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "table.h"
#include "target.h"

enum { OPT_LIMIT = 0x200 };

struct args {
	const char *node, *limit;
};

static const struct argp_option options[] = {
	{ "limit", OPT_LIMIT, "N", 0, "Only the last N exports", 0 },
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_LIMIT:
		if (!*arg || strlen(arg) > 9 || strspn(arg, "0123456789") != strlen(arg) || !atoi(arg))
			argp_error(state, "--limit: '%s' is not a positive number", arg);
		return a->limit = arg, 0;
	case ARGP_KEY_ARG:
		if (a->node)
			return ARGP_ERR_UNKNOWN;
		return a->node = arg, 0;
	case ARGP_KEY_END:
		if (!a->node)
			argp_error(state, "a NODE is required");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	options, parse, "NODE", "List a node's exports, newest first, and what changed each time.", NULL, NULL, NULL,
};

static const struct table_column columns[] = {
	{ "SINCE", TABLE_LEFT }, { "UNTIL", TABLE_LEFT }, { "SHAPE", TABLE_LEFT }, { "STORED", TABLE_LEFT }, { "BYTES", TABLE_RIGHT },
	{ "CHANGE", TABLE_LEFT }, {0},
};

static void add_change(struct table *t, const json_t *change)
{
	table_cell(t, "%s", cmd_text(change, "words"));
	table_severity(t, cmd_text(change, "severity"));
}

static void add_row(struct table *t, const json_t *export)
{
	const char *until = json_string_value(json_object_get(export, "until"));
	const json_t *changes = json_object_get(export, "changes");
	char when[WHEN_MAX];

	table_cell(t, "%s", when_local(cmd_text(export, "since"), when));
	table_cell(t, "%s", until ? when_local(until, when) : "now");
	table_cell(t, "%s", cmd_text(export, "shape"));
	table_cell(t, "%s", cmd_text(export, "stored"));
	table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(export, "stored_bytes"));
	add_change(t, json_array_get(changes, 0));
	for (size_t i = 1; i < json_array_size(changes); i++) {
		for (size_t column = 0; columns[column + 1].head; column++)
			table_cell(t, "%s", "");
		add_change(t, json_array_get(changes, i));
	}
}

static int print_table(const json_t *history, struct err *e)
{
	struct table *t = table_new(columns);
	const json_t *export;
	size_t i;

	json_array_foreach(history, i, export)
		add_row(t, export);
	return table_finish(t, e);
}

int cmd_history(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct buf path = {0};
	struct args a = {0};
	json_t *answer;
	int rc;

	if (cmd_parse(c, &argp, &a, argc, argv, e))
		return -1;
	cmd_node_path(&path, a.node, "/history");
	cmd_query(&path, "limit", a.limit);
	if (!(answer = cmd_get_list(c, &path, "history", e)))
		return -1;
	if (!a.limit)
		cmd_warn_truncated(answer, "use --limit to get more");
	rc = c->json ? cmd_print_json(answer, e) : print_table(json_object_get(answer, "history"), e);
	json_decref(answer);
	return rc;
}
