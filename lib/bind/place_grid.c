/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bind/place.h"
#include "bind/pu_tree.h"

/*
 * compact and scatter: a grid of equal slots. The PUs are divided into slots, each as large as a task needs, of units
 * that stay whole: one core for each CPU; if that does not yield enough slots, for every two CPUs, and so on, as its
 * PUs allow; then single PUs. Slots within a domain are made first; the units left over form further slots that cross
 * as few domain boundaries as possible. Then tasks are assigned to slots.
 */
struct place_slot {
	unsigned id;		/* from 1 */
	unsigned first, last;	/* of its units; units between may belong to another slot */
	bool crosses;		/* a domain boundary */
	unsigned round, domain;	/* the sort key of slots for tasks */
};

struct place_layout {
	const struct pu_tree *p;
	struct pu_range *unit;	/* PUs of each */
	unsigned nunits;
	unsigned most;		/* CPUs that a unit counts as, however many PUs it has */
	struct pu_range *domain;
	unsigned ndomains;
	unsigned *slot_of;	/* for each unit its slot's id, or 0 */
	struct place_slot *slot;
	unsigned nslots;
};

static void add_slot(struct place_layout *h, unsigned first, unsigned last, unsigned domain, bool crosses)
{
	struct place_slot *s = &h->slot[h->nslots++];

	*s = (struct place_slot){ .id = h->nslots, .first = first, .last = last, .domain = domain, .crosses = crosses };
	for (unsigned g = first; g <= last; g++)
		if (!h->slot_of[g])
			h->slot_of[g] = s->id;
}

/* The first unit at or after a PU; one that a boundary divides belongs to the domain of its first PU. */
static unsigned unit_at(const struct place_layout *h, unsigned pu)
{
	unsigned lo = 0, hi = h->nunits;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (h->unit[mid].lo < pu)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void make_slots(struct place_layout *h, struct pu_range pus, unsigned domain, unsigned cpus, bool crosses)
{
	unsigned got = 0, first = 0, end = unit_at(h, pus.hi);

	for (unsigned g = unit_at(h, pus.lo); g < end; g++) {
		if (h->slot_of[g])
			continue;
		if (!got)
			first = g;
		got += pu_range_size(h->unit[g]) < h->most ? pu_range_size(h->unit[g]) : h->most;
		if (got < cpus)
			continue;
		add_slot(h, first, g, domain, crosses);
		got = 0;
	}
}

static void clear_slots(struct place_layout *h)
{
	memset(h->slot_of, 0, h->nunits * sizeof(*h->slot_of));
	h->nslots = 0;
}

/* Objects in reverse preorder: inner objects first. */
static void fill_layout(struct place_layout *h, unsigned cpus)
{
	clear_slots(h);
	for (unsigned d = 0; d < h->ndomains; d++)
		make_slots(h, h->domain[d], d, cpus, false);
	for (unsigned i = h->p->n; i-- > 0 && h->ndomains > 1;)
		make_slots(h, h->p->object[i].pus, 0, cpus, true);
}

static void fill_evenly(struct place_layout *h, unsigned ntasks)
{
	unsigned n = ntasks < h->nunits ? ntasks : h->nunits, domain = 0;

	clear_slots(h);
	for (unsigned i = 0; i < n; i++) {
		struct pu_range share = pu_range_share(h->nunits, n, i);

		while (h->unit[share.lo].lo >= h->domain[domain].hi)
			domain++;
		add_slot(h, share.lo, share.hi - 1, domain, false);
	}
}

static void use_units(struct place_layout *h, bool cores)
{
	h->nunits = cores ? h->p->ncores : h->p->npus;
	for (unsigned g = 0; g < h->nunits; g++)
		h->unit[g] = cores ? h->p->core[g] : (struct pu_range){ g, g + 1 };
}

static bool has_enough_slots(const struct place_layout *h, unsigned ntasks, bool within)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->nslots; i++)
		n += !(within && h->slot[i].crosses);
	return n >= ntasks;
}

/*
 * The first layout with enough slots, within domains if there is one; otherwise as many slots as PUs, at least one,
 * which tasks share.
 */
static void choose_layout(struct place_layout *h, unsigned ntasks, unsigned cpus)
{
	unsigned threads = 1;

	use_units(h, true);
	for (unsigned g = 0; g < h->nunits; g++)
		threads = pu_range_size(h->unit[g]) > threads ? pu_range_size(h->unit[g]) : threads;
	for (int within = 1; within >= 0; within--)
		for (h->most = 1; h->most <= threads; h->most++) {
			fill_layout(h, cpus);
			if (has_enough_slots(h, ntasks, within))
				return;
		}
	use_units(h, false);
	fill_layout(h, cpus);
	if (has_enough_slots(h, ntasks, false))
		return;
	use_units(h, h->p->ncores >= ntasks);
	fill_evenly(h, ntasks);
}

