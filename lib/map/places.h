/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_PLACES_H
#define TOPIARY_MAP_PLACES_H

#include <stddef.h>

#include "base/err.h"
#include "topo/shape.h"

/*
 * The places of a job, in the order that block fills them: nodes in the job's order, cores in logical order.
 *
 * The cost of a pair of places is the cost of the highest level at which they differ. path[l] numbers the domain that a place
 * is in at level l, unique within the job, so two places differ at l when their path[l] differ.
 */
enum { PLACES_LEVELS = LEVEL_COUNT };

struct place {
	unsigned host;			/* index into hosts */
	unsigned leaf;			/* index of the core within what the job has of that node, from 0 */
	unsigned core;			/* logical index of the core in the whole node */
	unsigned threads;		/* PUs of that core */
	unsigned path[PLACES_LEVELS];
};

struct places {
	char **hosts;
	unsigned nhosts;
	struct place *place;
	unsigned nplaces;
	unsigned cost[PLACES_LEVELS];	/* of a pair that differs first at this level; cost[LEVEL_NODE]: over the network */
};

/* Documented defaults: node 100, package 20, die 14, numa 12, l3 8, l2 4, core 2. */
extern const unsigned places_default_cost[PLACES_LEVELS];

struct places *places_new(void);
/* Add a node and those of its cores that the list ("0-5,12") names. 0, or -1 with an error naming the host. */
int places_add(struct places *p, const char *host, const struct shape *shape, const char *cores, struct err *e);
/*
 * As many places on each host as it is to have ranks: tasks[host], at least one. On more tasks than cores each core becomes as
 * many places, side by side, as it has PUs; of more places than tasks the first stay. A launcher starts no more there: Open MPI
 * refuses a rank file that would. 0 or -1.
 */
int places_fit(struct places *p, const unsigned *tasks, struct err *e);

void places_free(struct places *p);

/* Cost of a unit between two places. */
unsigned places_distance(const struct places *p, unsigned a, unsigned b);

#endif
