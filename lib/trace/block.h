/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "trace/head.h"

/*
 * The parts of a trace's file. After 8 bytes of CHUNK_MAGIC follow chunks, each a header of CHUNK_HEADER bytes, all
 * numbers little-endian, and one zstd frame with its checksum:
 *	HEAD	JSON (trace/head.h)
 *	DATA	a block of ticks (trace/block.h), any number of them
 *	INDX	the headers of all DATA chunks, each after its offset in the file; only in a trace that was closed
 * and, after INDX, its offset and CHUNK_END. For trace/writer.c and trace/reader.c.
 */
#define CHUNK_MAGIC "TOPTRC\r\n"
#define CHUNK_END "TOPTRC.\n"
#define CHUNK_MAGIC_LEN 8
#define CHUNK_HEADER 32
#define CHUNK_ENTRY (8 + CHUNK_HEADER)		/* of INDX */
#define CHUNK_TRAILER (8 + CHUNK_MAGIC_LEN)
#define CHUNK_MAX (64u << 20)			/* bytes of one, unpacked */

enum trace_chunk_kind { CHUNK_HEAD = 0x44414548, CHUNK_DATA = 0x41544144, CHUNK_INDEX = 0x58444e49 };

struct trace_chunk {
	uint32_t kind, ticks, stored, raw;	/* bytes of the frame, and of what it unpacks to */
	uint64_t begin, end;			/* nanoseconds since the trace's start */
};

void trace_chunk_put_number(struct buf *out, uint64_t v);
uint64_t trace_chunk_number(const void *at);

void trace_chunk_put_header(const struct trace_chunk *c, struct buf *out);
/* From CHUNK_HEADER bytes. */
struct trace_chunk trace_chunk_header(const void *at);

/* Append a chunk to out; its sizes are set in *c. 0 or -1. */
int trace_chunk_put(struct trace_chunk *c, const struct buf *payload, struct buf *out, struct err *e);
/* Read and unpack what follows a header at this offset; out is emptied first. 0 or -1. */
int trace_chunk_read(int fd, off_t offset, const struct trace_chunk *c, struct buf *out, struct err *e);

/* pread(2) of exactly so many bytes. 0 or -1. */
int trace_chunk_bytes(int fd, off_t offset, void *to, size_t len, struct err *e);

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
