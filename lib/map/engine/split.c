/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/split.h"

#include "map/engine/bisection.h"
#include "map/engine/scotch.h"
#include "map/engine/tuning.h"

/*
 * Some ranks, and the domains of a level among which they are partitioned: size[] is the number for each domain, part[]
 * the domain of each rank.
 */
struct split_cut {
	unsigned *rank, n;
	unsigned level, domain, parts;	/* domain: the first */
	unsigned *room, *size, *part;
};

/* --- by Scotch --- */

/*
 * Partitions with Scotch, using only parts that are to have ranks; then corrects the sizes: from a part with too many
 * ranks the one that loses least moves to a part with room, and so on. 0, or -1 with an error.
 */
static int split_by_scotch(struct split *x, struct split_cut *c)
{
	struct matrix_ranks some = { c->rank, x->local, c->n };
	unsigned *have = calloc(3 * (size_t) c->parts, sizeof(*have)), *seen = have + c->parts, *size = seen + c->parts;
	double *talk = malloc(c->parts * sizeof(*talk));
	unsigned n = 0, over = 0;
	int rc = have && talk ? 0 : split_no_memory(x);

	for (unsigned i = 0; i < c->n; i++)
		x->local[c->rank[i]] = i;
	for (unsigned p = 0; rc == 0 && p < c->parts; p++)
		if (c->size[p]) {
			seen[n] = p;
			size[n++] = c->size[p];
		}
	if (rc == 0 && n > 1)
		rc = scotch_split(x->m, &some, n, size, x->seed, c->part, x->err);
	for (unsigned i = 0; rc == 0 && i < c->n; i++)
		have[c->part[i] = seen[n > 1 ? c->part[i] : 0]]++;
	for (unsigned p = 0; rc == 0 && p < c->parts; p++)
		over += have[p] > c->size[p] ? have[p] - c->size[p] : 0;
	for (; over; over--) {
		unsigned cheapest = 0, to = c->parts;
		double least = 0;

		for (unsigned i = 0; i < c->n; i++) {
			unsigned rank = c->rank[i], own = c->part[i];

			if (have[own] <= c->size[own])
				continue;
			memset(talk, 0, c->parts * sizeof(*talk));
			for (size_t a = x->m->row[rank]; a < x->m->row[rank + 1]; a++)
				if (x->local[x->m->adj[a]] != SLOT_NONE)
					talk[c->part[x->local[x->m->adj[a]]]] += x->m->weight[a];
			for (unsigned p = 0; p < c->parts; p++)
				if (have[p] < c->size[p] && (to == c->parts || talk[own] - talk[p] < least)) {
					cheapest = i;
					to = p;
					least = talk[own] - talk[p];
				}
		}
		have[c->part[cheapest]]--;
		have[to]++;
		c->part[cheapest] = to;
	}
	for (unsigned i = 0; i < c->n; i++)
		x->local[c->rank[i]] = SLOT_NONE;
	free(have);
	free(talk);
	return rc;
}

/* --- by bisection --- */

/* The additional cost of each rank in the second half due to ranks in neither half, in the unit of the weights. */
static void bias_fill(const struct split *x, struct bisection *h, const struct split_halves *p, const unsigned *rank)
{
	double apart = slots_distance(x->s, p->middle[0], p->middle[1]), more = apart - p->inner;

	if (more < LEAST_APART * apart)
		more = LEAST_APART * apart;
	for (unsigned i = 0; i < h->ranks && more > 0; i++)
		for (size_t a = x->m->row[rank[i]]; a < x->m->row[rank[i] + 1]; a++) {
			unsigned other = x->m->adj[a], at = x->at[other];

			if (x->local[other] == SLOT_NONE)
				h->bias[i] += x->m->weight[a] / more *
					(slots_distance(x->s, p->middle[1], at) -
					 slots_distance(x->s, p->middle[0], at));
		}
}

