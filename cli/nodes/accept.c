/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "base/log.h"
#include "client/claim.h"
#include "cmd.h"

struct args {
	struct cmd_words nodes;
};

static const struct cmd_syntax syntax = {
	NULL, "NODE...",
	"Accept the current state of a node as the baseline of its class.\v"
	"Only users in Admins may, from hosts in AdminHosts (topiary.conf(5)).",
	CMD_WORDS(nodes), "at least one node", NULL,
};

/* The signature covers the hash that the registry has now, so that a node which changes in between is refused. */
static char *accept_sign(const struct cmd *c, const char *node, struct err *e)
{
	json_t *known = cmd_get_node(c, node, "", e);
	char *credential = known ? cmd_sign(c, CLAIM_ACCEPT, node, cmd_text(known, "sha256"), 0, e) : NULL;

	if (credential && !strcmp(cmd_text(known, "drift"), "slow"))
		log_warning("%s: it remains slow until it is measured again: see topiary bench", node);
	json_decref(known);
	return credential;
}

static json_t *accept_node(const struct cmd *c, const char *node, struct err *e)
{
	struct buf path = {0};

	cmd_node_path(&path, node, "/accept");
	return cmd_post(c, &path, accept_sign(c, node, e), e);
}

/* Nodes accepted before the first failure are reported all the same. */
int cmd_accept(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct err printing;
	json_t *accepted = json_array();
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e);

	for (int i = 0; i < a.nodes.n && rc == 0; i++) {
		json_t *answer = accept_node(c, a.nodes.list[i], e);

		rc = answer ? 0 : -1;
		if (answer && !c->json)
			printf("%s: accepted as the baseline of class %s (%" JSON_INTEGER_FORMAT " node%s)\n",
			       a.nodes.list[i], cmd_text(answer, "class"), cmd_number(answer, "nodes"),
			       cmd_number(answer, "nodes") == 1 ? "" : "s");
		if (answer)
			json_array_append_new(accepted, answer);
	}
	if (c->json && cmd_print_json(accepted, rc ? &printing : e))
		rc = -1;
	json_decref(accepted);
	return rc;
}
