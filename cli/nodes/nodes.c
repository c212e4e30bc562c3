/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "changes.h"
#include "cmd.h"
#include "hosts.h"
#include "table.h"
#include "target.h"
#include "shape/hostlist.h"

struct args {
	const char *hosts, *shape, *class, *drift;
	bool names;
};

static bool is_filtered(const struct args *a)
{
	return a->shape || a->class || a->drift;
}

static void set_drift(void *args, const char *severity, struct argp_state *state)
{
	if (severity && strcmp(severity, "any") && drift_severity_parse(severity) < 0)
		argp_error(state, "--drift=%s: invalid value, expected one of: cosmetic, wiring, slow, capacity, any",
			   severity);
	((struct args *) args)->drift = severity ? severity : "any";
}

static const struct cmd_option options[] = {
	{ "shape", 0, "SHAPE", CMD_TEXT(shape), "Only nodes of this shape" },
	{ "class", 0, "CLASS", CMD_TEXT(class), "Only nodes of this class" },
	{ "drift", 0, "SEVERITY", CMD_OPTIONAL(set_drift),
	  "Only nodes that have drifted from the baseline of their class: cosmetic, wiring, slow, "
	  "capacity or any (default)" },
	{ "names", 0, NULL, CMD_FLAG(names), "Print only names, one per line" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "[HOSTLIST]", "List the nodes that the registry knows.", CMD_TEXT(hosts), NULL, NULL,
};

static const struct table_column columns[] = {
	{ "NODE", TABLE_LEFT }, { "CLASS", TABLE_LEFT }, { "DRIFT", TABLE_LEFT }, { "SHAPE", TABLE_LEFT },
	{ "STORED", TABLE_LEFT }, { "BYTES", TABLE_RIGHT }, { "XML", TABLE_RIGHT }, { "LAST BOOT", TABLE_LEFT }, {0},
};

static void add_row(struct table *t, const json_t *node)
{
	const char *base = json_string_value(json_object_get(node, "base"));
	char when[WHEN_MAX];

	table_cell(t, "%s", cmd_text(node, "node"));
	table_cell(t, "%s", cmd_text(node, "class"));
	table_cell(t, "%s", cmd_text(node, "drift"));
	table_severity(t, cmd_text(node, "drift"));
	table_cell(t, "%s", cmd_text(node, "shape"));
	table_cell(t, "%s%s%s", cmd_text(node, "stored"), base ? " of " : "", base ? base : "");
	table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(node, "stored_bytes"));
	table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(node, "xml_bytes"));
	table_cell(t, "%s", when_local(json_string_value(json_object_get(node, "last_boot")), when));
}

static int print_table(const json_t *nodes, struct err *e)
{
	struct table *t = table_new(columns);
	json_int_t stored = 0, xml = 0;
	size_t i, drifted = 0;
	const json_t *node;

	json_array_foreach(nodes, i, node) {
		add_row(t, node);
		stored += cmd_number(node, "stored_bytes");
		xml += cmd_number(node, "xml_bytes");
		drifted += json_is_string(json_object_get(node, "drift"));
	}
	if (table_finish(t, e))
		return -1;
	printf("%zu node%s, %zu with drift; %" JSON_INTEGER_FORMAT " bytes stored for %" JSON_INTEGER_FORMAT
	       " bytes of XML\n",
	       i, i == 1 ? "" : "s", drifted, stored, xml);
	return 0;
}

static int print_names(const json_t *nodes, struct err *e)
{
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node)
		puts(cmd_text(node, "node"));
	return fflush(stdout) || ferror(stdout) ? err_set(e, "cannot write the names to standard output") : 0;
}

static int print_name(const char *name, void *user)
{
	(void) user;
	puts(name);
	return 0;
}

/* All names come folded with the shapes, in a thousandth of the bytes: fast enough for completion in a shell. */
static int print_all_names(const struct cmd *c, struct err *e)
{
	struct buf path = {0}, hosts = {0}, sorted = {0};
	const json_t *shape;
	json_t *answer;
	int rc = 0;
	size_t i;

	buf_puts(&path, "/v1/shapes");
	if (!(answer = cmd_get_list(c, &path, "shapes", e)))
		return -1;
	json_array_foreach(json_object_get(answer, "shapes"), i, shape)
		buf_printf(&hosts, "%s%s", i ? "," : "", cmd_text(shape, "hosts"));
	json_decref(answer);
	if (hosts.failed)
		rc = err_set(e, "out of memory");
	else if (hosts.len)
		rc = hostlist_fold(hosts.data, &sorted, e);
	if (rc == 0 && sorted.len)
		rc = hostlist_expand(sorted.data, print_name, NULL, e);
	if (rc == 0 && (fflush(stdout) || ferror(stdout)))
		rc = err_set(e, "cannot write the names to standard output");
	buf_free(&sorted);
	buf_free(&hosts);
	return rc;
}

static json_t *nodes_get(const struct cmd *c, const struct args *a, struct err *e)
{
	struct buf path = {0};

	buf_puts(&path, "/v1/nodes");
	hosts_query(&path, a->hosts);
	cmd_query(&path, "shape", a->shape);
	cmd_query(&path, "class", a->class);
	cmd_query(&path, "drift", a->drift);
	return cmd_get_list(c, &path, "nodes", e);
}

int cmd_nodes(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	json_t *answer, *nodes;
	int rc = 0;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.names && !c->json && !a.hosts && !is_filtered(&a))
		return print_all_names(c, e);
	if (!(answer = nodes_get(c, &a, e)))
		return -1;
	cmd_warn_truncated(answer, "select fewer nodes with a host list");
	if (a.hosts)
		rc = hosts_keep(c, a.hosts, answer, "nodes", !is_filtered(&a), e);
	if (rc == 0)
		rc = hosts_sort(answer, "nodes", e);
	nodes = json_object_get(answer, "nodes");
	if (rc == 0)
		rc = c->json ? cmd_print_json(answer, e) : a.names ? print_names(nodes, e) : print_table(nodes, e);
	json_decref(answer);
	return rc;
}
