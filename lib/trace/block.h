/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_BLOCK_H
#define TOPIARY_TRACE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "trace/head.h"

/*
 * Some ticks of a trace, encoded independently of all others. A value is stored as its 10 leading bits and an exponent,
 * 2 bytes; what a counter's value lacks is carried into the next one, so that the error never grows, and the last one's
 * is stored: the sum of a counter over a block is exact, as is a gauge's last value. A value alone differs from the
 * true one by at most 1/512 of it and, for a counter, of the largest one before it in the block. Low and high bytes are
 * kept apart, because high ones repeat.
 */
#define TRACE_BLOCK_TICKS 60u		/* at most */
#define TRACE_BLOCK_VALUES (1u << 22)	/* at most; more columns make shorter blocks */
#define TRACE_ABSENT UINT64_MAX		/* not measured; distinct from 0 */
#define TRACE_VALUE_MAX (UINT64_MAX >> 1)	/* greater ones are recorded as absent */

struct trace_block {
	unsigned n;			/* ticks */
	uint64_t begin;			/* nanoseconds since the trace's start: the first tick's interval begins here */
	uint64_t *times;		/* ends of the ticks' intervals, increasing */
	uint64_t *values;		/* of a column n values: values[column * n + tick] */
	size_t cap;
};

/* Allocate for n ticks; keeps nothing. 0 or -1. Free with trace_block_free, which leaves {0}. */
int trace_block_resize(struct trace_block *b, const struct trace_head *h, unsigned n, struct err *e);
void trace_block_free(struct trace_block *b);

/* Append its bytes to out, whose `failed` tells of short memory. */
void trace_block_encode(const struct trace_block *b, const struct trace_head *h, struct buf *out);
/* Decode n ticks. 0, or -1 with b of any content. */
int trace_block_decode(struct trace_block *b, const struct trace_head *h, unsigned n, const void *bytes, size_t len,
		       struct err *e);

#endif
