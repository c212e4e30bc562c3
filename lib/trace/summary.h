/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_SUMMARY_H
#define TOPIARY_TRACE_SUMMARY_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/reader.h"
#include "trace/tasks.h"

/*
 * What a job did, in one JSON object of at most SUMMARY_MAX bytes, however many nodes and ticks its traces have:
 *	nodes, pus, ticks (of all traces), seconds (the longest trace), start (the earliest, seconds since 1970)
 *	found	a count of nodes for each check of trace/advice.h that found something
 *	metrics	events at the NUMA nodes (those that are counted on a higher level: there) and formulas: total of a
 *		counter, average over the objects of all nodes, least and most with the object that they are of
 *		("cn1 NUMANode 0"); all but the total in their "unit" (trace/view.h: "%", "B/s", "/s"),
 *		which formulas do not have; absent values null
 *	omitted	the number of metrics that did not fit
 * Only printable ASCII without backslashes, so that the registry can check it without parsing it. Called by
 * cli/watch/job.c.
 */
#define SUMMARY_MAX 2560u

struct trace_summary;

/* NULL when memory is short. */
struct trace_summary *trace_summary_new(void);
void trace_summary_free(struct trace_summary *s);

/*
 * Add the traces of one node; names: of the files, for errors; tasks: of the node, or NULL. Traces that the checks
 * cannot read, because they are too short or not of the same events, are counted without them. 0 or -1.
 */
int trace_summary_add(struct trace_summary *s, struct trace *const *traces, const char *const *names, unsigned n,
		      const struct trace_tasks *tasks, struct err *e);

/* Append the object to out. 0 or -1. */
int trace_summary_write(const struct trace_summary *s, struct buf *out, struct err *e);

#endif
