/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bind/place.h"
#include "bind/place_parts.h"

/*
 * Memory first (Leon, "mpibind: a memory-centric affinity algorithm for hybrid applications", MEMSYS 2017), made fit for
 * parts of nodes.
 */
struct share {
	struct range pus;
	unsigned ntasks;
};

/* Objects whose neighbours a task gets, and how many PUs of each. */
struct deal {
	const struct parts *p;
	struct range *object;
	unsigned n, smt;
};

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool have_room(const struct share *s, unsigned n, unsigned ntasks, unsigned cpus)
{
	unsigned room = 0;

	for (unsigned i = 0; i < n; i++)
		room += range_size(s[i].pus) / cpus;
	return room >= ntasks;
}

/* Tasks in proportion to PUs, the remainder to the largest fractions; none beyond what the PUs allow, if that is room for all. */
static void apportion(struct share *s, unsigned n, unsigned npus, unsigned ntasks, unsigned cpus)
{
	if (!have_room(s, n, ntasks, cpus))
		cpus = 0;
	for (unsigned task = 0; task < ntasks; task++) {
		long long most = LLONG_MIN;
		unsigned best = 0;

		for (unsigned i = 0; i < n; i++) {
			unsigned size = range_size(s[i].pus);
			long long lacks = (long long) size * ntasks - (long long) s[i].ntasks * npus;

			if ((s[i].ntasks + 1ULL) * cpus <= size && lacks > most)
				best = i, most = lacks;
		}
		s[best].ntasks++;
	}
}

/* How many tasks it takes to have all domains, when none has more than so many PUs. */
static unsigned takers(const struct share *s, unsigned n, unsigned most)
{
	unsigned count = 1, has = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned size = range_size(s[i].pus);

		count += has + size > most;
		has = has + size > most ? size : has + size;
	}
	return count;
}

static unsigned largest(const struct share *s, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++)
		if (range_size(s[i].pus) > range_size(s[at].pus))
			at = i;
	return at;
}

/*
 * Fewer tasks than domains: each gets whole ones side by side, as even as that allows; of these the largest alone where
 * that is known to do.
 */
static unsigned join(struct share *s, unsigned n, unsigned npus, unsigned ntasks, unsigned cpus)
{
	unsigned most = range_size(s[largest(s, n)].pus), next = 0;

	while (takers(s, n, most) > ntasks)
		most++;
	for (unsigned i = 0; i < ntasks; i++) {
		unsigned first = next++, best, left = ntasks - i;
		struct range pus = s[first].pus;
		unsigned fair = (npus - pus.lo + left - 1) / left;

		while (n - next >= left && range_size(pus) < fair && s[next].pus.hi - pus.lo <= most)
			pus.hi = s[next++].pus.hi;
		if (left == 1)
			pus.hi = npus, next = n;
		best = first + largest(s + first, next - first);
		if (cpus && range_size(s[best].pus) >= cpus)
			pus = s[best].pus;
		s[i] = (struct share){ pus, 1 };
	}
	return ntasks;
}

static bool fit(const struct share *s, unsigned n, unsigned cpus)
{
	for (unsigned i = 0; i < n; i++)
		if ((unsigned long long) s[i].ntasks * cpus > range_size(s[i].pus))
			return false;
	return true;
}

/* The objects at a depth, where they hold all of these PUs. */
static unsigned objects_at(struct deal *d, int depth, struct range pus)
{
	unsigned n = 0, held = 0;

	for (unsigned i = 0; i < d->p->n; i++) {
		const struct part *part = &d->p->part[i];

		if (part->obj->depth != depth || part->pus.lo < pus.lo || part->pus.hi > pus.hi)
			continue;
		d->object[n++] = part->pus;
		held += range_size(part->pus);
	}
	return held == range_size(pus) ? n : 0;
}

static unsigned cores_in(struct deal *d, struct range pus)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->p->ncores; i++) {
		struct range c = d->p->core[i];

		c.lo = c.lo > pus.lo ? c.lo : pus.lo;
		c.hi = least(c.hi, pus.hi);
		if (c.lo < c.hi)
			d->object[n++] = c;
	}
	return n;
}

static unsigned pus_dealt(const struct deal *d)
{
	unsigned pus = 0;

	for (unsigned i = 0; i < d->n; i++)
		pus += least(range_size(d->object[i]), d->smt);
	return pus;
}

