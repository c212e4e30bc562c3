/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/solve.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "map/engine/search.h"

#define MAX_SEEDS 2
/*
 * The work allowed for a number of ranks, in edge evaluations or equivalent: a second has 300 to 500 million.
 * Interpolated linearly, and extrapolated. A few ranks take no noticeable time, some hundred still little, and
 * thousands need more work per rank for the same quality, which 4096 and more do not get: it takes twice as long.
 */
static const struct work_point {
	double ranks, work;
} work_points[] = { { 0, 8e6 }, { 96, 36e6 }, { 192, 310e6 }, { 384, 525e6 }, { 768, 480e6 }, { 1024, 485e6 },
	       { 2048, 1760e6 }, { 4096, 2000e6 }, { 8192, 4000e6 } };

static const struct search_effort efforts[] = {
	[EFFORT_FAST] = { "fast", true, 1, 256, 2, 1, 1.0 / 16 },
	[EFFORT_NORMAL] = { "normal", false, 1, 768, MAX_TRIALS, 9, 1 },
	[EFFORT_HIGH] = { "high", false, MAX_SEEDS, 0, MAX_TRIALS, MAX_TRIALS, 30 },
};

int mapping_effort_parse(const char *name)
{
	for (size_t i = 0; i < sizeof(efforts) / sizeof(efforts[0]); i++)
		if (!strcmp(efforts[i].name, name))
			return i;
	return -1;
}

double mapping_cost(const struct matrix *m, const struct places *p, const unsigned *place)
{
	double cost = 0;

	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			cost += m->weight[i] * places_distance(p, place[r], place[m->adj[i]]);
	return cost / 2;
}

static int try_candidates(struct search *x)
{
	unsigned seeds = x->effort->seeds + x->effort->few / x->b.m->ranks;

	for (unsigned turn = 0; turn < seeds && turn < MAX_SEEDS; turn++)
		for (unsigned i = turn ? CANDIDATE_SEEDED : 0; i < ncandidates; i++) {
			struct search_trial *t = &x->trial[x->ntrials];
			struct map_problem b = x->b;

			if (!candidate_is_worth(&candidates[i], &b))
				continue;
			b.seed = x->b.seed + turn * 0x9e3779b9u;
			b.loose = turn;
			t->name = candidates[i].name;
			if (candidate_map(&candidates[i], &b, t->slot) || improve_measure(x, t))
				return -1;
			x->left -= candidate_work(&candidates[i], &b);
			x->ntrials++;
		}
	x->out->cyclic = x->trial[CANDIDATE_CYCLIC].cost;
	x->out->scotch = x->effort->quick ? NAN : x->trial[CANDIDATE_SCOTCH].cost;
	return 0;
}

static double work_for(double ranks)
{
	const struct work_point *c = work_points;
	const struct work_point *last = c + sizeof(work_points) / sizeof(work_points[0]) - 1;

	while (c + 1 < last && ranks > c[1].ranks)
		c++;
	return c->work + (ranks - c->ranks) * (c[1].work - c->work) / (c[1].ranks - c->ranks);
}

static int solve_search(struct search *x)
{
	unsigned n = x->b.m->ranks;
	unsigned *slots = malloc((MAX_TRIALS + 1) * (size_t) n * sizeof(*slots));
	int rc;

	x->load = malloc((x->b.s->hosts + 1) * sizeof(*x->load));
	x->out->place = malloc(n * sizeof(*x->out->place));
	if (!slots || !x->load || !x->out->place) {
		rc = err_set(x->b.err, "mapping: out of memory");
	} else {
		x->best.slot = slots;
		for (unsigned i = 0; i < MAX_TRIALS; i++)
			x->trial[i].slot = slots + (i + 1) * (size_t) n;
		rc = try_candidates(x) || improve_trials(x) ? -1 : 0;
	}
	for (unsigned r = 0; r < n && rc == 0; r++) {
		assert(x->best.slot[r] < x->b.s->n);
		x->out->place[r] = x->b.s->place[x->best.slot[r]];
	}
	free(slots);
	free(x->load);
	return rc;
}

static int too_few(const struct matrix *m, const struct places *p, struct err *e)
{
	return err_set(e, "mapping: %u ranks, but the job has only %u place%s", m->ranks, p->nplaces,
		       PLURAL(p->nplaces));
}

