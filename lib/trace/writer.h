/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "trace/head.h"
#include "trace/reader.h"

/*
 * Record a trace into an empty file. Ticks are collected into blocks; each block is one write(2), so that a recorder
 * that is killed loses the last block alone. For topiary-monitor and whoever makes traces.
 */
struct trace_writer;

/*
 * Create or empty a trace's file: the descriptor, or -1 with an error. What is no regular file is refused, a pipe
 * without waiting for its reader.
 */
int trace_file_create(const char *path, struct err *e);

/* Remove a file that nothing, or a head alone, was written to; what only links to it stays. */
void trace_file_discard(const char *path);

/*
 * fd becomes the writer's, which closes it, on failure too; name is for errors. The head is checked, written and
 * borrowed until the writer is closed. NULL on error.
 */
struct trace_writer *trace_writer_new(int fd, const char *name, struct trace_head *h, struct err *e);

/*
 * The same for a trace with an open end, whose recorder was killed: t is the file, h a head equal to its own. What
 * follows the last complete block is cut off. The next tick's interval begins at `begin`, at t->end at the earliest:
 * what is between was not recorded.
 */
struct trace_writer *trace_writer_continue(int fd, const char *name, struct trace_head *h, const struct trace *t,
					   uint64_t begin, struct err *e);

/*
 * Add a tick: its time in nanoseconds since the trace's start, greater than the last one's, and head->columns values
 * (trace/block.h). 0, or -1 with the file as it was before its last block, which is lost.
 */
int trace_writer_tick(struct trace_writer *w, uint64_t time, const uint64_t *values, struct err *e);

/* Write what was collected, before the block is full. 0 or -1 as above. */
int trace_writer_flush(struct trace_writer *w, struct err *e);

/* No block was written: the file has a head at most. */
bool trace_writer_is_empty(const struct trace_writer *w);

/* Write the last block and the index, and free the writer in any case; NULL is accepted. 0 or -1. */
int trace_writer_close(struct trace_writer *w, struct err *e);
