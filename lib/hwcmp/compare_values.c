/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwcmp/compare_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum how { AS_VALUE, AS_SIZE, AS_MEMORY, AS_SPEED };

static const struct attr_rule {
	const char *types;	/* prefix; empty for all */
	const char *attr, *what;
	enum how how;
	enum severity severity;
} attr_rules[] = {
	{ "NUMANode", "local_memory", "memory", AS_MEMORY, SEVERITY_CAPACITY },
	{ "", "cache_size", "size", AS_SIZE, SEVERITY_CAPACITY },
	{ "", "cache_linesize", "line size", AS_VALUE, SEVERITY_WIRING },
	{ "", "cache_associativity", "associativity", AS_VALUE, SEVERITY_WIRING },
	{ "", "cache_type", "cache type", AS_VALUE, SEVERITY_WIRING },
	{ "Package", "os_index", "OS index", AS_VALUE, SEVERITY_WIRING },
	{ "Die", "os_index", "OS index", AS_VALUE, SEVERITY_WIRING },
	{ "NUMANode", "os_index", "OS index", AS_VALUE, SEVERITY_WIRING },
	{ "PCIDev", "pci_link_speed", "link speed", AS_SPEED, SEVERITY_WIRING },
	{ "PCIDev", "pci_type", "card", AS_VALUE, SEVERITY_COSMETIC },
	{ "OSDev", "name", "name", AS_VALUE, SEVERITY_WIRING },
	{ "OSDev", "osdev_type", "type", AS_VALUE, SEVERITY_WIRING },
	{ "", "subtype", "subtype", AS_VALUE, SEVERITY_WIRING },
	{ "Group", "name", "name", AS_VALUE, SEVERITY_COSMETIC },
	{ "Misc", "name", "name", AS_VALUE, SEVERITY_COSMETIC },
};

static void speed_tail(const char *what, const char *from, const char *to, struct buf *tail)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "%.2f", strtod(from, NULL));
	snprintf(b, sizeof(b), "%.2f", strtod(to, NULL));
	if (strcmp(a, b))
		buf_printf(tail, ": %s %s -> %s GB/s", what, a, b);
	else
		buf_printf(tail, ": %s %s -> %s GB/s", what, from, to);
}

static void attr_tail(const struct attr_rule *rule, const char *from, const char *to, struct buf *tail)
{
	unsigned long long x = strtoull(from, NULL, 10), y = strtoull(to, NULL, 10);

	switch (rule->how) {
	case AS_SIZE:
		compare_size_tail(rule->what, x, y, tail);
		break;
	case AS_MEMORY:
		compare_memory_tail(x, y, tail);
		break;
	case AS_SPEED:
		speed_tail(rule->what, from, to, tail);
		break;
	default:
		compare_value_tail(rule->what, from, to, tail);
	}
}

/* A graphics card slows its link down while idle (PCI base class 03). */
static bool is_display(const struct tree_object *o)
{
	const char *type = tree_attr(o, "pci_type");

	return type && !strncmp(type, "03", 2);
}

static enum severity attr_severity(const struct attr_rule *rule, const struct tree_object *o, const char *from,
				   const char *to)
{
	if (rule->how == AS_SPEED && is_display(o))
		return SEVERITY_COSMETIC;
	if (rule->how == AS_MEMORY)
		return compare_fact_severity("memory", from, to);
	return rule->severity;
}

static void compare_attr(struct comparison *c, const struct attr_rule *rule, size_t a, size_t b)
{
	const struct tree *s = c->m.side[0].t, *t = c->m.side[1].t;
	const char *x = tree_attr(&s->objects[a], rule->attr), *y = tree_attr(&t->objects[b], rule->attr);
	enum severity severity;
	struct buf tail = {0};

	x = x ? x : "";
	y = y ? y : "";
	if (!strcmp(x, y))
		return;
	severity = attr_severity(rule, &s->objects[a], x, y);
	attr_tail(rule, x, y, &tail);
	comparison_remark(c, s, a, severity,
			  severity == SEVERITY_CAPACITY ? compare_value_direction(x, y) : CHANGE_CHANGED, rule->what, x,
			  y, &tail);
}

static bool rule_fits(const struct attr_rule *rule, const struct tree_object *o)
{
	return !strncmp(o->type->name, rule->types, strlen(rule->types));
}

static bool same_pairs(const struct tree_pair *x, size_t nx, const struct tree_pair *y, size_t ny)
{
	if (nx != ny)
		return false;
	for (size_t i = 0; i < nx; i++)
		if (strcmp(x[i].name, y[i].name) || strcmp(x[i].value, y[i].value))
			return false;
	return true;
}