int split_pair(struct split *x, struct split_halves *p, unsigned *rank, bool quick)
{
	struct bisection_way way = { .quick = quick, .loose = x->way.loose };
	unsigned n = p->n, *was = malloc((n + 1) * sizeof(*was));
	struct matrix_ranks some = { rank, x->local, n };
	struct bisection h = { .n = 0 };
	int rc = -1;

	for (unsigned i = 0; i < n; i++) {
		x->local[rank[i]] = i;
		x->work += WORK_GATHER * (x->m->row[rank[i] + 1] - x->m->row[rank[i]]);
	}
	if (!was || bisection_init(&h, x->m, &some, p->most - p->least))
		goto out;
	if (x->way.by != SPLIT_BY_BISECTION_UNBIASED)
		bias_fill(x, &h, p, rank);
	way.seed = ++x->seed;
	if (p->from == SPLIT_ANEW) {
		rc = bisection_run(&h, p->most, way) ? -1 : 1;
	} else {
		unsigned first = p->most;	/* as many empty slots as the first half lacks ranks */

		memcpy(h.second, p->second, n);
		for (unsigned i = 0; i < n; i++)
			first -= !h.second[i];
		for (unsigned i = n; i < h.n; i++)
			h.second[i] = i - n >= first;
		if (p->from == SPLIT_BEAT) {
			rc = bisection_again(&h, p->most, way);
		} else {
			bisection_cut(&h);
			bisection_refine(&h);
			rc = 1;
		}
	}
	if (rc > 0) {
		unsigned to = 0;

		memcpy(was, rank, n * sizeof(*was));
		for (unsigned half = 0; half < 2; half++) {
			p->size[half] = 0;
			for (unsigned i = 0; i < n; i++)
				if (h.second[i] == half) {
					x->at[was[i]] = p->middle[half];
					rank[to++] = was[i];
					p->size[half]++;
				}
		}
	}
out:
	for (unsigned i = 0; i < n; i++)
		x->local[rank[i]] = SLOT_NONE;
	x->work += h.work;
	bisection_free(&h);
	free(was);
	return rc < 0 ? split_no_memory(x) : rc;
}

/* Orders rank[n] by part. */
static int bisect_parts(struct split *x, struct split_cut *c, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	unsigned middle = first + (end - first) / 2, border[3] = { first, middle, end }, most[2] = {0};
	const unsigned *slot = &x->s->level[c->level].first[c->domain];
	struct split_halves p = { .n = n };

	if (end - first < 2) {
		c->size[first] = n;
		return 0;
	}
	for (unsigned half = 0; half < 2; half++) {
		unsigned from = slot[border[half]];

		p.middle[half] = from + (slot[border[half + 1]] - from) / 2;
		for (unsigned i = border[half]; i < border[half + 1]; i++)
			most[half] += x->way.sizes == SPLIT_FREE ? c->room[i] : c->size[i];
	}
	p.inner = c->level + 1 < x->s->nlevels ? x->s->level[c->level + 1].typical : 0;
	p.least = n > most[1] ? n - most[1] : 0;
	p.most = n < most[0] ? n : most[0];
	p.size[0] = p.most;
	p.size[1] = n - p.most;
	if (x->was_at) {	/* the halves in which these ranks were; those from elsewhere get free slots */
		unsigned from = slot[first], slots = slot[end] - from, free = from;

		memset(x->taken + from, false, slots);
		for (unsigned i = 0; i < n; i++)
			if (x->was_at[rank[i]] - from < slots)
				x->taken[x->was_at[rank[i]]] = true;
		for (unsigned i = 0; i < n; i++) {
			if (x->was_at[rank[i]] - from >= slots) {
				while (x->taken[free])
					free++;
				x->was_at[rank[i]] = free++;
			}
			x->second[i] = x->was_at[rank[i]] >= slot[middle];
		}
		p.second = x->second;
		p.from = SPLIT_MEND;
	}
	if ((p.least < p.most || (p.most && p.most < n)) && split_pair(x, &p, rank, x->way.quick) < 0)
		return -1;
	if (bisect_parts(x, c, first, middle, rank, p.size[0]))
		return -1;
	return bisect_parts(x, c, middle, end, rank + p.size[0], p.size[1]);
}

static int split_by_bisection(struct split *x, struct split_cut *c)
{
	if (bisect_parts(x, c, 0, c->parts, c->rank, c->n))
		return -1;
	for (unsigned p = 0, i = 0; p < c->parts; p++)
		for (unsigned end = i + c->size[p]; i < end; i++)
			c->part[i] = p;
	return 0;
}

/* --- level by level --- */

int split_no_memory(struct split *x)
{
	return err_set(x->err, "mapping: out of memory");
}

/* Orders the ranks by part, keeping their order within each; then maps each part. */
static int map_parts(struct split *x, const struct split_cut *c)
{
	unsigned *sorted = malloc((c->n + 1) * sizeof(*sorted)), n = 0;
	const unsigned *first = &x->s->level[c->level].first[c->domain];
	int rc = 0;

	if (!sorted)
		return split_no_memory(x);
	for (unsigned p = 0; p < c->parts; p++)
		for (unsigned i = 0; i < c->n; i++)
			if (c->part[i] == p) {
				x->at[c->rank[i]] = first[p] + (first[p + 1] - first[p]) / 2;
				sorted[n++] = c->rank[i];
			}
	for (unsigned p = 0, from = 0; p < c->parts && rc == 0; from += c->size[p++])
		rc = split_domain(x, c->level + 1, first[p], first[p + 1], sorted + from, c->size[p]);
	free(sorted);
	return rc;
}

