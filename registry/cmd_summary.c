/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd_summary.h"

#include "cmd.h"
#include "cmd_table.h"
#include "cmd_target.h"

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

static void say_time(struct table *t, const char *name, const json_t *node, const char *key)
{
	char when[WHEN_MAX];

	if (!json_is_string(json_object_get(node, key)))
		return;
	head(t, name);
	table_cell(t, "%s", when_local(cmd_text(node, key), when));
}

static void say_storage(struct table *t, const json_t *node)
{
	const char *stored = json_string_value(json_object_get(node, "stored"));
	const char *base = json_string_value(json_object_get(node, "base"));

	head(t, "XML");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes", cmd_number(node, "xml_bytes"));
	if (!stored)
		return;
	head(t, "stored");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes, %s%s%s", cmd_number(node, "stored_bytes"), stored, base ? " of " : "",
		   base ? base : "");
}

/* The gravest severity, and a line for each change. */
static void say_drift(struct table *t, const json_t *drift)
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
	say_time(t, "drift since", drift, "since");
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
	int rc;

	head(t, "node");
	table_cell(t, "%s", cmd_text(node, "node"));
	table_colour(t, COLOUR_BOLD);
	say_time(t, "at", node, "at");
	say(t, "class", node, "class");
	if (drift)
		say_drift(t, drift);
	say(t, "shape", node, "shape");
	head(t, "cores");
	table_cell(t, "%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " PUs", cmd_number(node, "cores"), cmd_number(node, "pus"));
	say(t, "hierarchy", node, "hierarchy");
	say(t, "allocation", node, "allocation");
	say_time(t, "last boot", node, "last_boot");
	say_time(t, "topology since", node, "topology_since");
	say_storage(t, node);
	say(t, "SHA-256", node, "sha256");
	rc = table_print(t, stdout);
	table_free(t);
	return rc ? err_set(e, "the table cannot be written") : 0;
}
