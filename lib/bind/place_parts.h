/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_PLACE_PARTS_H
#define TOPIARY_BIND_PLACE_PARTS_H

#include <hwloc.h>

#include "base/err.h"
#include "bind/request.h"

/* A topology as runs of its PUs, counted from 0 in tree order: what place_seats.c and place_mem.c reckon with. */
struct range {
	unsigned lo, hi;	/* PUs lo .. hi-1 */
};

/* An object that has PUs; in preorder, the machine first. */
struct part {
	hwloc_obj_t obj;
	struct range pus;
	unsigned next;		/* the part after it and all that is in it */
};

struct parts {
	struct part *part;
	unsigned n;
	unsigned *os;		/* of each PU, its OS index */
	unsigned npus;
	struct range *core;	/* a PU outside any core is a core of its own */
	unsigned ncores;
	int core_depth;
};

/* 0, or -1: memory. Free with parts_free. */
int parts_of(hwloc_topology_t t, struct parts *out, struct err *e);
void parts_free(struct parts *p);

/*
 * The domains of a level, as hwloc_type_sscanf reads its name: all PUs in tree order, cut where the innermost object of
 * the level changes. What no object of the level holds is a domain, too. malloc'ed, *n of them; NULL with an error: no
 * object of that level, memory.
 */
struct range *parts_domains(const struct parts *p, const char *level, unsigned *n, struct err *e);

/*
 * Put the numbers 0 .. n-1 of items, which lie at these PUs in rising order, so that each is as far from those before it
 * as the tree allows.
 */
int parts_spread(const struct parts *p, const unsigned *pu, unsigned n, unsigned *order, struct err *e);

static inline unsigned range_size(struct range r)
{
	return r.hi - r.lo;
}

/*
 * Of n things for k takers, those of taker i, in order: as many for each, one more for the first ones where they do not
 * come out even. Fewer things than takers: one a taker, which the takers beside it share.
 */
struct range range_share(unsigned n, unsigned k, unsigned i);

int place_seats(const struct parts *p, const struct bind_request *r, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks,
		struct err *e);
int place_mem(const struct parts *p, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e);

#endif
