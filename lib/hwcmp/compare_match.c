/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/order.h"
#include "hwcmp/compare_parts.h"

#include <fnmatch.h>

/* "0207 [15b3:101b] [119f:1bc5] 00": class, vendor and device, without which it is another card. */
#define PCI_CARD 16

size_t compare_tree_end(const struct tree *t, size_t object)
{
	size_t end = object + 1;

	while (end < t->n && t->objects[end].depth > t->objects[object].depth)
		end++;
	return end;
}

hwloc_bitmap_t compare_set_parse(const char *text)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	if (set && text)
		hwloc_bitmap_sscanf(set, text);
	return set;
}

const char *compare_match_exporter(const struct tree *t)
{
	const char *version = tree_info(&t->objects[0], "hwlocVersion");

	return version ? version : "";
}

/* Infos that hwloc 3 writes elsewhere or no longer, or that change with it. */
static const char *const replaced[] = { "hwlocVersion", "Backend", "Inclusive", "MemoryTier*", "XGMIPeers", "pages *" };

bool compare_match_by_format(const struct compare_match *m, const char *name, const char *from, const char *to)
{
	if (m->newer < 0)
		return false;
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		if (!fnmatch(replaced[i], name, 0))
			return true;
	return !*(m->newer ? from : to);
}

static bool is_free(const struct compare_side *s, size_t object)
{
	return s->partner[object] < 0;
}

static void objects_pair(struct compare_match *m, size_t a, size_t b)
{
	m->side[0].partner[a] = b;
	m->side[1].partner[b] = a;
}

static void objects_part(struct compare_match *m, size_t a)
{
	m->side[1].partner[m->side[0].partner[a]] = -1;
	m->side[0].partner[a] = -1;
}

static bool same_package(const struct compare_match *m, size_t a, size_t b)
{
	const struct compare_side *s = m->side;

	return s[0].partner[s[0].package[a]] == s[1].package[b];
}

/* --- by names --- */

struct key {
	const char *text;
	size_t at;		/* in the text, while keys are added */
	size_t object;
};

struct keys {
	struct key *list;
	size_t n;
	struct buf text;
};

/* What objects are matched by, in one round of matching each. */
enum key_kind { BY_PU, BY_LABEL, BY_PCI_AND_NAME, BY_PCI_AND_SUBTYPE, BY_DEVICE };

static const char *attr_or(const struct compare_side *s, size_t object, const char *name)
{
	const char *value = tree_attr(&s->t->objects[object], name);

	return value ? value : "";
}

/* The key of an object of this side; false if it does not take part. */
static bool key_write(const struct compare_match *m, int side, size_t object, enum key_kind kind, struct buf *out)
{
	const struct compare_side *s = &m->side[side];
	const struct tree_object *o = &s->t->objects[object];
	bool is_device = compare_tree_is(s->t, object, "OSDev");
	long plug = o->parent;

	switch (kind) {
	case BY_PU:
		buf_printf(out, "%ld", o->os_index);
		return compare_tree_is(s->t, object, "PU") && o->os_index >= 0;
	case BY_LABEL:
		if (is_device || o->type->family == FAMILY_TREE)
			return false;
		tree_label(s->t, object, out);
		if (compare_tree_is(s->t, object, "PCIDev"))
			buf_printf(out, " %.*s", PCI_CARD, attr_or(s, object, "pci_type"));
		return true;
	case BY_DEVICE:
		buf_printf(out, "%s %s", attr_or(s, object, "osdev_type"), attr_or(s, object, "name"));
		return is_device;
	default:	/* by its PCI device, if that is matched: in the numbering of side 0 */
		if (!is_device || s->partner[plug] < 0 || !compare_tree_is(s->t, plug, "PCIDev"))
			return false;
		buf_printf(out, "%ld %s %s", side ? s->partner[plug] : plug, attr_or(s, object, "osdev_type"),
			   attr_or(s, object, kind == BY_PCI_AND_NAME ? "name" : "subtype"));
		return true;
	}
}

ORDER(key_order, struct key, strcmp(x->text, y->text) ?: COMPARE(x->object, y->object))

static int keys_make(const struct compare_match *m, int side, enum key_kind kind, struct keys *k)
{
	const struct compare_side *s = &m->side[side];

	if (!(k->list = calloc(s->t->n, sizeof(*k->list))))
		return -1;
	for (size_t i = 1; i < s->t->n; i++) {
		size_t at = k->text.len;

		if (!is_free(s, i) || !key_write(m, side, i, kind, &k->text)) {
			k->text.len = at;
			continue;
		}
		buf_add(&k->text, "", 1);
		k->list[k->n++] = (struct key){ .at = at, .object = i };
	}
	if (k->text.failed)
		return -1;
	for (size_t i = 0; i < k->n; i++)
		k->list[i].text = k->text.data + k->list[i].at;
	qsort(k->list, k->n, sizeof(*k->list), key_order);
	return 0;
}

