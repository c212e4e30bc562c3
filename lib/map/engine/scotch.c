/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/scotch.h"

#include <math.h>
#include <scotch.h>

#include "map/engine/tuning.h"

int scotch_repair(const struct matrix *m, const struct slots *s, unsigned *slot)
{
	double *volume = calloc(m->ranks, sizeof(*volume));
	unsigned *rank_on = malloc(s->n * sizeof(*rank_on));
	int rc = -1;

	if (!volume || !rank_on)
		goto out;
	memset(rank_on, 0xff, s->n * sizeof(*rank_on));
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			volume[r] += m->weight[i];
	for (unsigned r = 0; r < m->ranks; r++) {
		unsigned *home = &rank_on[slot[r]];

		if (*home != SLOT_NONE && volume[*home] >= volume[r]) {
			slot[r] = SLOT_NONE;
			continue;
		}
		if (*home != SLOT_NONE)
			slot[*home] = SLOT_NONE;
		*home = r;
	}
	for (unsigned r = 0; r < m->ranks; r++) {
		unsigned best = SLOT_NONE;
		double least = 0;

		for (unsigned at = 0; slot[r] == SLOT_NONE && at < s->n; at++) {
			double cost = rank_on[at] == SLOT_NONE ? slots_rank_cost(m, s, slot, r, at) : INFINITY;

			if (rank_on[at] == SLOT_NONE && (best == SLOT_NONE || cost < least)) {
				best = at;
				least = cost;
			}
		}
		if (best != SLOT_NONE)
			rank_on[slot[r] = best] = r;
	}
	rc = 0;
out:
	free(volume);
	free(rank_on);
	return rc;
}

/*
 * Scotch sums weight x distance in SCOTCH_Num, 32 bits in most packages, and does not detect overflows. The weights of
 * all edges are scaled to this sum, which leaves room for the largest distance.
 */
#define WEIGHT_SUM (1 << 21)
#define MAX_DISTANCE 512

/* Recursive bisection by the multilevel method: the first part of Scotch's own strategies. */
static const char bisection[] = "r{job=t,map=t,poli=S,bal=0.01,"
	"sep=m{vert=120,low=h{pass=20}f{bal=0.01,move=120},asc=f{bal=0.01,move=120}}}";

/* The slots as leaves of a tree with one arity for each level, the largest that occurs; the numbering may have gaps. */
struct tree {
	const struct slot_level *used[PATHS_LEVELS + 1];	/* the levels whose domains are its inner nodes */
	SCOTCH_Num levels, arity[PATHS_LEVELS + 2], cost[PATHS_LEVELS + 2];
	SCOTCH_Num *leaf;	/* by slot */
};

/* The number of the slot's domain within its parent; beyond the last level used, that of the slot within its domain. */
static unsigned digit_of(const struct slot_level *const *used, unsigned level, unsigned nlevels, unsigned slot)
{
	const struct slot_level *above = level ? used[level - 1] : NULL;
	unsigned first = above ? above->first[above->of[slot]] : 0;

	if (level == nlevels)
		return slot - first;
	return used[level]->of[slot] - used[level]->of[first];
}

/* Measures the tree with so many levels, ignoring the structure below the last. Returns the number of leaves. */
static double tree_measure(struct tree *t, unsigned all, unsigned n, unsigned nlevels)
{
	double leaves = 1;

	t->levels = nlevels + (nlevels < all);
	for (SCOTCH_Num l = 0; l < t->levels; leaves *= t->arity[l++]) {
		t->arity[l] = 1;
		for (unsigned i = 0; i < n; i++) {
			SCOTCH_Num digit = digit_of(t->used, l, nlevels, i);

			if (digit >= t->arity[l])
				t->arity[l] = digit + 1;
		}
	}
	return leaves;
}

/*
 * A torus is represented as routers at one distance. Scotch sums the links up to the common ancestor, so a level's link
 * is its cost less that of the level below. The largest cost is limited to what Scotch can sum. Levels that separate
 * none of these slots are dropped: their arity would be 1, which Scotch refuses.
 */
