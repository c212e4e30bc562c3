/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_TRACE_SHOW_H
#define TOPIARY_CLI_TRACE_SHOW_H

#include "trace/formula.h"
#include "trace/reader.h"
#include "trace/view.h"

struct trace_show {
	const char *metric;		/* an event, or one of `formulas`; NULL: the first event */
	const char *level;		/* the deepest level shown; NULL: L3Cache, or Core, or PU */
	enum trace_mode mode;
	double at;			/* seconds since the trace's start; NAN: the average of all */
	struct formula_list formulas;
};

/*
 * Print the hardware tree on standard output: a row for each object, with the metric of what is below it, its minimum
 * and maximum, and a bar relative to the greatest value of any object of the level at any tick. A level whose objects
 * have the same PUs as those of the level above shares their rows. 0 or -1. Called by trace.c.
 */
int trace_show(const struct trace *t, const struct trace_show *s, struct err *e);

#endif
