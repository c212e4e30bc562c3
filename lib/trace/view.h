/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>
#include <math.h>

#include "base/err.h"
#include "trace/block.h"
#include "trace/formula.h"
#include "trace/head.h"

/*
 * Metrics of a trace at levels of the tree: events are summed over the leaves of each object, and formulas evaluated on
 * the sums. A sum is absent if one of its parts is. For a live display, the summary and the exports; blocks are given
 * in the order of time.
 */
#define TRACE_VIEW_MAX (1u << 20)	/* sums a tick: of each metric its objects times one more than its operands */

enum trace_mode {
	TRACE_RATE,		/* counters per second */
	TRACE_PER_TICK,		/* as counted since the tick before */
	TRACE_ACCUMULATED,	/* since the start of the trace, ticks that are absent left out */
};

struct trace_statistics {
	double min, max;	/* of the ticks; NAN: always absent */
	double average;		/* the formula evaluated on all that was counted, not the mean of its values */
	bool has_total;		/* the metric is a counter: */
	uint64_t total;		/* exact */
	uint64_t absent;	/* ticks without a value */
};

struct trace_metric {
	struct formula formula;
	unsigned level, n;	/* and its objects */
	char missing[TRACE_NAME];	/* one of the formula's events that the trace lacks below it; "": none */
	double *values;		/* of the block: values[object * ticks + tick], NAN: absent */
	struct metric_own *own;
};

struct trace_view {
	const struct trace_head *head;
	enum trace_mode mode;
	struct trace_metric *metrics;
	unsigned n;
	unsigned nsums;		/* a tick */
	uint64_t *sums;		/* of one object and block */
};

/* h is borrowed. NULL when memory is short. */
struct trace_view *trace_view_new(const struct trace_head *h, enum trace_mode mode);
void trace_view_free(struct trace_view *v);

/*
 * Add a formula, which becomes the view's, on failure too. A level that the trace does not have is an error,
 * and so is what exceeds TRACE_VIEW_MAX. 0 or -1.
 */
int trace_view_add(struct trace_view *v, struct formula *f, struct err *e);
/* Add each formula of the list, which is empty afterwards. 0 or -1. */
int trace_view_add_list(struct trace_view *v, struct formula_list *l, struct err *e);
/* Add all events at a level; those counted on a higher level, and all if it is NULL, at their own. 0 or -1. */
int trace_view_add_events(struct trace_view *v, const char *level, struct err *e);

/* Compute the values of all metrics for a block, and go on with statistics and accumulated values. 0 or -1. */
int trace_view_block(struct trace_view *v, const struct trace_block *b, struct err *e);

/* Forget all blocks so far: the next one is the first. */
void trace_view_restart(struct trace_view *v);

/* Of one object over all blocks so far. */
struct trace_statistics trace_view_statistics(const struct trace_view *v, unsigned metric, unsigned object);

/*
 * What values are shown in: those of an event that counts time as a part of the time of the object's PUs, of one that
 * counts energy as power. For tables, and the summary of a job.
 */
struct trace_unit {
	char text[2 * TRACE_NAME];	/* "%", "B", "/s"; "" for a formula, and for numbers without */
	double factor;			/* of what was counted */
	bool is_by_pus;			/* and divided by the PUs of the object */
	char total[TRACE_NAME];		/* of a total, "" for a count */
	double total_factor;
};

/* x: NULL for a formula. */
struct trace_unit trace_unit_of(const struct trace_event *x, enum trace_mode mode);
double trace_unit_value(const struct trace_unit *u, const struct trace_object *o, double value);
/* What a view has of one of its objects, in this unit; the total stays as counted. */
struct trace_statistics trace_unit_statistics(const struct trace_unit *u, const struct trace_view *v, unsigned metric,
					      unsigned object);

/* The total in its unit: "1.500 s", or "1500" of a count. Returns text. */
#define TRACE_TOTAL (32 + TRACE_NAME)
const char *trace_unit_total(const struct trace_unit *u, uint64_t total, char text[static TRACE_TOTAL]);

/* A value in JSON: null if it is absent. For summary.c, `topiary trace` and `topiary top`. */
static inline json_t *trace_json_value(double x)
{
	return isnan(x) ? json_null() : json_real(x);
}
