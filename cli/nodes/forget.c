/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "client/claim.h"
#include "cmd.h"
#include "hosts.h"
#include "shape/hostlist.h"

struct args {
	struct cmd_words hosts;
};

static const struct cmd_syntax syntax = {
	NULL, "HOSTLIST...",
	"Remove decommissioned nodes and their history from the registry.\v"
	"A node that exports again comes back. Only users in Admins may, from hosts in AdminHosts (topiary.conf(5)).",
	CMD_WORDS(hosts), "at least one node", NULL,
};

/* All of them, or NULL with an error if the registry does not know one: a mistyped list removes nothing. */
static json_t *find_nodes(struct cmd *c, const char *list, struct err *e)
{
	struct buf path = {0};
	json_t *answer;

	buf_puts(&path, "/v1/nodes");
	hosts_query(&path, list);
	if (!(answer = cmd_get_list(c, &path, "nodes", e)))
		return NULL;
	if (hosts_keep(c, list, answer, "nodes", true, e) == 0 && hosts_sort(answer, "nodes", e) == 0) {
		if (!c->status)
			return answer;
		err_set(e, "no node was removed");
	}
	json_decref(answer);
	return NULL;
}

/* Signed for the export that the registry has now: a node that exports another in between is alive and stays. */
static json_t *remove_node(const struct cmd *c, const json_t *row, struct err *e)
{
	const char *node = cmd_text(row, "node");
	struct buf path = {0};

	cmd_node_path(&path, node, "/forget");
	return cmd_post(c, &path, cmd_sign(c, CLAIM_FORGET, node, cmd_text(row, "sha256"), 0, e), e);
}

static int print_removed(const json_t *removed, struct err *e)
{
	struct buf names = {0}, folded = {0};
	json_int_t history = 0;
	const json_t *one;
	size_t i;
	int rc;

	json_array_foreach(removed, i, one) {
		buf_printf(&names, "%s%s", i ? "," : "", cmd_text(one, "node"));
		history += cmd_number(one, "history");
	}
	rc = names.failed ? err_set(e, "out of memory") : hostlist_fold(names.data, &folded, e);
	if (rc == 0)
		printf("%s: removed (%zu node%s, %" JSON_INTEGER_FORMAT " former export%s)\n", folded.data, i,
		       i == 1 ? "" : "s", history, history == 1 ? "" : "s");
	buf_free(&names);
	buf_free(&folded);
	return rc;
}

/* Nodes removed before the first failure are reported all the same. */
int cmd_forget(struct cmd *c, int argc, char **argv, struct err *e)
{
	json_t *nodes = NULL, *removed = json_array(), *row;
	struct buf list = {0};
	struct args a = {0};
	struct err printing;
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e);
	size_t i;

	for (int n = 0; n < a.hosts.n; n++)
		buf_printf(&list, "%s%s", n ? "," : "", a.hosts.list[n]);
	if (rc == 0 && list.failed)
		rc = err_set(e, "out of memory");
	if (rc == 0 && !(nodes = find_nodes(c, list.data, e)))
		rc = -1;
	json_array_foreach(json_object_get(nodes, "nodes"), i, row) {
		json_t *answer = remove_node(c, row, e);

		if (!answer) {
			rc = -1;
			break;
		}
		json_array_append_new(removed, answer);
	}
	if ((c->json && nodes) || json_array_size(removed))
		if ((c->json ? cmd_print_json : print_removed)(removed, rc ? &printing : e))
			rc = -1;
	json_decref(removed);
	json_decref(nodes);
	buf_free(&list);
	return rc;
}