static int before(const void *one, const void *other)
{
	const struct place_slot *a = one, *b = other;

	if (a->crosses != b->crosses)
		return a->crosses ? 1 : -1;
	if (a->round != b->round)
		return a->round < b->round ? -1 : 1;
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* Drop the surplus, the last made first, and sort in tree order. */
static void order_compact(struct place_layout *h, unsigned ntasks)
{
	if (h->nslots > ntasks)
		h->nslots = ntasks;
	for (unsigned i = 0; i < h->nslots; i++)
		h->slot[i].crosses = false, h->slot[i].domain = 0;
	qsort(h->slot, h->nslots, sizeof(*h->slot), before);
}

/* Number the slots of one domain: in tree order or, far, each as far as possible from its predecessors. */
static int number_rounds(struct place_layout *h, unsigned from, unsigned n, bool far, unsigned *pu, unsigned *order,
	struct err *e)
{
	for (unsigned i = 0; i < n; i++) {
		pu[i] = h->unit[h->slot[from + i].first].lo;
		order[i] = i;
	}
	if (far && pu_tree_spread(h->p, pu, n, order, e))
		return -1;
	for (unsigned i = 0; i < n; i++)
		h->slot[from + order[i]].round = i;
	return 0;
}

static unsigned run_of(const struct place_layout *h, unsigned from)
{
	const struct place_slot *s = &h->slot[from];
	unsigned n = 1;

	while (from + n < h->nslots && s[n].domain == s->domain && s[n].crosses == s->crosses)
		n++;
	return n;
}

static int rank_domains(struct place_layout *h, unsigned *rank, unsigned *order, struct err *e)
{
	for (unsigned d = 0; d < h->ndomains; d++)
		rank[d] = h->domain[d].lo;
	if (pu_tree_spread(h->p, rank, h->ndomains, order, e))
		return -1;
	for (unsigned d = 0; d < h->ndomains; d++)
		rank[order[d]] = d;
	for (unsigned i = 0; i < h->nslots; i++)
		h->slot[i].domain = rank[h->slot[i].domain];
	return 0;
}

static int order_scatter(struct place_layout *h, bool far, unsigned *pu, unsigned *order, struct err *e)
{
	unsigned n;

	/* Tree order: slots that cross a boundary were not made in it. */
	qsort(h->slot, h->nslots, sizeof(*h->slot), before);
	for (unsigned from = 0; from < h->nslots; from += n) {
		n = run_of(h, from);
		if (number_rounds(h, from, n, far || h->slot[from].crosses, pu, order, e))
			return -1;
	}
	if (rank_domains(h, pu, order, e))
		return -1;
	qsort(h->slot, h->nslots, sizeof(*h->slot), before);
	return 0;
}

static void assign_task(const struct place_layout *h, const struct place_slot *s, hwloc_bitmap_t mask)
{
	for (unsigned g = s->first; g <= s->last; g++)
		for (unsigned pu = h->unit[g].lo; h->slot_of[g] == s->id && pu < h->unit[g].hi; pu++)
			hwloc_bitmap_or(mask, mask, h->p->pu[pu]->cpuset);
}

static int place_on_grid(struct place_layout *h, const struct bind_request *r, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e)
{
	unsigned room = h->p->npus + 1, *scratch = calloc(2 * room, sizeof(*scratch));
	bool compact = r->place == PLACE_COMPACT;
	int rc = 0;

	if (!scratch)
		return err_set(e, "out of memory");
	choose_layout(h, ntasks, cpus);
	if (compact)
		order_compact(h, ntasks);
	else
		rc = order_scatter(h, !*r->level, scratch, scratch + room, e);
	for (unsigned i = 0; !rc && i < ntasks; i++)
		assign_task(h, &h->slot[compact ? pu_range_share(h->nslots, ntasks, i).lo : i % h->nslots], masks[i]);
	free(scratch);
	return rc;
}

/* compact without a level has a single domain. */
static struct pu_range *find_domains(const struct pu_tree *p, const struct bind_request *r, unsigned *n, struct err *e)
{
	const char *all = r->place == PLACE_COMPACT ? "machine" : "numa";

	return pu_tree_domains(p, *r->level ? r->level : all, n, e);
}

static void layout_free(struct place_layout *h)
{
	free(h->domain);
	free(h->unit);
	free(h->slot_of);
	free(h->slot);
}

static int layout_new(struct place_layout *h, const struct pu_tree *p, const struct bind_request *r, struct err *e)
{
	*h = (struct place_layout){ .p = p };
	if (!(h->domain = find_domains(p, r, &h->ndomains, e)))
		return -1;
	h->unit = calloc(p->npus, sizeof(*h->unit));
	h->slot_of = calloc(p->npus, sizeof(*h->slot_of));
	h->slot = calloc(p->npus, sizeof(*h->slot));
	if (h->unit && h->slot_of && h->slot)
		return 0;
	layout_free(h);
	return err_set(e, "out of memory");
}

int place_grid(const struct pu_tree *p, const struct bind_request *r, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e)
{
	struct place_layout h;
	int rc;

	if (layout_new(&h, p, r, e))
		return -1;
	rc = place_on_grid(&h, r, ntasks, cpus, masks, e);
	layout_free(&h);
	return rc;
}

int place_slots(const struct pu_tree *p, unsigned ntasks, unsigned cpus, hwloc_bitmap_t **slots, unsigned *n,
	struct err *e)
{
	static const struct bind_request scatter = { .place = PLACE_SCATTER };
	struct place_layout h;
	hwloc_bitmap_t *all;

	if (layout_new(&h, p, &scatter, e))
		return -1;
	choose_layout(&h, ntasks, cpus);
	qsort(h.slot, h.nslots, sizeof(*h.slot), before);
	all = calloc(h.nslots, sizeof(*all));
	for (unsigned i = 0; all && i < h.nslots; i++)
		if ((all[i] = hwloc_bitmap_alloc()))
			assign_task(&h, &h.slot[i], all[i]);
	*slots = all;
	*n = h.nslots;
	layout_free(&h);
	return all ? 0 : err_set(e, "out of memory");
}
