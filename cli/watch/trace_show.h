/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TRACE_SHOW_H
#define TOPIARY_CLI_WATCH_TRACE_SHOW_H

#include "trace_tree.h"

/*
 * Print the hardware tree on standard output: a row for each object, with the metric of what is below it, its minimum
 * and maximum, and a bar relative to the greatest value of any object of the level at any tick. A level whose objects
 * have the same PUs as those of the level above shares their rows. 0 or -1. Called by trace.c and top.c.
 *
 * at: seconds since the trace's start; NAN: the average of all ticks. A level of NULL is trace_show_level.
 */
int trace_show(const struct trace *from, struct trace_tree_request *how, double at, struct err *e);

/* The level that a table ends at unless the user wants another. */
const char *trace_show_level(const struct trace_head *h);

/* The same of a tree with the values that it has; `when` they are of, for the title. */
int trace_show_tree(const struct trace_tree *t, const char *when, struct err *e);

#endif
