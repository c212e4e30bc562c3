/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_JOIN_H
#define TOPIARY_TRACE_JOIN_H

#include "base/err.h"
#include "trace/head.h"

/*
 * One head for traces of several nodes, which need not be alike: below one object for all of them the trees of the
 * nodes side by side, in the order given. The objects of "Machine" have the names of the nodes; all others keep the
 * index that they have on their node. Events are those of any node. For cli/watch/top_gather.c.
 */
struct trace_join {
	struct trace_head head;
	unsigned **column;	/* column[node][c]: where column c of that node's blocks is in the head */
	unsigned n;		/* nodes */
};
#define TRACE_JOIN_NOWHERE UINT32_MAX	/* of an event that the first node counts at another level */

/*
 * type, name: of the object for all, also in errors. 0, or -1 with j {0}. Free with trace_join_free, which leaves {0}.
 */
int trace_join_make(struct trace_join *j, const char *type, const char *name, const struct trace_head *const *heads,
		    const char *const *names, unsigned n, struct err *e);
void trace_join_free(struct trace_join *j);

#endif
