/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/model/net.h"

/*
 * A fat tree is recognised by its distances: climbing k tiers and back takes 2k hops, or one less to a switch that
 * lacks a tier, and for every k "at most k tiers apart" partitions the leaf switches into classes. Spines that reach
 * the same leaf switches act as one and need not be distinguished. Hosts on a spine are placed beside the leaf switches
 * below it.
 */
enum { MAX_LEAVES = 8192, MAX_TIERS = HIERARCHY_LEVELS - 1 };

struct tree {
	const struct net *net;
	unsigned *of;			/* each member's switch: leaf switches first, then spines */
	unsigned n, nleaves;
	unsigned char *tiers;		/* tiers[i * nleaves + j]: from leaf switch i to j */
	unsigned *rep, *reach;		/* each member's leaf switch; the tier whose class has all at that distance */
	unsigned *class[MAX_TIERS + 1];	/* class[k][i]: the first leaf switch within k tiers of leaf switch i */
	unsigned ntiers;
};

static void tree_free(struct tree *t)
{
	free(t->of);
	free(t->tiers);
	free(t->rep);
	free(t->reach);
	for (unsigned k = 0; k <= MAX_TIERS; k++)
		free(t->class[k]);
}

static int tree_reserve(struct tree *t)
{
	unsigned leaves = t->net->nleaves;

	t->of = calloc(t->net->n + 1, sizeof(*t->of));
	t->tiers = calloc((size_t) leaves * leaves + 1, 1);
	t->rep = calloc(t->net->n + 1, sizeof(*t->rep));
	t->reach = calloc(t->net->n + 1, sizeof(*t->reach));
	for (unsigned k = 0; k <= MAX_TIERS; k++)
		if (!(t->class[k] = calloc(leaves + 1, sizeof(**t->class))))
			return -1;
	return t->of && t->tiers && t->rep && t->reach ? 0 : -1;
}

static void find_members(struct tree *t)
{
	for (unsigned s = 0; s < t->net->n; s++)
		if (t->net->leaf[s])
			t->of[t->n++] = s;
	t->nleaves = t->n;
	for (unsigned s = 0; s < t->net->n; s++)
		if (!t->net->leaf[s])
			t->of[t->n++] = s;
}

/* Adjacent switches with hosts are not a tree, unless there are only two. */
static bool leaves_apart(const struct net *n)
{
	for (unsigned s = 0; s < n->n; s++)
		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++)
			if (n->leaf[s] && n->leaf[n->adj[i]] && n->nleaves > 2)
				return false;
	return true;
}

/* Measures distances. False: too many tiers. */
static bool measure_leaves(struct tree *t, unsigned *hops, unsigned *queue)
{
	for (unsigned i = 0; i < t->nleaves; i++) {
		net_hops(t->net, t->of[i], hops, queue);
		for (unsigned j = 0; j < t->nleaves; j++) {
			unsigned tiers = (hops[t->of[j]] + 1) / 2;

			if (tiers > MAX_TIERS)
				return false;
			t->tiers[(size_t) i * t->nleaves + j] = tiers;
			if (t->ntiers < tiers)
				t->ntiers = tiers;
		}
	}
	return true;
}

/*
 * Finds the classes by distance for every number of tiers. False when "within k tiers" is no partition of the leaf
 * switches.
 */
static bool find_classes(struct tree *t)
{
	for (unsigned k = 0; k <= t->ntiers; k++) {
		for (unsigned i = 0; i < t->nleaves; i++) {
			const unsigned char *row = &t->tiers[(size_t) i * t->nleaves];
			unsigned first = 0;

			while (row[first] > k)
				first++;
			t->class[k][i] = first;
		}
		for (unsigned i = 0; i < t->nleaves; i++)
			for (unsigned j = 0; j < i; j++)
				if ((t->tiers[(size_t) i * t->nleaves + j] <= k) != (t->class[k][i] == t->class[k][j]))
					return false;
	}
	return true;
}

/* Drops tiers that join nothing, because no two leaf switches are at that distance. */
static void drop_idle_tiers(struct tree *t)
{
	unsigned kept = 0;

	for (unsigned k = 1; k <= t->ntiers; k++)
		if (memcmp(t->class[k], t->class[kept], t->nleaves * sizeof(**t->class)))
			memmove(t->class[++kept], t->class[k], t->nleaves * sizeof(**t->class));
	t->ntiers = kept;
}

/* Whether the class of that tier equals that of the tier below. */
static bool joins_nothing(const struct tree *t, unsigned k, unsigned leaf)
{
	for (unsigned j = 0; j < t->nleaves; j++)
		if (t->class[k][j] == t->class[k][leaf] && t->class[k - 1][j] != t->class[k - 1][leaf])
			return false;
	return true;
}