static int tree_init(struct tree *t, const struct slots *s)
{
	unsigned all = 0, nlevels;
	SCOTCH_Num kept = 0;
	double most = 1, scale;

	*t = (struct tree){ .leaf = calloc(s->n, sizeof(*t->leaf)) };
	if (!t->leaf)
		return -1;
	for (unsigned i = 0; i < s->nlevels; i++)
		if (!s->level[i].is_cut)
			t->used[all++] = &s->level[i];
	for (nlevels = all; tree_measure(t, all, s->n, nlevels) > SCOTCH_LEAVES && nlevels; nlevels--)
		;
	for (SCOTCH_Num l = 0; l < t->levels; l++) {
		for (unsigned i = 0; i < s->n; i++)
			t->leaf[i] = t->leaf[i] * t->arity[l] + digit_of(t->used, l, nlevels, i);
		most = fmax(most, t->used[l]->typical);
	}
	scale = most > MAX_DISTANCE ? MAX_DISTANCE / most : 1;
	for (SCOTCH_Num l = 0; l < t->levels; l++)
		t->cost[l] = lround(t->used[l]->typical * scale);
	for (SCOTCH_Num l = 0; l < t->levels; l++) {
		t->cost[l] -= l + 1 < t->levels ? t->cost[l + 1] : 0;
		if (t->cost[l] < 1)
			t->cost[l] = 1;
	}
	for (SCOTCH_Num l = 0; l < t->levels; l++)
		if (t->arity[l] > 1) {
			t->arity[kept] = t->arity[l];
			t->cost[kept++] = t->cost[l];
		}
	t->levels = kept;
	return 0;
}

/* The matrix of some ranks as a Scotch graph: integer weights above 0. */
struct arcs {
	SCOTCH_Num n, vertices, *row, *adj, *weight;
};

static int arcs_init(struct arcs *a, const struct matrix *m, const struct matrix_ranks *some)
{
	size_t all = 0;
	double sum = 0;

	for (unsigned v = 0; v < some->n; v++)
		for (size_t i = m->row[some->rank[v]]; i < m->row[some->rank[v] + 1]; i++)
			if (some->local[m->adj[i]] < some->n) {
				sum += m->weight[i];
				all++;
			}
	a->row = malloc((some->n + 1) * sizeof(*a->row));
	a->adj = malloc((all + 1) * sizeof(*a->adj));
	a->weight = malloc((all + 1) * sizeof(*a->weight));
	if (!a->row || !a->adj || !a->weight)
		return -1;
	a->vertices = some->n;
	for (unsigned v = 0; v < some->n; v++) {
		unsigned r = some->rank[v];

		a->row[v] = a->n;
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++) {
			SCOTCH_Num weight = m->weight[i] / sum * WEIGHT_SUM;

			if (!weight || some->local[m->adj[i]] >= some->n)
				continue;
			a->adj[a->n] = some->local[m->adj[i]];
			a->weight[a->n++] = weight;
		}
	}
	a->row[some->n] = a->n;
	return 0;
}

static void arcs_free(struct arcs *a)
{
	free(a->row);
	free(a->adj);
	free(a->weight);
}

struct call {
	const struct arcs *arcs;
	const SCOTCH_Arch *arch;
	SCOTCH_Strat *strat;
	unsigned seed;
	SCOTCH_Num *part;
};

/* Without a context of its own, one thread and a seed, Scotch's results differ from run to run. */
static int map_graph(const struct call *c)
{
	const struct arcs *a = c->arcs;
	SCOTCH_Graph graph, bound;
	SCOTCH_Context context;
	int rc;

	if (SCOTCH_contextInit(&context))
		return -1;
	SCOTCH_graphInit(&graph);
	SCOTCH_graphInit(&bound);
	SCOTCH_contextRandomSeed(&context, c->seed & 0x7fffffff);
	SCOTCH_contextRandomReset(&context);
	rc = SCOTCH_graphBuild(&graph, 0, a->vertices, a->row, a->row + 1, NULL, NULL, a->n, a->adj, a->weight) ||
	     SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) ||
	     SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMRANDOMFIXEDSEED, 1) ||
	     SCOTCH_contextThreadSpawn(&context, 1, NULL) || SCOTCH_contextBindGraph(&context, &graph, &bound) ||
	     SCOTCH_graphMap(&bound, c->arch, c->strat, c->part);
	SCOTCH_graphExit(&bound);
	SCOTCH_contextExit(&context);
	SCOTCH_graphExit(&graph);
	return rc;
}

