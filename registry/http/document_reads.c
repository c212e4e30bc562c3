/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/json_rows.h"
#include "store/document.h"
#include "hwxml/redact.h"

#define COMPARED 20	/* entries of a history; each comparison costs a worker some milliseconds */
#define ENTRIES "100"
#define WAIT_SECONDS 4	/* of a read, for its turn of the parser */

static const unsigned status_of[] = { [DOCUMENT_ABSENT] = 404, [DOCUMENT_BAD_TIME] = 400, [DOCUMENT_FAILED] = 503 };

/* 0, or -1 with the reply filled. */
static int acquire_parser(struct call *c)
{
	return clock_take(&c->service->parsing_reads, clock_now() + WAIT_SECONDS) == 0 ? 0 :
	       call_fail(c, 503, "%s: too many reads need the parser; try again later", c->node);
}

static void release_parser(struct call *c)
{
	sem_post(&c->service->parsing_reads);
}

static int document_canonical(struct call *c, struct buf *xml)
{
	enum parser_result rc;
	struct buf canon;
	struct err e;

	if (acquire_parser(c))
		return -1;
	rc = parser_canon(c->service->parser, c->node, xml, &canon, &e);
	release_parser(c);
	if (rc != PARSER_OK)
		return call_fail(c, 503, "%s", e.text);
	buf_free(xml);
	*xml = canon;
	hash_hex(xml->data, xml->len, c->reply.sha256);
	return 0;
}

/* Redact what the reader may not see; the result has a hash of its own. */
static int redact_serials(struct call *c, struct buf *xml)
{
	struct buf public = {0};

	if (access_sees_serials(c))
		return 0;
	redact_xml(xml->data, xml->len, &public);
	buf_free(xml);
	if (public.failed)
		return call_fail(c, 503, "%s: out of memory", c->node);
	*xml = public;
	hash_hex(xml->data, xml->len, c->reply.sha256);
	return 0;
}

void read_topology(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	struct buf xml = {0};
	enum document_result rc;
	struct err e;

	if (!db)
		return;
	rc = document_load(c->service->bases, db, c->node, call_param(c, "at"), &xml, c->reply.sha256, &e);
	call_release(c, db);
	if (rc != DOCUMENT_OK)
		call_fail(c, status_of[rc], "%s", e.text);
	else if ((!call_param(c, "form") || document_canonical(c, &xml) == 0) && redact_serials(c, &xml) == 0)
		call_body(c, "application/xml", &xml);
	buf_free(&xml);
	if (c->reply.status != 200)
		c->reply.sha256[0] = '\0';
}

static const struct json_column columns[] = {
	{ "since", COLUMN_TEXT }, { "until", COLUMN_TEXT }, { "sha256", COLUMN_TEXT }, { "shape", COLUMN_TEXT },
	{ "stored", COLUMN_TEXT }, { "stored_bytes", COLUMN_PLAIN }, { "xml_bytes", COLUMN_PLAIN }, {0},
};
#define SINCE 0

static const char history_sql[] = "SELECT " RFC3339_US("since") ", " RFC3339_US("until") ", sha256, shape, stored,"
	" stored_bytes, xml_bytes FROM topiary_history WHERE node = $1 ORDER BY topiary_history.since DESC LIMIT"
	" $2::integer + 1";

static enum document_result entry_xml(struct call *c, struct db *db, const PGresult *r, int row, struct buf *out,
				      struct err *e)
{
	char sha256[HASH_HEX];

	return document_load(c->service->bases, db, c->node, PQgetvalue(r, row, SINCE), out, sha256, e);
}

/* NULL when out of memory. */
static void changes_redact(char **json)
{
	json_t *list = json_loads(*json, 0, NULL);

	for (size_t i = json_array_size(list); i-- > 0;)
		if (redact_applies(json_string_value(json_object_get(json_array_get(list, i), "what")) ?: ""))
			json_array_remove(list, i);
	free(*json);
	*json = list ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
}

/* Changes from the row before in time, which becomes *older, to `newer`; null when they cannot be determined. */
static void add_changes(struct buf *out, struct call *c, struct db *db, const PGresult *r, int row,
			const struct buf *newer, struct buf *older)
{
	char *json = NULL;
	int severity;
	struct err e;

	if (newer->data && row + 1 < PQntuples(r) && entry_xml(c, db, r, row + 1, older, &e) == DOCUMENT_OK &&
	    parser_compare(c->service->parser, c->node, older, newer, 0, NULL, &json, &severity, &e) != PARSER_OK)
		json = NULL;
	if (json && !access_sees_serials(c))
		changes_redact(&json);
	buf_puts(out, ",\"changes\":");
	buf_puts(out, json ? json : "null");
	free(json);
}

/* The query returns one row more than is shown, for the last one to be compared with. */
static void add_entries(struct buf *out, struct call *c, struct db *db, const PGresult *r, int shown)
{
	struct buf newer = {0}, older = {0};
	struct err e;

	if (entry_xml(c, db, r, 0, &newer, &e) != DOCUMENT_OK)
		newer = (struct buf){0};
	for (int i = 0; i < shown; i++) {
		buf_puts(out, i ? ",{" : "{");
		json_rows_members(out, r, i, columns);
		if (i == COMPARED)
			buf_free(&newer);
		add_changes(out, c, db, r, i, &newer, &older);
		buf_puts(out, "}");
		buf_free(&newer);
		newer = older;
		older = (struct buf){0};
	}
	buf_free(&newer);
}

static void reply_history(struct call *c)
{
	const char *limit = call_param(c, "limit") ? call_param(c, "limit") : ENTRIES;
	struct db *db = call_acquire_reader(c);
	struct buf out = {0};
	struct err e;
	PGresult *r = db ? db_query(db, &e, history_sql, 2,
				    (struct db_value[]){ DB_TEXT(c->node), DB_TEXT(limit) }) : NULL;
	int n = r ? PQntuples(r) : 0;

	if (n) {
		buf_printf(&out, "{\"node\":\"%s\",\"history\":[", c->node);
		add_entries(&out, c, db, r, n > atoi(limit) ? n - 1 : n);
		buf_printf(&out, "],\"truncated\":%s}\n", n > atoi(limit) ? "true" : "false");
		call_body(c, "application/json", &out);
	} else if (r) {
		call_fail(c, 404, "%s: not in the registry", c->node);
	} else if (db) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
	}
	PQclear(r);
	call_release(c, db);
}

void read_history(struct call *c)
{
	if (acquire_parser(c))
		return;
	reply_history(c);
	release_parser(c);
}
