/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "client/claim.h"
#include "nodes.h"
#include "progress.h"
#include "table.h"

/* What only administrators may: `topiary accept`, `forget` and `fsck`. */
struct args {
	struct cmd_words nodes;
	bool repair;	/* fsck */
};

#define ADMINS "Only users in Admins may, from hosts in AdminHosts (topiary.conf(5))."

/*
 * Requests one thing of a node. The signature covers the hash of the export that the registry has now, so that a node
 * which changes in between is refused, or is alive and stays.
 */
static json_t *node_post(const struct cmd *c, const json_t *row, const char *tail, const char *purpose, struct err *e)
{
	const char *node = cmd_text(row, "node");
	struct buf path = {0};

	cmd_node_path(&path, node, tail);
	return cmd_post(c, &path, cmd_sign(c, purpose, node, cmd_text(row, "sha256"), 0, e), e);
}

/* --- accept --- */

static const struct cmd_syntax accept_syntax = {
	NULL, "NODE...", "Accept the current state of a node as the baseline of its class.\v" ADMINS,
	CMD_WORDS(nodes), "at least one node", NULL,
};

/* Nodes accepted before the first failure are reported all the same. */
int cmd_accept(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct err printing;
	json_t *accepted = json_array();
	int rc = cmd_parse(c, &accept_syntax, &a, argc, argv, e);

	for (int i = 0; i < a.nodes.n && rc == 0; i++) {
		const char *node = a.nodes.list[i];
		json_t *known = cmd_get_node(c, node, "", e), *answer = NULL;

		if (known) {
			if (!strcmp(cmd_text(known, "drift"), "slow"))
				log_warning("%s: it remains slow until it is measured again: see topiary bench", node);
			answer = node_post(c, known, "/accept", CLAIM_ACCEPT, e);
			json_decref(known);
		}
		rc = answer ? 0 : -1;
		if (answer && !c->json)
			printf("%s: accepted as the baseline of class %s (%" JSON_INTEGER_FORMAT " node%s)\n", node,
			       cmd_text(answer, "class"), cmd_number(answer, "nodes"),
			       PLURAL(cmd_number(answer, "nodes")));
		if (answer)
			json_array_append_new(accepted, answer);
	}
	if (c->json && cmd_print_json(accepted, rc ? &printing : e))
		rc = -1;
	json_decref(accepted);
	return rc;
}

/* --- forget --- */

static const struct cmd_syntax forget_syntax = {
	NULL, "HOSTLIST...",
	"Remove decommissioned nodes and their history from the registry.\v"
	"A node that exports again comes back. " ADMINS,
	CMD_WORDS(nodes), "at least one node", NULL,
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
		       PLURAL(i), history, PLURAL(history));
	buf_free(&names);
	buf_free(&folded);
	return rc;
}