static int map_tree(const struct arcs *arcs, const struct tree *t, unsigned nslots, unsigned seed, SCOTCH_Num *part)
{
	SCOTCH_Arch whole, some;
	SCOTCH_Strat strat;
	struct call c = { arcs, &some, &strat, seed, part };
	int rc;

	SCOTCH_archInit(&whole);
	SCOTCH_archInit(&some);
	SCOTCH_stratInit(&strat);
	rc = SCOTCH_archTleaf(&whole, t->levels, t->arity, t->cost) || SCOTCH_archSub(&some, &whole, nslots, t->leaf) ||
	     SCOTCH_stratGraphMapBuild(&strat, SCOTCH_STRATQUALITY, arcs->vertices, SCOTCH_IMBALANCE) || map_graph(&c);
	SCOTCH_stratExit(&strat);
	SCOTCH_archExit(&some);
	SCOTCH_archExit(&whole);
	return rc;
}

static int map_parts(const struct arcs *arcs, unsigned parts, const SCOTCH_Num *size, unsigned seed, SCOTCH_Num *part)
{
	SCOTCH_Arch arch;
	SCOTCH_Strat strat;
	struct call c = { arcs, &arch, &strat, seed, part };
	int rc;

	SCOTCH_archInit(&arch);
	SCOTCH_stratInit(&strat);
	rc = SCOTCH_archCmpltw(&arch, parts, size) || SCOTCH_stratGraphMap(&strat, bisection) || map_graph(&c);
	SCOTCH_stratExit(&strat);
	SCOTCH_archExit(&arch);
	return rc;
}

int scotch_map(const struct matrix *m, const struct slots *s, unsigned seed, unsigned *slot, struct err *e)
{
	unsigned *all = malloc(m->ranks * sizeof(*all));
	SCOTCH_Num *part = calloc(m->ranks, sizeof(*part));
	struct tree tree = {0};
	struct arcs arcs = {0};
	int rc = -1;

	for (unsigned r = 0; all && r < m->ranks; r++)
		all[r] = r;
	if (!all || !part || tree_init(&tree, s) ||
	    arcs_init(&arcs, m, &(struct matrix_ranks){ all, all, m->ranks })) {
		err_set(e, "mapping: out of memory");
		goto out;
	}
	if (tree.levels && map_tree(&arcs, &tree, s->n, seed, part)) {
		err_set(e, "mapping: Scotch failed on %u ranks and %u places", m->ranks, s->n);
		goto out;
	}
	for (unsigned r = 0; r < m->ranks; r++)
		slot[r] = part[r];
	if ((rc = scotch_repair(m, s, slot)))
		err_set(e, "mapping: out of memory");
out:
	free(all);
	free(part);
	free(tree.leaf);
	arcs_free(&arcs);
	return rc;
}

int scotch_split(const struct matrix *m, const struct matrix_ranks *some, unsigned parts, const unsigned *size,
		 unsigned seed, unsigned *part, struct err *e)
{
	SCOTCH_Num *to = calloc(some->n, sizeof(*to)), *weight = malloc(parts * sizeof(*weight));
	struct arcs arcs = {0};
	int rc = -1;

	if (!to || !weight || arcs_init(&arcs, m, some)) {
		err_set(e, "mapping: out of memory");
		goto out;
	}
	for (unsigned p = 0; p < parts; p++)
		weight[p] = size[p];
	if (map_parts(&arcs, parts, weight, seed, to)) {
		err_set(e, "mapping: Scotch failed on %u ranks and %u parts", some->n, parts);
		goto out;
	}
	for (unsigned i = 0; i < some->n; i++)
		part[i] = to[i];
	rc = 0;
out:
	free(to);
	free(weight);
	arcs_free(&arcs);
	return rc;
}