/* Objects with the same key are matched in order. */
static int pair_named(struct compare_match *m, enum key_kind kind)
{
	struct keys k[2] = {0};
	size_t a = 0, b = 0;
	int rc = keys_make(m, 0, kind, &k[0]) || keys_make(m, 1, kind, &k[1]) ? -1 : 0;

	while (!rc && a < k[0].n && b < k[1].n) {
		int order = strcmp(k[0].list[a].text, k[1].list[b].text);

		if (!order)
			objects_pair(m, k[0].list[a].object, k[1].list[b].object);
		a += order <= 0;
		b += order >= 0;
	}
	for (int i = 0; i < 2; i++) {
		free(k[i].list);
		buf_free(&k[i].text);
	}
	return rc;
}

/* --- by contents --- */

/* From all matched objects of a type towards the root: matches unmatched ancestors of this type, or of any if NULL. */
static void pair_around(struct compare_match *m, const char *of, const char *type)
{
	const struct tree_object *x = m->side[0].t->objects, *y = m->side[1].t->objects;

	for (size_t a = 0; a < m->side[0].t->n; a++) {
		int b = m->side[0].partner[a];

		for (long i = b >= 0 && compare_tree_is(m->side[0].t, a,
							of) ? x[a].parent : 0; i > 0; i = x[i].parent) {
			long j = y[b].parent;

			if (!is_free(&m->side[0], i) || (type && strcmp(x[i].type->name, type)) ||
			    (!type && !same_package(m, i, b)))
				continue;
			while (j > 0 && (x[i].type != y[j].type || !is_free(&m->side[1], j)))
				j = y[j].parent;
			if (j > 0)
				objects_pair(m, i, j);
		}
	}
}

/* --- the rest --- */

struct rest {
	const struct xml_type *type;
	int package;		/* in side 0 */
	size_t object;
};

ORDER(rest_order, struct rest, COMPARE(x->type, y->type) ?: COMPARE(x->package, y->package) ?:
      COMPARE(x->object, y->object))

/* In order, those of a type in a package; only: of this type alone, anywhere. */
static int pair_rest(struct compare_match *m, const char *only)
{
	struct rest *list[2] = { calloc(m->side[0].t->n, sizeof(**list)), calloc(m->side[1].t->n, sizeof(**list)) };
	size_t n[2] = {0}, at[2] = {0};

	if (!list[0] || !list[1]) {
		free(list[0]);
		free(list[1]);
		return -1;
	}
	for (int which = 0; which < 2; which++) {
		const struct compare_side *s = &m->side[which];

		for (size_t i = 1; i < s->t->n; i++) {
			const struct xml_type *type = s->t->objects[i].type;
			int package = only ? 0 : which ? s->partner[s->package[i]] : s->package[i];

			if (is_free(s, i) && !s->offline[i] && type->family <= FAMILY_MEMORY && package >= 0 &&
			    (!only || !strcmp(type->name, only)))
				list[which][n[which]++] = (struct rest){ type, package, i };
		}
		qsort(list[which], n[which], sizeof(**list), rest_order);
	}
	while (at[0] < n[0] && at[1] < n[1]) {
		const struct rest *a = &list[0][at[0]], *b = &list[1][at[1]];
		int rc = rest_order(&(struct rest){ a->type, a->package, 0 }, &(struct rest){ b->type, b->package, 0 });

		if (rc == 0)
			objects_pair(m, a->object, b->object);
		at[0] += rc <= 0;
		at[1] += rc >= 0;
	}
	free(list[0]);
	free(list[1]);
	return 0;
}

/*
 * OS devices matched by name alone: either their card was moved, or it is another card, and then they do not match
 * either.
 */
static void follow_names(struct compare_match *m)
{
	struct compare_side *s = &m->side[0], *o = &m->side[1];

	for (size_t i = 0; i < s->t->n; i++) {
		long a = s->t->objects[i].parent, b;

		if (is_free(s, i) || !compare_tree_is(s->t, i, "OSDev"))
			continue;
		b = o->t->objects[s->partner[i]].parent;
		if (s->partner[a] == b || (!compare_tree_is(s->t, a, "PCIDev") && !compare_tree_is(o->t, b, "PCIDev")))
			continue;
		if (is_free(s, a) && is_free(o, b) && compare_tree_is(s->t, a, "PCIDev") &&
		    compare_tree_is(o->t, b, "PCIDev") &&
		    !strncmp(attr_or(s, a, "pci_type"), attr_or(o, b, "pci_type"), PCI_CARD))
			objects_pair(m, a, b);
		else
			objects_part(m, i);
	}
}

