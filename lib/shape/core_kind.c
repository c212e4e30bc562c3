/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/core_kind.h"

#include <stdlib.h>
#include <string.h>

#include "hwxml/xml_set.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FACTS_MAX 64u

/* A measure of a kind, greater for faster cores; -1: not known. */
typedef long measure_fn(const struct core_kind_facts *f);

static long by_type(const struct core_kind_facts *f)
{
	static const char *const types[] = { "IntelAtom", "IntelCore" };

	for (size_t i = 0; f->type && i < COUNT(types); i++)
		if (!strcmp(f->type, types[i]))
			return 2 * (i + 1);
	return -1;
}

static long by_capacity(const struct core_kind_facts *f)
{
	return f->capacity ? strtol(f->capacity, NULL, 10) : -1;
}

static long by_efficiency(const struct core_kind_facts *f)
{
	return f->frequency && !f->type ? -1 : f->efficiency;
}

static const struct {
	measure_fn *measure;
	unsigned slack;		/* differences of less than one in so many do not count; 0: all count */
} criteria[] = {
	{ by_type, 0 }, { by_capacity, 10 }, { by_efficiency, 0 },
};

/* The least measure above the last by more than the slack, or -1. */
static long next_above(const long *measure, unsigned n, long last, unsigned slack)
{
	long next = -1, above = last < 0 ? -1 : slack ? last + last / slack : last;

	for (unsigned i = 0; i < n; i++)
		if (measure[i] > above && (next < 0 || measure[i] < next))
			next = measure[i];
	return next;
}

static unsigned rank_by(const long *measure, unsigned n, unsigned slack, unsigned char *kinds)
{
	unsigned kind = 0;
	long from = next_above(measure, n, -1, slack);

	memset(kinds, 0, n);
	while (kind + 1 < CORE_KINDS_MAX && (from = next_above(measure, n, from, slack)) >= 0) {
		kind++;
		for (unsigned i = 0; i < n; i++)
			if (measure[i] >= from)
				kinds[i] = kind;
	}
	return kind + 1;
}

unsigned core_kinds_rank(const struct core_kind_facts *facts, unsigned n, unsigned char *kinds)
{
	long measure[FACTS_MAX];

	memset(kinds, 0, n);
	if (n > FACTS_MAX)
		return 1;
	for (size_t c = 0; c < COUNT(criteria); c++) {
		unsigned known = 0;

		for (unsigned i = 0; i < n; i++)
			known += (measure[i] = criteria[c].measure(&facts[i])) >= 0;
		if (n && known == n)
			return rank_by(measure, n, criteria[c].slack, kinds);
	}
	return 1;
}

/* --- of a tree --- */

struct kind_list {
	struct core_kind_facts facts[FACTS_MAX];
	struct xml_set pus[FACTS_MAX];
	unsigned char kinds[FACTS_MAX];
	unsigned n;
	bool failed;
};

static void info_read(struct core_kind_facts *f, const char *name, const char *value)
{
	if (!name || !value)
		return;
	if (!strcmp(name, "CoreType"))
		f->type = value;
	else if (!strcmp(name, "LinuxCapacity"))
		f->capacity = value;
	else if (!strncmp(name, "Frequency", strlen("Frequency")))
		f->frequency = true;
}

/* The infos of a kind follow it. */
static void list_read(const struct tree *t, struct kind_list *l)
{
	bool inside = false;

	for (size_t i = 0; i < t->nextras && !l->failed; i++) {
		const struct tree_extra *x = &t->extras[i];
		const char *efficiency = tree_extra_attr(x, "forced_efficiency");

		if (inside && x->element->tag == TAG_INFO) {
			info_read(&l->facts[l->n - 1], tree_extra_attr(x, "name"), tree_extra_attr(x, "value"));
			continue;
		}
		inside = x->element->tag == TAG_CPUKIND && l->n < FACTS_MAX;
		if (!inside)
			continue;
		l->facts[l->n].efficiency = efficiency ? strtol(efficiency, NULL, 10) : -1;
		l->failed = xml_set_parse(tree_extra_attr(x, "cpuset"), &l->pus[l->n++]);
	}
}

/* The number of hwloc's kind that has the PU, or -1. */
static long kind_of_pu(const struct kind_list *l, long pu)
{
	for (unsigned i = 0; i < l->n; i++)
		if (xml_set_has(&l->pus[i], pu))
			return i;
	return -1;
}

/* A core is of the kind of its first PU. */
static bool cores_mark(const struct tree *t, const struct tree_extent *s, const struct kind_list *l,
		       unsigned char *kinds)
{
	for (size_t i = t->n; i-- > 0;) {
		long core = s[i].core, kind;

		if (!tree_object_is(t, i, "PU"))
			continue;
		if ((kind = kind_of_pu(l, t->objects[i].os_index)) < 0)
			return false;
		kinds[core] = l->kinds[kind];
	}
	return true;
}

unsigned char *core_kinds_find(const struct tree *t, const struct tree_extent *extents)
{
	struct kind_list *l = calloc(1, sizeof(*l));
	unsigned char *kinds = calloc(t->n, sizeof(*kinds));

	if (l)
		list_read(t, l);
	if (l && kinds && core_kinds_rank(l->facts, l->n, l->kinds) > 1 && !cores_mark(t, extents, l, kinds))
		memset(kinds, 0, t->n);
	if (!l || l->failed) {
		free(kinds);
		kinds = NULL;
	}
	for (unsigned i = 0; l && i < l->n; i++)
		xml_set_free(&l->pus[i]);
	free(l);
	return kinds;
}
