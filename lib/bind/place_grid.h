/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_PLACE_GRID_H
#define TOPIARY_BIND_PLACE_GRID_H

#include <hwloc.h>

#include "base/err.h"
#include "bind/request.h"

/*
 * A topology as ranges of its PUs, numbered from 0 in tree order. For place.c, place_grid.c and
 * place_gpu.c.
 */
struct pu_range {
	unsigned lo, hi;	/* PUs lo .. hi-1 */
};

/* An object that has PUs. They are in preorder, the machine first. */
struct pu_tree_object {
	hwloc_obj_t obj;
	struct pu_range pus;
	unsigned next;		/* the object after its subtree */
};

struct pu_tree {
	struct pu_tree_object *object;
	unsigned n;
	hwloc_obj_t *pu;	/* each PU, or the core that counts as one */
	unsigned npus;
	struct pu_range *core;	/* a PU outside any core counts as a core */
	unsigned ncores;
	int core_depth;
};

/*
 * The PUs of a set, or with NULL all. whole: each core counts as one PU, so that whoever gets it has all its PUs. 0, or
 * -1: memory. Free with pu_tree_free.
 */
int pu_tree_new(hwloc_topology_t t, hwloc_const_bitmap_t only, bool whole, struct pu_tree *out, struct err *e);
void pu_tree_free(struct pu_tree *p);

/*
 * The domains of a level, named as for hwloc_type_sscanf: all PUs in tree order, divided where the innermost object of
 * the level changes. PUs outside the level's objects are domains, too. An array of *n for the caller to free; NULL
 * with an error: no object of that level, memory.
 */
struct pu_range *pu_tree_domains(const struct pu_tree *p, const char *level, unsigned *n, struct err *e);

static inline unsigned pu_range_size(struct pu_range r)
{
	return r.hi - r.lo;
}

/*
 * Divide n items among k receivers in order: the items of receiver i. The first receivers get one more where k does
 * not divide n. With fewer items than receivers each gets one, which adjacent receivers share.
 */
struct pu_range pu_range_share(unsigned n, unsigned k, unsigned i);

/* compact and scatter, and what mem falls back to. Arguments as for place_tasks. */
int place_grid(const struct pu_tree *p, const struct bind_request *r, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e);
/*
 * All slots that are large enough for a task with so many CPUs, in NUMA nodes as far as possible, in tree order; fewer
 * than ntasks where tasks must share. *slots, and each bitmap in it, is the caller's to free.
 */
int place_slots(const struct pu_tree *p, unsigned ntasks, unsigned cpus, hwloc_bitmap_t **slots, unsigned *n,
	struct err *e);

#endif
