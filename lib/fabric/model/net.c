/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/net.h"

#include <assert.h>

#include "base/array.h"
#include "base/order.h"

/* Disjoint sets (union-find): initially parent[i] is i. The root of a set is its lowest element. */
static unsigned net_sets_root(unsigned *parent, unsigned i)
{
	while (parent[i] != i) {
		assert(parent[i] < i);
		i = parent[i] = parent[parent[i]];
	}
	return i;
}

static void net_sets_join(unsigned *parent, unsigned a, unsigned b)
{
	a = net_sets_root(parent, a);
	b = net_sets_root(parent, b);
	parent[a < b ? b : a] = a < b ? a : b;
}

enum { MAX_RAILS = 32 };	/* switches of a host that are compared */

void net_free(struct net *n)
{
	free(n->node);
	free(n->of);
	free(n->ends);
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

/* Links are added for b first, then for a. Those between switches that act as one are left out. */
static void add_graph(struct net *n)
{
	const struct fabric *f = n->fabric;
	unsigned sum = 0, *fill = n->row + 1;

	for (unsigned way = 0; way < 3; way++) {	/* 0: count, 1 and 2: fill */
		for (unsigned i = 0; i < f->nlinks; i++) {
			const struct fabric_link *l = &f->links[i];
			unsigned a = l->a < f->nswitches ? n->of[l->a] : NET_NONE;
			unsigned b = l->b < f->nswitches ? n->of[l->b] : NET_NONE;

			if (a == NET_NONE || b == NET_NONE || a == b)
				continue;
			if (way == 0) {
				n->row[a + 1]++;
				n->row[b + 1]++;
				continue;
			}
			n->adj[fill[way == 2 ? a : b]] = way == 2 ? b : a;
			n->link[fill[way == 2 ? a : b]++] = i;
		}
		for (unsigned i = 1; way == 0 && i <= n->n; i++) {
			unsigned degree = n->row[i];

			n->row[i] = sum;
			sum += degree;
		}
	}
}

/* A host belongs to that of its switches which most hosts have a link to. */
static int add_homes(struct net *n)
{
	const struct fabric *f = n->fabric;
	unsigned *last = calloc(n->n + 1, sizeof(*last)), *linked = calloc(n->n + 1, sizeof(*linked));
	unsigned hosts = f->nnodes - f->nswitches;

	for (unsigned pass = 0; last && linked && pass < 2; pass++)
		for (unsigned i = 0; i < n->nends; i++) {
			unsigned s = n->of[n->ends[i].of], host = n->ends[i].host;

			if (pass == 0) {	/* ends are sorted by host */
				linked[s] += last[s] != host + 1;
				last[s] = host + 1;
			} else if (n->home[host] == NET_NONE || linked[n->home[host]] < linked[s]) {
				n->home[host] = s;
			}
		}
	for (unsigned i = 0; last && linked && i < hosts; i++)
		if (n->home[i] != NET_NONE)
			n->hosts[n->home[i]]++;
	free(last);
	free(linked);
	return last && linked ? 0 : -1;
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

ORDER(ends_compare, struct net_host_end, COMPARE(x->host, y->host) ?: COMPARE(x->of, y->of))

/* The links of the plane's hosts, by host. */
static int find_ends(struct net *n, unsigned plane)
{
	const struct fabric *f = n->fabric;

	if (!(n->ends = calloc(f->nlinks + 1, sizeof(*n->ends))))
		return -1;
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a < f->nswitches && l->b >= f->nswitches && f->nodes[l->a].plane == plane)
			n->ends[n->nends++] = (struct net_host_end){ l->b - f->nswitches, l->a };
	}
	qsort(n->ends, n->nends, sizeof(*n->ends), ends_compare);
	return 0;
}

/*
 * Switches that share more than half of the hosts of each act as one: the rails of a rail-optimised fabric, or two for
 * redundancy. Otherwise a host whose link to the first of them is dead would be of another leaf switch than the hosts
 * beside it. root: of each switch of the fabric, that which has its place.
 */
static int join_rails(const struct net *n, unsigned *root)
{
	const struct fabric *f = n->fabric;
	unsigned *hosts = calloc(f->nswitches + 1, sizeof(*hosts)), npairs = 0;
	struct net_host_end *pairs = NULL;		/* of two switches, for each host that has a link to both */
	int rc = hosts ? 0 : -1;

	for (unsigned i = 0, first = 0; rc == 0 && i < n->nends; i++) {
		if (n->ends[i].host != n->ends[first].host)
			first = i;
		hosts[n->ends[i].of]++;
		for (unsigned k = first; k < i && i - first < MAX_RAILS && rc == 0; k++) {
			if ((rc = array_reserve(pairs, npairs, 1)) == 0)
				pairs[npairs++] = (struct net_host_end){ n->ends[k].of, n->ends[i].of };
		}
	}
	if (npairs)
		qsort(pairs, npairs, sizeof(*pairs), ends_compare);
	for (unsigned i = 0; i < f->nswitches; i++)
		root[i] = i;
	for (unsigned i = 0, past; rc == 0 && i < npairs; i = past) {
		unsigned a = pairs[i].host, b = pairs[i].of, most = hosts[a] > hosts[b] ? hosts[a] : hosts[b];

		for (past = i + 1; past < npairs && !ends_compare(&pairs[i], &pairs[past]);)
			past++;
		if (2 * (past - i) > most)
			net_sets_join(root, a, b);
	}
	free(pairs);
	free(hosts);
	return rc;
}

