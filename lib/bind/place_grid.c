/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/place_grid.h"

#include "bind/place.h"
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

struct pu_range *pu_tree_domains(const struct pu_tree *p, const char *level, unsigned *n, struct err *e)
{
	struct pu_range *domain = calloc(p->npus, sizeof(*domain));
	unsigned *innermost = calloc(p->npus, sizeof(*innermost));
	struct tree_level l = {0};
	bool found = false;

	if (!domain || !innermost) {
		err_set(e, "out of memory");
		goto error;
	}
	/* In preorder later objects are further in. */
	for (unsigned i = hwloc_type_sscanf(level, &l.type, &l.attr, sizeof(l.attr)) ? p->n : 0; i < p->n; i++)
		if (is_at_level(p->object[i].obj, &l)) {
			found = true;
			for (unsigned pu = p->object[i].pus.lo; pu < p->object[i].pus.hi; pu++)
				innermost[pu] = i + 1;
		}
	if (!found) {
		err_set(e, "level '%s' does not exist within the step's cores", level);
		goto error;
	}
	*n = 0;
	for (unsigned pu = 0; pu < p->npus; pu++) {
		if (!pu || innermost[pu] != innermost[pu - 1])
			domain[(*n)++].lo = pu;
		domain[*n - 1].hi = pu + 1;
	}
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

static void spread_items(const struct spread_order *s, unsigned object, struct pu_range items)
{
	const struct pu_tree_object *all = s->p->object;
	unsigned lo = items.lo, next = items.lo;

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
	/* Merge the ordered items of the children, one of each in turn. */
	memcpy(s->scratch + items.lo, s->order + items.lo, pu_range_size(items) * sizeof(*s->order));
	for (unsigned round = 0; next < items.hi; round++) {
		lo = items.lo;
		for (unsigned c = object + 1; c < all[object].next; c = all[c].next) {
			unsigned hi = items_before(s, (struct pu_range){ lo, items.hi }, all[c].pus.hi);

			if (lo + round < hi)
				s->order[next++] = s->scratch[lo + round];
			lo = hi;
		}
	}
}

/*
 * Order items 0 .. n-1, which are at these PUs in ascending order, so that each is as far in the tree from its
 * predecessors as possible. 0, or -1: memory.
 */
static int pu_tree_spread(const struct pu_tree *p, const unsigned *pu, unsigned n, unsigned *order, struct err *e)
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
	unsigned threads = 1, n, domain = 0;

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
	n = ntasks < h->nunits ? ntasks : h->nunits;
	clear_slots(h);
	for (unsigned i = 0; i < n; i++) {
		struct pu_range share = pu_range_share(h->nunits, n, i);

		while (h->unit[share.lo].lo >= h->domain[domain].hi)
			domain++;
		add_slot(h, share.lo, share.hi - 1, domain, false);
	}
}

static int before(const void *one, const void *other)
{
	const struct place_slot *a = one, *b = other;

	return COMPARE(a->crosses, b->crosses) ?: COMPARE(a->round, b->round) ?:
	       COMPARE(a->domain, b->domain) ?: COMPARE(a->first, b->first);
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

static int order_scatter(struct place_layout *h, bool far, unsigned *pu, unsigned *order, struct err *e)
{
	unsigned n;

	/* Tree order: slots that cross a boundary were not made in it. */
	qsort(h->slot, h->nslots, sizeof(*h->slot), before);
	for (unsigned from = 0; from < h->nslots; from += n) {
		const struct place_slot *s = &h->slot[from];

		for (n = 1; from + n < h->nslots && s[n].domain == s->domain && s[n].crosses == s->crosses;)
			n++;
		if (number_rounds(h, from, n, far || h->slot[from].crosses, pu, order, e))
			return -1;
	}
	for (unsigned d = 0; d < h->ndomains; d++)
		pu[d] = h->domain[d].lo;
	if (pu_tree_spread(h->p, pu, h->ndomains, order, e))
		return -1;
	for (unsigned d = 0; d < h->ndomains; d++)
		pu[order[d]] = d;
	for (unsigned i = 0; i < h->nslots; i++)
		h->slot[i].domain = pu[h->slot[i].domain];
	qsort(h->slot, h->nslots, sizeof(*h->slot), before);
	return 0;
}

static void assign_task(const struct place_layout *h, const struct place_slot *s, hwloc_bitmap_t mask)
{
	for (unsigned g = s->first; g <= s->last; g++)
		for (unsigned pu = h->unit[g].lo; h->slot_of[g] == s->id && pu < h->unit[g].hi; pu++)
			hwloc_bitmap_or(mask, mask, h->p->pu[pu]->cpuset);
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
	/* compact without a level has a single domain. */
	if (!(h->domain = pu_tree_domains(p, *r->level ? r->level : r->place == PLACE_COMPACT ? "machine" : "numa",
					  &h->ndomains, e)))
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
	unsigned room = p->npus + 1, *scratch;
	bool compact = r->place == PLACE_COMPACT;
	struct place_layout h;
	int rc = 0;

	if (layout_new(&h, p, r, e))
		return -1;
	if (!(scratch = calloc(2 * room, sizeof(*scratch)))) {
		layout_free(&h);
		return err_set(e, "out of memory");
	}
	choose_layout(&h, ntasks, cpus);
	if (compact) {
		/* Drop the surplus, the last made first, and sort in tree order. */
		h.nslots = h.nslots > ntasks ? ntasks : h.nslots;
		for (unsigned i = 0; i < h.nslots; i++)
			h.slot[i].crosses = false, h.slot[i].domain = 0;
		qsort(h.slot, h.nslots, sizeof(*h.slot), before);
	} else {
		rc = order_scatter(&h, !*r->level, scratch, scratch + room, e);
	}
	for (unsigned i = 0; !rc && i < ntasks; i++)
		assign_task(&h, &h.slot[compact ? pu_range_share(h.nslots, ntasks, i).lo : i % h.nslots], masks[i]);
	free(scratch);
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
