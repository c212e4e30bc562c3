/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"

#include <stdarg.h>

char *buf_reserve(struct buf *b, size_t len)
{
	size_t cap = b->cap ? b->cap : 256;
	char *data;

	if (b->failed || len > SIZE_MAX / 4 - b->len)
		goto fail;
	while (cap < b->len + len + 1)
		cap *= 2;
	if (cap != b->cap) {
		if (!(data = realloc(b->data, cap)))
			goto fail;
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
fail:
	b->failed = true;
	return NULL;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	char *at = buf_reserve(b, len);

	if (!at)
		return;
	if (len)
		memcpy(at, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *at;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !(at = buf_reserve(b, n))) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(at, n + 1, fmt, ap);
	va_end(ap);
	b->len += n;
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
