/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "fabric/model/net.h"

/*
 * A torus is a Cartesian product of rings, and the factors of a product are found by its squares (Sabidussi, Math. Z.
 * 72, 1960; Feder, J. Graph Theory 16, 1992): two links of a switch that are sides of exactly one square are of
 * different dimensions, and each is of the same dimension as the opposite side; all other pairs of links of a switch
 * are of one dimension. Without the links of a dimension the switches separate into layers, and the layer is the
 * coordinate. A ring of four is a product of two pairs, which are joined again.
 */
enum { MAX_PARTS = 2 * HIERARCHY_DIMS };

struct product {
	const struct net *net;
	unsigned *parent;		/* by link of the fabric, union-find */
	unsigned *part;			/* by link: the factor */
	unsigned nparts;
	unsigned root[MAX_PARTS];	/* by factor: its representative link */
	unsigned size[MAX_PARTS];
	unsigned *layer[MAX_PARTS];	/* by switch; then its coordinate, along the ring */
};

/*
 * Counts the switches other than u that are neighbours of both v and w. Sets the last of them, x, and the links from v
 * and from w to it.
 */
static unsigned common_neighbours(const struct net *n, unsigned u, unsigned v, unsigned w, unsigned *from_v,
				  unsigned *from_w)
{
	unsigned i = n->row[v], j = n->row[w], found = 0;

	while (i < n->row[v + 1] && j < n->row[w + 1]) {
		if (n->adj[i] < n->adj[j]) {
			i++;
		} else if (n->adj[i] > n->adj[j]) {
			j++;
		} else {
			if (n->adj[i] != u) {
				*from_v = n->link[i];
				*from_w = n->link[j];
				found++;
			}
			i++;
			j++;
		}
	}
	return found;
}

static void find_parts(struct product *p)
{
	const struct net *n = p->net;

	for (unsigned u = 0; u < n->n; u++)
		for (unsigned i = n->row[u]; i < n->row[u + 1]; i++)
			for (unsigned j = i + 1; j < n->row[u + 1]; j++) {
				unsigned from_v = 0, from_w = 0;

				if (common_neighbours(n, u, n->adj[i], n->adj[j], &from_v, &from_w) == 1) {
					net_sets_join(p->parent, n->link[i], from_w);
					net_sets_join(p->parent, n->link[j], from_v);
				} else {
					net_sets_join(p->parent, n->link[i], n->link[j]);
				}
			}
}

/* Numbers the factors. False: more than a torus has dimensions. */
static bool number_parts(struct product *p)
{
	const struct net *n = p->net;

	for (unsigned i = 0; i < n->row[n->n]; i++) {
		unsigned root = net_sets_root(p->parent, n->link[i]), part = 0;

		while (part < p->nparts && p->root[part] != root)
			part++;
		if (part == MAX_PARTS)
			return false;
		if (part == p->nparts)
			p->root[p->nparts++] = root;
		p->part[n->link[i]] = part;
	}
	return true;
}

/* The layers of a factor: the components connected by links of the other factors. */
static void find_layers(struct product *p, unsigned part, unsigned *queue)
{
	const struct net *n = p->net;
	unsigned *layer = p->layer[part];

	memset(layer, 0xff, n->n * sizeof(*layer));
	for (unsigned first = 0; first < n->n; first++) {
		unsigned head = 0, tail = 0;

		if (layer[first] != NET_NONE)
			continue;
		layer[first] = p->size[part]++;
		for (queue[tail++] = first; head < tail; head++)
			for (unsigned i = n->row[queue[head]]; i < n->row[queue[head] + 1]; i++)
				if (p->part[n->link[i]] != part && layer[n->adj[i]] == NET_NONE) {
					layer[n->adj[i]] = layer[first];
					queue[tail++] = n->adj[i];
				}
	}
}

/*
 * Finds the two neighbouring layers of each layer, by the links of the factor. False if there are more, or a ring does
 * not close.
 */
static bool find_beside(const struct product *p, unsigned part, unsigned (*beside)[2])
{
	const struct net *n = p->net;
	const unsigned *layer = p->layer[part];

	memset(beside, 0xff, p->size[part] * sizeof(*beside));
	for (unsigned s = 0; s < n->n; s++)
		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++) {
			unsigned *two = beside[layer[s]], other = layer[n->adj[i]];

			if (p->part[n->link[i]] != part || two[0] == other || two[1] == other)
				continue;
			if (other == layer[s] || two[1] != NET_NONE)
				return false;
			two[two[0] != NET_NONE] = other;
		}
	for (unsigned l = 0; l < p->size[part]; l++)
		if (beside[l][1] == NET_NONE && p->size[part] != 2)
			return false;
	return true;
}

/* Numbers the layers of a factor in the order of the ring. */
static bool order_layers(struct product *p, unsigned part, unsigned *order, unsigned (*beside)[2])
{
	unsigned last = NET_NONE, at = 0, size = p->size[part];

	if (size < 2 || !find_beside(p, part, beside))
		return false;
	memset(order, 0xff, size * sizeof(*order));
	for (unsigned i = 0; i < size; i++) {
		unsigned next = beside[at][0] == last && size > 2 ? beside[at][1] : beside[at][0];

		if (order[at] != NET_NONE)
			return false;
		order[at] = i;
		last = at;
		at = next;
	}
	for (unsigned s = 0; s < p->net->n; s++)
		p->layer[part][s] = order[p->layer[part][s]];
	return true;
}

