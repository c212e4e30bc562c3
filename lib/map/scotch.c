/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/scotch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scotch.h>

/*
 * Scotch adds weight x distance in SCOTCH_Num, 32 bits in most packages, and an overflow is silent. All arcs together get
 * this much, which leaves room for a distance of 128 links.
 */
#define WEIGHT_SUM (1 << 23)

/* A padded tree above this size costs Scotch more than its finest levels are worth. */
#define TREE_LEAVES (1u << 18)

static const struct {
	SCOTCH_Num flags;
	double imbalance;
} methods[] = {
	[SCOTCH_MAP_DEFAULT] = { SCOTCH_STRATDEFAULT, 0.01 },
	[SCOTCH_MAP_QUALITY] = { SCOTCH_STRATQUALITY, 0.01 },
	[SCOTCH_MAP_RECURSIVE] = { SCOTCH_STRATRECURSIVE | SCOTCH_STRATQUALITY, 0 },
};

/*
 * The places as leaves of a tree that has one arity a level: the largest, so that a place's number, digit by digit its
 * number within the domain above, may leave gaps.
 */
struct tree {
	SCOTCH_Num levels, arity[PLACES_LEVELS], cost[PLACES_LEVELS];
	SCOTCH_Num leaves;
	SCOTCH_Num *leaf;	/* of each place */
};

static int differ_at(const struct places *p, unsigned a, unsigned b)
{
	int l = 0;

	while (p->place[a].path[l] == p->place[b].path[l])
		l++;
	return l;
}

/* One step from a place to the next: which digit counts up; those below start again. */
static void digits_step(const struct places *p, unsigned i, int finest, unsigned *digit)
{
	int l = i ? differ_at(p, i - 1, i) : 0;

	if (l > finest)
		l = finest;
	digit[l] += i != 0;
	while (++l < PLACES_LEVELS)
		digit[l] = 0;
}

static double arities_find(const struct places *p, unsigned nplaces, int finest, unsigned *arity)
{
	unsigned digit[PLACES_LEVELS] = {0};
	double leaves = 1;

	for (int l = 0; l < PLACES_LEVELS; l++)
		arity[l] = 1;
	for (unsigned i = 0; i < nplaces; i++) {
		digits_step(p, i, finest, digit);
		for (int l = 0; l < PLACES_LEVELS; l++)
			if (digit[l] >= arity[l])
				arity[l] = digit[l] + 1;
	}
	for (int l = 0; l < PLACES_LEVELS; l++)
		leaves *= arity[l];
	return leaves;
}

static void leaves_number(const struct places *p, unsigned nplaces, int finest, const unsigned *arity, SCOTCH_Num *leaf)
{
	unsigned digit[PLACES_LEVELS] = {0};

	for (unsigned i = 0; i < nplaces; i++) {
		digits_step(p, i, finest, digit);
		leaf[i] = 0;
		for (int l = 0; l < PLACES_LEVELS; l++)
			leaf[i] = leaf[i] * arity[l] + digit[l];
	}
}

/* Scotch's distance adds the links up to the common node, so that a level's link is its cost less that of the level below. */
static void links_fill(struct tree *t)
{
	for (SCOTCH_Num i = 0; i + 1 < t->levels; i++) {
		t->cost[i] -= t->cost[i + 1];
		if (t->cost[i] < 1)
			t->cost[i] = 1;
	}
}

static int tree_init(struct tree *t, const struct places *p, unsigned nplaces)
{
	unsigned arity[PLACES_LEVELS];
	int finest = LEVEL_CORE;

	*t = (struct tree){ .leaves = 1 };
	if (!(t->leaf = malloc(nplaces * sizeof(*t->leaf))))
		return -1;
	while (arities_find(p, nplaces, finest, arity) > TREE_LEAVES && finest > LEVEL_NODE)
		finest--;
	leaves_number(p, nplaces, finest, arity, t->leaf);
	for (int l = 0; l < PLACES_LEVELS; l++) {
		if (arity[l] < 2)
			continue;
		t->arity[t->levels] = arity[l];
		t->cost[t->levels++] = p->cost[l] ? p->cost[l] : 1;
		t->leaves *= arity[l];
	}
	links_fill(t);
	return 0;
}

/* The matrix as Scotch has graphs: whole weights, none of them 0. */
struct arcs {
	SCOTCH_Num n, *row, *adj, *weight;
};