static void place_spine(struct tree *t, unsigned i, unsigned *hops, unsigned *queue)
{
	unsigned nearest = 0, k;

	net_hops(t->net, t->of[i], hops, queue);
	for (unsigned j = 1; j < t->nleaves; j++)
		if (hops[t->of[j]] < hops[t->of[nearest]])
			nearest = j;
	k = t->ntiers ? 1 : 0;
	for (unsigned j = 0; j < t->nleaves; j++)
		while (hops[t->of[j]] == hops[t->of[nearest]] && k < t->ntiers &&
		       t->class[k][j] != t->class[k][nearest])
			k++;
	while (k && k < t->ntiers && joins_nothing(t, k, nearest))
		k++;
	t->rep[i] = nearest;
	t->reach[i] = k;
}

/* One leaf switch, but hosts on others: adds a tier for those. */
static void need_tier(struct tree *t)
{
	for (unsigned i = t->nleaves; i < t->n; i++)
		if (t->ntiers == 0 && t->net->hosts[t->of[i]])
			t->ntiers = 1;
}

/* Returns 1: a tree; 0: none; -1: memory. */
static int tree_measure(struct tree *t)
{
	unsigned *hops = calloc(t->net->n + 1, sizeof(*hops)), *queue = calloc(t->net->n + 1, sizeof(*queue));
	int rc = hops && queue ? 0 : -1;

	if (rc == 0 && measure_leaves(t, hops, queue) && find_classes(t)) {
		drop_idle_tiers(t);
		need_tier(t);
		for (unsigned i = 0; i < t->nleaves; i++)
			t->rep[i] = i;
		for (unsigned i = t->nleaves; i < t->n; i++)
			place_spine(t, i, hops, queue);
		rc = 1;
	}
	free(hops);
	free(queue);
	return rc;
}

/* The name of a class of tier k: that of its only switch, else one derived from its position. */
static void name_class(const struct tree *t, unsigned k, unsigned class, char *name, size_t size)
{
	unsigned joints = 0, nth = 0, last = 0, plane = t->net->fabric->nodes[t->net->node[0]].plane;

	for (unsigned i = t->nleaves; i < t->n; i++)
		if (t->reach[i] == k && t->class[k][t->rep[i]] == class) {
			joints++;
			last = t->of[i];
		}
	for (unsigned i = 0; i < class; i++)
		nth += t->class[k][i] == i;
	if (joints == 1 && !t->net->hosts[last])
		snprintf(name, size, "%s", net_name(t->net, last));
	else if (plane)
		snprintf(name, size, "plane%u-tier%u-%u", plane, k, nth);
	else
		snprintf(name, size, "tier%u-%u", k, nth);
}

/* The groups, from the top: classes; at the bottom one for each leaf switch, and for each spine with hosts. */
struct group_builder {
	const struct tree *tree;
	struct hierarchy *h;
	unsigned *group[MAX_TIERS + 1];	/* group[k][class] */
	unsigned *inside;		/* by group: elements so far */
	unsigned *bottom, *at;		/* by switch, for net_add_hosts */
};

static int add_group(struct group_builder *g, const char *name, unsigned level, unsigned above)
{
	unsigned at = level ? g->inside[above]++ : 0;
	struct hierarchy_level *l = level ? &g->h->level[level - 1] : NULL;

	if (l && l->size <= at)
		l->size = l->dim[0] = at + 1;
	return hierarchy_add_group(g->h, name, level, above, at);
}

static int grow_classes(struct group_builder *g, unsigned k)
{
	const struct tree *t = g->tree;

	for (unsigned i = 0; i < t->nleaves; i++) {
		unsigned above = k < t->ntiers ? g->group[k + 1][t->class[k + 1][i]] : 0;
		char name[300];
		int group;

		if (t->class[k][i] != i)
			continue;
		name_class(t, k, i, name, sizeof(name));
		if ((group = add_group(g, name, t->ntiers - k, above)) < 0)
			return -1;
		g->group[k][i] = group;
	}
	return 0;
}

/*
 * Adds a switch with hosts, below the class of the first tier that contains it; for a spine adds the tiers between,
 * too.
 */
