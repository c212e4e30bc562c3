/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <stdbool.h>
#include <string.h>

static bool bodies_equal(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static void run_flush(struct runs *r)
{
	buf_printf(&r->done, "%s%s:%u", r->n++ ? " | " : "", r->type, r->count);
	buf_add(&r->done, r->last.data, r->last.len);
}

void runs_add(struct runs *r, const char *type, const struct buf *body)
{
	if (r->type && !strcmp(r->type, type) && bodies_equal(&r->last, body)) {
		r->count++;
		return;
	}
	if (r->type)
		run_flush(r);
	r->type = type;
	r->count = 1;
	r->last.len = 0;
	buf_add(&r->last, body->data, body->len);
	r->last.failed |= body->failed;
}

void runs_append(struct runs *r, struct buf *out)
{
	if (!r->type)
		return;
	run_flush(r);
	buf_puts(out, r->n > 1 ? " { " : " ");
	buf_add(out, r->done.data, r->done.len);
	buf_puts(out, r->n > 1 ? " }" : "");
	out->failed |= r->done.failed | r->last.failed;
	r->n = r->count = 0;
	r->type = NULL;
	r->done.len = r->last.len = 0;
}

void runs_free(struct runs *r)
{
	buf_free(&r->done);
	buf_free(&r->last);
}
