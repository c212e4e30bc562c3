/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_PLACES_PLACES_H
#define TOPIARY_MAP_PLACES_PLACES_H

#include <stddef.h>

#include "base/err.h"
#include "fabric/model/fabric.h"
#include "map/matrix/matrix.h"
#include "shape/shape.h"

/*
 * The places of a job: what a rank gets, a core or, when a task has several CPUs, several cores side by side.
 *
 * A place's path leads from the top of the network down to it, a number a level. Two places differ at the first level
 * where their paths do, and the cost of a unit between them is that level's: on a torus the sum over its dimensions of
 * hops times the dimension's cost (Goglin et al., Euro-Par 2017, section 5.1). Levels are those of the network, if it
 * is known, then those of the nodes: either node, package, ... core, or those that the network's file tells of its
 * hosts. A place of several cores is in those domains that hold all of them.
 */
enum { PLACES_LEVELS = HIERARCHY_LEVELS + HIERARCHY_INNER };

struct numbers;

struct place {
	unsigned id;			/* from 0: hosts in the job's order, on each in tree order */
	unsigned host;			/* index into hosts */
	unsigned leaf, leaves;		/* leaf[leaf] .. leaf[leaf + leaves - 1] of struct places are its leaves */
	unsigned takes;			/* so many ranks at most: as many as its CPUs suffice for */
	unsigned kind;			/* index into kinds */
	unsigned path[PLACES_LEVELS];
};

/* What a pair costs that differs first at each level: one for hosts of one kind. */
struct places_kind {
	unsigned cost[PLACES_LEVELS];
};

struct places {
	char **hosts;
	unsigned nhosts;
	struct place *place;		/* hosts in the job's order, on each in tree order */
	unsigned nplaces, added;
	unsigned *leaf;			/* indices of cores: see places_add and places_add_inner */
	unsigned *core;			/* by leaf: the core's index in the whole tree; without cores: the leaf */
	unsigned nleaves;
	struct numbers **numbers;	/* of each host, or NULL where they are not known; or NULL. Its own */
	struct places_kind *kinds;
	unsigned nkinds;
	const struct hierarchy *network;	/* borrowed, or NULL; set it before hosts are added */
	const struct fabric *planes;		/* borrowed or NULL: all planes, for errors about a host in another */
	unsigned cost[LEVEL_COUNT];	/* of the levels of nodes; set them before hosts are added */
	double *distance;		/* added * added, by id: overrides all other costs; NULL or owned */
};

/* Documented defaults: node 100, package 20, die 14, numa 12, l3 8, l2 4, core 2. */
extern const unsigned places_default_cost[LEVEL_COUNT];

struct places *places_new(void);
void places_free(struct places *p);

/*
 * Set costs from words: "node=100,l3=6", names as level_parse has them. 0, or -1 with an error and nothing set: an
 * unknown level, no number of at most 1000000.
 */
int places_costs(struct places *p, const char *words, struct err *e);

/*
 * Add a node of that shape, and those of its cores that the list ("0-5,12") names. Of those, cpus CPUs together are a
 * place; as few places as possible reach over the end of a domain, and cores that are left over are in none. A leaf is
 * a core's index among those of the list. 0, or -1 with an error naming the host: twice there, not in the network, no
 * core, fewer CPUs than cpus.
 */
int places_add(struct places *p, const char *host, const struct shape *shape, const char *cores, unsigned cpus,
	       struct err *e);

/* Add a host of the network as that tells its inside: each usable leaf is a place. 0 or -1. */
int places_add_inner(struct places *p, const struct hierarchy_host *host, struct err *e);

/*
 * Costs between all places, by id, instead of those of the levels: half of what the matrix has for a pair, since it
 * adds up both directions. 0, or -1: another number of places than the matrix has rows, more than PLACES_MAX_DISTANCES
 * (2 GiB), memory.
 */
#define PLACES_MAX_DISTANCES 16384u
int places_distances(struct places *p, const struct matrix *m, struct err *e);

/*
 * Which places are used when the user wants fewer ranks than places.
 *   FILL_AUTO	any; the search chooses by cost and leaves places empty that would separate communicating ranks
 *   FILL_COMPACT	the fewest nodes, those with most places first, and the first places of the last of them
 *   FILL_SPREAD	equally many on each node that has them, evenly over its places: more memory and cache for each
 *			rank
 */
enum places_fill { FILL_AUTO, FILL_COMPACT, FILL_SPREAD };

/* "auto", "compact", "spread", or -1. */
int places_fill_parse(const char *name);

/*
 * As many places on each host as it is to have ranks: tasks[host]. On more tasks than places each place becomes as
 * many, side by side, as it takes ranks; of more places than tasks the first stay, with FILL_SPREAD some evenly over
 * the host. A launcher starts no more there: Open MPI refuses a rank file that would. 0 or -1.
 */
int places_fit(struct places *p, const unsigned *tasks, enum places_fill fill, struct err *e);

/* The same for so many ranks in all, at most nplaces; FILL_AUTO leaves all. 0 or -1. */
int places_fill(struct places *p, unsigned ranks, enum places_fill fill, struct err *e);

/*
 * Ranks of each host in equal shares as far as their places go, as Slurm deals tasks out. ranks <= nplaces. NULL: no
 * memory.
 */
unsigned *places_share(const struct places *p, unsigned ranks);

/* Cost of a unit between two places; indices into place. */
double places_distance(const struct places *p, unsigned a, unsigned b);

#endif