/* --- all steps --- */

struct census {
	unsigned pus, paired, offline;
};

/* Sets vacant and offline from the matched PUs. Children come after their parents. */
static int side_survey(struct compare_side *s, const struct tree_object *other_root)
{
	struct census *list = calloc(s->t->n, sizeof(*list));
	hwloc_bitmap_t all = compare_set_parse(tree_attr(other_root, "complete_cpuset"));
	hwloc_bitmap_t usable = compare_set_parse(tree_attr(other_root, "cpuset"));
	int rc = list && all && usable ? 0 : -1;

	for (size_t i = s->t->n; rc == 0 && i-- > 0;) {
		const struct tree_object *o = &s->t->objects[i];
		struct census *own = &list[i];

		if (compare_tree_is(s->t, i, "PU")) {
			own->pus = 1;
			own->paired = !is_free(s, i);
			own->offline = !own->paired && o->os_index >= 0 && hwloc_bitmap_isset(all, o->os_index) &&
				!hwloc_bitmap_isset(usable, o->os_index);
		}
		s->vacant[i] = o->type->family == FAMILY_TREE && !own->paired;
		s->offline[i] = own->pus && own->offline == own->pus;
		if (i && o->type->family == FAMILY_TREE) {
			list[o->parent].pus += own->pus;
			list[o->parent].paired += own->paired;
			list[o->parent].offline += own->offline;
		}
	}
	free(list);
	hwloc_bitmap_free(all);
	hwloc_bitmap_free(usable);
	return rc;
}

static int side_make(struct compare_side *s, const struct tree *t)
{
	s->t = t;
	s->partner = malloc(t->n * sizeof(*s->partner));
	s->package = calloc(t->n, sizeof(*s->package));
	s->vacant = malloc(t->n * sizeof(*s->vacant));
	s->offline = malloc(t->n * sizeof(*s->offline));
	if (!s->partner || !s->package || !s->vacant || !s->offline)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		s->partner[i] = -1;
		if (compare_tree_is(t, i, "Package"))
			s->package[i] = i;
		else if (i)
			s->package[i] = s->package[t->objects[i].parent];
	}
	return 0;
}

static int match_survey(struct compare_match *m)
{
	return side_survey(&m->side[0], &m->side[1].t->objects[0]) ||
	       side_survey(&m->side[1], &m->side[0].t->objects[0]) ? -1 : 0;
}

int compare_match_make(const struct tree *a, const struct tree *b, struct compare_match *out)
{
	/* A later hwloc reports more, and a later format has more of it. */
	long x = strtol(a->version, NULL, 10) + strtol(compare_match_exporter(a), NULL, 10);
	long y = strtol(b->version, NULL, 10) + strtol(compare_match_exporter(b), NULL, 10);
	struct compare_match m = { .newer = x == y ? -1 : y > x };
	const struct compare_side *s = &m.side[0];
	int rc = side_make(&m.side[0], a) || side_make(&m.side[1], b) ? -1 : 0;

	if (!rc) {
		objects_pair(&m, 0, 0);
		rc = pair_named(&m, BY_PU) || match_survey(&m) ? -1 : 0;
	}
	if (!rc) {
		pair_around(&m, "PU", "Package");
		rc = pair_rest(&m, "Package");
	}
	if (!rc) {
		/* A PU in another package is not the same PU. */
		for (size_t i = 0; i < a->n; i++)
			if (compare_tree_is(a, i, "PU") && !is_free(s, i) && !same_package(&m, i, s->partner[i]))
				objects_part(&m, i);
		pair_around(&m, "PU", NULL);
		rc = pair_named(&m, BY_LABEL) || pair_named(&m, BY_PCI_AND_NAME) ||
			pair_named(&m, BY_PCI_AND_SUBTYPE) || pair_named(&m, BY_DEVICE) ? -1 : 0;
	}
	if (!rc) {
		follow_names(&m);
		rc = pair_named(&m, BY_PCI_AND_NAME) || pair_named(&m, BY_PCI_AND_SUBTYPE) ? -1 : 0;
	}
	if (!rc) {
		pair_around(&m, "PCIDev", "Bridge");
		pair_around(&m, "NUMANode", "MemCache");
		rc = pair_rest(&m, NULL) || match_survey(&m) ? -1 : 0;
	}
	if (rc)
		compare_match_free(&m);
	else
		*out = m;
	return rc;
}

void compare_match_free(struct compare_match *m)
{
	for (int i = 0; i < 2; i++) {
		free(m->side[i].partner);
		free(m->side[i].package);
		free(m->side[i].vacant);
		free(m->side[i].offline);
	}
	*m = (struct compare_match){0};
}
