/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/block.h"

#include <stdlib.h>
#include <string.h>

#define BITS 10			/* of a value that are kept */
#define EXPONENT_MAX (64 - BITS)
#define CODE_ABSENT 0xffff
#define VARINT_MAX 10		/* bytes */

int trace_block_resize(struct trace_block *b, const struct trace_head *h, unsigned n, struct err *e)
{
	size_t cap = (size_t) n * (h->columns + 1);
	uint64_t *room;

	if (!n || n > TRACE_BLOCK_TICKS || (size_t) n * h->columns > TRACE_BLOCK_VALUES)
		return err_set(e, "%u ticks in a block", n);
	if (cap > b->cap) {
		if (!(room = realloc(b->times, cap * sizeof(*room))))
			return err_set(e, "out of memory");
		b->times = room;
		b->cap = cap;
	}
	b->n = n;
	b->values = b->times + n;
	return 0;
}

void trace_block_free(struct trace_block *b)
{
	free(b->times);
	*b = (struct trace_block){0};
}

/* --- numbers: 7 bits a byte, the lowest first --- */

static uint8_t *varint_put(uint8_t *at, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		*at++ = v | 128;
	*at++ = v;
	return at;
}

static int varint_get(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		v |= (uint64_t) (byte & 127) << shift;
		if (!(byte & 128)) {
			*out = v;
			return 0;
		}
	}
	return -1;
}

/* --- columns --- */

/* What the last value lacks. */
static uint64_t column_encode(const uint64_t *values, unsigned n, enum trace_kind kind, uint8_t *low, uint8_t *high)
{
	uint64_t rest = 0;

	for (unsigned t = 0; t < n; t++) {
		unsigned code = CODE_ABSENT;

		if (values[t] <= TRACE_VALUE_MAX) {
			uint64_t v = values[t] + (kind == TRACE_COUNTER ? rest : 0);
			int bits = 64 - __builtin_clzll(v | 1), exponent = bits > BITS ? bits - BITS : 0;

			code = exponent << BITS | v >> exponent;
			rest = v & ((1ull << exponent) - 1);
		}
		low[t] = code;
		high[t] = code >> 8;
	}
	return rest;
}

static int column_decode(uint64_t *values, unsigned n, uint64_t rest, const uint8_t *low, const uint8_t *high)
{
	uint64_t none, *last = &none;

	for (unsigned t = 0; t < n; t++) {
		unsigned code = high[t] << 8 | low[t], exponent = code >> BITS;

		if (code == CODE_ABSENT) {
			values[t] = TRACE_ABSENT;
			continue;
		}
		if (exponent > EXPONENT_MAX)
			return -1;
		values[t] = (uint64_t) (code & ((1 << BITS) - 1)) << exponent;
		last = &values[t];
	}
	*last += rest;
	return 0;
}

/* --- blocks: times, low bytes, high bytes, rests --- */

void trace_block_encode(const struct trace_block *b, const struct trace_head *h, struct buf *out)
{
	size_t values = (size_t) b->n * h->columns;
	uint8_t *room = (uint8_t *) buf_reserve(out, (b->n + 1 + h->columns) * VARINT_MAX + 2 * values);
	uint8_t *low, *at, *rests;
	uint64_t before = b->begin;

	if (!room)
		return;
	at = varint_put(room, b->begin);
	for (unsigned t = 0; t < b->n; before = b->times[t++])
		at = varint_put(at, b->times[t] - before);
	low = at;
	rests = at + 2 * values;
	for (const struct trace_event *x = h->events; x < h->events + h->nevents; x++)
		for (unsigned c = x->column; c < x->column + h->levels[x->level].n; c++) {
			size_t o = (size_t) c * b->n;

			rests = varint_put(rests,
					   column_encode(b->values + o, b->n, x->kind, low + o, low + values + o));
		}
	out->len += rests - room;
}

int trace_block_decode(struct trace_block *b, const struct trace_head *h, unsigned n, const void *bytes, size_t len,
		       struct err *e)
{
	size_t values = (size_t) n * h->columns;
	const uint8_t *at = bytes, *end = at + len, *low;
	uint64_t time, rest;

	if (trace_block_resize(b, h, n, e))
		return -1;
	if (varint_get(&at, end, &b->begin))
		return err_set(e, "the block is too short");
	time = b->begin;
	for (unsigned t = 0; t < n; t++) {
		uint64_t step;

		if (varint_get(&at, end, &step) || !step || time + step < time)
			return err_set(e, "times do not increase");
		b->times[t] = time += step;
	}
	if ((size_t) (end - at) < 2 * values)
		return err_set(e, "the block is too short");
	low = at;
	at += 2 * values;
	for (size_t o = 0; o < values; o += n)
		if (varint_get(&at, end, &rest) || column_decode(b->values + o, n, rest, low + o, low + values + o))
			return err_set(e, "no value has such an encoding");
	return at == end ? 0 : err_set(e, "the block is too long");
}
