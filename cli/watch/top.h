/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TOP_H
#define TOPIARY_CLI_WATCH_TOP_H

#include "player.h"

struct top_request {
	const char *metric, *level, *formulas;	/* level NULL: PU on a screen, trace_show_level in lines */
	double speed;				/* screen.h */
	bool from_start;			/* at the first tick instead of the last */
	bool json;
	bool stays;				/* screen.h */
	int mode;				/* enum trace_mode */
	const struct trace_phases *phases;	/* NULL: none; borrowed */
};

/*
 * Show a trace on the terminal, or, where that is not possible, print the tree of each tick from there on, as a table
 * or a line of JSON. recorder: a child that writes the trace, with whose end the display ends; 0: none. 0 or -1.
 */
int top_show(struct trace *t, const struct top_request *how, pid_t recorder, struct err *e);

#endif
