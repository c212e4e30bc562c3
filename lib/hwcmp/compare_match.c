/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/compare_parts.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

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

/* A later hwloc reports more, and a later format has more of it. */
static long exporter_rank(const struct tree *t)
{
	return strtol(t->version, NULL, 10) + strtol(compare_match_exporter(t), NULL, 10);
}

static int newer_find(const struct tree *s, const struct tree *t)
{
	long a = exporter_rank(s), b = exporter_rank(t);

	return a == b ? -1 : b > a;
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

/* The key of an object of this side in one round of matching; false if it does not take part. */
typedef bool key_text(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out);

static bool key_pu(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out)
{
	(void)m;
	buf_printf(out, "%ld", s->t->objects[object].os_index);
	return compare_tree_is(s->t, object, "PU") && s->t->objects[object].os_index >= 0;
}

static const char *attr_or(const struct compare_side *s, size_t object, const char *name)
{
	const char *value = tree_attr(&s->t->objects[object], name);

	return value ? value : "";
}

static bool key_fixed(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out)
{
	const struct tree_object *o = &s->t->objects[object];

	(void)m;
	if (compare_tree_is(s->t, object, "OSDev") || o->type->family == FAMILY_TREE)
		return false;
	tree_label(s->t, object, out);
	if (compare_tree_is(s->t, object, "PCIDev"))
		buf_printf(out, " %.*s", PCI_CARD, attr_or(s, object, "pci_type"));
	return true;
}

/* An OS device by its PCI device, if that is matched: in the numbering of side 0. */
static bool key_plug(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out)
{
	long plug = s->t->objects[object].parent;

	if (!compare_tree_is(s->t, object, "OSDev") || s->partner[plug] < 0 || !compare_tree_is(s->t, plug, "PCIDev"))
		return false;
	buf_printf(out, "%ld %s ", s == &m->side[0] ? plug : s->partner[plug], attr_or(s, object, "osdev_type"));
	return true;
}

static bool key_plugged(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out)
{
	bool is = key_plug(s, m, object, out);

	buf_puts(out, attr_or(s, object, "name"));
	return is;
}

static bool key_renamed(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out)
{
	bool is = key_plug(s, m, object, out);

	buf_puts(out, attr_or(s, object, "subtype"));
	return is;
}

static bool key_device(const struct compare_side *s, const struct compare_match *m, size_t object, struct buf *out)
{
	(void)m;
	buf_printf(out, "%s %s", attr_or(s, object, "osdev_type"), attr_or(s, object, "name"));
	return compare_tree_is(s->t, object, "OSDev");
}

static int key_order(const void *x, const void *y)
{
	const struct key *a = x, *b = y;
	int rc = strcmp(a->text, b->text);

	return rc ? rc : (a->object > b->object) - (a->object < b->object);
}

static int keys_make(const struct compare_side *s, const struct compare_match *m, key_text *text, struct keys *k)
{
	if (!(k->list = calloc(s->t->n, sizeof(*k->list))))
		return -1;
	for (size_t i = 1; i < s->t->n; i++) {
		size_t at = k->text.len;

		if (!is_free(s, i) || !text(s, m, i, &k->text)) {
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
static int pair_named(struct compare_match *m, key_text *text)
{
	struct keys k[2] = {0};
	size_t a = 0, b = 0;
	int rc = keys_make(&m->side[0], m, text, &k[0]) || keys_make(&m->side[1], m, text, &k[1]) ? -1 : 0;

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

/* From two matched objects towards the root: matches unmatched ancestors of this type, or of any if it is NULL. */
static void pair_around(struct compare_match *m, size_t a, size_t b, const char *type)
{
	const struct tree_object *x = m->side[0].t->objects, *y = m->side[1].t->objects;

	for (long i = x[a].parent; i > 0; i = x[i].parent) {
		if (!is_free(&m->side[0], i) || (type && strcmp(x[i].type->name, type)) ||
		    (!type && !same_package(m, i, b)))
			continue;
		for (long j = y[b].parent; j > 0; j = y[j].parent)
			if (x[i].type == y[j].type && is_free(&m->side[1], j)) {
				objects_pair(m, i, j);
				break;
			}
	}
}

static void pair_all_around(struct compare_match *m, const char *of, const char *type)
{
	const struct compare_side *s = &m->side[0];

	for (size_t i = 0; i < s->t->n; i++)
		if (!is_free(s, i) && compare_tree_is(s->t, i, of))
			pair_around(m, i, s->partner[i], type);
}

/* --- the rest --- */

struct rest {
	const struct xml_type *type;
	int package;		/* in side 0 */
	size_t object;
};

static int rest_order(const void *x, const void *y)
{
	const struct rest *a = x, *b = y;

	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->package != b->package)
		return a->package < b->package ? -1 : 1;
	return (a->object > b->object) - (a->object < b->object);
}

static size_t rest_collect(const struct compare_match *m, int which, const char *only, struct rest *out)
{
	const struct compare_side *s = &m->side[which];
	size_t n = 0;

	for (size_t i = 1; i < s->t->n; i++) {
		const struct xml_type *type = s->t->objects[i].type;
		int package = only ? 0 : which ? s->partner[s->package[i]] : s->package[i];

		if (!is_free(s, i) || s->offline[i] || type->family > FAMILY_MEMORY || package < 0)
			continue;
		if (only && strcmp(type->name, only))
			continue;
		out[n++] = (struct rest){ type, package, i };
	}
	qsort(out, n, sizeof(*out), rest_order);
	return n;
}

/* In order, those of a type in a package; only: of this type alone, anywhere. */
static int pair_rest(struct compare_match *m, const char *only)
{
	struct rest *list[2] = { calloc(m->side[0].t->n, sizeof(**list)), calloc(m->side[1].t->n, sizeof(**list)) };
	size_t n[2], at[2] = {0};

	if (!list[0] || !list[1]) {
		free(list[0]);
		free(list[1]);
		return -1;
	}
	for (int i = 0; i < 2; i++)
		n[i] = rest_collect(m, i, only, list[i]);
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

static void census_pu(const struct compare_side *s, size_t pu, hwloc_const_bitmap_t all, hwloc_const_bitmap_t usable,
		      struct census *out)
{
	long os = s->t->objects[pu].os_index;

	out->pus = 1;
	out->paired = !is_free(s, pu);
	out->offline = is_free(s, pu) && os >= 0 && hwloc_bitmap_isset(all, os) && !hwloc_bitmap_isset(usable, os);
}

/* Children come after their parents. */
static void census_collect(struct compare_side *s, hwloc_const_bitmap_t all, hwloc_const_bitmap_t usable,
			   struct census *list)
{
	for (size_t i = s->t->n; i-- > 0;) {
		const struct tree_object *o = &s->t->objects[i];
		struct census *own = &list[i];

		if (compare_tree_is(s->t, i, "PU"))
			census_pu(s, i, all, usable, own);
		s->vacant[i] = o->type->family == FAMILY_TREE && !own->paired;
		s->offline[i] = own->pus && own->offline == own->pus;
		if (i && o->type->family == FAMILY_TREE) {
			list[o->parent].pus += own->pus;
			list[o->parent].paired += own->paired;
			list[o->parent].offline += own->offline;
		}
	}
}

static int side_survey(struct compare_side *s, const struct tree_object *other_root)
{
	struct census *list = calloc(s->t->n, sizeof(*list));
	hwloc_bitmap_t all = compare_set_parse(tree_attr(other_root, "complete_cpuset"));
	hwloc_bitmap_t usable = compare_set_parse(tree_attr(other_root, "cpuset"));
	int rc = list && all && usable ? 0 : -1;

	if (rc == 0)
		census_collect(s, all, usable, list);
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

/* Sets offline and vacant from the matched PUs. */
static int match_survey(struct compare_match *m)
{
	for (int i = 0; i < 2; i++)
		if (side_survey(&m->side[i], &m->side[!i].t->objects[0]))
			return -1;
	return 0;
}

/* A PU in another package is not the same PU. */
static void part_strangers(struct compare_match *m)
{
	const struct compare_side *s = m->side;

	for (size_t i = 0; i < s[0].t->n; i++)
		if (compare_tree_is(s[0].t, i, "PU") && !is_free(&s[0], i) && !same_package(m, i, s[0].partner[i]))
			objects_part(m, i);
}

static int match_processors(struct compare_match *m)
{
	if (pair_named(m, key_pu) || match_survey(m))
		return -1;
	pair_all_around(m, "PU", "Package");
	if (pair_rest(m, "Package"))
		return -1;
	part_strangers(m);
	pair_all_around(m, "PU", NULL);
	return 0;
}

static int match_devices(struct compare_match *m)
{
	if (pair_named(m, key_fixed) || pair_named(m, key_plugged) || pair_named(m, key_renamed) ||
	    pair_named(m, key_device))
		return -1;
	follow_names(m);
	if (pair_named(m, key_plugged) || pair_named(m, key_renamed))
		return -1;
	pair_all_around(m, "PCIDev", "Bridge");
	pair_all_around(m, "NUMANode", "MemCache");
	return 0;
}

int compare_match_make(const struct tree *a, const struct tree *b, struct compare_match *out)
{
	struct compare_match m = { .newer = newer_find(a, b) };
	int rc = side_make(&m.side[0], a) || side_make(&m.side[1], b) ? -1 : 0;

	if (!rc) {
		objects_pair(&m, 0, 0);
		rc = match_processors(&m) || match_devices(&m) || pair_rest(&m, NULL) || match_survey(&m) ? -1 : 0;
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
