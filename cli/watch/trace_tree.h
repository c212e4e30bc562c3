/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "table.h"
#include "trace/formula.h"
#include "trace/phases.h"
#include "trace/reader.h"
#include "trace/view.h"

/*
 * The hardware tree of a trace with one metric: which objects are shown and in which order, their values at a tick, and
 * the greatest value so far at each level, which bars and colours are relative to.
 */
#define TRACE_TREE_SAME 8
#define TRACE_TREE_METRICS 4		/* at most, of a box */

struct trace_tree_level {			/* widest first */
	const struct trace_level *level;
	const struct trace_level *same[TRACE_TREE_SAME];	/* narrower, with the same PUs: in the same rows */
	unsigned nsame;
	double *value;				/* of each object, NAN: absent */
	double most;				/* of all objects at all ticks so far */
};

struct trace_tree_row {
	unsigned level, object;			/* levels[level].value[object] */
	unsigned first, end;			/* PUs */
	unsigned depth, parent;			/* the parent is a row before; of the first, itself */
};

struct trace_tree {
	const struct trace_head *head;		/* borrowed */
	struct trace_view *view;		/* a metric for each level */
	struct trace_tree_level *levels;
	unsigned n;
	struct trace_tree_row *rows;		/* what contains others comes before them */
	unsigned nrows;
	char metric[TRACE_NAME];
	struct trace_unit unit;
	unsigned next;				/* block, of accumulated values */
	struct trace_tree *beside;		/* of the next metric wanted; NULL: none */
};

struct trace_tree_request {
	const char *metric;			/* an event or one of `formulas`; NULL: the first; "A,B": some */
	const char *level;			/* the deepest level */
	enum trace_mode mode;
	struct formula_list formulas;
};

/* The formulas of a file (trace/formula.h), or those of the trace if it is NULL. 0 or -1. */
int trace_tree_formulas(const char *path, const struct trace_head *h, struct formula_list *out, struct err *e);

/*
 * h is borrowed. Values are absent. What is computed for a tree is for those beside it, too. 0, or -1 with *t {0}.
 * trace_tree_free leaves {0}.
 */
int trace_tree_make(struct trace_tree *t, const struct trace_head *h, const struct trace_tree_request *how,
		    struct err *e);
void trace_tree_free(struct trace_tree *t);

/* Compute the values of a block, for trace_tree_tick, and raise the greatest ones. 0 or -1. */
int trace_tree_block(struct trace_tree *t, const struct trace_block *b, struct err *e);
/* The same for block i of the trace, which is read into b; in any order, also if values are accumulated. 0 or -1. */
int trace_tree_read(struct trace_tree *t, const struct trace *from, unsigned i, struct trace_block *b, struct err *e);

/* Set the values to those of a tick of the last block. */
void trace_tree_tick(struct trace_tree *t, const struct trace_block *b, unsigned tick);

/* "Package 0 + NUMANode 0", as in lstopo(1). Appended to out. */
void trace_tree_name(const struct trace_tree *t, const struct trace_tree_row *r, struct buf *out);
/* "busy, %; migrations, /s". Appended to out. */
void trace_tree_title(const struct trace_tree *t, struct buf *out);
double trace_tree_value(const struct trace_tree *t, const struct trace_tree_row *r);
/* What a tree beside it has for the row's object. NAN: absent, or not of that level. */
double trace_tree_value_of(const struct trace_tree *beside, const struct trace_tree *t, const struct trace_tree_row *r);
/* The value as a part of the greatest, from 0 to 1; 0 if it is absent. */
double trace_tree_part(const struct trace_tree *t, const struct trace_tree_row *r);

/* "12.35M", in at most 9 characters: "-" if it is absent. */
#define TRACE_NUMBER 16
const char *trace_tree_number(double x, char text[static TRACE_NUMBER]);

/*
 * Print it on standard output: a row for each object, with the metric of what is below it, its minimum and maximum, and
 * a bar relative to the greatest value of any object of the level at any tick. A level whose objects have the same PUs
 * as those of the level above shares their rows. when: what the values are of, for the title. 0 or -1.
 */
int trace_tree_print(const struct trace_tree *t, const char *when, struct err *e);
/* The level that a table ends at unless the user wants another. */
const char *trace_tree_level_shown(const struct trace_head *h);

/*
 * Write a trace as one page of HTML to standard output: its tree as nested boxes with values and bars, a slider over
 * time, all metrics or the one wanted, down to a level. Nothing is loaded from elsewhere. As many ticks are added up as
 * keep the page below 5 MB. phases: NULL: none. 0 or -1. (trace_html.c)
 */
int trace_html(const struct trace *t, const struct trace_tree_request *how, const struct trace_phases *phases,
	       struct err *e);
