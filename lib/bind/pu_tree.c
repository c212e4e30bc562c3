/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bind/place.h"
#include "bind/pu_tree.h"
#include "hwview/machine.h"

static unsigned objects_below(hwloc_obj_t o)
{
	unsigned n = 1;

	for (hwloc_obj_t c = o->first_child; c; c = c->next_sibling)
		n += objects_below(c);
	return n;
}

/* whole: of a core the first PU stands for all. */
static void add_object(struct pu_tree *p, hwloc_obj_t o, hwloc_obj_t core, hwloc_const_bitmap_t only, bool whole)
{
	unsigned self = p->n++, first = p->npus;
	hwloc_obj_t unit = whole && core ? core : o;

	if (o->type == HWLOC_OBJ_PU && (!only || hwloc_bitmap_isset(only, o->os_index)) &&
	    !(first && p->pu[first - 1] == unit)) {
		p->pu[p->npus++] = unit;
		if (!core)
			p->core[p->ncores++] = (struct pu_range){ first, p->npus };
	}
	for (hwloc_obj_t c = o->first_child; c; c = c->next_sibling)
		add_object(p, c, o->type == HWLOC_OBJ_CORE ? o : core, only, whole);
	if (first == p->npus) {
		p->n = self;
		return;
	}
	p->object[self] = (struct pu_tree_object){ o, { first, p->npus }, p->n };
	if (o->type == HWLOC_OBJ_CORE)
		p->core[p->ncores++] = p->object[self].pus;
}

int pu_tree_new(hwloc_topology_t t, hwloc_const_bitmap_t only, bool whole, struct pu_tree *out, struct err *e)
{
	hwloc_obj_t root = hwloc_get_root_obj(t);
	unsigned n = objects_below(root);
	struct pu_tree p = { .object = calloc(n, sizeof(*p.object)), .pu = calloc(n, sizeof(*p.pu)),
		.core = calloc(n, sizeof(*p.core)) };

	if (!p.object || !p.pu || !p.core) {
		pu_tree_free(&p);
		return err_set(e, "out of memory");
	}
	add_object(&p, root, NULL, only, whole);
	p.core_depth = hwloc_get_type_depth(t, machine_core_type(t));
	*out = p;
	return 0;
}

void pu_tree_free(struct pu_tree *p)
{
	free(p->object);
	free(p->pu);
	free(p->core);
}

struct tree_level {
	hwloc_obj_type_t type;
	union hwloc_obj_attr_u attr;
};

/* Memory objects are memory children of the objects they are local to. */
static bool is_at_level(hwloc_obj_t o, const struct tree_level *l)
{
	bool any_group = l->type != HWLOC_OBJ_GROUP || l->attr.group.depth == (unsigned) -1;

	if (o->type == l->type && (any_group || o->attr->group.depth == l->attr.group.depth))
		return true;
	for (hwloc_obj_t m = o->memory_first_child; m; m = m->next_sibling)
		if (is_at_level(m, l))
			return true;
	return false;
}

/* In preorder later objects are further in. */
static bool find_innermost(const struct pu_tree *p, const struct tree_level *l, unsigned *innermost)
{
	bool found = false;

	for (unsigned i = 0; i < p->n; i++) {
		if (!is_at_level(p->object[i].obj, l))
			continue;
		found = true;
		for (unsigned pu = p->object[i].pus.lo; pu < p->object[i].pus.hi; pu++)
			innermost[pu] = i + 1;
	}
	return found;
}

static unsigned split_domains(const unsigned *innermost, unsigned npus, struct pu_range *domain)
{
	unsigned n = 0;

	for (unsigned pu = 0; pu < npus; pu++) {
		if (!pu || innermost[pu] != innermost[pu - 1])
			domain[n++].lo = pu;
		domain[n - 1].hi = pu + 1;
	}
	return n;
}

struct pu_range *pu_tree_domains(const struct pu_tree *p, const char *level, unsigned *n, struct err *e)
{
	struct pu_range *domain = calloc(p->npus, sizeof(*domain));
	unsigned *innermost = calloc(p->npus, sizeof(*innermost));
	struct tree_level l = {0};

	if (!domain || !innermost) {
		err_set(e, "out of memory");
		goto error;
	}
	if (hwloc_type_sscanf(level, &l.type, &l.attr, sizeof(l.attr)) || !find_innermost(p, &l, innermost)) {
		err_set(e, "level '%s' does not exist within the step's cores", level);
		goto error;
	}
	*n = split_domains(innermost, p->npus, domain);
	free(innermost);
	return domain;
error:
	free(innermost);
	free(domain);
	return NULL;
}

struct spread_order {
	const struct pu_tree *p;
	const unsigned *pu;
	unsigned *order, *scratch;
};

static unsigned items_before(const struct spread_order *s, struct pu_range items, unsigned pu)
{
	while (items.lo < items.hi && s->pu[items.lo] < pu)
		items.lo++;
	return items.lo;
}

/* Merge the ordered items of the children, one of each in turn. */
static void interleave(const struct spread_order *s, unsigned object, struct pu_range items)
{
	const struct pu_tree_object *all = s->p->object;
	unsigned next = items.lo;

	memcpy(s->scratch + items.lo, s->order + items.lo, pu_range_size(items) * sizeof(*s->order));
	for (unsigned round = 0; next < items.hi; round++) {
		unsigned lo = items.lo;

		for (unsigned c = object + 1; c < all[object].next; c = all[c].next) {
			unsigned hi = items_before(s, (struct pu_range){ lo, items.hi }, all[c].pus.hi);

			if (lo + round < hi)
				s->order[next++] = s->scratch[lo + round];
			lo = hi;
		}
	}
}

static void spread_items(const struct spread_order *s, unsigned object, struct pu_range items)
{
	const struct pu_tree_object *all = s->p->object;
	unsigned lo = items.lo;

	if (pu_range_size(items) < 2) {
		for (; lo < items.hi; lo++)
			s->order[lo] = lo;
		return;
	}
	for (unsigned c = object + 1; c < all[object].next; c = all[c].next) {
		unsigned hi = items_before(s, (struct pu_range){ lo, items.hi }, all[c].pus.hi);

		spread_items(s, c, (struct pu_range){ lo, hi });
		lo = hi;
	}
	interleave(s, object, items);
}

int pu_tree_spread(const struct pu_tree *p, const unsigned *pu, unsigned n, unsigned *order, struct err *e)
{
	struct spread_order s = { p, pu, order, calloc(n + 1, sizeof(*order)) };

	if (!s.scratch)
		return err_set(e, "out of memory");
	spread_items(&s, 0, (struct pu_range){ 0, n });
	free(s.scratch);
	return 0;
}

struct pu_range pu_range_share(unsigned n, unsigned k, unsigned i)
{
	unsigned each = n / k, more = n % k;

	if (n >= k)
		return (struct pu_range){ i * each + (i < more ? i : more),
		       (i + 1) * each + (i + 1 < more ? i + 1 : more) };
	each = k / n, more = k % n;
	i = i < more * (each + 1) ? i / (each + 1) : more + (i - more * (each + 1)) / each;
	return (struct pu_range){ i, i + 1 };
}
