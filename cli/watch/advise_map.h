/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_ADVISE_MAP_H
#define TOPIARY_CLI_WATCH_ADVISE_MAP_H

#include "cmd.h"
#include "trace/advice.h"

/*
 * Whether a step's ranks would communicate over shorter distances in another order on the same cores: the cost of their
 * places, by `topiary map`'s costs and the nodes' shapes, beside that of the best mapping that it finds.
 */
struct advise_map {
	const char *step;		/* for errors */
	const char *matrix;		/* --matrix; NULL: the file of the job's --topo-capture, if there is one */
	const char *snapshot;		/* --snapshot, or NULL */
	struct trace_tasks *const *nodes;	/* of the step */
	unsigned n;
};

/*
 * ADVICE_UNKNOWN with the reason where ranks, matrix or shapes are not known. 0, or -1 with an error: --matrix was
 * named and cannot be used.
 */
int advise_map(const struct cmd *c, const struct advise_map *a, struct advice *out, struct err *e);

#endif
