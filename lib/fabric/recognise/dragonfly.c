/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/model/net.h"

/*
 * A dragonfly (Kim, Dally, Scott and Abts, ISCA 2008): groups of switches, each with a link to every other of its
 * group, and from each group a link to every other group. Links within a group are those whose ends have many common
 * neighbours. The threshold is found by trying the numbers that occur: the first that yields complete groups of one
 * size is used. If all switches are linked to all, they are one group.
 */
enum { MAX_NEIGHBOURS = 1024, MAX_GROUPS = 4096 };

struct groups {
	const struct net *net;
	unsigned *common;		/* by neighbour in net->adj: common neighbours of both ends */
	unsigned *group, *size;		/* by switch; by group */
	unsigned n;
};

static void count_common(struct groups *g)
{
	const struct net *n = g->net;

	for (unsigned u = 0; u < n->n; u++)
		for (unsigned k = n->row[u]; k < n->row[u + 1]; k++) {
			unsigned v = n->adj[k], i = n->row[u], j = n->row[v];

			while (i < n->row[u + 1] && j < n->row[v + 1]) {
				g->common[k] += n->adj[i] == n->adj[j];
				if (n->adj[i] <= n->adj[j])
					i++;
				else
					j++;
			}
		}
}

/* Groups are the components connected by links of at least so many common neighbours. */
static void find_groups(struct groups *g, unsigned least, unsigned *queue)
{
	const struct net *n = g->net;

	g->n = 0;
	memset(g->group, 0xff, n->n * sizeof(*g->group));
	for (unsigned first = 0; first < n->n; first++) {
		unsigned head = 0, tail = 0;

		if (g->group[first] != NET_NONE)
			continue;
		g->group[first] = g->n;
		for (queue[tail++] = first; head < tail; head++)
			for (unsigned i = n->row[queue[head]]; i < n->row[queue[head] + 1]; i++)
				if (g->common[i] >= least && g->group[n->adj[i]] == NET_NONE) {
					g->group[n->adj[i]] = g->n;
					queue[tail++] = n->adj[i];
				}
		g->size[g->n++] = tail;
	}
}

/* Whether every switch is linked to all of its group. linked[a * n + b]: a link exists from group a to group b. */
static bool are_whole(const struct groups *g, unsigned char *linked)
{
	const struct net *n = g->net;
	size_t pairs = 0;

	for (unsigned s = 0; s < n->n; s++) {
		unsigned inside = 0;

		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++) {
			unsigned other = g->group[n->adj[i]];

			inside += other == g->group[s];
			linked[(size_t) g->group[s] * g->n + other] = 1;
		}
		if (inside != g->size[g->group[s]] - 1 || g->size[g->group[s]] != g->size[0])
			return false;
	}
	for (size_t i = 0; i < (size_t) g->n * g->n; i++)
		pairs += linked[i];
	return pairs == (size_t) g->n * g->n;
}

/* Returns 1: groups; 0: none; -1: memory. */
static int find_dragonfly(struct groups *g, unsigned *queue)
{
	unsigned most = 0;

	count_common(g);
	for (unsigned i = 0; i < g->net->row[g->net->n]; i++)
		if (most < g->common[i])
			most = g->common[i];
	for (unsigned least = most; least > 0; least--) {
		unsigned char *linked;
		bool whole;

		find_groups(g, least, queue);
		if (g->size[0] < 3 || g->net->n % g->size[0] || g->n > MAX_GROUPS)
			continue;
		if (!(linked = calloc((size_t) g->n * g->n, 1)))
			return -1;
		whole = are_whole(g, linked);
		free(linked);
		if (whole)
			return 1;
	}
	return 0;
}

static int add_groups(const struct groups *g, struct hierarchy *h, unsigned *group, unsigned *at)
{
	const struct net *n = g->net;
	unsigned *inside = calloc(g->n + 1, sizeof(*inside));
	int rc = inside ? hierarchy_add_group(h, "dragonfly", 0, 0, 0) : -1;

	for (unsigned i = 0; rc >= 0 && g->n > 1 && i < g->n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "group%u", i);
		rc = hierarchy_add_group(h, name, 1, 0, i);
	}
	for (unsigned s = 0; rc >= 0 && s < n->n; s++) {
		unsigned *place = &at[(size_t) s * HIERARCHY_LEVELS], level = g->n > 1;

		place[0] = g->group[s];
		place[level] = inside[g->group[s]]++;
		group[s] = rc =
			hierarchy_add_group(h, net_name(n, s), level + 1, level ? g->group[s] + 1 : 0, place[level]);
	}
	free(inside);
	return rc < 0 ? -1 : 0;
}

static struct hierarchy *dragonfly_grow(const struct groups *g)
{
	const struct net *n = g->net;
	unsigned *group = calloc(n->n + 1, sizeof(*group)),
		 *at = calloc((size_t) n->n * HIERARCHY_LEVELS + 1, sizeof(*at));
	struct hierarchy *h = hierarchy_new();
	unsigned l = 0;
	bool ok = group && at && h && add_groups(g, h, group, at) == 0;

	if (ok) {
		if (g->n > 1)
			h->level[l++] = (struct hierarchy_level){ .size = g->n, .dims = 1, .dim = { g->n },
								  .cost = { COST_HOST + 2 * COST_CLIMB },
								  .pruned = 100 };
		h->level[l++] = (struct hierarchy_level){ .size = g->size[0], .dims = 1, .dim = { g->size[0] },
							  .cost = { COST_HOST + COST_CLIMB }, .pruned = 100 };
		h->nlevels = l + 1;
		ok = net_add_hosts(n, h, group, at) == 0;
	}
	free(group);
	free(at);
	if (ok)
		return h;
	hierarchy_free(h);
	return NULL;
}

/* Small enough to examine all neighbours of neighbours quickly. */
static bool is_small(const struct net *n)
{
	for (unsigned s = 0; s < n->n; s++)
		if (n->row[s + 1] - n->row[s] > MAX_NEIGHBOURS)
			return false;
	return true;
}

int net_dragonfly(const struct net *n, struct hierarchy **out)
{
	struct groups g = { .net = n };
	unsigned *queue = calloc(n->n + 1, sizeof(*queue));
	int rc = -1;

	*out = NULL;
	g.common = calloc((size_t) n->row[n->n] + 1, sizeof(*g.common));
	g.group = calloc(n->n + 1, sizeof(*g.group));
	g.size = calloc(n->n + 1, sizeof(*g.size));
	if (queue && g.common && g.group && g.size)
		rc = is_small(n) ? find_dragonfly(&g, queue) : 0;
	if (rc > 0)
		rc = (*out = dragonfly_grow(&g)) ? 0 : -1;
	free(queue);
	free(g.common);
	free(g.group);
	free(g.size);
	return rc;
}
