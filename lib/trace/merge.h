/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_MERGE_H
#define TOPIARY_TRACE_MERGE_H

#include "base/err.h"
#include "trace/head.h"

/*
 * One head for traces of the same node, as the ranks of a step are recorded: the union of their PUs, with the objects
 * above them, and the same events. Objects are the same if type and logical index are. For trace/advice_facts.c.
 */
struct trace_merge {
	struct trace_head head;
	unsigned **column;	/* column[trace][c]: where column c of that trace's blocks is in the merged head */
	unsigned n;		/* traces */
};

/*
 * names: of the n files, for errors: a trace of another node or with other events. 0, or -1 with m {0}. Free with
 * trace_merge_free, which leaves {0}.
 */
int trace_merge_make(struct trace_merge *m, const struct trace_head *const *heads, const char *const *names, unsigned n,
		     struct err *e);
void trace_merge_free(struct trace_merge *m);

#endif
