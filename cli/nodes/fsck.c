/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "client/claim.h"
#include "cmd.h"
#include "progress.h"
#include "table.h"

#define STATUS_FOUND 1
#define STATUS_UNKNOWN 2
#define AGAIN_SECONDS 60	/* as long may PostgreSQL or topiaryd be away meanwhile */

struct args {
	bool repair;
};

static const struct cmd_option options[] = {
	{ "repair", 0, NULL, CMD_FLAG(repair), "Request a new export from nodes whose document cannot be rebuilt" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, NULL,
	"Rebuild every document in the registry, present and past, and compare its hash with that of the node's export."
	" Only administrators may.\v"
	"The exit status is 0 if all documents can be rebuilt, 1 if some cannot, 2 on an error.",
	{0}, NULL, NULL,
};

/* Request one batch of checks, starting after node `after`. */
static json_t *batch_check(const struct cmd *c, bool repair, const char *after, struct err *e)
{
	struct buf path = {0};
	char sha256[HASH_HEX];

	hash_hex(after, strlen(after), sha256);
	buf_puts(&path, repair ? "/v1/fsck/repair" : "/v1/fsck");
	cmd_query(&path, "after", *after ? after : NULL);
	return cmd_post(c, &path, cmd_sign(c, CLAIM_FSCK, repair ? "fsck-repair" : "fsck", sha256, 0, e), e);
}

/* As batch_check, for all but the first: what has been checked is not lost by a restart. */
static json_t *batch_retry(const struct cmd *c, bool repair, const char *after, struct err *e)
{
	double until = clock_now() + AGAIN_SECONDS;
	json_t *answer;

	for (bool said = false; !(answer = batch_check(c, repair, after, e)) && clock_now() < until; said = true) {
		if (!said)
			log_warning("%s; trying again for %d s", e->text, AGAIN_SECONDS);
		sleep(1);
	}
	return answer;
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
		if ((next = json_string_value(json_object_get(answer, "next"))))
			answer = batch_retry(c, repair, next, e);
		if (next)
			json_decref(last);
	}
	progress_end(&progress);
	json_decref(answer);
	return answer ? (json_int_t) progress.done : -1;
}

static int print_table(const json_t *found, json_int_t checked, bool repair, struct err *e)
{
	static const struct table_column columns[] = {
		{ "NODE", TABLE_LEFT }, { "SINCE", TABLE_LEFT }, { "DOCUMENT", TABLE_LEFT }, { "REASON", TABLE_CUT },
		{0},
	};
	struct table *t = table_new(columns);
	size_t i, present = 0;
	json_t *one;
	int rc = 0;

	json_array_foreach(found, i, one) {
		bool now = json_is_true(json_object_get(one, "present"));

		table_cell(t, "%s", cmd_text(one, "node"));
		table_cell(t, "%s", cmd_text(one, "since"));
		table_cell(t, now ? "present" : "past");
		table_cell(t, "%s", cmd_text(one, "reason"));
		present += now;
	}
	if (json_array_size(found) && table_print(t, stdout))
		rc = err_set(e, "cannot write the table to standard output");
	table_free(t);
	printf("%" JSON_INTEGER_FORMAT " documents checked, %zu cannot be rebuilt", checked, json_array_size(found));
	if (present)
		printf(repair ? "; %zu nodes will export anew at their next boot or recheck" :
		       "; `topiary fsck --repair` requests new exports from %zu nodes", present);
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
	if (cmd_parse(c, &syntax, &a, argc, argv, e) || (checked = check_all(c, a.repair, found, e)) < 0)
		goto done;
	rc = c->json ? cmd_print_new(json_pack("{s:I, s:b, s:O}", "checked", checked, "repaired", a.repair,
					       "unreadable", found), e) :
		       print_table(found, checked, a.repair, e);
	if (rc == 0)
		c->status = json_array_size(found) ? STATUS_FOUND : 0;
done:
	json_decref(found);
	return rc;
}
