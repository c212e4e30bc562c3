/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TRACE_HTML_H
#define TOPIARY_CLI_WATCH_TRACE_HTML_H

#include "trace/phases.h"
#include "trace_tree.h"

/*
 * Write a trace as one page of HTML to standard output: its tree as nested boxes with values and bars, a slider over
 * time, all metrics or the one wanted, down to a level. Nothing is loaded from elsewhere. As many ticks are added up as
 * keep the page below 5 MB. 0 or -1. Called by trace.c.
 */
int trace_html(const struct trace *t, const struct trace_tree_request *how, const struct trace_phases *phases,
	       struct err *e);

#endif
