/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "trace/block.h"
#include "trace/head.h"

/*
 * Read a trace, block by block and in any order. The file may be anybody's: every size is checked before it is used,
 * and every chunk has a checksum. It is never mapped, because a mapped file that is cut short kills its reader.
 */
struct trace {
	struct trace_head head;
	unsigned nblocks;
	uint64_t ticks, end;	/* of all blocks; nanoseconds since the start */
	/*
	 * The file has no index: it is still being written, its recorder was killed, or it was cut short. Blocks are
	 * those that are complete.
	 */
	bool open_end;
	struct trace_own *own;
};

/* Does the file begin as a trace does? False of one that cannot be read. */
bool trace_is_file(const char *path);

/* The file beside a trace: with ".tasks" or ".phases" in place of .trace. NULL: no memory. Free it. */
char *trace_path_beside(const char *trace, const char *suffix);

/* NULL on error; free with trace_close, which accepts NULL. */
struct trace *trace_open(const char *path, struct err *e);
/* The same of an open regular file, which becomes the trace's, on failure too; name is for errors. */
struct trace *trace_open_fd(int fd, const char *name, struct err *e);
void trace_close(struct trace *t);

/*
 * Add the blocks that were appended to a trace with an open end since it was opened or followed last; with its index,
 * the trace is complete. 0 or -1.
 */
int trace_follow(struct trace *t, struct err *e);

/* Block i into b, {0} or of an earlier call. 0, or -1 with an error that names the file and the byte. */
int trace_read(const struct trace *t, unsigned i, struct trace_block *b, struct err *e);

/* The time of each tick, t->ticks of them; free(3) it. NULL on error. */
struct trace_interval {
	uint64_t begin, end;
};
struct trace_interval *trace_intervals(const struct trace *t, struct err *e);

/*
 * Leave some of the ticks in the trace: a block is then of ticks that followed each other. is_joined: their times, too,
 * follow each other, from 0. What is appended is not followed any more. 0 or -1.
 */
int trace_keep(struct trace *t, const bool *is_kept, bool is_joined, struct err *e);

/* Of a trace with an open end, for who continues it: its index so far, and where the next block begins. */
void trace_index(const struct trace *t, struct buf *out, uint64_t *end);
