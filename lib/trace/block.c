/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/block.h"

#include <assert.h>
#include <endian.h>
#include <zstd.h>

#define LEVEL 1		/* the recorder's CPU time is the job's */

void trace_chunk_put_number(struct buf *out, uint64_t v)
{
	v = htole64(v);
	buf_add(out, &v, sizeof(v));
}

uint64_t trace_chunk_number(const void *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

void trace_chunk_put_header(const struct trace_chunk *c, struct buf *out)
{
	trace_chunk_put_number(out, (uint64_t) c->ticks << 32 | c->kind);
	trace_chunk_put_number(out, (uint64_t) c->raw << 32 | c->stored);
	trace_chunk_put_number(out, c->begin);
	trace_chunk_put_number(out, c->end);
}

struct trace_chunk trace_chunk_header(const void *at)
{
	const char *p = at;
	uint64_t kind = trace_chunk_number(p), sizes = trace_chunk_number(p + 8);

	return (struct trace_chunk){ .kind = kind, .ticks = kind >> 32, .stored = sizes, .raw = sizes >> 32,
			       .begin = trace_chunk_number(p + 16), .end = trace_chunk_number(p + 24) };
}

static size_t compress(const struct buf *payload, char *to, size_t room)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t n = 0;

	if (z && !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1)))
		n = ZSTD_compress2(z, to, room, payload->data, payload->len);
	ZSTD_freeCCtx(z);
	return ZSTD_isError(n) ? 0 : n;
}

int trace_chunk_put(struct trace_chunk *c, const struct buf *payload, struct buf *out, struct err *e)
{
	size_t room = ZSTD_compressBound(payload->len), header = out->len, n;
	uint32_t stored;
	char *at;

	if (payload->failed || payload->len > CHUNK_MAX)
		return err_set(e, payload->failed ? "out of memory" : "more than %u bytes in a chunk", CHUNK_MAX);
	c->raw = payload->len;
	trace_chunk_put_header(c, out);
	if (!(at = buf_reserve(out, room)) || !(n = compress(payload, at, room)))
		return err_set(e, "out of memory");
	out->len += n;
	c->stored = n;
	stored = htole32(c->stored);
	memcpy(out->data + header + 8, &stored, sizeof(stored));
	return 0;
}

int trace_chunk_bytes(int fd, off_t offset, void *to, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *) to + done, len - done, offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, "byte %lld: %s", (long long) offset, n ? strerror(errno) : "the file ends");
		done += n;
	}
	return 0;
}

int trace_chunk_read(int fd, off_t offset, const struct trace_chunk *c, struct buf *out, struct err *e)
{
	struct buf packed = {0};
	char *from, *to;
	size_t n;
	int rc = 0;

	out->len = 0;
	if (c->raw > CHUNK_MAX || c->stored > ZSTD_compressBound(CHUNK_MAX))
		return err_set(e, "byte %lld: damaged: %u bytes in a chunk", (long long) offset, c->raw);
	if (!(from = buf_reserve(&packed, c->stored)) || !(to = buf_reserve(out, c->raw)))
		rc = err_set(e, "out of memory");
	else
		rc = trace_chunk_bytes(fd, offset + CHUNK_HEADER, from, c->stored, e);
	if (rc == 0) {
		n = ZSTD_decompress(to, c->raw, from, c->stored);
		if (ZSTD_isError(n) || n != c->raw)
			rc = err_set(e, "byte %lld: damaged: %s", (long long) offset,
				     ZSTD_isError(n) ? ZSTD_getErrorName(n)
						     : "a chunk is shorter than its header says");
		else
			out->len = n;
	}
	buf_free(&packed);
	return rc;
}

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
	assert(b->n);
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
