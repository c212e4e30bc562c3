/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_MODEL_HIERARCHY_H
#define TOPIARY_FABRIC_MODEL_HIERARCHY_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The network as levels above the host, from the top down; the last level is always "which host below its switch". Each
 * host has a place at[l] on every level, within what is above it: two hosts differ first at the lowest l where at[l]
 * differs, and what a unit between them costs is told by that level alone (Bordage, Foyer and Goglin, Euro-Par 2017
 * workshops, section 5.1):
 *   HIERARCHY_TREE   cost[0]
 *   HIERARCHY_TORUS  the sum over the dimensions of hops, the shorter way round, times that dimension's
 *                    cost. at = x + y * dim[0] + z * dim[0] * dim[1] ..., as Scotch numbers a torus
 *   HIERARCHY_GRAPH  hops[a * size + b] times cost[0]; only ever at level 0, above the hosts of one switch
 * So a fat tree of leaf switches is { which leaf switch, which host }, a fabric of one switch is { which host }.
 *
 * Costs have no unit. What recognising fills in: 100 below one switch (as places.h has it for the network); on a tree
 * and in a dragonfly 100 more for every level that is climbed, times how much that level is pruned; 200 for a hop of a
 * torus or graph.
 */
enum { HIERARCHY_LEVELS = 8, HIERARCHY_DIMS = 6, HIERARCHY_INNER = 12 };

enum hierarchy_form { HIERARCHY_TREE, HIERARCHY_TORUS, HIERARCHY_GRAPH };

struct hierarchy_level {
	enum hierarchy_form form;
	unsigned size;				/* at[] is below it: the largest; torus: the product of dim[] */
	unsigned dims;				/* 1 but for a torus */
	unsigned dim[HIERARCHY_DIMS];		/* dim[0] is size but for a torus */
	unsigned cost[HIERARCHY_DIMS];
	unsigned pruned;			/* tree: bandwidth of the hosts below over that upwards, in % */
	unsigned *hops;				/* graph: size * size, symmetric, 0 between the same; else NULL */
};

/* The inside of a host as the paper's format tells it: a tree, and which of its leaves may be used. */
struct hierarchy_inner {
	unsigned levels;			/* 0: not told */
	unsigned size[HIERARCHY_INNER];		/* from the top: packages, NUMA nodes in each, cores in each ... */
	unsigned cost[HIERARCHY_INNER];
	unsigned *leaf, nleaves;		/* the usable leaves, increasing; NULL: all */
};

struct hierarchy_host {
	char *name;
	unsigned group;				/* into groups: what it is connected to */
	unsigned at[HIERARCHY_LEVELS];
	struct hierarchy_inner inner;
};

/*
 * A switch, or switches that act as one: it holds elements of `level`. groups[0] is the top, those above come first,
 * and those in one group in the order of at.
 */
struct hierarchy_group {
	char *name;				/* fit for a name in Slurm's files, unique */
	unsigned level, above;			/* above: index of a group; of the top itself */
	unsigned at;				/* its own place in the group above */
};

struct hierarchy {
	unsigned nlevels, nhosts, ngroups;
	struct hierarchy_level level[HIERARCHY_LEVELS];
	struct hierarchy_host *hosts;		/* sorted by at[], level after level */
	struct hierarchy_group *groups;
};

struct hierarchy *hierarchy_new(void);
/* NULL is fine. */
void hierarchy_free(struct hierarchy *h);

/* The host of this name, or NULL: not a host of this fabric. Borrowed. */
const struct hierarchy_host *hierarchy_find(const struct hierarchy *h, const char *name);

/* What a unit between two hosts costs; 0 when they are one. */
unsigned hierarchy_distance(const struct hierarchy *h, const struct hierarchy_host *a, const struct hierarchy_host *b);

/* For those who make one: the index of a new group, or -1; a new host, or NULL (memory); then sort. name is copied. */
int hierarchy_add_group(struct hierarchy *h, const char *name, unsigned level, unsigned above, unsigned at);
struct hierarchy_host *hierarchy_add_host(struct hierarchy *h, const char *name, unsigned group, const unsigned *at);
void hierarchy_sort(struct hierarchy *h);

/*
 * The paper's text, read and written: a line for each group, then its elements, depth first:
 *   tree|torus DIMENSIONS SIZE COST [SIZE COST ...] COUNT INDEX [INDEX ...]
 *                                              or -1 for COUNT and the indices: all of them
 *   graph 1 SIZE COST COUNT INDEX [INDEX ...]
 *   node HOST tree LEVELS SIZE COST [SIZE COST ...] COUNT INDEX [INDEX ...]        or -1
 * A graph is ours: only ever the first line, and followed by SIZE - 1 lines "hops H ...", the hops of each element,
 * from the second on, to those before it. A tree line of several dimensions is as many levels. Sizes may differ from
 * branch to branch, forms and costs may not: an error with the line, as is all that is not this. '#' begins a comment.
 * hierarchy_parse: NULL on error. hierarchy_write: 0, or -1 with what was appended to out of no meaning. A host whose
 * inside is not told is written as one leaf: "tree 1 1 1 -1".
 */
struct hierarchy *hierarchy_parse(const char *text, size_t len, const char *name, struct err *e);
int hierarchy_write(const struct hierarchy *h, struct buf *out, struct err *e);

#endif
