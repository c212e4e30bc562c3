/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * The network as levels above the hosts, from the top down; the last level is always "which host below its switch".
 * Each host has a position at[l] on every level, within its parent. Two hosts differ first at the lowest l where at[l]
 * differs, and the cost of a unit between them depends on that level alone (Bordage, Foyer and Goglin, Euro-Par 2017
 * workshops, section 5.1):
 *   HIERARCHY_TREE   cost[0]
 *   HIERARCHY_TORUS  the sum over the dimensions of hops, the shorter way round, times that dimension's
 *                    cost. at = x + y * dim[0] + z * dim[0] * dim[1] ..., as Scotch numbers a torus
 *   HIERARCHY_GRAPH  hops[a * size + b] times cost[0]; only at level 0, above the hosts of one switch
 * So a fat tree of leaf switches is { which leaf switch, which host }, a fabric of one switch is { which host }.
 *
 * Costs have no unit. Recognition sets: 100 below one switch (places.h uses the same for the network); in a tree 100
 * more for every level that is climbed, times the level's pruning; 200 for a hop of a graph.
 */
enum { HIERARCHY_LEVELS = 8, HIERARCHY_DIMS = 6, HIERARCHY_INNER = 12 };

enum hierarchy_form { HIERARCHY_TREE, HIERARCHY_TORUS, HIERARCHY_GRAPH };

struct hierarchy_level {
	enum hierarchy_form form;
	unsigned size;				/* at[] is below it: the largest; torus: the product of dim[] */
	unsigned dims;				/* 1 except for a torus */
	unsigned dim[HIERARCHY_DIMS];		/* dim[0] is size except for a torus */
	unsigned cost[HIERARCHY_DIMS];
	unsigned pruned;			/* tree: bandwidth of the hosts below over that upwards, in % */
	unsigned *hops;				/* graph: size * size, symmetric, 0 on the diagonal; else NULL */
};

/* The inside of a host in the paper's format: a tree, and which of its leaves may be used. */
struct hierarchy_inner {
	unsigned levels;			/* 0: unknown */
	unsigned size[HIERARCHY_INNER];		/* from the top: packages, NUMA nodes in each, cores in each ... */
	unsigned cost[HIERARCHY_INNER];
	unsigned *leaf, nleaves;		/* the usable leaves, ascending; NULL: all */
};

struct hierarchy_host {
	char *name;
	unsigned group;				/* into groups: its switch */
	unsigned at[HIERARCHY_LEVELS];
	struct hierarchy_inner inner;
};

/*
 * A switch, or switches that act as one, with elements of `level` below it. groups[0] is the top; parents come before
 * children, children of one group in the order of at.
 */
struct hierarchy_group {
	char *name;				/* unique and valid in Slurm's files */
	unsigned level, above;			/* above: index of the parent group; the top's is itself */
	unsigned at;				/* its position in the parent group */
};

struct hierarchy {
	unsigned nlevels, nhosts, ngroups;
	struct hierarchy_level level[HIERARCHY_LEVELS];
	struct hierarchy_host *hosts;		/* sorted by at[], level by level */
	struct hierarchy_group *groups;
};

struct hierarchy *hierarchy_new(void);
/* Accepts NULL. */
void hierarchy_free(struct hierarchy *h);

/* The host of this name, or NULL if the fabric does not have it. Borrowed. */
const struct hierarchy_host *hierarchy_find(const struct hierarchy *h, const char *name);

/* The cost of a unit between two positions of a level; between two hosts, 0 for a host and itself. */
double hierarchy_level_cost(const struct hierarchy_level *level, unsigned a, unsigned b);
unsigned hierarchy_distance(const struct hierarchy *h, const struct hierarchy_host *a, const struct hierarchy_host *b);

/*
 * To build a hierarchy: returns the index of a new group, or -1; a new host, or NULL (memory); sort at the end. name is
 * copied.
 */
int hierarchy_add_group(struct hierarchy *h, const char *name, unsigned level, unsigned above, unsigned at);
struct hierarchy_host *hierarchy_add_host(struct hierarchy *h, const char *name, unsigned group, const unsigned *at);
void hierarchy_sort(struct hierarchy *h);

/*
 * The paper's text format, read and written: a line for each group, then its elements, depth first:
 *   tree|torus DIMENSIONS SIZE COST [SIZE COST ...] COUNT INDEX [INDEX ...]
 *                                              or -1 for COUNT and the indices: all of them
 *   alltoall|ring 1 SIZE COST COUNT INDEX [INDEX ...]             or -1; written as a tree, as a torus
 *   graph 1 SIZE COST COUNT INDEX [INDEX ...]
 *   node HOST tree LEVELS SIZE COST [SIZE COST ...] COUNT INDEX [INDEX ...]        or -1
 * "graph" is Topiary's extension: allowed in the first line only, and followed by SIZE - 1 lines "hops H ...", the hops
 * of each element, from the second on, to those before it. A tree line of several dimensions states as many levels.
 * Sizes may differ between branches, forms and costs may not. Anything else is an error with its line. '#' begins a
 * comment. hierarchy_parse returns NULL on error. hierarchy_write returns 0, or -1 with out undefined. A host of
 * unknown inside is written as one leaf: "tree 1 1 1 -1".
 */
struct hierarchy *hierarchy_parse(const char *text, size_t len, const char *name, struct err *e);
int hierarchy_write(const struct hierarchy *h, struct buf *out, struct err *e);
