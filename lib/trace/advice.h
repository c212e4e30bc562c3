/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "trace/reader.h"
#include "trace/tasks.h"

/*
 * What in its placement cost a recorded program time, by the events of its trace, or of the traces of its ranks on a
 * node, and by where its tasks were: rules over their sums for each object of the tree. A rule whose events the traces
 * do not have, or whose tasks are not known, is not applied. For `topiary advise` and `topiary trace advise`.
 */
#define ADVICE_TICKS 10u	/* a shorter trace is an error: start and end of the program would decide */
#define ADVICE_PUS (1u << 14)	/* bounds the time that the rules take, which grows with the square */

enum advice_result { ADVICE_NONE, ADVICE_FOUND, ADVICE_UNKNOWN };

struct advice {
	const char *kind;		/* "idle", "siblings" ... */
	enum advice_result result;
	char evidence[256];		/* with the figures; ADVICE_UNKNOWN: what is missing */
	const char *remedy;		/* options of srun(1) and Topiary, or what to look at */
};

/* Of a node, for a comparison of nodes; NAN: not counted. */
struct advice_sums {
	double busy;			/* mean of its cores: 1 is all the time */
	double clock;			/* GHz, the median of the cores that worked */
};

/* One node of a step. */
struct advice_node {
	struct trace *const *traces;	/* of the same events, recorded at the same time */
	const char *const *names;	/* of their files, for errors */
	unsigned n;			/* may be 0 where tasks are known */
	const struct trace_tasks *tasks;	/* or NULL */
	const char *lack;		/* of n 0: why there are no events, as evidence; NULL: their names are */
	struct advice_sums *sums;	/* set on success; NULL: not wanted */
};

/* One entry for each rule, in the order of the table, *n of them; free(3) it. NULL on error. */
struct advice *advice_list(const struct advice_node *node, unsigned *n, struct err *e);
