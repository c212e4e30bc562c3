/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bind/place.h"
#include "bind/place_parts.h"

/*
 * compact and scatter. The PUs are cut into seats, each as large as a task needs, of grains that stay whole: a core for
 * each CPU; where these do not suffice cores by their PUs, then PUs. Seats within a domain are made first; what is left
 * over makes more, over as few ends as that takes. Then the tasks sit down.
 */
struct seat {
	unsigned id;		/* from 1 */
	unsigned first, last;	/* of its grains; those between may be another's */
	bool over;		/* it reaches over the end of a domain */
	unsigned round, domain;	/* tasks take seats in this order */
};

struct hall {
	const struct parts *p;
	struct range *grain;	/* PUs of each */
	unsigned ngrains;
	bool whole;		/* a grain is one CPU, whatever it has */
	struct range *domain;
	unsigned ndomains;
	unsigned *seat_of;	/* of each grain, its seat's id or 0 */
	struct seat *seat;
	unsigned nseats;
};

static void add_seat(struct hall *h, unsigned first, unsigned last, unsigned domain, bool over)
{
	struct seat *s = &h->seat[h->nseats++];

	*s = (struct seat){ .id = h->nseats, .first = first, .last = last, .domain = domain, .over = over };
	for (unsigned g = first; g <= last; g++)
		if (!h->seat_of[g])
			h->seat_of[g] = s->id;
}

/* A grain that an end cuts is where its first PU is. */
static unsigned grain_at(const struct hall *h, unsigned pu)
{
	unsigned lo = 0, hi = h->ngrains;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (h->grain[mid].lo < pu)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void make_seats(struct hall *h, struct range pus, unsigned domain, unsigned cpus, bool over)
{
	unsigned got = 0, first = 0, end = grain_at(h, pus.hi);

	for (unsigned g = grain_at(h, pus.lo); g < end; g++) {
		if (h->seat_of[g])
			continue;
		if (!got)
			first = g;
		got += h->whole ? 1 : range_size(h->grain[g]);
		if (got < cpus)
			continue;
		add_seat(h, first, g, domain, over);
		got = 0;
	}
}

static void empty(struct hall *h)
{
	memset(h->seat_of, 0, h->ngrains * sizeof(*h->seat_of));
	h->nseats = 0;
}

/* What is in an object comes after it. */
static void furnish(struct hall *h, unsigned cpus)
{
	empty(h);
	for (unsigned d = 0; d < h->ndomains; d++)
		make_seats(h, h->domain[d], d, cpus, false);
	for (unsigned i = h->p->n; i-- > 0 && h->ndomains > 1;)
		make_seats(h, h->p->part[i].pus, 0, cpus, true);
}

static void furnish_evenly(struct hall *h, unsigned ntasks)
{
	unsigned n = ntasks < h->ngrains ? ntasks : h->ngrains, domain = 0;

	empty(h);
	for (unsigned i = 0; i < n; i++) {
		struct range share = range_share(h->ngrains, n, i);

		while (h->grain[share.lo].lo >= h->domain[domain].hi)
			domain++;
		add_seat(h, share.lo, share.hi - 1, domain, false);
	}
}

static void use_grains(struct hall *h, bool cores)
{
	h->ngrains = cores ? h->p->ncores : h->p->npus;
	for (unsigned g = 0; g < h->ngrains; g++)
		h->grain[g] = cores ? h->p->core[g] : (struct range){ g, g + 1 };
}

static bool have_seats(const struct hall *h, unsigned ntasks, bool within)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->nseats; i++)
		n += !(within && h->seat[i].over);
	return n >= ntasks;
}

/* At least one seat, and where there are fewer than tasks, as many as there are PUs. */
static void make_room(struct hall *h, unsigned ntasks, unsigned cpus)
{
	static const struct {
		bool cores, whole, within;
	} ways[] = {
		{ true, true, true }, { true, false, true }, { true, true, false }, { true, false, false }, { false, false, false },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		use_grains(h, ways[i].cores);
		h->whole = ways[i].whole;
		furnish(h, cpus);
		if (have_seats(h, ntasks, ways[i].within))
			return;
	}
	use_grains(h, h->p->ncores >= ntasks);
	furnish_evenly(h, ntasks);
}

