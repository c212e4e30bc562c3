/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/place.h"

#include <limits.h>
#include <stdbool.h>

#include "bind/core_kinds.h"
#include "bind/pu_tree.h"

static int place_on(const struct pu_tree *p, const struct bind_request *r, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e)
{
	if (cpus > p->npus)
		cpus = p->npus;
	if (!p->npus || !ntasks)
		return err_set(e, "cannot place %u tasks on %u PUs", ntasks, p->npus);
	if (r->place == PLACE_MEM)
		return place_mem(p, ntasks, cpus, masks, e);
	return place_grid(p, r, ntasks, cpus ? cpus : 1, masks, e);
}

/* The cores of one kind, and the tasks on them. */
struct kind_share {
	struct pu_tree tree;
	unsigned ntasks;
};

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Tasks that share out all cores: in proportion to the cores of each kind. The number that find no place. */
static unsigned apportion_all(struct kind_share *s, unsigned n, unsigned ntasks)
{
	unsigned long long cores = 0, all = ntasks;

	for (unsigned i = 0; i < n; i++)
		cores += s[i].tree.ncores;
	for (; ntasks; ntasks--) {
		long long most = LLONG_MIN;
		unsigned best = n;

		for (unsigned i = 0; i < n; i++) {
			long long deficit = (long long) (s[i].tree.ncores * all) - (long long) (s[i].ntasks * cores);

			if (s[i].ntasks < s[i].tree.npus && deficit > most)
				best = i, most = deficit;
		}
		if (best == n)
			return ntasks;
		s[best].ntasks++;
	}
	return 0;
}

/*
 * Tasks of whole cores first, on the most performant kind as many as it holds; then those that need its SMT siblings.
 * The number that find no place.
 */
static unsigned apportion(struct kind_share *s, unsigned n, unsigned ntasks, unsigned cpus)
{
	for (unsigned i = 0; i < n; i++) {
		s[i].ntasks = min_of(ntasks, s[i].tree.ncores / cpus);
		ntasks -= s[i].ntasks;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned more = min_of(ntasks, s[i].tree.npus / cpus - s[i].ntasks);

		s[i].ntasks += more;
		ntasks -= more;
	}
	return ntasks;
}

/* 1: done, no task has cores of two kinds; 0: they would not hold all tasks; -1: an error. */
static int place_by_kind(struct kind_share *s, unsigned n, const struct bind_request *r, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e)
{
	bool all = r->place == PLACE_MEM && !cpus;

	if (all ? apportion_all(s, n, ntasks) : apportion(s, n, ntasks, cpus ? cpus : 1))
		return 0;
	for (unsigned i = 0; i < n; masks += s[i++].ntasks)
		if (s[i].ntasks && place_on(&s[i].tree, r, s[i].ntasks, cpus, masks, e))
			return -1;
	return 1;
}

static int place_on_kinds(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, bool whole,
	hwloc_bitmap_t *masks, struct err *e)
{
	struct kind_share shares[CORE_KINDS_MAX] = {0};
	hwloc_bitmap_t sets[CORE_KINDS_MAX];
	unsigned n = bind_core_kinds(t, sets), made = 0;
	int rc = 0;

	while (!rc && made < n) {
		rc = pu_tree_new(t, sets[made], whole, &shares[made].tree, e);
		made += !rc;
	}
	if (!rc && n)
		rc = place_by_kind(shares, n, r, ntasks, cpus, masks, e);
	for (unsigned i = 0; i < made; i++)
		pu_tree_free(&shares[i].tree);
	for (unsigned i = 0; i < n; i++)
		hwloc_bitmap_free(sets[i]);
	return rc;
}

int place_tasks(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, bool whole,
	hwloc_bitmap_t *masks, struct err *e)
{
	struct pu_tree p;
	int rc = place_on_kinds(t, r, ntasks, cpus, whole, masks, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	if (pu_tree_new(t, NULL, whole, &p, e))
		return -1;
	rc = place_on(&p, r, ntasks, cpus, masks, e);
	pu_tree_free(&p);
	return rc;
}
