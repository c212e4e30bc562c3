/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/places/numa_tree.h"

#include <math.h>

#define ALIKE 1.1	/* joins at most so far apart are one level: measurements of one hardware differ, too */

/* Two groups that become one, named by their first members, and the average cost between them. */
struct join {
	unsigned a, b;
	double cost;
};

struct linkage {
	unsigned n;
	double *cost;		/* between groups, by their first members */
	unsigned *size;		/* of the group; 0: part of another */
	struct join *joins;	/* n - 1, in order: their costs never decrease */
	unsigned *level;	/* of each join, 0: innermost */
};

static struct join nearest(const struct linkage *l)
{
	struct join best = { .cost = INFINITY };

	for (unsigned a = 0; a < l->n; a++)
		for (unsigned b = a + 1; l->size[a] && b < l->n; b++)
			if (l->size[b] && (best.a == best.b || l->cost[a * l->n + b] < best.cost))
				best = (struct join){ a, b, l->cost[a * l->n + b] };
	return best;
}

static void join_groups(struct linkage *l, struct join j)
{
	unsigned a = l->size[j.a], b = l->size[j.b];

	for (unsigned c = 0; c < l->n; c++) {
		double cost = (a * l->cost[j.a * l->n + c] + b * l->cost[j.b * l->n + c]) / (a + b);

		l->cost[j.a * l->n + c] = l->cost[c * l->n + j.a] = cost;
	}
	l->size[j.a] += b;
	l->size[j.b] = 0;
}

/* The joins that cost much the same are a level; if there are too many, the two nearest become one. */
static unsigned levels_find(struct linkage *l)
{
	unsigned levels = 0, joins = l->n - 1;
	double first = 0;

	for (unsigned i = 0; i < joins; i++) {
		if (!i || l->joins[i].cost > ALIKE * first) {
			first = l->joins[i].cost;
			levels++;
		}
		l->level[i] = levels - 1;
	}
	for (; levels > NUMA_TREE_LEVELS; levels--) {
		unsigned at = 0;
		double least = INFINITY;

		for (unsigned i = 1; i < joins; i++)
			if (l->level[i] != l->level[i - 1] && l->joins[i].cost / l->joins[i - 1].cost < least) {
				least = l->joins[i].cost / l->joins[i - 1].cost;
				at = i;
			}
		for (unsigned i = at; i < joins; i++)
			l->level[i]--;
	}
	return levels;
}

int numa_tree_make(const double *cost, unsigned n, struct numa_tree *out, struct err *e)
{
	struct linkage l = { .n = n };
	struct numa_tree t = { .numas = n };
	int rc = -1;

	*out = (struct numa_tree){0};
	if (n < 2)
		return 0;
	l.cost = malloc((size_t) n * n * sizeof(*l.cost));
	l.size = malloc(n * sizeof(*l.size));
	l.joins = calloc(n, sizeof(*l.joins));
	l.level = calloc(n, sizeof(*l.level));
	t.group = calloc((size_t) n * NUMA_TREE_LEVELS, sizeof(*t.group));
	if (!l.cost || !l.size || !l.joins || !l.level || !t.group) {
		err_set(e, "out of memory");
		goto out;
	}
	memcpy(l.cost, cost, (size_t) n * n * sizeof(*l.cost));
	for (unsigned i = 0; i < n; i++)
		l.size[i] = 1;
	for (unsigned i = 0; i < n - 1; i++)
		join_groups(&l, l.joins[i] = nearest(&l));
	t.levels = levels_find(&l);
	/* Two are in different groups of a level as long as they are joined there or farther out. */
	for (unsigned k = 0; k < t.levels; k++) {
		unsigned *group = &t.group[k * l.n];

		for (unsigned i = 0; i < l.n; i++)
			group[i] = i;
		for (unsigned j = 0; j < l.n - 1 && l.level[j] + 1 < t.levels - k; j++)
			for (unsigned i = 0; i < l.n; i++)
				if (group[i] == l.joins[j].b)
					group[i] = l.joins[j].a;
	}
	/* The average of the pairs that a level separates. */
	unsigned pairs[NUMA_TREE_LEVELS] = {0};

	for (unsigned a = 0; a < t.numas; a++)
		for (unsigned b = 0; b < a; b++) {
			unsigned k = 0;

			while (t.group[k * t.numas + a] == t.group[k * t.numas + b])
				k++;
			t.cost[k] += cost[a * t.numas + b];
			pairs[k]++;
		}
	for (unsigned k = 0; k < t.levels; k++)
		t.cost[k] /= pairs[k];
	*out = t;
	t.group = NULL;
	rc = 0;
out:
	free(l.cost);
	free(l.size);
	free(l.joins);
	free(l.level);
	free(t.group);
	return rc;
}

void numa_tree_free(struct numa_tree *t)
{
	free(t->group);
	*t = (struct numa_tree){0};
}