/* The first level from above with an object for each thread, or cores with as many PUs of each as it takes. */
static void choose_level(struct deal *d, struct range pus, unsigned threads)
{
	d->smt = 1;
	for (int depth = 0; depth < d->p->core_depth; depth++)
		if ((d->n = objects_at(d, depth, pus)) >= threads)
			return;
	d->n = cores_in(d, pus);
	for (unsigned before = 0, now; (now = pus_dealt(d)) < threads && now > before; before = now)
		d->smt++;
}

static void give(const struct deal *d, struct range pus, hwloc_bitmap_t mask)
{
	for (unsigned pu = pus.lo; pu < pus.hi; pu++)
		hwloc_bitmap_set(mask, d->p->os[pu]);
}

static void deal_objects(const struct deal *d, unsigned ntasks, hwloc_bitmap_t *masks)
{
	for (unsigned i = 0; i < ntasks; i++) {
		struct range mine = range_share(d->n, ntasks, i);

		for (unsigned o = mine.lo; o < mine.hi; o++)
			give(d, (struct range){ d->object[o].lo, least(d->object[o].hi, d->object[o].lo + d->smt) }, masks[i]);
	}
}

/* Fewer objects than tasks: those that share one divide its PUs. False where one has not enough for that. */
static bool divide_objects(const struct deal *d, unsigned ntasks, hwloc_bitmap_t *masks)
{
	bool enough = true;

	for (unsigned o = 0; o < d->n; o++) {
		struct range tasks = range_share(ntasks, d->n, o);
		unsigned lo = d->object[o].lo, pus = least(range_size(d->object[o]), d->smt);

		enough = enough && pus >= range_size(tasks);
		for (unsigned i = tasks.lo; i < tasks.hi; i++) {
			struct range mine = range_share(pus, range_size(tasks), i - tasks.lo);

			give(d, (struct range){ lo + mine.lo, lo + mine.hi }, masks[i]);
		}
	}
	return enough;
}

/* All PUs in one line, where objects would leave a task short. */
static void deal_pus(const struct deal *d, struct range pus, unsigned ntasks, hwloc_bitmap_t *masks)
{
	for (unsigned i = 0; i < ntasks; i++) {
		struct range mine = range_share(range_size(pus), ntasks, i);

		hwloc_bitmap_zero(masks[i]);
		give(d, (struct range){ pus.lo + mine.lo, pus.lo + mine.hi }, masks[i]);
	}
}

static bool all_have(const hwloc_bitmap_t *masks, unsigned ntasks, unsigned cpus)
{
	for (unsigned i = 0; i < ntasks; i++)
		if ((unsigned) hwloc_bitmap_weight(masks[i]) < cpus)
			return false;
	return true;
}

static void share_out(struct deal *d, const struct share *s, unsigned cpus, hwloc_bitmap_t *masks)
{
	unsigned pus = range_size(s->pus);
	bool good = true;

	if (!s->ntasks)
		return;
	if (!cpus) {
		cpus = cores_in(d, s->pus) / s->ntasks;
		cpus = cpus ? cpus : 1;
	}
	choose_level(d, s->pus, cpus * s->ntasks);
	if (d->n >= s->ntasks)
		deal_objects(d, s->ntasks, masks);
	else
		good = divide_objects(d, s->ntasks, masks);
	if (pus >= s->ntasks && !(good && all_have(masks, s->ntasks, least(cpus, pus / s->ntasks))))
		deal_pus(d, s->pus, s->ntasks, masks);
}

static int place(struct deal *d, struct share *s, unsigned n, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e)
{
	static const struct bind_request side_by_side = { .place = PLACE_COMPACT, .level = "numa" };

	if (ntasks < n)
		n = join(s, n, d->p->npus, ntasks, cpus);
	else
		apportion(s, n, d->p->npus, ntasks, cpus ? cpus : 1);
	if (!fit(s, n, cpus) && (unsigned long long) ntasks * cpus <= d->p->npus)
		return place_seats(d->p, &side_by_side, ntasks, cpus, masks, e);
	for (unsigned i = 0; i < n; masks += s[i++].ntasks)
		share_out(d, &s[i], cpus, masks);
	return 0;
}

int place_mem(const struct parts *p, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e)
{
	struct range *domain;
	struct share *share;
	struct deal d = { .p = p };
	unsigned n;
	int rc;

	if (!(domain = parts_domains(p, "numa", &n, e)))
		return -1;
	share = calloc(n, sizeof(*share));
	d.object = calloc(p->n + p->npus, sizeof(*d.object));
	for (unsigned i = 0; share && i < n; i++)
		share[i].pus = domain[i];
	rc = share && d.object ? place(&d, share, n, ntasks, cpus, masks, e) : err_set(e, "out of memory");
	free(domain);
	free(share);
	free(d.object);
	return rc;
}
