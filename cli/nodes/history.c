/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"
#include "table.h"
#include "target.h"

struct args {
	const char *node;
	unsigned limit;		/* 0: the registry's */
};

static const struct cmd_option options[] = {
	{ "limit", 0, "N", CMD_NUMBER(limit, 1, 999999999), "Only the last N exports" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "NODE", "List a node's exports, newest first, and what changed each time.", CMD_TEXT(node),
	"a NODE", NULL,
};

static const struct table_column columns[] = {
	{ "SINCE", TABLE_LEFT }, { "UNTIL", TABLE_LEFT }, { "SHAPE", TABLE_LEFT }, { "STORED", TABLE_LEFT },
	{ "BYTES", TABLE_RIGHT }, { "CHANGE", TABLE_LEFT }, {0},
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

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	cmd_node_path(&path, a.node, "/history");
	cmd_query_number(&path, "limit", a.limit);
	if (!(answer = cmd_get_list(c, &path, "history", e)))
		return -1;
	if (!a.limit)
		cmd_warn_truncated(answer, "use --limit to get more");
	return cmd_print_list(c, answer, "history", print_table, e);
}
