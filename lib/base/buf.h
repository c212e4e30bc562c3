/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * A growing run of bytes, always followed by a NUL that len does not count. {0} is an empty one.
 * An allocation that fails sets `failed`; later appends do nothing, so that a writer checks once, at its end.
 */
struct buf {
	char *data;
	size_t len, cap;
	bool failed;
};

void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Room for at least len more bytes at data + len; NULL when memory is short. The caller adds to b->len what it wrote.
 */
char *buf_reserve(struct buf *b, size_t len);

/* Free the bytes and leave {0}. */
void buf_free(struct buf *b);