static int arcs_init(struct arcs *a, const struct matrix *m)
{
	size_t all = m->row[m->ranks];
	double sum = 0;

	a->n = 0;
	a->row = malloc((m->ranks + 1) * sizeof(*a->row));
	a->adj = malloc((all + 1) * sizeof(*a->adj));
	a->weight = malloc((all + 1) * sizeof(*a->weight));
	if (!a->row || !a->adj || !a->weight)
		return -1;
	for (size_t i = 0; i < all; i++)
		sum += m->weight[i];
	for (unsigned r = 0; r < m->ranks; r++) {
		a->row[r] = a->n;
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++) {
			SCOTCH_Num weight = m->weight[i] / sum * WEIGHT_SUM;

			if (!weight)
				continue;
			a->adj[a->n] = m->adj[i];
			a->weight[a->n++] = weight;
		}
	}
	a->row[m->ranks] = a->n;
	return 0;
}

struct call {
	struct tree tree;
	struct arcs arcs;
	SCOTCH_Num *part;
};

static int map_in_context(SCOTCH_Context *context, SCOTCH_Graph *graph, const SCOTCH_Arch *arch,
			  SCOTCH_Strat *strat, SCOTCH_Num *part)
{
	SCOTCH_Graph bound;
	int rc;

	SCOTCH_graphInit(&bound);
	rc = SCOTCH_contextBindGraph(context, graph, &bound) || SCOTCH_graphMap(&bound, arch, strat, part);
	SCOTCH_graphExit(&bound);
	return rc;
}

/* Without a context of its own, one thread and a seed, Scotch answers differently every time. */
static int map_seeded(SCOTCH_Graph *graph, const SCOTCH_Arch *arch, SCOTCH_Strat *strat, unsigned seed, SCOTCH_Num *part)
{
	SCOTCH_Context context;
	int rc;

	if (SCOTCH_contextInit(&context))
		return -1;
	SCOTCH_contextRandomSeed(&context, seed & 0x7fffffff);
	SCOTCH_contextRandomReset(&context);
	rc = SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) ||
	     SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMRANDOMFIXEDSEED, 1) ||
	     SCOTCH_contextThreadSpawn(&context, 1, NULL) || map_in_context(&context, graph, arch, strat, part);
	SCOTCH_contextExit(&context);
	return rc;
}

static int map_graph(const struct call *c, unsigned ranks, const SCOTCH_Arch *arch, SCOTCH_Strat *strat, unsigned seed)
{
	SCOTCH_Graph graph;
	int rc;

	SCOTCH_graphInit(&graph);
	rc = SCOTCH_graphBuild(&graph, 0, ranks, c->arcs.row, c->arcs.row + 1, NULL, NULL, c->arcs.n, c->arcs.adj,
			       c->arcs.weight) ||
	     map_seeded(&graph, arch, strat, seed, c->part);
	SCOTCH_graphExit(&graph);
	return rc;
}

static int map_call(const struct call *c, unsigned ranks, unsigned nplaces, enum scotch_method method, unsigned seed)
{
	SCOTCH_Arch whole, some;
	SCOTCH_Strat strat;
	int rc;

	SCOTCH_archInit(&whole);
	SCOTCH_archInit(&some);
	SCOTCH_stratInit(&strat);
	rc = SCOTCH_archTleaf(&whole, c->tree.levels, c->tree.arity, c->tree.cost) ||
	     SCOTCH_archSub(&some, &whole, nplaces, c->tree.leaf) ||
	     SCOTCH_stratGraphMapBuild(&strat, methods[method].flags, nplaces, methods[method].imbalance) ||
	     map_graph(c, ranks, &some, &strat, seed);
	SCOTCH_stratExit(&strat);
	SCOTCH_archExit(&some);
	SCOTCH_archExit(&whole);
	return rc;
}

int scotch_map(const struct matrix *m, const struct places *p, unsigned nplaces, enum scotch_method method,
	       unsigned seed, unsigned *place, struct err *e)
{
	struct call c = {0};
	int rc = -1;

	c.part = malloc(m->ranks * sizeof(*c.part));
	if (!c.part || tree_init(&c.tree, p, nplaces) || arcs_init(&c.arcs, m)) {
		err_set(e, "mapping: out of memory");
		goto out;
	}
	if (map_call(&c, m->ranks, nplaces, method, seed)) {
		err_set(e, "mapping: Scotch failed on %u ranks and %u places", m->ranks, nplaces);
		goto out;
	}
	for (unsigned r = 0; r < m->ranks; r++)
		place[r] = c.part[r];
	rc = 0;
out:
	free(c.tree.leaf);
	free(c.arcs.row);
	free(c.arcs.adj);
	free(c.arcs.weight);
	free(c.part);
	return rc;
}