static int map_cut(struct split *x, unsigned level, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	const struct slot_level *t = &x->s->level[level];
	unsigned domain = t->of[first];
	struct split_cut c = { .rank = rank, .n = n, .level = level, .domain = domain,
			       .parts = t->of[end - 1] - domain + 1 };
	int rc;

	c.room = calloc(2 * (size_t) c.parts, sizeof(*c.room));
	c.part = calloc(n + 1, sizeof(*c.part));
	if (!c.room || !c.part) {
		rc = split_no_memory(x);
		goto out;
	}
	c.size = c.room + c.parts;
	for (unsigned p = 0; p < c.parts; p++)
		c.room[p] = t->first[domain + p + 1] - t->first[domain + p];
	for (unsigned left = n; left && x->way.sizes == SPLIT_PACKED;) {
		unsigned best = 0;

		for (unsigned p = 1; p < c.parts; p++)
			if (c.room[p] - c.size[p] > c.room[best] - c.size[best])
				best = p;
		c.size[best] = left < c.room[best] ? left : c.room[best];
		left -= c.size[best];
	}
	for (unsigned left = n; left && x->way.sizes != SPLIT_PACKED;)
		for (unsigned p = 0; p < c.parts && left; p++)
			if (c.size[p] < c.room[p]) {
				c.size[p]++;
				left--;
			}
	rc = (x->way.by == SPLIT_BY_SCOTCH ? split_by_scotch : split_by_bisection)(x, &c) || map_parts(x, &c) ? -1 : 0;
out:
	free(c.room);
	free(c.part);
	return rc;
}

/* Within the last level single slots are equal: no choice is left. */
int split_domain(struct split *x, unsigned level, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	while (!x->way.halved && level < x->s->nlevels && x->s->level[level].is_cut)
		level++;
	if (n && level + 1 < x->s->nlevels)
		return map_cut(x, level, first, end, rank, n);
	for (unsigned i = 0; i < n; i++)
		x->at[rank[i]] = x->slot[rank[i]] = first + i;
	return 0;
}

int split_open(struct split *x, const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed,
	       unsigned *slot, struct err *e)
{
	*x = (struct split){ .m = m, .s = s, .way = way, .seed = seed, .slot = slot, .err = e };
	x->local = malloc(m->ranks * sizeof(*x->local));
	x->at = malloc(m->ranks * sizeof(*x->at));
	if (!x->local || !x->at)
		return split_no_memory(x);
	memset(x->local, 0xff, m->ranks * sizeof(*x->local));
	for (unsigned r = 0; r < m->ranks; r++)
		x->at[r] = s->n / 2;
	return 0;
}

int split_remember(struct split *x)
{
	x->was_at = malloc(x->m->ranks * sizeof(*x->was_at));
	x->taken = malloc(x->s->n);
	x->second = malloc(x->m->ranks);
	return x->was_at && x->taken && x->second ? 0 : split_no_memory(x);
}

void split_close(struct split *x)
{
	free(x->was_at);
	free(x->taken);
	free(x->second);
	free(x->local);
	free(x->at);
}

int split_insides(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed, unsigned *slot,
		  struct err *e)
{
	struct split_way way = { .by = SPLIT_BY_BISECTION, .halved = true, .sizes = SPLIT_FREE, .quick = true };
	unsigned *rank = malloc(m->ranks * sizeof(*rank));
	const struct slot_level *t = &s->level[level];
	struct split x;
	int rc = split_open(&x, m, s, way, seed, slot, e) || split_remember(&x) ? -1 : 0;

	if (rc == 0 && !rank)
		rc = split_no_memory(&x);
	if (rc == 0) {
		memcpy(x.was_at, slot, m->ranks * sizeof(*slot));
		memcpy(x.at, slot, m->ranks * sizeof(*slot));
	}
	for (unsigned d = 0; d < t->n && rc == 0; d++) {
		unsigned n = 0;

		for (unsigned r = 0; r < m->ranks; r++)
			if (t->of[x.was_at[r]] == d)
				rank[n++] = r;
		rc = split_domain(&x, level + 1, t->first[d], t->first[d + 1], rank, n);
	}
	free(rank);
	split_close(&x);
	return rc;
}

int split_map(const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed, unsigned *slot,
	      struct err *e)
{
	unsigned *rank = malloc(m->ranks * sizeof(*rank));
	struct split x;
	int rc = split_open(&x, m, s, way, seed, slot, e);

	if (rc == 0 && !rank)
		rc = split_no_memory(&x);
	for (unsigned r = 0; r < m->ranks && rc == 0; r++)
		rank[r] = r;
	if (rc == 0)
		rc = split_domain(&x, 0, 0, s->n, rank, m->ranks);
	free(rank);
	split_close(&x);
	return rc;
}