int net_make(const struct fabric *f, unsigned plane, struct net *out)
{
	struct net n = { .fabric = f, .of = calloc(f->nswitches + 1, sizeof(*n.of)) };
	unsigned *root = calloc(f->nswitches + 1, sizeof(*root)), hosts = f->nnodes - f->nswitches;
	int rc = -1;

	n.node = calloc(f->planes[plane].switches + 1, sizeof(*n.node));
	n.home = calloc(hosts + 1, sizeof(*n.home));
	if (!root || !n.of || !n.node || !n.home || find_ends(&n, plane) || join_rails(&n, root))
		goto end;
	for (unsigned i = 0; i < f->nswitches; i++) {
		unsigned first = net_sets_root(root, i);

		n.of[i] = NET_NONE;
		if (f->nodes[i].plane != plane)
			continue;
		if (first == i)
			n.node[n.n++] = i;
		n.of[i] = first == i ? n.n - 1 : n.of[first];
	}
	n.row = calloc(n.n + 2, sizeof(*n.row));
	n.adj = calloc(2 * (size_t) f->nlinks + 1, sizeof(*n.adj));
	n.link = calloc(2 * (size_t) f->nlinks + 1, sizeof(*n.link));
	n.hosts = calloc(n.n + 1, sizeof(*n.hosts));
	n.leaf = calloc(n.n + 1, sizeof(*n.leaf));
	if (!n.row || !n.adj || !n.link || !n.hosts || !n.leaf)
		goto end;
	memset(n.home, 0xff, hosts * sizeof(*n.home));
	add_graph(&n);
	if ((rc = add_homes(&n)))
		goto end;
	net_find_leaves(&n, false);
	*out = n;
end:
	free(root);
	if (rc)
		net_free(&n);
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

/* --- planes --- */

struct order {
	unsigned hosts, plane;
};

ORDER(order_compare, struct order, COMPARE(y->hosts, x->hosts) ?: COMPARE(x->plane, y->plane))

int planes_find(struct fabric *f)
{
	unsigned *parent = calloc(f->nswitches + 1, sizeof(*parent)), *now = NULL, n = 0;
	struct net_host_end *ends = calloc(f->nlinks + 1, sizeof(*ends));	/* planes, and their hosts */
	struct fabric_plane *sorted = NULL;
	struct order *order = NULL;
	int rc = -1;

	if (!parent || !ends)
		goto end;
	for (unsigned i = 0; i < f->nswitches; i++)
		parent[i] = i;
	for (unsigned i = 0; i < f->nlinks; i++)
		if (f->links[i].b < f->nswitches)
			net_sets_join(parent, f->links[i].a, f->links[i].b);
	for (unsigned i = 0; i < f->nswitches; i++) {
		unsigned root = net_sets_root(parent, i);

		f->nodes[i].plane = root == i ? f->nplanes++ : f->nodes[root].plane;
	}
	f->planes = calloc(f->nplanes + 1, sizeof(*f->planes));
	sorted = calloc(f->nplanes + 1, sizeof(*sorted));
	order = calloc(f->nplanes + 1, sizeof(*order));
	now = calloc(f->nplanes + 1, sizeof(*now));
	if (!f->planes || !sorted || !order || !now)
		goto end;
	for (unsigned i = 0; i < f->nswitches; i++)
		f->planes[f->nodes[i].plane].switches++;
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a >= f->nswitches)
			continue;
		f->planes[f->nodes[l->a].plane].links++;
		f->planes[f->nodes[l->a].plane].cables += l->count;
		if (l->b >= f->nswitches)
			ends[n++] = (struct net_host_end){ f->nodes[l->a].plane, l->b };
	}
	qsort(ends, n, sizeof(*ends), ends_compare);
	for (unsigned i = 0; i < n; i++)
		if (!i || ends_compare(&ends[i - 1], &ends[i]))
			f->planes[ends[i].host].hosts++;
	for (unsigned i = 0; i < f->nplanes; i++)
		order[i] = (struct order){ f->planes[i].hosts, i };
	qsort(order, f->nplanes, sizeof(*order), order_compare);
	for (unsigned i = 0; i < f->nplanes; i++) {
		sorted[i] = f->planes[order[i].plane];
		now[order[i].plane] = i;
	}
	for (unsigned i = 0; i < f->nswitches; i++)
		f->nodes[i].plane = now[f->nodes[i].plane];
	free(f->planes);
	f->planes = sorted;
	sorted = NULL;
	/* A host belongs to the first plane that it has a link to. */
	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		f->nodes[i].plane = FABRIC_NO_PLANE;
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a < f->nswitches && l->b >= f->nswitches && f->nodes[l->a].plane < f->nodes[l->b].plane)
			f->nodes[l->b].plane = f->nodes[l->a].plane;
	}
	rc = 0;
end:
	free(parent);
	free(ends);
	free(order);
	free(sorted);
	free(now);
	return rc;
}
