/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "summary.h"

#include "cmd.h"
#include "table.h"
#include "target.h"

static void head(struct table *t, const char *name)
{
	table_cell(t, "%s", name);
	table_colour(t, COLOUR_FAINT);
}

static void say(struct table *t, const char *name, const json_t *node, const char *key)
{
	if (!json_is_string(json_object_get(node, key)))
		return;
	head(t, name);
	table_cell(t, "%s", cmd_text(node, key));
}

static void describe_time(struct table *t, const char *name, const json_t *node, const char *key)
{
	char when[WHEN_MAX];

	if (!json_is_string(json_object_get(node, key)))
		return;
	head(t, name);
	table_cell(t, "%s", when_local(cmd_text(node, key), when));
}

static void describe_storage(struct table *t, const json_t *node)
{
	const char *stored = json_string_value(json_object_get(node, "stored"));
	const char *base = json_string_value(json_object_get(node, "base"));

	head(t, "XML");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes", cmd_number(node, "xml_bytes"));
	if (!stored)
		return;
	head(t, "stored");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes, %s%s%s", cmd_number(node, "stored_bytes"), stored,
		   base ? " of " : "", base ? base : "");
}

/* The highest severity, and a line for each change. */
static void describe_drift(struct table *t, const json_t *drift)
{
	const char *severity = json_string_value(json_object_get(drift, "severity"));
	const json_t *change;
	size_t i;

	head(t, "drift");
	if (!severity) {
		table_cell(t, "none");
		return;
	}
	table_cell(t, "%s", severity);
	table_severity(t, severity);
	describe_time(t, "drift since", drift, "since");
	json_array_foreach(json_object_get(drift, "changes"), i, change) {
		head(t, "");
		table_cell(t, "%s", cmd_text(change, "words"));
		table_severity(t, cmd_text(change, "severity"));
	}
}

int summary_print(const json_t *node, const json_t *drift, struct err *e)
{
	static const struct table_column columns[] = { { "", TABLE_LEFT }, { "", TABLE_LEFT }, {0} };
	struct table *t = table_new(columns);

	head(t, "node");
	table_cell(t, "%s", cmd_text(node, "node"));
	table_colour(t, COLOUR_BOLD);
	describe_time(t, "at", node, "at");
	say(t, "class", node, "class");
	if (drift)
		describe_drift(t, drift);
	say(t, "shape", node, "shape");
	head(t, "cores");
	table_cell(t, "%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " PUs", cmd_number(node, "cores"),
		   cmd_number(node, "pus"));
	say(t, "hierarchy", node, "hierarchy");
	say(t, "allocation", node, "allocation");
	describe_time(t, "last boot", node, "last_boot");
	describe_time(t, "topology since", node, "topology_since");
	describe_storage(t, node);
	say(t, "SHA-256", node, "sha256");
	return table_finish(t, e);
}
