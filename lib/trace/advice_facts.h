/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_ADVICE_FACTS_H
#define TOPIARY_TRACE_ADVICE_FACTS_H

#include <stdbool.h>

#include "trace/merge.h"
#include "trace/reader.h"

/* What the rules of advice.c are about: the sums of traces of one node that were recorded at the same time. */
enum advice_role { BUSY, SWITCHES, MIGRATIONS, MINOR, MAJOR, CYCLES, INSTRUCTIONS, MISSES, NEAR, FAR, MEMORY, ROLES };
extern const char *const role_names[ROLES];	/* of the events */

/* Of a PU's time. */
#define WORKING 0.5
#define FULL 0.9		/* other programs run now and then */
#define SHARED_SWITCHES 30	/* a second: threads that share a PU get slices of 3 to 24 ms; one alone has below 5 */

struct advice_facts {
	struct trace_merge merge;
	const struct trace_head *h;	/* the merged one */
	int event[ROLES];		/* -1: the traces do not have it, or it is mostly absent */
	double *rate;			/* of each column: a counter's increase a second, a gauge's mean */
	unsigned *contended;		/* of each PU: intervals in which it was full and switched threads */
	unsigned intervals;
	double seconds, alone;		/* alone: seconds in which one PU worked and no other */
	int core;			/* the level, or that of PUs */
};

/* 0, or -1 with f {0}. facts_free leaves {0}. */
int facts_read(struct advice_facts *f, struct trace *const *traces, const char *const *names, unsigned n,
	       struct err *e);
void facts_free(struct advice_facts *f);

#endif