int mapping_solve(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		  struct mapping *out, struct err *e)
{
	struct mapping found = { .ranks = m->ranks };
	struct search x = { .effort = &efforts[effort], .out = &found };
	double start = clock_now();
	struct slots *s;
	int rc;

	if (p->nplaces < m->ranks)
		return too_few(m, p, e);
	if (!(s = slots_new(p, e)))
		return -1;
	x.work = x.left = x.effort->share * work_for(m->ranks);
	x.b = (struct map_problem){ m, p, s, seed, efforts[effort].quick, false, e };
	rc = solve_search(&x);
	slots_free(s);
	if (rc) {
		mapping_free(&found);
		return -1;
	}
	snprintf(found.method, sizeof(found.method), "%s%s%s", x.best.name, x.best.improved ? "+annealing" : "",
		 x.best.polished ? "+swaps" : "");
	found.cost = x.best.cost;
	found.nic = x.best.nic;
	found.seconds = clock_now() - start;
	*out = found;
	return 0;
}

int mapping_compare(const struct matrix *m, const struct places *p, unsigned seed, struct mapping *out, struct err *e)
{
	struct slots *s = slots_new(p, e);
	struct map_problem b = { m, p, s, seed, false, false, e };
	unsigned *slot;
	int rc = -1;

	if (!s)
		return -1;
	if (!(slot = malloc(m->ranks * sizeof(*slot))))
		err_set(e, "mapping: out of memory");
	else if ((rc = candidate_map(&candidates[CANDIDATE_SCOTCH], &b, slot)) == 0)
		out->scotch = slots_cost(m, s, slot);
	free(slot);
	slots_free(s);
	return rc;
}

void mapping_free(struct mapping *m)
{
	free(m->place);
	*m = (struct mapping){0};
}

/* --- host by host --- */

struct blocks {
	const struct matrix *m;
	const struct places *p;
	enum mapping_effort effort;
	unsigned seed;
	unsigned *place, *block;	/* by rank: the result; the block mapping */
};

/* Maps the ranks from `rank` on to the n places from `first` on, those of one host, as a job on this host alone. */
static int solve_host(const struct blocks *b, unsigned rank, unsigned ranks, unsigned first, unsigned n, struct err *e)
{
	struct matrix *m = matrix_range(b->m, rank, ranks);
	struct place *own = malloc((n + 1) * sizeof(*own));
	struct places p = *b->p;
	struct mapping found;
	int rc;

	for (unsigned i = 0; own && i < n; i++) {
		own[i] = b->p->place[first + i];
		own[i].host = 0;
	}
	p.hosts += b->p->place[first].host;
	p.nhosts = 1;
	p.place = own;
	p.nplaces = n;
	rc = m && own ? mapping_solve(m, &p, b->effort, b->seed, &found, e) : err_set(e, "mapping: out of memory");
	for (unsigned r = 0; !rc && r < ranks; r++) {
		b->place[rank + r] = first + found.place[r];
		b->block[rank + r] = first + r;
	}
	if (!rc)
		mapping_free(&found);
	matrix_free(m);
	free(own);
	return rc;
}

int mapping_blocks(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		   struct mapping *out, struct err *e)
{
	struct blocks b = { m, p, effort, seed, malloc(((size_t) m->ranks + 1) * sizeof(*b.place)),
			    malloc(((size_t) m->ranks + 1) * sizeof(*b.block)) };
	unsigned *share = NULL;
	int rc = 0;

	if (p->nplaces < m->ranks)
		rc = too_few(m, p, e);
	else if (!b.place || !b.block || !(share = places_share(p, m->ranks)))
		rc = err_set(e, "mapping: out of memory");
	for (unsigned h = 0, rank = 0, first = 0, end; rc == 0 && h < p->nhosts; rank += share[h++], first = end) {
		for (end = first; end < p->nplaces && p->place[end].host == h; )
			end++;
		rc = share[h] ? solve_host(&b, rank, share[h], first, end - first, e) : 0;
	}
	if (!rc)
		*out = (struct mapping){ .ranks = m->ranks, .place = b.place, .cost = mapping_cost(m, p, b.place),
					 .block = mapping_cost(m, p, b.block) };
	else
		free(b.place);
	free(b.block);
	free(share);
	return rc;
}