static int by_name(const void *x, const void *y)
{
	const struct tree_pair *const *a = x, *const *b = y;
	int rc = strcmp((*a)->name, (*b)->name);

	return rc ? rc : (*a > *b) - (*a < *b);
}

static const struct tree_pair **pairs_sorted(const struct tree_object *o)
{
	const struct tree_pair **list = calloc(o->ninfos + 1, sizeof(*list));

	for (size_t i = 0; list && i < o->ninfos; i++)
		list[i] = &o->infos[i];
	if (list)
		qsort(list, o->ninfos, sizeof(*list), by_name);
	return list;
}

static void info_remark(struct comparison *c, size_t a, const char *name, const char *from, const char *to)
{
	const struct tree *t = c->m.side[0].t;
	struct buf tail = {0};

	if (compare_fact_equal(from, to) || compare_match_by_format(&c->m, name, from, to))
		return;
	compare_fact_tail(name, from, to, &tail);
	comparison_remark(c, t, a, compare_fact_severity(name, from, to), compare_fact_direction(name, from, to), name,
			  from, to, &tail);
}

/* Several infos of a name are compared in order. */
static void compare_infos(struct comparison *c, size_t a, size_t b)
{
	const struct tree_object *x = &c->m.side[0].t->objects[a], *y = &c->m.side[1].t->objects[b];
	const struct tree_pair **p, **q;

	if (same_pairs(x->infos, x->ninfos, y->infos, y->ninfos))
		return;
	p = pairs_sorted(x);
	q = pairs_sorted(y);
	c->r.failed |= !p || !q;
	for (size_t i = 0, j = 0; p && q && (i < x->ninfos || j < y->ninfos);) {
		int rc = i == x->ninfos ? 1 : j == y->ninfos ? -1 : strcmp(p[i]->name, q[j]->name);

		info_remark(c, a, rc <= 0 ? p[i]->name : q[j]->name, rc <= 0 ? p[i]->value : "",
			    rc >= 0 ? q[j]->value : "");
		i += rc <= 0;
		j += rc >= 0;
	}
	free(p);
	free(q);
}

static const struct allowed {
	const char *all, *allowed, *what;
} allowed[] = {
	{ "cpuset", "allowed_cpuset", "allowed PUs" },
	{ "nodeset", "allowed_nodeset", "allowed NUMA nodes" },
};

/* Caused by a cgroup of the exporting process, for example. If the complete set changed, that is reported. */
static void compare_allowed_set(struct comparison *c, const struct allowed *is)
{
	const struct tree_object *x = &c->m.side[0].t->objects[0], *y = &c->m.side[1].t->objects[0];
	const char *from = tree_attr(x, is->allowed), *to = tree_attr(y, is->allowed);
	const char *all = tree_attr(x, is->all), *all_to = tree_attr(y, is->all);
	hwloc_bitmap_t a, b;
	struct buf tail = {0};
	int before, after;	/* -1: endless, in a document that no hwloc wrote */

	if (!from || !to || !strcmp(from, to) || !all || !all_to || strcmp(all, all_to))
		return;
	a = compare_set_parse(from);
	b = compare_set_parse(to);
	before = a ? hwloc_bitmap_weight(a) : 0;
	after = b ? hwloc_bitmap_weight(b) : 0;
	if (!a || !b) {
		c->r.failed = true;
	} else if (before == after || before < 0 || after < 0) {
		compare_value_tail(is->what, from, to, &tail);
		comparison_remark(c, c->m.side[0].t, 0, SEVERITY_WIRING, CHANGE_CHANGED, is->what, from, to, &tail);
	} else {
		buf_printf(&tail, ": %s %d -> %d", is->what, before, after);
		comparison_remark(c, c->m.side[0].t, 0, SEVERITY_CAPACITY,
				  before > after ? CHANGE_GONE : CHANGE_EXTRA, is->what, from, to, &tail);
	}
	hwloc_bitmap_free(a);
	hwloc_bitmap_free(b);
}

void compare_allowed(struct comparison *c)
{
	for (size_t i = 0; i < COUNT(allowed); i++)
		compare_allowed_set(c, &allowed[i]);
}

void compare_values(struct comparison *c, size_t a, size_t b)
{
	const struct tree_object *o = &c->m.side[0].t->objects[a];

	for (size_t i = 0; i < COUNT(attr_rules); i++)
		if (rule_fits(&attr_rules[i], o))
			compare_attr(c, &attr_rules[i], a, b);
	compare_infos(c, a, b);
}
