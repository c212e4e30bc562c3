/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_CHUNK_H
#define TOPIARY_TRACE_CHUNK_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

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

enum chunk_kind { CHUNK_HEAD = 0x44414548, CHUNK_DATA = 0x41544144, CHUNK_INDEX = 0x58444e49 };

struct chunk {
	uint32_t kind, ticks, stored, raw;	/* bytes of the frame, and of what it unpacks to */
	uint64_t begin, end;			/* nanoseconds since the trace's start */
};

void chunk_put_number(struct buf *out, uint64_t v);
uint64_t chunk_number(const void *at);

void chunk_put_header(const struct chunk *c, struct buf *out);
/* From CHUNK_HEADER bytes. */
struct chunk chunk_header(const void *at);

/* Append a chunk to out; its sizes are set in *c. 0 or -1. */
int chunk_put(struct chunk *c, const struct buf *payload, struct buf *out, struct err *e);
/* Read and unpack what follows a header at this offset; out is emptied first. 0 or -1. */
int chunk_read(int fd, off_t offset, const struct chunk *c, struct buf *out, struct err *e);

/* pread(2) of exactly so many bytes. 0 or -1. */
int chunk_bytes(int fd, off_t offset, void *to, size_t len, struct err *e);

#endif