static int before(const void *one, const void *other)
{
	const struct seat *a = one, *b = other;

	if (a->over != b->over)
		return a->over ? 1 : -1;
	if (a->round != b->round)
		return a->round < b->round ? -1 : 1;
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* No more than needed, and the last to be made are the first to go; then in tree order. */
static void line_up(struct hall *h, unsigned ntasks)
{
	if (h->nseats > ntasks)
		h->nseats = ntasks;
	for (unsigned i = 0; i < h->nseats; i++)
		h->seat[i].over = false, h->seat[i].domain = 0;
	qsort(h->seat, h->nseats, sizeof(*h->seat), before);
}

/* Seats of one domain take turns: from its one side to the other or, far, each as far as possible from those before. */
static int take_turns(struct hall *h, unsigned from, unsigned n, bool far, unsigned *pu, unsigned *order, struct err *e)
{
	for (unsigned i = 0; i < n; i++) {
		pu[i] = h->grain[h->seat[from + i].first].lo;
		order[i] = i;
	}
	if (far && parts_spread(h->p, pu, n, order, e))
		return -1;
	for (unsigned i = 0; i < n; i++)
		h->seat[from + order[i]].round = i;
	return 0;
}

static unsigned run_of(const struct hall *h, unsigned from)
{
	const struct seat *s = &h->seat[from];
	unsigned n = 1;

	while (from + n < h->nseats && s[n].domain == s->domain && s[n].over == s->over)
		n++;
	return n;
}

static int rank_domains(struct hall *h, unsigned *rank, unsigned *order, struct err *e)
{
	for (unsigned d = 0; d < h->ndomains; d++)
		rank[d] = h->domain[d].lo;
	if (parts_spread(h->p, rank, h->ndomains, order, e))
		return -1;
	for (unsigned d = 0; d < h->ndomains; d++)
		rank[order[d]] = d;
	for (unsigned i = 0; i < h->nseats; i++)
		h->seat[i].domain = rank[h->seat[i].domain];
	return 0;
}

static int scatter(struct hall *h, bool far, unsigned *pu, unsigned *order, struct err *e)
{
	unsigned n;

	/* In tree order, which those that reach over an end were not made in. */
	qsort(h->seat, h->nseats, sizeof(*h->seat), before);
	for (unsigned from = 0; from < h->nseats; from += n) {
		n = run_of(h, from);
		if (take_turns(h, from, n, far || h->seat[from].over, pu, order, e))
			return -1;
	}
	if (rank_domains(h, pu, order, e))
		return -1;
	qsort(h->seat, h->nseats, sizeof(*h->seat), before);
	return 0;
}

static void seat_task(const struct hall *h, const struct seat *s, hwloc_bitmap_t mask)
{
	for (unsigned g = s->first; g <= s->last; g++)
		for (unsigned pu = h->grain[g].lo; h->seat_of[g] == s->id && pu < h->grain[g].hi; pu++)
			hwloc_bitmap_set(mask, h->p->os[pu]);
}

static int place(struct hall *h, const struct bind_request *r, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e)
{
	unsigned room = h->p->npus + 1, *scratch = calloc(2 * room, sizeof(*scratch));
	bool compact = r->place == PLACE_COMPACT;
	int rc = 0;

	if (!scratch)
		return err_set(e, "out of memory");
	make_room(h, ntasks, cpus);
	if (compact)
		line_up(h, ntasks);
	else
		rc = scatter(h, !*r->level, scratch, scratch + room, e);
	for (unsigned i = 0; !rc && i < ntasks; i++)
		seat_task(h, &h->seat[compact ? range_share(h->nseats, ntasks, i).lo : i % h->nseats], masks[i]);
	free(scratch);
	return rc;
}

/* Compact without a level knows of no ends that a task might reach over. */
static struct range *domains(const struct parts *p, const struct bind_request *r, unsigned *n, struct err *e)
{
	const char *all = r->place == PLACE_COMPACT ? "machine" : "numa";

	return parts_domains(p, *r->level ? r->level : all, n, e);
}

int place_seats(const struct parts *p, const struct bind_request *r, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks,
		struct err *e)
{
	struct hall h = { .p = p };
	int rc = -1;

	if (!(h.domain = domains(p, r, &h.ndomains, e)))
		return -1;
	h.grain = calloc(p->npus, sizeof(*h.grain));
	h.seat_of = calloc(p->npus, sizeof(*h.seat_of));
	h.seat = calloc(p->npus, sizeof(*h.seat));
	if (h.grain && h.seat_of && h.seat)
		rc = place(&h, r, ntasks, cpus, masks, e);
	else
		err_set(e, "out of memory");
	free(h.domain);
	free(h.grain);
	free(h.seat_of);
	free(h.seat);
	return rc;
}
