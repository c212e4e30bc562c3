/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "client/claim.h"
#include "fabric.h"
#include "table.h"
#include "target.h"

#define PATH "/v1/fabric"
#define CLAIM "fabric"	/* the subject of the signature instead of a node: registry/http/fabric_serve.h */

struct fabric *fabric_fetch(const struct cmd *c, const char *when, struct err *e)
{
	struct buf path = {0};
	struct fabric *f;
	json_t *j;

	buf_puts(&path, PATH);
	cmd_query(&path, "at", *when ? when : NULL);
	j = cmd_get_json(c, &path, e);
	f = j ? fabric_of_json(j, "the registry's fabric", e) : NULL;
	json_decref(j);
	return f;
}

static void print_import(const json_t *answer)
{
#define N "%" JSON_INTEGER_FORMAT
	printf("version " N "%s: " N " plane(s), " N " switch(es), " N " host(s), " N " link(s)\n",
	       cmd_number(answer, "version"), json_is_true(json_object_get(answer, "changed")) ? "" : ", unchanged",
	       cmd_number(answer, "planes"), cmd_number(answer, "switches"), cmd_number(answer, "hosts"),
	       cmd_number(answer, "links"));
}

int fabric_send(const struct cmd *c, const struct fabric *f, struct err *e)
{
	json_t *j = fabric_json_parts(f), *answer = NULL;
	char *document = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct buf path = {0};
	int rc = 0;

	buf_puts(&path, PATH);
	if (!document)
		err_set(e, "out of memory");
	else if ((answer = cmd_put(c, &path, CLAIM_FABRIC, CLAIM, document, strlen(document), e)) && c->json)
		rc = cmd_print_json(answer, e);
	else if (answer)
		print_import(answer);
	if (!answer)
		rc = -1;
	json_decref(answer);
	free(document);
	json_decref(j);
	return rc;
}

static const struct table_column columns[] = {
	{ "VERSION", TABLE_RIGHT }, { "SINCE", TABLE_LEFT }, { "UNTIL", TABLE_LEFT }, { "CAME", TABLE_RIGHT },
	{ "WENT", TABLE_RIGHT }, { "BY UID", TABLE_RIGHT }, {0},
};

static int print_history(const json_t *history, struct err *e)
{
	struct table *t = table_new(columns);
	const json_t *version;
	char when[WHEN_MAX];
	size_t i;

	json_array_foreach(history, i, version) {
		const char *until = json_string_value(json_object_get(version, "until"));

		table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(version, "version"));
		table_cell(t, "%s", when_local(cmd_text(version, "since"), when));
		table_cell(t, "%s", until ? when_local(until, when) : "now");
		table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(version, "came"));
		table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(version, "went"));
		table_cell(t, "%" JSON_INTEGER_FORMAT, cmd_number(version, "signer"));
	}
	return table_finish(t, e);
}

int fabric_history(const struct cmd *c, unsigned limit, struct err *e)
{
	struct buf path = {0};
	json_t *answer;

	buf_puts(&path, PATH "/history");
	cmd_query_number(&path, "limit", limit);
	if (!(answer = cmd_get_list(c, &path, "history", e)))
		return -1;
	if (!limit)
		cmd_warn_truncated(answer, "use --limit to get more");
	return cmd_print_list(c, answer, "history", print_history, e);
}
