/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "service.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

#define RETRY_SECONDS 5

void call_json(struct call *c, unsigned status, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(json);
	if (!text) {
		c->reply.status = 500;
		return;
	}
	buf_free(&c->reply.body);
	buf_puts(&c->reply.body, text);
	buf_puts(&c->reply.body, "\n");
	free(text);
	c->reply.status = status;
	c->reply.type = "application/json";
}

int call_fail(struct call *c, unsigned status, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* What a worker or a stranger wrote may be no UTF-8, which JSON is. */
	for (char *p = text; *p; p++)
		if ((unsigned char) *p < ' ' || (unsigned char) *p > '~')
			*p = '?';
	if (status >= 500)
		log_error("%s", text);
	c->reply.retry_after = status == 503 ? RETRY_SECONDS : 0;
	call_json(c, status, json_pack("{s:s}", "error", text));
	return -1;
}

struct db *call_db(struct call *c)
{
	struct err e;
	struct db *db = db_take(c->service->pool, &e);

	if (!db)
		call_fail(c, 503, "%s%s%s", c->node, *c->node ? ": " : "", e.text);
	return db;
}
