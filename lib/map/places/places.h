/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "fabric/model/fabric.h"
#include "map/matrix/matrix.h"
#include "map/places/numa_tree.h"
#include "shape/shape.h"

struct tree;

/*
 * The OS numbers of a node's PUs, by core in logical order, for launchers that bind by no other. They are not part of a
 * shape: machines of one model may be numbered differently.
 */
struct numbers {
	unsigned cores;
	unsigned *first;	/* PUs of core i: pu[first[i]] .. pu[first[i + 1] - 1] */
	unsigned *pu;
};

/* NULL with an error: a PU without a number, memory. Free with numbers_free, which accepts NULL. */
struct numbers *numbers_of(const struct tree *t, struct err *e);
void numbers_free(struct numbers *n);

/*
 * The places of a job. A place is what one rank gets: a core or, when a task has several CPUs, several cores side by
 * side.
 *
 * A place's path leads from the top of the network down to it, a number for each level. Two places differ at the
 * first level where their paths do, and the cost of a unit between them is that level's: on a torus the sum over
 * its dimensions of hops times the dimension's cost (Goglin et al., Euro-Par 2017, section 5.1). Levels are those
 * of the network, if it is known, then those of the nodes: either node, groups of NUMA nodes (numa_tree.h),
 * package ... core, or those that the network's file states for its hosts. A place of several cores is in those
 * domains that hold all of them.
 */
enum { PLACES_LEVELS = HIERARCHY_LEVELS + HIERARCHY_INNER };

struct place {
	unsigned id;			/* from 0: hosts in the job's order, on each in tree order */
	unsigned host;			/* index into hosts */
	unsigned leaf, leaves;		/* leaf[leaf] .. leaf[leaf + leaves - 1] of struct places are its leaves */
	unsigned takes;			/* the most ranks: as many as its CPUs suffice for */
	unsigned kind;			/* index into kinds */
	unsigned path[PLACES_LEVELS];
};

/* The cost of a pair by the first level at which it differs; hosts of one kind share it. */
struct places_kind {
	double cost[PLACES_LEVELS];
};

struct places {
	char **hosts;
	unsigned nhosts;
	struct place *place;		/* hosts in the job's order, on each in tree order */
	unsigned nplaces, added;
	unsigned *leaf;			/* indices of cores: see places_add and places_add_inner */
	unsigned *core;			/* by leaf: the core's index in the whole tree; without cores: the leaf */
	unsigned nleaves;
	struct numbers **numbers;	/* by host, NULL where unknown; or NULL. Owned */
	struct places_kind *kinds;
	unsigned nkinds;
	const struct hierarchy *network;	/* borrowed, or NULL; set it before hosts are added */
	const struct fabric *planes;		/* borrowed or NULL: all planes, for errors about a host in another */
	unsigned threads;		/* CPUs of a core of the nodes added next, as Slurm counts them; 0: its PUs */
	double cost[LEVEL_COUNT];	/* of the levels of nodes; set it before hosts are added */
	struct numa_tree numas;		/* instead, between NUMA nodes; without levels: unknown. Owned */
	double *distance;		/* added * added, by id: overrides all other costs; NULL or owned */
};

/* Costs by level are those of level_default_cost. */
struct places *places_new(void);
void places_free(struct places *p);

/*
 * Sets costs of the nodes added next from text: "node=100,l3=6.5", names as in level_parse, and "0-1=12,0-2=30,1-2=30"
 * between the cores of two NUMA nodes, which are numbered by their first cores: of all pairs or of
 * none. 0, or -1 with an error and nothing set: an unknown level, not a number up to 1000000, a missing pair.
 */
int places_costs(struct places *p, const char *words, struct err *e);

/*
 * Adds a node of that shape, and those of its cores that are in the list ("0-5,12"). Cores that have together the CPUs
 * of a task become places, as few as possible across the boundary of a domain; left over cores are not used. A leaf is
 * a core's index within the list. 0, or -1 with an error naming the host: added twice, not in the network, no core,
 * fewer CPUs than a task has.
 */
int places_add(struct places *p, const char *host, const struct shape *shape, const char *cores, unsigned cpus,
	       struct err *e);

/*
 * Adds the place of a process that runs already, by the domain that it is in at each level from LEVEL_PACKAGE on,
 * numbers of the caller's. It is of the last node added, if that has this name, else of a new one. above: of a node in
 * the network, its position, or NULL. 0, or -1: memory, or a name that an earlier node has.
 */
int places_add_process(struct places *p, const char *host, const unsigned *above, const unsigned domain[LEVEL_COUNT],
		       struct err *e);

/* Adds a host with the inside that the network's file states: each usable leaf is a place. 0 or -1. */
int places_add_inner(struct places *p, const struct hierarchy_host *host, struct err *e);

/*
 * Sets costs between all places, by id, instead of those of the levels: half of the matrix's weight of a pair, which is
 * the sum of both directions. 0, or -1: the matrix has another size, more than PLACES_MAX_DISTANCES (2 GiB), memory.
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
 * Reduces each host to as many places as it is to have ranks: tasks[host]. With more tasks than places, each place
 * becomes as many, side by side, as it takes ranks; with more places than tasks, the first remain, with FILL_SPREAD
 * some evenly distributed. A launcher starts no more ranks there: Open MPI refuses a rank file that would. 0 or -1.
 */
int places_fit(struct places *p, const unsigned *tasks, enum places_fill fill, struct err *e);

/* The same for a total number of ranks, at most nplaces; FILL_AUTO keeps all. 0 or -1. */
int places_fill(struct places *p, unsigned ranks, enum places_fill fill, struct err *e);

/*
 * The ranks of each host: equal shares as far as their places suffice, as Slurm distributes tasks. ranks <= nplaces.
 * NULL: no memory.
 */
unsigned *places_share(const struct places *p, unsigned ranks);

/* Cost of a unit between two places; indices into place. */
double places_distance(const struct places *p, unsigned a, unsigned b);
