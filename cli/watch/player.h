/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/std.h"
#include "trace/phases.h"
#include "trace_tree.h"

/*
 * A position in a trace, which may still grow: the tree has the values of one tick, and its greatest values are those
 * of all ticks. For screen.c and top.c.
 */
struct player {
	struct trace *trace;			/* borrowed */
	struct trace_tree_request how;		/* borrowed: its formulas */
	struct trace_tree tree;
	struct trace_block block;		/* of the tick */
	unsigned at, tick;			/* the block's number, and the tick in it */
	unsigned seen;				/* blocks that the tree has read */
	pid_t recorder;				/* a child that writes the trace; 0: none */
	bool is_complete;			/* nothing will be appended */
	bool stays;				/* what was seen last is shown when a recorder has ended, too */
	const struct trace_phases *phases;	/* NULL: none; borrowed */
};

/* At the last tick, if there is one: player_is_empty. 0 or -1. player_close leaves {0}. */
int player_open(struct player *p, struct trace *t, const struct trace_tree_request *how, pid_t recorder, struct err *e);
void player_close(struct player *p);
/* The caller is still to wait for it. */
bool player_recorder_has_ended(pid_t recorder);
/* It has ended, and not with status 0. */
bool player_recorder_has_failed(pid_t recorder);
bool player_is_empty(const struct player *p);

/* Read what was appended; the position stays, or becomes the first tick. 0 or -1. */
int player_follow(struct player *p, struct err *e);

/* To the next tick (1) or the one before (-1). 1: done; 0: there is none; -1: error. */
int player_step(struct player *p, int by, struct err *e);
/* To the first or the last tick. 0 or -1. */
int player_first(struct player *p, struct err *e);
int player_last(struct player *p, struct err *e);

/* Show the next metric, with those that were wanted beside: the events in turn, then the formulas. 0 or -1. */
int player_next_metric(struct player *p, struct err *e);
/* Counters since the trace's start instead of per second, or back. 0 or -1. */
int player_next_mode(struct player *p, struct err *e);

/* Seconds since the trace's start: the interval that the tick was counted over. */
double player_begin(const struct player *p);
double player_end(const struct player *p);

/* The phase that the tick belongs to, NULL: none. */
const char *player_phase(const struct player *p);

/* "at 12.000 s, in phase solve" */
#define PLAYER_WHEN (64 + TRACE_NAME)
const char *player_when(const struct player *p, char text[static PLAYER_WHEN]);

/* --- screen.c */

/*
 * A trace on the whole terminal: a box for each object of the tree, below that of what contains it, with its name, its
 * value, and a bar from green over yellow to red relative to the greatest value at its level. As many levels as fit,
 * unless the user folds others. screen.c is the
 * only caller of ncurses.
 */

/* Is standard output a terminal that is large enough and known, and standard input one too? */
bool player_screen_is_possible(void);

/*
 * Show the trace until the user quits, a signal ends it, or its recorder, if there is one, has ended (with an error, if
 * the player stays). speed: seconds of the trace a second; INFINITY: each tick as soon as it is there. 0 or -1,
 * with the terminal as before.
 */
int player_screen_run(struct player *p, double speed, struct err *e);

/* --- top.c */

struct player_request {
	const char *metric, *level, *formulas;	/* level NULL: PU on a screen, trace_tree_level_shown in lines */
	double speed;				/* player_screen_run */
	bool from_start;			/* at the first tick instead of the last */
	bool json;
	bool stays;				/* player_screen_run */
	int mode;				/* enum trace_mode */
	const struct trace_phases *phases;	/* NULL: none; borrowed */
};

/*
 * Show a trace on the terminal, or, where that is not possible, print the tree of each tick from there on, as a table
 * or a line of JSON. recorder: a child that writes the trace, with whose end the display ends; 0: none. 0 or -1.
 */
int player_show(struct trace *t, const struct player_request *how, pid_t recorder, struct err *e);
