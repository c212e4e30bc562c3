/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/net.h"

#include <stdlib.h>
#include <string.h>

void net_free(struct net *n)
{
	free(n->node);
	free(n->row);
	free(n->adj);
	free(n->link);
	free(n->hosts);
	free(n->home);
	free(n->leaf);
}

const char *net_name(const struct net *n, unsigned s)
{
	return n->fabric->nodes[n->node[s]].name;
}

static bool is_between_switches(const struct fabric *f, const struct fabric_link *l, unsigned plane)
{
	return l->b < f->nswitches && f->nodes[l->a].plane == plane;
}

/* Links are sorted by a, then b. Added for b first, then for a, each switch gets its neighbours in ascending order. */
static void add_neighbours(struct net *n, unsigned plane, const unsigned *local)
{
	const struct fabric *f = n->fabric;
	unsigned *fill = n->row + 1;

	for (unsigned way = 0; way < 2; way++)
		for (unsigned i = 0; i < f->nlinks; i++) {
			const struct fabric_link *l = &f->links[i];
			unsigned from, to;

			if (!is_between_switches(f, l, plane))
				continue;
			from = local[way ? l->a : l->b];
			to = local[way ? l->b : l->a];
			n->adj[fill[from]] = to;
			n->link[fill[from]++] = i;
		}
}

static void add_graph(struct net *n, unsigned plane, const unsigned *local)
{
	const struct fabric *f = n->fabric;
	unsigned sum = 0;

	for (unsigned i = 0; i < f->nlinks; i++)
		if (is_between_switches(f, &f->links[i], plane)) {
			n->row[local[f->links[i].a] + 1]++;
			n->row[local[f->links[i].b] + 1]++;
		}
	for (unsigned i = 1; i <= n->n; i++) {
		unsigned degree = n->row[i];

		n->row[i] = sum;
		sum += degree;
	}
	add_neighbours(n, plane, local);
}

static void add_homes(struct net *n, unsigned plane, const unsigned *local)
{
	const struct fabric *f = n->fabric;

	memset(n->home, 0xff, (f->nnodes - f->nswitches) * sizeof(*n->home));
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];
		unsigned *home = l->b >= f->nswitches ? &n->home[l->b - f->nswitches] : NULL;

		if (!home || l->a >= f->nswitches || f->nodes[l->a].plane != plane || *home != NET_NONE)
			continue;
		*home = local[l->a];
		n->hosts[*home]++;
	}
}

void net_find_leaves(struct net *n, bool any)
{
	unsigned most = 0;

	n->nleaves = 0;
	for (unsigned s = 0; any && s < n->n; s++)
		if (most < n->hosts[s])
			most = n->hosts[s];
	for (unsigned s = 0; s < n->n; s++) {
		n->leaf[s] = n->hosts[s] && 2 * n->hosts[s] >= most;
		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++)
			if (2 * n->hosts[s] < n->hosts[n->adj[i]])
				n->leaf[s] = false;
		n->nleaves += n->leaf[s];
	}
}

static int net_allocate(struct net *n)
{
	const struct fabric *f = n->fabric;

	n->row = calloc(n->n + 2, sizeof(*n->row));
	n->adj = calloc(2 * (size_t) f->nlinks + 1, sizeof(*n->adj));
	n->link = calloc(2 * (size_t) f->nlinks + 1, sizeof(*n->link));
	n->hosts = calloc(n->n + 1, sizeof(*n->hosts));
	n->home = calloc(f->nnodes - f->nswitches + 1, sizeof(*n->home));
	n->leaf = calloc(n->n + 1, sizeof(*n->leaf));
	return n->row && n->adj && n->link && n->hosts && n->home && n->leaf ? 0 : -1;
}

int net_make(const struct fabric *f, unsigned plane, struct net *out)
{
	unsigned *local = calloc(f->nswitches + 1, sizeof(*local));
	struct net n = { .fabric = f };
	int rc = -1;

	n.node = calloc(f->planes[plane].switches + 1, sizeof(*n.node));
	if (local && n.node) {
		for (unsigned i = 0; i < f->nswitches; i++)
			if (f->nodes[i].plane == plane) {
				local[i] = n.n;
				n.node[n.n++] = i;
			}
		rc = net_allocate(&n);
	}
	if (rc == 0) {
		add_graph(&n, plane, local);
		add_homes(&n, plane, local);
		net_find_leaves(&n, false);
		*out = n;
	} else {
		net_free(&n);
	}
	free(local);
	return rc;
}

void net_hops(const struct net *n, unsigned from, unsigned *hops, unsigned *queue)
{
	unsigned head = 0, tail = 0;

	memset(hops, 0xff, n->n * sizeof(*hops));
	hops[from] = 0;
	queue[tail++] = from;
	while (head < tail) {
		unsigned s = queue[head++];

		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++)
			if (hops[n->adj[i]] == NET_NONE) {
				hops[n->adj[i]] = hops[s] + 1;
				queue[tail++] = n->adj[i];
			}
	}
}

int net_add_hosts(const struct net *n, struct hierarchy *h, const unsigned *group, const unsigned *at)
{
	const struct fabric *f = n->fabric;
	unsigned *count = calloc(n->n + 1, sizeof(*count)), widest = 0;

	if (!count)
		return -1;
	for (unsigned i = f->nswitches; i < f->nnodes; i++) {
		unsigned s = n->home[i - f->nswitches], place[HIERARCHY_LEVELS];

		if (s == NET_NONE || group[s] == NET_NONE)
			continue;
		memcpy(place, at + (size_t) s * HIERARCHY_LEVELS, sizeof(place));
		place[h->nlevels - 1] = count[s]++;
		if (widest < count[s])
			widest = count[s];
		if (!hierarchy_add_host(h, f->nodes[i].name, group[s], place)) {
			free(count);
			return -1;
		}
	}
	free(count);
	h->level[h->nlevels - 1] = (struct hierarchy_level){ .size = widest, .dims = 1, .dim = { widest },
							     .cost = { COST_HOST },
							     .pruned = 100 };
	hierarchy_sort(h);
	return 0;
}
