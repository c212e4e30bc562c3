/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "trace/head.h"

/*
 * Metrics derived from events, as in dynamic lstopo (Denoyelle, Goglin and Jeannot, "A Topology-Aware Performance
 * Monitoring Tool for Shared Resource Management in Multicore Systems", section 4.2): a file of
 *	name {level, formula}
 * where level is hwloc's name of a type and formula has numbers, names of events, + - * / and parentheses; `seconds` is
 * the time over which the events were counted. '#' starts a comment; line ends are spaces. Events are summed over the
 * PUs below an object first; the formula is then evaluated on the sums. min(), max() and avg() of a formula evaluate it
 * at each object where its events are counted, and have the least, greatest or mean value of those below.
 */
#define FORMULA_TEXT_MAX (64u << 10)	/* bytes of a file */
#define FORMULA_LIST_MAX 256u		/* formulas in it */
#define FORMULA_STEPS 256u		/* operands and operators of one */
#define FORMULA_DEPTH 64u		/* nested parentheses and signs */
#define FORMULA_EVENTS 32u		/* different names in one */
#define FORMULA_PARTS 8u		/* min(), max() and avg() in one */
#define FORMULA_OPERANDS (FORMULA_EVENTS + FORMULA_PARTS)

struct formula {
	char name[TRACE_NAME], level[TRACE_NAME];
	char events[FORMULA_EVENTS][TRACE_NAME];	/* the names in it, each once, without `seconds` */
	unsigned nevents;
	struct formula_step {				/* reverse Polish notation */
		enum { FORMULA_NUMBER, FORMULA_EVENT, FORMULA_SECONDS, FORMULA_NEGATE, FORMULA_ADD, FORMULA_SUBTRACT,
		       FORMULA_MULTIPLY, FORMULA_DIVIDE } op;
		unsigned event;				/* or FORMULA_EVENTS and the number of a part */
		double number;
	} *steps;
	unsigned nsteps;
	struct formula_part *parts;
	unsigned nparts;
};

struct formula_part {
	enum formula_over { FORMULA_MIN, FORMULA_MAX, FORMULA_AVG } over;
	struct formula of;				/* without parts */
};

struct formula_list {
	struct formula *list;
	unsigned n;
};

/* name is for errors, which have the line. 0, or -1 with *out empty. Free with formula_list_free, which leaves {0}. */
int formula_list_parse(const char *text, size_t len, const char *name, struct formula_list *out, struct err *e);
void formula_list_free(struct formula_list *l);

/* The formula that is one event, at a level. 0 or -1. formula_free leaves {0}. */
int formula_of_event(const char *event, const char *level, struct formula *out, struct err *e);
void formula_free(struct formula *f);
/* A copy at another level. 0 or -1. */
int formula_copy(const struct formula *f, const char *level, struct formula *out, struct err *e);

/*
 * Evaluate on values[i] of events[i] and values[FORMULA_EVENTS + i] of parts[i]. NAN is an absent value: the result is
 * absent if any operand is, on a division by zero, and if it is too large for a double.
 */
double formula_value(const struct formula *f, const double *values, double seconds);
