/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TRACE_ADVISE_H
#define TOPIARY_CLI_WATCH_TRACE_ADVISE_H

#include <jansson.h>
#include <stdbool.h>

#include "trace/advice.h"

/* What the checks found, over the nodes of a step or of one: for `topiary advise` and `topiary trace advise`. */
struct trace_advised {
	struct trace_advised_check {
		struct advice advice;	/* of the first node where it was found */
		char node[256];		/* that one, or "" of the step as a whole */
		unsigned nodes;		/* where it was found */
	} *checks;
	unsigned n, nodes, traces;
	double seconds;			/* of the longest trace */
};

/* Check a node and add what was found. 0 or -1. advise_found_free leaves {0}. */
int advise_found_add(struct trace_advised *a, const struct advice_node *node, const char *name, struct err *e);
/* Add a check of the step as a whole. 0 or -1. */
int advise_found_add_step(struct trace_advised *a, const struct advice *advice, struct err *e);
void advise_found_free(struct trace_advised *a);

unsigned advise_found_count(const struct trace_advised *a);	/* of checks that found something */

/* Below a line "NAME: WHAT, 31.2 s: 3 of 22 checks found something". 0 or -1. */
int advise_found_print(const struct trace_advised *a, const char *name, const char *what, struct err *e);
/* An array of all checks. NULL: no memory. */
json_t *advise_found_json(const struct trace_advised *a);

/* `topiary trace advise`: of traces of one node, and of NODE.tasks beside the first. 0 or -1. */
int trace_advise(struct trace *const *t, const char *const *names, unsigned n, bool as_json, struct err *e);

/* NODE.tasks, or NULL: there is none, or, with a warning, it cannot be read. */
struct trace_tasks *trace_advise_tasks(const char *path);

#endif