/* Joins two pairs to a ring of four: 00 01 11 10. */
static void join_pairs(struct product *p)
{
	unsigned kept = 0, pair = NET_NONE;

	for (unsigned i = 0; i < p->nparts; i++) {
		if (p->size[i] == 2 && pair != NET_NONE) {
			for (unsigned s = 0; s < p->net->n; s++)
				p->layer[pair][s] = p->layer[pair][s] ^ 3 * p->layer[i][s];
			p->size[pair] = 4;
			pair = NET_NONE;
			continue;
		}
		if (p->size[i] == 2)
			pair = kept;
		if (kept != i) {
			memcpy(p->layer[kept], p->layer[i], p->net->n * sizeof(**p->layer));
			p->size[kept] = p->size[i];
		}
		kept++;
	}
	p->nparts = kept;
}

static unsigned place_index(const struct product *p, unsigned s)
{
	unsigned at = 0;

	for (unsigned d = p->nparts; d-- > 0;)
		at = at * p->size[d] + p->layer[d][s];
	return at;
}

/* It is the torus if every place has one switch and each switch as many links as the rings imply. */
static bool is_torus(const struct product *p, unsigned *seen)
{
	const struct net *n = p->net;
	unsigned long long all = 1;
	unsigned degree = 0;

	for (unsigned d = 0; d < p->nparts; d++) {
		all *= p->size[d];
		degree += p->size[d] == 2 ? 1 : 2;
		if (all > n->n)
			return false;
	}
	if (all != n->n || p->nparts > HIERARCHY_DIMS)
		return false;
	for (unsigned s = 0; s < n->n; s++)
		if (seen[place_index(p, s)]++)
			return false;
	return n->row[1] == degree;
}

/* Returns 1: a torus; 0: none; -1: memory. */
static int product_factorise(struct product *p)
{
	const struct net *n = p->net;
	unsigned *queue = calloc(n->n + 1, sizeof(*queue)), (*beside)[2] = calloc(n->n + 1, sizeof(*beside));
	int rc = queue && beside ? 1 : -1;

	if (rc > 0) {
		find_parts(p);
		rc = number_parts(p);
	}
	for (unsigned i = 0; rc > 0 && i < p->nparts; i++) {
		if (!(p->layer[i] = calloc(n->n + 1, sizeof(**p->layer)))) {
			rc = -1;
			break;
		}
		find_layers(p, i, queue);
		rc = order_layers(p, i, queue, beside);
	}
	if (rc > 0) {
		join_pairs(p);
		memset(queue, 0, n->n * sizeof(*queue));
		rc = is_torus(p, queue);
	}
	free(queue);
	free(beside);
	return rc;
}

static struct hierarchy *torus_grow(const struct product *p)
{
	const struct net *n = p->net;
	unsigned *group = calloc(n->n + 1, sizeof(*group)),
		 *at = calloc((size_t) n->n * HIERARCHY_LEVELS + 1, sizeof(*at));
	unsigned *there = calloc(n->n + 1, sizeof(*there));
	struct hierarchy *h = hierarchy_new();
	bool ok = group && at && there && h && hierarchy_add_group(h, "torus", 0, 0, 0) == 0;

	for (unsigned s = 0; ok && s < n->n; s++)
		there[place_index(p, s)] = s;
	for (unsigned place = 0; ok && place < n->n; place++) {
		unsigned s = there[place];
		int g = hierarchy_add_group(h, net_name(n, s), 1, 0, place);

		ok = g >= 0;
		group[s] = g;
		at[(size_t) s * HIERARCHY_LEVELS] = place;
	}
	if (ok) {
		h->nlevels = 2;
		h->level[0] = (struct hierarchy_level){ .form = HIERARCHY_TORUS, .size = n->n, .dims = p->nparts,
							.pruned = 100 };
		for (unsigned d = 0; d < p->nparts; d++) {
			h->level[0].dim[d] = p->size[d];
			h->level[0].cost[d] = COST_HOP;
		}
		ok = net_add_hosts(n, h, group, at) == 0;
	}
	free(group);
	free(at);
	free(there);
	if (ok)
		return h;
	hierarchy_free(h);
	return NULL;
}

/* All switches have the same number of neighbours, at most that of a torus. */
static bool is_regular(const struct net *n)
{
	unsigned degree = n->row[1];

	for (unsigned s = 0; s < n->n; s++)
		if (n->row[s + 1] - n->row[s] != degree)
			return false;
	return degree <= 2 * HIERARCHY_DIMS;
}

int net_torus(const struct net *n, struct hierarchy **out)
{
	struct product p = { .net = n };
	unsigned nlinks = n->fabric->nlinks;
	int rc = 0;

	*out = NULL;
	if (n->n < 4 || !is_regular(n))
		return 0;
	p.parent = calloc(nlinks + 1, sizeof(*p.parent));
	p.part = calloc(nlinks + 1, sizeof(*p.part));
	rc = p.parent && p.part ? 0 : -1;
	for (unsigned i = 0; rc == 0 && i < nlinks; i++)
		p.parent[i] = i;
	if (rc == 0)
		rc = product_factorise(&p);
	if (rc > 0)
		rc = (*out = torus_grow(&p)) ? 0 : -1;
	for (unsigned i = 0; i < MAX_PARTS; i++)
		free(p.layer[i]);
	free(p.parent);
	free(p.part);
	return rc;
}