/* Nodes removed before the first failure are reported all the same. */
int cmd_forget(struct cmd *c, int argc, char **argv, struct err *e)
{
	json_t *nodes = NULL, *removed = json_array(), *row, *answer;
	struct buf list = {0};
	struct args a = {0};
	struct err printing;
	int rc = cmd_parse(c, &forget_syntax, &a, argc, argv, e);
	size_t i;

	for (int n = 0; n < a.nodes.n; n++)
		buf_printf(&list, "%s%s", n ? "," : "", a.nodes.list[n]);
	if (rc == 0 && list.failed)
		rc = err_set(e, "out of memory");
	if (rc == 0 && !(nodes = find_nodes(c, list.data, e)))
		rc = -1;
	json_array_foreach(json_object_get(nodes, "nodes"), i, row) {
		if (!(answer = node_post(c, row, "/forget", CLAIM_FORGET, e))) {
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

/* --- fsck --- */

#define STATUS_FOUND 1
#define STATUS_UNKNOWN 2
#define AGAIN_SECONDS 60	/* as long may PostgreSQL or topiaryd be away meanwhile */

static const struct cmd_option fsck_options[] = {
	{ "repair", 0, NULL, CMD_FLAG(repair), "Request a new export from nodes whose document cannot be rebuilt" },
	{0},
};

static const struct cmd_syntax fsck_syntax = {
	fsck_options, NULL,
	"Rebuild every document in the registry, present and past, and compare its hash with that of the node's export."
	" Only administrators may.\v"
	"The exit status is 0 if all documents can be rebuilt, 1 if some cannot, 2 on an error.",
	{0}, NULL, NULL,
};

/*
 * Request one batch of checks, after node `after`; all but the first again for a while: what has been checked is not
 * lost by a restart.
 */
static json_t *batch_check(const struct cmd *c, bool repair, const char *after, struct err *e)
{
	double until = clock_now() + (*after ? AGAIN_SECONDS : 0);

	for (bool said = false;; said = true) {
		struct buf path = {0};
		char sha256[HASH_HEX];
		json_t *answer;

		hash_hex(after, strlen(after), sha256);
		buf_puts(&path, repair ? "/v1/fsck/repair" : "/v1/fsck");
		cmd_query(&path, "after", *after ? after : NULL);
		answer = cmd_post(c, &path, cmd_sign(c, CLAIM_FSCK, repair ? "fsck-repair" : "fsck", sha256, 0, e), e);
		if (answer || clock_now() >= until)
			return answer;
		if (!said)
			log_warning("%s; trying again for %d s", e->text, AGAIN_SECONDS);
		sleep(1);
	}
}

/* Documents checked; those that cannot be rebuilt are appended to found. -1 with an error. */
static json_int_t check_all(const struct cmd *c, bool repair, json_t *found, struct err *e)
{
	struct progress progress;
	json_t *answer = batch_check(c, repair, "", e);
	const char *next = "";

	progress_start(&progress, "checking documents", answer ? cmd_number(answer, "documents") : 0);
	while (answer && next) {
		json_t *last = answer;

		progress_step(&progress, cmd_number(answer, "checked"));
		json_array_extend(found, json_object_get(answer, "unreadable"));
		if ((next = json_string_value(json_object_get(answer, "next")))) {
			answer = batch_check(c, repair, next, e);
			json_decref(last);
		}
	}
	progress_end(&progress);
	json_decref(answer);
	return answer ? (json_int_t) progress.done : -1;
}

static int print_found(const json_t *found, json_int_t checked, bool repair, struct err *e)
{
	struct table *t = table_new("NODE|SINCE|DOCUMENT|~REASON");
	size_t i, present = 0;
	json_t *one;
	int rc = 0;

	json_array_foreach(found, i, one) {
		bool now = json_is_true(json_object_get(one, "present"));

		table_cell(t, "%s|%s|%s|%s", cmd_text(one, "node"), cmd_text(one, "since"), now ? "present" : "past",
			   cmd_text(one, "reason"));
		present += now;
	}
	if (json_array_size(found) && table_print(t, stdout))
		rc = err_set(e, "cannot write the table to standard output");
	table_free(t);
	printf("%" JSON_INTEGER_FORMAT " document%s checked, %zu cannot be rebuilt", checked, PLURAL(checked),
	       json_array_size(found));
	if (present)
		printf(repair ? "; %zu node%s will export anew at the next boot or recheck" :
		       "; `topiary fsck --repair` requests new exports from %zu node%s", present, PLURAL(present));
	puts("");
	return rc;
}

int cmd_fsck(struct cmd *c, int argc, char **argv, struct err *e)
{
	json_t *found = json_array();
	json_int_t checked;
	struct args a = {0};
	int rc = -1;

	c->status = argp_err_exit_status = STATUS_UNKNOWN;
	if (cmd_parse(c, &fsck_syntax, &a, argc, argv, e) || (checked = check_all(c, a.repair, found, e)) < 0)
		goto done;
	rc = c->json ? cmd_print_new(json_pack("{s:I, s:b, s:O}", "checked", checked, "repaired", a.repair,
					       "unreadable", found), e) :
		       print_found(found, checked, a.repair, e);
	if (rc == 0)
		c->status = json_array_size(found) ? STATUS_FOUND : 0;
done:
	json_decref(found);
	return rc;
}
