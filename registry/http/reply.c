/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server_parts.h"

#include <stdio.h>
#include <string.h>

/* Is the entity tag in an If-None-Match list, by weak comparison? */
static bool list_has(const char *list, const char *tag)
{
	size_t len = strlen(tag), n;

	for (list += strspn(list, " \t,"); *list; list += n + strspn(list + n, " \t,")) {
		if (*list == '*')
			return true;
		if (!strncmp(list, "W/", 2))
			list += 2;
		n = *list == '"' ? 1 + strcspn(list + 1, "\"") : 0;
		if (!n || list[n] != '"')
			return false;
		n++;
		if (n == len && !memcmp(list, tag, len))
			return true;
	}
	return false;
}

static void add_header(struct MHD_Response *m, const char *name, const char *value)
{
	if (value && *value)
		MHD_add_response_header(m, name, value);
}

void reply_set_etag(struct call *c)
{
	struct call_reply *r = &c->reply;
	char sha256[HASH_HEX];

	if (r->status != 200)
		return;
	hash_hex(r->body.data, r->body.len, sha256);
	snprintf(r->etag, sizeof(r->etag), "\"%.*s\"", ETAG_DIGITS, sha256);
	if (!c->if_none_match || !list_has(c->if_none_match, r->etag))
		return;
	buf_free(&r->body);
	r->status = 304;
	r->type = NULL;
}

enum MHD_Result reply_send(struct MHD_Connection *conn, struct call *c)
{
	struct call_reply *r = &c->reply;
	char retry[16] = "";
	struct MHD_Response *m;
	enum MHD_Result rc;

	if (r->retry_after)
		snprintf(retry, sizeof(retry), "%u", r->retry_after);
	if (!(m = MHD_create_response_from_buffer(r->body.len, r->body.data, MHD_RESPMEM_MUST_FREE)))
		return MHD_NO;
	r->body = (struct buf){0};
	add_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
	add_header(m, MHD_HTTP_HEADER_ETAG, r->etag);
	add_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
	add_header(m, MHD_HTTP_HEADER_RETRY_AFTER, retry);
	add_header(m, MHD_HTTP_HEADER_ALLOW, r->allow);
	add_header(m, MHD_HTTP_HEADER_CONNECTION, r->close ? "close" : NULL);
	add_header(m, "Topiary-Ack", r->ack);
	add_header(m, "Topiary-SHA256", r->sha256);
	add_header(m, "X-Content-Type-Options", "nosniff");
	rc = MHD_queue_response(conn, r->status, m);
	MHD_destroy_response(m);
	return rc;
}
