/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/solve.h"

#include <math.h>

/*
 * The search changes an order by whole parts of it, whose ends are mostly where the network has a border: what is
 * below one switch stays together. Work is counted in distances that are read.
 */
#define WORK 40e6
enum { MOST_MOVES = 40000, MOST_SEARCHED = 2048 };

struct hosts {
	const struct places *places;
	unsigned n, *first;	/* by host with ranks: its first place */
	double *distance;	/* n * n; NULL: too many hosts for a search */
	uint64_t random;
};

struct cost {
	double ring, trees;
};

static double between(const struct hosts *h, unsigned a, unsigned b)
{
	return h->distance ? h->distance[(size_t) a * h->n + b] : places_distance(h->places, h->first[a], h->first[b]);
}

/*
 * The parent of each rank but 0 in a binary tree whose leaves are the odd ranks. Of the two trees the second is the
 * first mirrored, or, of an odd number, shifted by one (Sanders, Speck and Traeff, Two-tree algorithms, 2009), so that
 * an inner rank of one is a leaf of the other. NCCL's trees are these.
 */
static struct cost cost_of(const struct hosts *h, const unsigned *order)
{
	struct cost c = {0};
	unsigned n = h->n;

	for (unsigned i = 0; i < n && n > 1; i++)
		c.ring += between(h, order[i], order[(i + 1) % n]);
	for (unsigned i = 1; i < n; i++) {
		unsigned bit = i & -i, up = (i ^ bit) | bit << 1;

		up = up >= n ? i ^ bit : up;
		c.trees += between(h, order[i], order[up]);
		c.trees += n % 2 ? between(h, order[(i + 1) % n], order[(up + 1) % n]) :
				   between(h, order[n - 1 - i], order[n - 1 - up]);
	}
	return c;
}

/* --- where the search begins --- */

static int by_path(const void *x, const void *y, void *hosts)
{
	const struct hosts *h = hosts;
	unsigned a = *(const unsigned *) x, b = *(const unsigned *) y;
	const unsigned *p = h->places->place[h->first[a]].path, *q = h->places->place[h->first[b]].path;
	int order = 0;

	for (unsigned l = 0; !order && l < h->places->network->nlevels; l++)
		order = COMPARE(p[l], q[l]);
	return order ?: COMPARE(a, b);
}

static int by_name(const void *x, const void *y, void *hosts)
{
	const struct hosts *h = hosts;
	unsigned a = *(const unsigned *) x, b = *(const unsigned *) y;

	return strcmp(h->places->hosts[h->places->place[h->first[a]].host],
		      h->places->hosts[h->places->place[h->first[b]].host]);
}

/* From each host to the nearest of those that are left: below one switch after the other. */
static void nearest(const struct hosts *h, unsigned *order)
{
	for (unsigned i = 1; h->distance && i + 1 < h->n; i++) {
		unsigned best = i, other;

		for (unsigned k = i + 1; k < h->n; k++)
			if (between(h, order[i - 1], order[k]) < between(h, order[i - 1], order[best]))
				best = k;
		other = order[i];
		order[i] = order[best];
		order[best] = other;
	}
}

/* --- the search --- */

/* Of one order: what it costs beyond the least ring and the least trees of the initial orders counts first. */
static double score(const struct cost *c, const struct cost *least)
{
	double ring = least->ring > 0 ? c->ring / least->ring : c->ring;
	double trees = least->trees > 0 ? c->trees / least->trees : c->trees;

	return ring + trees + 1000 * (fmax(ring - 1, 0) + fmax(trees - 1, 0));
}

static unsigned draw(struct hosts *h, unsigned n)
{
	h->random = h->random * 6364136223846793005u + 1442695040888963407u;
	return (h->random >> 33) % n;
}

/* A position from 1 to n, three of four times where the distance to the one before is as large as that of any pair. */
static unsigned draw_cut(struct hosts *h, const unsigned *order)
{
	unsigned at = 1 + draw(h, h->n), i = 1 + draw(h, h->n - 1);
	double border = between(h, order[i - 1], order[i]);

	if (draw(h, 4))
		while (at < h->n && between(h, order[at - 1], order[at]) < border)
			at++;
	return at;
}

static void reverse(unsigned *order, unsigned from, unsigned end)
{
	for (; from + 1 < end; from++) {
		unsigned other = order[--end];

		order[end] = order[from];
		order[from] = other;
	}
}

/* Exchanges two parts, adjacent or not, or reverses one; the first host stays. */
static void move(struct hosts *h, unsigned *order)
{
	unsigned cut[4];

	for (unsigned i = 0, k; i < 4; i++) {
		unsigned at = draw_cut(h, order);

		for (k = i; k && cut[k - 1] > at; k--)
			cut[k] = cut[k - 1];
		cut[k] = at;
	}
	if (!draw(h, 3)) {
		reverse(order, cut[1], cut[2]);
		return;
	}
	if (draw(h, 2))
		cut[2] = cut[1];
	reverse(order, cut[0], cut[3]);
	reverse(order, cut[0], cut[0] + cut[3] - cut[2]);
	reverse(order, cut[0] + cut[3] - cut[2], cut[3] - (cut[1] - cut[0]));
	reverse(order, cut[3] - (cut[1] - cut[0]), cut[3]);
}

