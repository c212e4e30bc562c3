/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/swaps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How many domains to each side of a partner's are tried. */
#define AROUND 16
/* Rounds over all levels; most problems need three or four. */
#define ROUNDS 20
/* Steps in all, a second's worth. Counted, not timed: a busy machine gives the same bytes. */
#define WORK 150000000ull

/* The places first .. first+count-1: what one domain holds of the job. */
struct run {
	unsigned first, count;
};

struct polish {
	const struct matrix *m;
	const struct places *p;
	unsigned *place;		/* of each rank */
	unsigned *rank;			/* on each place, or SWAPS_FREE */
	struct run *run;		/* of this level, in order */
	unsigned nruns;
	unsigned *run_of;		/* index of the run that each place is in */
	unsigned *tried;		/* the last run + 1 that each run was tried against */
	unsigned long long work;
};

double swaps_rank_cost(const struct matrix *m, const struct places *p, const unsigned *place, unsigned rank, unsigned at)
{
	double cost = 0;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		if (place[m->adj[i]] != SWAPS_FREE)
			cost += m->weight[i] * places_distance(p, at, place[m->adj[i]]);
	return cost;
}

static void runs_find(struct polish *s, int level)
{
	const struct place *place = s->p->place;

	s->nruns = 0;
	for (unsigned i = 0; i < s->p->nplaces; i++) {
		if (!i || place[i].path[level] != place[i - 1].path[level])
			s->run[s->nruns++] = (struct run){ .first = i };
		s->run[s->nruns - 1].count++;
		s->run_of[i] = s->nruns - 1;
	}
	memset(s->tried, 0, s->nruns * sizeof(*s->tried));
}

static bool run_has(struct run r, unsigned place)
{
	return place - r.first < r.count;
}

/* What the ranks of run a pay; a pair within a or b is met from both of its ends, and counts half at each. */
static double run_cost(struct polish *s, struct run a, struct run b)
{
	double cost = 0;

	for (unsigned at = a.first; at < a.first + a.count; at++) {
		unsigned rank = s->rank[at];

		if (rank == SWAPS_FREE)
			continue;
		s->work += s->m->row[rank + 1] - s->m->row[rank];
		for (size_t i = s->m->row[rank]; i < s->m->row[rank + 1]; i++) {
			unsigned other = s->place[s->m->adj[i]];
			double pays = s->m->weight[i] * places_distance(s->p, at, other);

			cost += run_has(a, other) || run_has(b, other) ? pays / 2 : pays;
		}
	}
	return cost;
}

static void put(struct polish *s, unsigned rank, unsigned at)
{
	s->rank[at] = rank;
	if (rank != SWAPS_FREE)
		s->place[rank] = at;
}

static void exchange(struct polish *s, struct run a, struct run b)
{
	for (unsigned i = 0; i < a.count; i++) {
		unsigned rank = s->rank[a.first + i];

		put(s, s->rank[b.first + i], a.first + i);
		put(s, rank, b.first + i);
	}
}

/* A gain in the last digits is none: it may be one of rounding, and come back for ever. */
static bool try_exchange(struct polish *s, struct run a, struct run b)
{
	double before = run_cost(s, a, b) + run_cost(s, b, a), after;

	exchange(s, a, b);
	after = run_cost(s, a, b) + run_cost(s, b, a);
	if (after < before - 1e-9 * before)
		return true;
	exchange(s, a, b);
	return false;
}

static bool try_around(struct polish *s, unsigned mine, unsigned partner)
{
	unsigned from = partner > AROUND ? partner - AROUND : 0;
	bool gained = false;

	for (unsigned r = from; r < s->nruns && r <= partner + AROUND && s->work < WORK; r++) {
		s->work++;
		if (r == mine || s->tried[r] == mine + 1 || s->run[r].count != s->run[mine].count)
			continue;
		s->tried[r] = mine + 1;
		gained |= try_exchange(s, s->run[mine], s->run[r]);
	}
	return gained;
}

static bool try_run(struct polish *s, unsigned mine)
{
	struct run r = s->run[mine];
	bool gained = false;

	for (unsigned at = r.first; at < r.first + r.count; at++)
		for (size_t i = 0; s->rank[at] != SWAPS_FREE; i++) {
			unsigned rank = s->rank[at];	/* an exchange may have put another one here */

			if (s->m->row[rank] + i >= s->m->row[rank + 1])
				break;
			gained |= try_around(s, mine, s->run_of[s->place[s->m->adj[s->m->row[rank] + i]]]);
		}
	return gained;
}

static bool level_polish(struct polish *s, int level)
{
	unsigned above = level ? s->nruns : 0;
	bool gained = false;

	runs_find(s, level);
	if (s->nruns == above)
		return false;
	for (unsigned r = 0; r < s->nruns && s->work < WORK; r++)
		gained |= try_run(s, r);
	return gained;
}

static void polish_rounds(struct polish *s)
{
	bool gained = true;

	for (int round = 0; gained && round < ROUNDS; round++) {
		gained = false;
		for (int level = 0; level < PLACES_LEVELS; level++)
			gained |= level_polish(s, level);
	}
}

int swaps_polish(const struct matrix *m, const struct places *p, unsigned *place)
{
	struct polish s = { .m = m, .p = p, .place = place };
	int rc = -1;

	s.rank = malloc(p->nplaces * sizeof(*s.rank));
	s.run = malloc(p->nplaces * sizeof(*s.run));
	s.run_of = malloc(p->nplaces * sizeof(*s.run_of));
	s.tried = malloc(p->nplaces * sizeof(*s.tried));
	if (!s.rank || !s.run || !s.run_of || !s.tried)
		goto out;
	memset(s.rank, 0xff, p->nplaces * sizeof(*s.rank));
	for (unsigned r = 0; r < m->ranks; r++)
		s.rank[place[r]] = r;
	polish_rounds(&s);
	rc = 0;
out:
	free(s.rank);
	free(s.run);
	free(s.run_of);
	free(s.tried);
	return rc;
}
