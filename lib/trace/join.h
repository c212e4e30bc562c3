/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "trace/head.h"

/*
 * One head for several traces, for cli/watch/top_gather.c and trace/advice_facts.c:
 *	of nodes, which need not be alike: below one object for all of them their trees side by side, in the order
 *	given. The objects of "Machine" have the names of the nodes; all others keep the index that they have on theirs.
 *	of one node, as the ranks of a step are recorded: objects of the same type and logical index are the same,
 *	with the PUs that it has in any trace.
 * Events are those of any trace.
 */
struct trace_join {
	struct trace_head head;
	unsigned **column;	/* column[trace][c]: where column c of that trace's blocks is in the head */
	unsigned n;		/* traces */
};
#define TRACE_JOIN_NOWHERE UINT32_MAX	/* of an event that an earlier trace counts at another level */

/*
 * type, name: of the object for all, also in errors; NULL: the traces are of one node. names: of the nodes. 0, or -1
 * with j {0}. Free with trace_join_free, which leaves {0}.
 */
int trace_join_make(struct trace_join *j, const char *type, const char *name, const struct trace_head *const *heads,
		    const char *const *names, unsigned n, struct err *e);
void trace_join_free(struct trace_join *j);