static void search(struct hosts *h, unsigned *order, unsigned *tried, struct cost *cost, const struct cost *least)
{
	unsigned moves = WORK / (3 * h->n) < MOST_MOVES ? WORK / (3 * h->n) : MOST_MOVES;

	for (unsigned i = 0; h->distance && h->n > 2 && i < moves; i++) {
		struct cost c;

		memcpy(tried, order, h->n * sizeof(*order));
		move(h, tried);
		c = cost_of(h, tried);
		if (score(&c, least) > score(cost, least))
			continue;
		memcpy(order, tried, h->n * sizeof(*order));
		*cost = c;
	}
}

/* Host 0 first, by a rotation, which leaves the ring as it is. other[n] is scratch space. */
static void rotate(unsigned *order, unsigned n, unsigned *other)
{
	unsigned at = 0;

	while (order[at])
		at++;
	for (unsigned i = 0; i < n; i++)
		other[i] = order[(at + i) % n];
	memcpy(order, other, n * sizeof(*order));
}

/* order[4 * n]: the first n are the result. */
static void choose(struct hosts *h, unsigned *order, struct mapping_order *out)
{
	enum { STARTS = 4 };
	unsigned n = h->n, *start = order + n, *tried = order + 2 * n, *now = order + 3 * n;
	struct cost least = { INFINITY, INFINITY }, before = {0}, c, found = {0};

	/* Twice: the least of all are known after the first time. */
	for (unsigned i = 0; i < 2 * STARTS; i++) {
		unsigned kind = i % STARTS;

		for (unsigned k = 0; k < n; k++)
			start[k] = k;
		if (kind == 1)
			qsort_r(start, n, sizeof(*start), by_name, h);
		else if (kind)
			qsort_r(start, n, sizeof(*start), by_path, h);
		c = cost_of(h, start);
		least.ring = fmin(least.ring, c.ring);
		least.trees = fmin(least.trees, c.trees);
		rotate(start, n, tried);
		if (kind == 3)
			nearest(h, start);
		c = cost_of(h, start);
		before = kind ? before : c;
		if (i < STARTS || (kind && score(&c, &least) >= score(&found, &least)))
			continue;
		found = c;
		memcpy(now, start, n * sizeof(*now));
	}
	search(h, now, tried, &found, &least);
	for (unsigned k = 0; k < n; k++)
		order[k] = k;
	*out = (struct mapping_order){ n, before.ring, before.trees, before.ring, before.trees };
	if (found.ring > before.ring || found.trees > before.trees ||
	    (found.ring == before.ring && found.trees == before.trees))
		return;
	memcpy(order, now, n * sizeof(*order));
	out->ring = found.ring;
	out->trees = found.trees;
}

int mapping_order(const struct places *p, unsigned ranks, struct mapping *out, struct mapping_order *order,
		  struct err *e)
{
	struct hosts h = { .places = p, .first = calloc(p->nhosts + 1, sizeof(*h.first)), .random = 1 };
	unsigned *share = places_share(p, ranks), *all = calloc(4 * ((size_t) p->nhosts + 1), sizeof(*all));
	unsigned *place = calloc((size_t) ranks + 1, sizeof(*place));
	int rc = 0;

	if (!p->network)
		rc = err_set(e, "no network is known");
	else if (p->nplaces < ranks)
		rc = err_set(e, "%u ranks, but the job has only %u place%s", ranks, p->nplaces, PLURAL(p->nplaces));
	else if (!h.first || !share || !all || !place)
		rc = err_set(e, "out of memory");
	for (unsigned i = 0; !rc && i < p->nplaces; i++)
		if ((!i || p->place[i].host != p->place[i - 1].host) && share[p->place[i].host])
			h.first[h.n++] = i;
	if (!rc && h.n <= MOST_SEARCHED && !(h.distance = calloc((size_t) h.n * h.n + 1, sizeof(*h.distance))))
		rc = err_set(e, "out of memory");
	for (size_t i = 0; !rc && h.distance && i < (size_t) h.n * h.n; i++)
		h.distance[i] = places_distance(p, h.first[i / h.n], h.first[i % h.n]);
	if (!rc) {
		unsigned rank = 0;

		choose(&h, all, order);
		for (unsigned i = 0; i < h.n; i++)
			for (unsigned k = 0, at = h.first[all[i]]; k < share[p->place[at].host]; k++)
				place[rank++] = at + k;
		*out = (struct mapping){ .ranks = ranks, .place = place, .cost = order->ring + order->trees,
					 .block = order->ring_before + order->trees_before };
	} else {
		free(place);
	}
	free(h.first);
	free(h.distance);
	free(share);
	free(all);
	return rc;
}