static int grow_bottom(struct group_builder *g, unsigned i)
{
	const struct tree *t = g->tree;
	unsigned s = t->of[i], from = i < t->nleaves ? 1 : t->reach[i], above = 0,
		 *at = &g->at[(size_t) s * HIERARCHY_LEVELS];
	int group;

	if (t->ntiers)
		above = g->group[from][t->class[from][t->rep[i]]];
	for (unsigned k = t->ntiers ? from : 1; k-- > 0;) {
		char name[300];

		if (k)
			snprintf(name, sizeof(name), "%s-tier%u", net_name(t->net, s), k);
		else
			snprintf(name, sizeof(name), "%s", net_name(t->net, s));
		if ((group = add_group(g, name, t->ntiers - k, above)) < 0)
			return -1;
		above = group;
	}
	g->bottom[s] = above;
	for (unsigned x = above; g->h->groups[x].level; x = g->h->groups[x].above)
		at[g->h->groups[x].level - 1] = g->h->groups[x].at;
	return 0;
}

static int grow_all(struct group_builder *g)
{
	const struct tree *t = g->tree;

	for (unsigned k = t->ntiers; k > 0; k--)
		if (grow_classes(g, k))
			return -1;
	for (unsigned i = 0; i < t->n; i++)
		if (t->net->hosts[t->of[i]] && grow_bottom(g, i))
			return -1;
	return net_add_hosts(t->net, g->h, g->bottom, g->at);
}

/*
 * Pruning: bandwidth of the hosts below the classes of tier k over that of their uplinks, in percent; at least 100,
 * also when unknown.
 */
static unsigned pruning_of(const struct tree *t, unsigned k, const unsigned *member)
{
	const struct net *n = t->net;
	const struct fabric *f = n->fabric;
	unsigned long long down = 0, up = 0;

	for (unsigned i = 0; i < t->n; i++)
		for (unsigned j = n->row[t->of[i]]; j < n->row[t->of[i] + 1]; j++) {
			unsigned other = member[n->adj[j]];

			if (t->reach[i] <= k &&
			    (t->reach[other] > k || t->class[k][t->rep[other]] != t->class[k][t->rep[i]]))
				up += f->links[n->link[j]].mbps;
		}
	for (unsigned i = 0; i < f->nlinks; i++) {
		unsigned home = f->links[i].b < f->nswitches ? NET_NONE : n->home[f->links[i].b - f->nswitches];

		if (home != NET_NONE && f->links[i].a < f->nswitches && n->of[f->links[i].a] == home &&
		    t->reach[member[home]] <= k)
			down += f->links[i].mbps;
	}
	return up && down > up ? down * 100 / up : 100;
}

static int set_costs(const struct tree *t, struct hierarchy *h)
{
	unsigned *member = calloc(t->net->n + 1, sizeof(*member)), cost = COST_HOST;

	if (!member)
		return -1;
	for (unsigned i = 0; i < t->n; i++)
		member[t->of[i]] = i;
	for (unsigned k = 0; k < t->ntiers; k++) {
		struct hierarchy_level *level = &h->level[t->ntiers - 1 - k];

		level->dims = 1;
		level->pruned = pruning_of(t, k, member);
		cost += COST_CLIMB * level->pruned / 100;
		level->cost[0] = cost;
	}
	free(member);
	return 0;
}

static void group_builder_free(struct group_builder *g)
{
	for (unsigned k = 0; k <= MAX_TIERS; k++)
		free(g->group[k]);
	free(g->inside);
	free(g->bottom);
	free(g->at);
}

static struct hierarchy *tree_grow(const struct tree *t)
{
	struct group_builder g = { .tree = t, .h = hierarchy_new() };
	bool ok = g.h;

	for (unsigned k = 0; k <= t->ntiers; k++)
		ok &= (g.group[k] = calloc(t->nleaves + 1, sizeof(**g.group))) != NULL;
	ok &= (g.inside = calloc((size_t) t->n * (MAX_TIERS + 1) + 1, sizeof(*g.inside))) != NULL;
	ok &= (g.bottom = malloc((t->net->n + 1) * sizeof(*g.bottom))) != NULL;
	ok &= (g.at = calloc((size_t) t->net->n * HIERARCHY_LEVELS + 1, sizeof(*g.at))) != NULL;
	if (ok) {
		memset(g.bottom, 0xff, (t->net->n + 1) * sizeof(*g.bottom));
		g.h->nlevels = t->ntiers + 1;
		ok = grow_all(&g) == 0 && set_costs(t, g.h) == 0;
	}
	group_builder_free(&g);
	if (ok)
		return g.h;
	hierarchy_free(g.h);
	return NULL;
}

int net_tree(const struct net *n, struct hierarchy **out)
{
	struct tree t = { .net = n };
	int rc;

	*out = NULL;
	if (!n->nleaves || n->nleaves > MAX_LEAVES || !leaves_apart(n))
		return 0;
	rc = tree_reserve(&t);
	if (rc == 0) {
		find_members(&t);
		rc = tree_measure(&t);
	}
	if (rc > 0)
		rc = (*out = tree_grow(&t)) ? 0 : -1;
	tree_free(&t);
	return rc;
}
