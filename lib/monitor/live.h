/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "trace/head.h"

/*
 * The sums of a step that is recorded, for readers that do not wait for its trace's next block: one file of fixed size,
 * LIVE_FILE in the step's directory, which topiary-monitor maps and readers map read-only. It is root's, mode 0600,
 * with an access control list (acl(5)) by which the step's user may read it; it is unlinked when the step ends. A file
 * of the user's own would be a way to fill RunDir.
 *
 * In the node's byte order, as it never leaves the node; offset and bytes:
 *	0	8	LIVE_MAGIC
 *	8	8	size of the file
 *	16	8	bytes of the head
 *	24	8	columns
 *	32	8	sequence: odd while a tick is being written, 0 before the first
 *	40	8	end of the last tick, nanoseconds since the head's start
 *	64		the head as JSON (trace/head.h), filled up with zeros to a multiple of 16
 *	then	16	for each column: the sum of a counter, or the last value of a gauge; how often it was absent
 * As these are sums, a reader that looks less often than there are ticks loses none of them.
 *
 * The writer is for node_agent/monitor_trace.c, the reader for cli/watch/top_feed.c.
 */
#define LIVE_FILE "monitor.live"
#define LIVE_MAGIC "TOPLIVE1"

struct live_writer;

/*
 * In the directory dir, which is borrowed while this is called. h is checked. The page of an earlier topiary-monitor
 * with the same head is continued, any other replaced. NULL on error, also if there is no room for all of it.
 */
struct live_writer *live_writer_new(int dir, const struct trace_head *h, uid_t reader, struct err *e);
/* A tick that ends at `time`, head->columns values (trace/block.h). */
void live_writer_tick(struct live_writer *w, uint64_t time, const uint64_t *values);
/* The file stays. Accepts NULL. */
void live_writer_free(struct live_writer *w);

struct live_reader {
	struct trace_head head;
	uint64_t time;		/* of the last reading; 0: none yet */
	struct live_own *own;
};

/* NULL on error, with errno: ENOENT if there is no such file, EACCES if it is another user's. */
struct live_reader *live_reader_open(const char *path, struct err *e);
void live_reader_close(struct live_reader *r);	/* accepts NULL */

/*
 * What was counted since the last reading: values of head->columns, TRACE_ABSENT where any tick in between was absent;
 * *begin and *end are the interval. 1: done; 0: no tick since, or the first reading; -1: the file was removed.
 */
int live_read(struct live_reader *r, uint64_t *values, uint64_t *begin, uint64_t *end);
