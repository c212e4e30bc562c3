/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_table.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **hosts = state->input;

	if (key != ARGP_KEY_ARG || *hosts)
		return ARGP_ERR_UNKNOWN;
	*hosts = arg;
	return 0;
}

static const struct argp argp = { NULL, parse, "[HOSTLIST]", "List the nodes that the registry knows.", NULL, NULL, NULL };

static const struct table_column columns[] = {
	{ "NODE", false }, { "SHAPE", false }, { "STORED", false }, { "BYTES", true }, { "XML", true }, { "LAST BOOT", false },
	{0},
};

static const char *text(const json_t *node, const char *key)
{
	const char *s = json_string_value(json_object_get(node, key));

	return s ? s : "-";
}

static json_int_t number(const json_t *node, const char *key)
{
	return json_integer_value(json_object_get(node, key));
}

static void add_row(struct table *t, const json_t *node)
{
	const char *base = json_string_value(json_object_get(node, "base"));

	table_cell(t, "%s", text(node, "node"));
	table_cell(t, "%s", text(node, "shape"));
	table_cell(t, "%s%s%s", text(node, "stored"), base ? " of " : "", base ? base : "");
	table_cell(t, "%" JSON_INTEGER_FORMAT, number(node, "stored_bytes"));
	table_cell(t, "%" JSON_INTEGER_FORMAT, number(node, "xml_bytes"));
	table_cell(t, "%s", text(node, "last_boot"));
}

static int print_table(const json_t *nodes, struct err *e)
{
	struct table *t = table_new(columns);
	json_int_t stored = 0, xml = 0;
	const json_t *node;
	size_t i;
	int rc;

	json_array_foreach(nodes, i, node) {
		add_row(t, node);
		stored += number(node, "stored_bytes");
		xml += number(node, "xml_bytes");
	}
	rc = table_print(t, stdout);
	table_free(t);
	if (rc)
		return err_set(e, "the table cannot be written");
	printf("%zu nodes, %" JSON_INTEGER_FORMAT " bytes stored for %" JSON_INTEGER_FORMAT " bytes of XML\n", i, stored, xml);
	return 0;
}

/* Keep the nodes of the host list. */
static int keep(json_t *nodes, const char *hosts, struct err *e)
{
	hostlist_t list = slurm_hostlist_create(hosts);

	if (!list)
		return err_set(e, "'%s': not a host list", hosts);
	for (size_t i = json_array_size(nodes); i-- > 0;)
		if (slurm_hostlist_find(list, text(json_array_get(nodes, i), "node")) < 0)
			json_array_remove(nodes, i);
	slurm_hostlist_destroy(list);
	return json_array_size(nodes) ? 0 : err_set(e, "%s: the registry has no such node", hosts);
}

int cmd_nodes(struct cmd *c, int argc, char **argv, struct err *e)
{
	const char *hosts = NULL;
	json_t *answer, *nodes;
	int rc = -1;

	if (cmd_parse(c, &argp, &hosts, argc, argv, e) || !(answer = cmd_get_json(c, "/v1/nodes", e)))
		return -1;
	nodes = json_object_get(answer, "nodes");
	if (!json_is_array(nodes))
		err_set(e, "the registry's answer has no list of nodes");
	else if (!hosts || keep(nodes, hosts, e) == 0)
		rc = c->json ? cmd_print_json(answer, e) : print_table(nodes, e);
	json_decref(answer);
	return rc;
}
