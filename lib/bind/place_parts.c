/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bind/place.h"
#include "bind/place_parts.h"
#include "topo/machine.h"

static unsigned objects_below(hwloc_obj_t o)
{
	unsigned n = 1;

	for (hwloc_obj_t c = o->first_child; c; c = c->next_sibling)
		n += objects_below(c);
	return n;
}

static void enter_pu(struct parts *p, hwloc_obj_t o, bool in_core)
{
	p->os[p->npus++] = o->os_index;
	if (!in_core)
		p->core[p->ncores++] = (struct range){ p->npus - 1, p->npus };
}

static void enter(struct parts *p, hwloc_obj_t o, bool in_core)
{
	unsigned self = p->n++, first = p->npus;

	if (o->type == HWLOC_OBJ_PU)
		enter_pu(p, o, in_core);
	for (hwloc_obj_t c = o->first_child; c; c = c->next_sibling)
		enter(p, c, in_core || o->type == HWLOC_OBJ_CORE);
	if (first == p->npus) {
		p->n = self;
		return;
	}
	p->part[self] = (struct part){ o, { first, p->npus }, p->n };
	if (o->type == HWLOC_OBJ_CORE)
		p->core[p->ncores++] = p->part[self].pus;
}

int parts_of(hwloc_topology_t t, struct parts *out, struct err *e)
{
	hwloc_obj_t root = hwloc_get_root_obj(t);
	unsigned n = objects_below(root);
	struct parts p = { .part = calloc(n, sizeof(*p.part)), .os = calloc(n, sizeof(*p.os)), .core = calloc(n, sizeof(*p.core)) };

	if (!p.part || !p.os || !p.core) {
		parts_free(&p);
		return err_set(e, "out of memory");
	}
	enter(&p, root, false);
	p.core_depth = hwloc_get_type_depth(t, machine_core_type(t));
	*out = p;
	return 0;
}

void parts_free(struct parts *p)
{
	free(p->part);
	free(p->os);
	free(p->core);
}

struct level {
	hwloc_obj_type_t type;
	union hwloc_obj_attr_u attr;
};

/* Memory hangs beside the objects that it is local to. */
static bool is_of(hwloc_obj_t o, const struct level *l)
{
	bool any_group = l->type != HWLOC_OBJ_GROUP || l->attr.group.depth == (unsigned) -1;

	if (o->type == l->type && (any_group || o->attr->group.depth == l->attr.group.depth))
		return true;
	for (hwloc_obj_t m = o->memory_first_child; m; m = m->next_sibling)
		if (is_of(m, l))
			return true;
	return false;
}

/* Later parts are further in. */
static bool find_innermost(const struct parts *p, const struct level *l, unsigned *innermost)
{
	bool found = false;

	for (unsigned i = 0; i < p->n; i++) {
		if (!is_of(p->part[i].obj, l))
			continue;
		found = true;
		for (unsigned pu = p->part[i].pus.lo; pu < p->part[i].pus.hi; pu++)
			innermost[pu] = i + 1;
	}
	return found;
}

static unsigned cut(const unsigned *innermost, unsigned npus, struct range *domain)
{
	unsigned n = 0;

	for (unsigned pu = 0; pu < npus; pu++) {
		if (!pu || innermost[pu] != innermost[pu - 1])
			domain[n++].lo = pu;
		domain[n - 1].hi = pu + 1;
	}
	return n;
}

struct range *parts_domains(const struct parts *p, const char *level, unsigned *n, struct err *e)
{
	struct range *domain = calloc(p->npus, sizeof(*domain));
	unsigned *innermost = calloc(p->npus, sizeof(*innermost));
	struct level l = {0};

	if (!domain || !innermost) {
		err_set(e, "out of memory");
		goto error;
	}
	if (hwloc_type_sscanf(level, &l.type, &l.attr, sizeof(l.attr)) || !find_innermost(p, &l, innermost)) {
		err_set(e, "the step's cores have no level '%s'", level);
		goto error;
	}
	*n = cut(innermost, p->npus, domain);
	free(innermost);
	return domain;
error:
	free(innermost);
	free(domain);
	return NULL;
}

struct spread {
	const struct parts *p;
	const unsigned *pu;
	unsigned *order, *scratch;
};

static unsigned items_before(const struct spread *s, struct range items, unsigned pu)
{
	while (items.lo < items.hi && s->pu[items.lo] < pu)
		items.lo++;
	return items.lo;
}

/* What each child has put in order, one of each in turn. */
static void interleave(const struct spread *s, unsigned part, struct range items)
{
	const struct part *all = s->p->part;
	unsigned put = items.lo;

	memcpy(s->scratch + items.lo, s->order + items.lo, range_size(items) * sizeof(*s->order));
	for (unsigned round = 0; put < items.hi; round++) {
		unsigned lo = items.lo;

		for (unsigned c = part + 1; c < all[part].next; c = all[c].next) {
			unsigned hi = items_before(s, (struct range){ lo, items.hi }, all[c].pus.hi);

			if (lo + round < hi)
				s->order[put++] = s->scratch[lo + round];
			lo = hi;
		}
	}
}

static void spread(const struct spread *s, unsigned part, struct range items)
{
	const struct part *all = s->p->part;
	unsigned lo = items.lo;

	if (range_size(items) < 2) {
		for (; lo < items.hi; lo++)
			s->order[lo] = lo;
		return;
	}
	for (unsigned c = part + 1; c < all[part].next; c = all[c].next) {
		unsigned hi = items_before(s, (struct range){ lo, items.hi }, all[c].pus.hi);

		spread(s, c, (struct range){ lo, hi });
		lo = hi;
	}
	interleave(s, part, items);
}

int parts_spread(const struct parts *p, const unsigned *pu, unsigned n, unsigned *order, struct err *e)
{
	struct spread s = { p, pu, order, calloc(n + 1, sizeof(*order)) };

	if (!s.scratch)
		return err_set(e, "out of memory");
	spread(&s, 0, (struct range){ 0, n });
	free(s.scratch);
	return 0;
}

struct range range_share(unsigned n, unsigned k, unsigned i)
{
	unsigned each = n / k, more = n % k;

	if (n >= k)
		return (struct range){ i * each + (i < more ? i : more), (i + 1) * each + (i + 1 < more ? i + 1 : more) };
	each = k / n, more = k % n;
	i = i < more * (each + 1) ? i / (each + 1) : more + (i - more * (each + 1)) / each;
	return (struct range){ i, i + 1 };
}
