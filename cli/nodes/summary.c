/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "show.h"

#include "cmd.h"
#include "table.h"
#include "target.h"

static void row_text(struct table *t, const char *name, const json_t *node, const char *key)
{
	if (!json_is_string(json_object_get(node, key)))
		return;
	table_label(t, name);
	table_cell(t, "%s", cmd_text(node, key));
}

static void describe_time(struct table *t, const char *name, const json_t *node, const char *key)
{
	char when[WHEN_MAX];

	if (!json_is_string(json_object_get(node, key)))
		return;
	table_label(t, name);
	table_cell(t, "%s", when_local(cmd_text(node, key), when));
}

static void describe_storage(struct table *t, const json_t *node)
{
	const char *stored = json_string_value(json_object_get(node, "stored"));
	const char *base = json_string_value(json_object_get(node, "base"));

	table_label(t, "XML");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes", cmd_number(node, "xml_bytes"));
	if (!stored)
		return;
	table_label(t, "stored");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes, %s%s%s", cmd_number(node, "stored_bytes"), stored,
		   base ? " of " : "", base ? base : "");
}

/* The highest severity, and a line for each change. */
static void describe_drift(struct table *t, const json_t *drift)
{
	const char *severity = json_string_value(json_object_get(drift, "severity"));
	const json_t *change;
	size_t i;

	table_label(t, "drift");
	if (!severity) {
		table_cell(t, "none");
		return;
	}
	table_cell(t, "%s", severity);
	table_severity(t, severity);
	describe_time(t, "drift since", drift, "since");
	json_array_foreach(json_object_get(drift, "changes"), i, change) {
		table_label(t, "");
		table_cell(t, "%s", cmd_text(change, "words"));
		table_severity(t, cmd_text(change, "severity"));
	}
}

int summary_print(const json_t *node, const json_t *drift, struct err *e)
{
	static const struct table_column columns[] = { { "", TABLE_LEFT }, { "", TABLE_LEFT }, {0} };
	struct table *t = table_new(columns);

	table_label(t, "node");
	table_cell(t, "%s", cmd_text(node, "node"));
	table_colour(t, COLOUR_BOLD);
	describe_time(t, "at", node, "at");
	row_text(t, "class", node, "class");
	if (drift)
		describe_drift(t, drift);
	row_text(t, "shape", node, "shape");
	table_label(t, "cores");
	table_cell(t, "%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " PUs", cmd_number(node, "cores"),
		   cmd_number(node, "pus"));
	row_text(t, "hierarchy", node, "hierarchy");
	row_text(t, "allocation", node, "allocation");
	describe_time(t, "last boot", node, "last_boot");
	describe_time(t, "topology since", node, "topology_since");
	describe_time(t, "costs measured", node, "costs_measured");
	describe_storage(t, node);
	row_text(t, "SHA-256", node, "sha256");
	return table_finish(t, e);
}
