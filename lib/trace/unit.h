/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_UNIT_H
#define TOPIARY_TRACE_UNIT_H

#include <stdbool.h>

#include "trace/view.h"

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
/* The unit of a counter's rate with this text. */
struct trace_unit trace_unit_named(const char *text);

double trace_unit_value(const struct trace_unit *u, const struct trace_object *o, double value);
/* What a view has of one of its objects, in this unit; the total stays as counted. */
struct trace_statistics trace_unit_statistics(const struct trace_unit *u, const struct trace_view *v, unsigned metric,
					      unsigned object);

/* The total in its unit: "1.500 s", or "1500" of a count. Returns text. */
#define TRACE_TOTAL (32 + TRACE_NAME)
const char *trace_unit_total(const struct trace_unit *u, uint64_t total, char text[static TRACE_TOTAL]);

#endif
