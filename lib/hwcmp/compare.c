/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "hwcmp/compare.h"
#include "base/array.h"
#include "hwcmp/compare_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- remarks --- */

/* The number at the end of "core 17", if the label has one. */
static bool label_number(const char *label, const char *kind, unsigned long *number)
{
	size_t len = kind ? strlen(kind) : 0;
	char *end;

	if (!len || strncmp(label, kind, len) || label[len] != ' ' || label[len + 1] < '0' || label[len + 1] > '9')
		return false;
	*number = strtoul(label + len + 1, &end, 10);
	return !*end;
}

void compare_remark_add(struct compare_remarks *r, enum severity s, enum change_direction d, size_t order,
			const char *kind, const char *label, const char *what, const char *from, const char *to,
			struct buf *tail)
{
	struct compare_remark *x = r->failed || tail->failed ? NULL : array_add(r->list, r->n);

	if (!x) {
		r->failed = true;
		buf_free(tail);
		return;
	}
	*x = (struct compare_remark){
		.c = { s, d, strdup(label), strdup(what), strdup(from), strdup(to), tail->data },
		.order = order,
	};
	*tail = (struct buf){0};
	x->kind = label_number(label, kind, &x->number) ? kind : NULL;
	r->failed |= !x->c.object || !x->c.what || !x->c.from || !x->c.to || !x->c.words;
}

/* --- merging --- */

static int same_order(const struct compare_remark *a, const struct compare_remark *b)
{
	int rc;

	if (a->c.severity != b->c.severity)
		return a->c.severity > b->c.severity ? -1 : 1;
	if (a->c.direction != b->c.direction)
		return a->c.direction < b->c.direction ? -1 : 1;
	if (!a->kind || !b->kind)
		return (a->kind != NULL) - (b->kind != NULL);
	rc = strcmp(a->kind, b->kind);
	return rc ? rc : strcmp(a->c.words, b->c.words);
}

static int fold_order(const void *x, const void *y)
{
	const struct compare_remark *a = x, *b = y;
	int rc = same_order(a, b);

	if (!rc && a->number != b->number)
		rc = a->number < b->number ? -1 : 1;
	return rc ? rc : (a->order > b->order) - (a->order < b->order);
}

static int final_order(const void *x, const void *y)
{
	const struct compare_remark *a = x, *b = y;

	if (a->c.severity != b->c.severity)
		return a->c.severity > b->c.severity ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return strcmp(a->c.words, b->c.words);
}

/* "cores 3,16-19" */
static char *fold_label(const struct compare_remark *list, size_t n)
{
	struct buf b = {0};

	buf_printf(&b, "%ss ", list->kind);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && list[j].number - list[j - 1].number <= 1; j++)
			;
		buf_printf(&b, "%s%lu", i ? "," : "", list[i].number);
		if (list[j - 1].number > list[i].number)
			buf_printf(&b, "-%lu", list[j - 1].number);
	}
	if (b.failed)
		buf_free(&b);
	return b.data;
}

static int sentence_complete(struct change *c)
{
	struct buf b = {0};

	buf_puts(&b, c->object);
	buf_puts(&b, c->words);
	if (b.failed) {
		buf_free(&b);
		return -1;
	}
	free(c->words);
	c->words = b.data;
	return 0;
}

static void remarks_free(struct compare_remarks *r)
{
	for (size_t i = 0; i < r->n; i++)
		change_free(&r->list[i].c);
	free(r->list);
	*r = (struct compare_remarks){0};
}

int compare_remarks_finish(struct compare_remarks *r, struct changes *out)
{
	struct changes c = {0};
	int rc = r->failed ? -1 : 0;

	if (!rc && r->n) {
		qsort(r->list, r->n, sizeof(*r->list), fold_order);
		/* Equal remarks about several objects of a kind become one. */
		size_t n = 0;

		for (size_t i = 0, j; i < r->n; i = j) {
			struct compare_remark *first = &r->list[i];

			for (j = i + 1; j < r->n && first->kind && !same_order(first, &r->list[j]); j++)
				if (r->list[j].order < first->order)
					first->order = r->list[j].order;
			if (j - i > 1) {
				char *label = fold_label(first, j - i);

				free(first->c.object);
				first->c.object = label;
				r->failed |= !label;
			}
			for (size_t k = i + 1; k < j; k++)
				change_free(&r->list[k].c);
			r->list[n++] = *first;
		}
		r->n = n;
		rc = r->failed ? -1 : 0;
	}
	if (!rc && r->n) {
		qsort(r->list, r->n, sizeof(*r->list), final_order);
		if (!(c.list = calloc(r->n, sizeof(*c.list))))
			rc = -1;
	}
	for (size_t i = 0; !rc && i < r->n; i++)
		rc = sentence_complete(&r->list[i].c);
	if (!rc) {
		for (; c.n < r->n; c.n++)
			c.list[c.n] = r->list[c.n].c;
		*out = c;
		r->n = 0;
	} else {
		free(c.list);
	}
	remarks_free(r);
	return rc;
}

void comparison_remark(struct comparison *c, const struct tree *t, size_t object, enum severity s,
		       enum change_direction d, const char *what, const char *from, const char *to, struct buf *tail)
{
	c->scratch.len = 0;
	tree_label(t, object, &c->scratch);
	c->r.failed |= c->scratch.failed;
	compare_remark_add(&c->r, s, d, object, tree_kind(&t->objects[object]),
			   c->scratch.failed ? "" : c->scratch.data, what, from, to, tail);
}

/* --- values of two matched objects --- */

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

static void attr_tail(const struct attr_rule *rule, const char *from, const char *to, struct buf *tail)
{
	unsigned long long x = strtoull(from, NULL, 10), y = strtoull(to, NULL, 10);
	char a[32], b[32];

	switch (rule->how) {
	case AS_SIZE:
	case AS_MEMORY:
		compare_size_tail(rule->what, x, y, tail);
		break;
	case AS_SPEED:
		snprintf(a, sizeof(a), "%.2f", strtod(from, NULL));
		snprintf(b, sizeof(b), "%.2f", strtod(to, NULL));
		if (!strcmp(a, b))
			buf_printf(tail, ": %s %s -> %s GB/s", rule->what, from, to);
		else
			buf_printf(tail, ": %s %s -> %s GB/s", rule->what, a, b);
		break;
	default:
		compare_value_tail(rule->what, from, to, tail);
	}
}

static void compare_attr(struct comparison *c, const struct attr_rule *rule, size_t a, size_t b)
{
	const struct tree *s = c->m.side[0].t, *t = c->m.side[1].t;
	const char *x = tree_attr(&s->objects[a], rule->attr), *y = tree_attr(&t->objects[b], rule->attr);
	const char *type = tree_attr(&s->objects[a], "pci_type");
	enum severity severity;
	struct buf tail = {0};

	x = x ? x : "";
	y = y ? y : "";
	if (!strcmp(x, y))
		return;
	/* A graphics card slows its link down while idle (PCI base class 03). */
	if (rule->how == AS_SPEED && type && !strncmp(type, "03", 2))
		severity = SEVERITY_COSMETIC;
	else if (rule->how == AS_MEMORY)
		severity = compare_fact_severity("memory", x, y);
	else
		severity = rule->severity;
	attr_tail(rule, x, y, &tail);
	comparison_remark(c, s, a, severity,
			  severity == SEVERITY_CAPACITY ? compare_value_direction(x, y) : CHANGE_CHANGED, rule->what, x,
			  y, &tail);
}

static bool same_infos(const struct tree_object *x, const struct tree_object *y)
{
	size_t i = 0;

	while (i < x->ninfos && i < y->ninfos && !strcmp(x->infos[i].name, y->infos[i].name) &&
	       !strcmp(x->infos[i].value, y->infos[i].value))
		i++;
	return i == x->ninfos && i == y->ninfos;
}

struct infos {
	struct comparison *comparison;
	size_t object;
};

static void info_remark(void *user, const char *name, const char *from, const char *to)
{
	const struct infos *i = user;
	struct comparison *c = i->comparison;
	struct buf tail = {0};

	if (compare_fact_equal(from, to) || compare_match_by_format(&c->m, name, from, to))
		return;
	compare_fact_tail(name, from, to, &tail);
	comparison_remark(c, c->m.side[0].t, i->object, compare_fact_severity(name, from, to),
			  compare_fact_direction(name, from, to), name, from, to, &tail);
}

struct sorted_pair {
	const struct tree_pair *pair;
};

static int pair_order(const void *x, const void *y)
{
	const struct sorted_pair *a = x, *b = y;
	int rc = strcmp(a->pair->name, b->pair->name);

	return rc ? rc : (a->pair > b->pair) - (a->pair < b->pair);
}

int compare_pairs(const struct tree_pair *x, size_t nx, const struct tree_pair *y, size_t ny,
		  void (*report)(void *user, const char *name, const char *from, const char *to), void *user)
{
	struct sorted_pair *p = calloc(nx + ny + 1, sizeof(*p)), *q = p + nx;

	if (!p)
		return -1;
	for (size_t i = 0; i < nx + ny; i++)
		p[i].pair = i < nx ? &x[i] : &y[i - nx];
	qsort(p, nx, sizeof(*p), pair_order);
	qsort(q, ny, sizeof(*q), pair_order);
	for (size_t i = 0, j = 0; i < nx || j < ny;) {
		int rc = i == nx ? 1 : j == ny ? -1 : strcmp(p[i].pair->name, q[j].pair->name);

		report(user, rc <= 0 ? p[i].pair->name : q[j].pair->name, rc <= 0 ? p[i].pair->value : "",
		       rc >= 0 ? q[j].pair->value : "");
		i += rc <= 0;
		j += rc >= 0;
	}
	free(p);
	return 0;
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

static void compare_values(struct comparison *c, size_t a, size_t b)
{
	const struct tree_object *x = &c->m.side[0].t->objects[a], *y = &c->m.side[1].t->objects[b];

	for (size_t i = 0; i < COUNT(attr_rules); i++)
		if (!strncmp(x->type->name, attr_rules[i].types, strlen(attr_rules[i].types)))
			compare_attr(c, &attr_rules[i], a, b);
	if (!same_infos(x, y) && compare_pairs(x->infos, x->ninfos, y->infos, y->ninfos, info_remark,
					       &(struct infos){ c, a }))
		c->r.failed = true;
}

/* --- all of it --- */

static void compare_formats(struct comparison *c)
{
	const struct tree *a = c->m.side[0].t, *b = c->m.side[1].t;
	const char *from = compare_match_exporter(a), *to = compare_match_exporter(b);
	struct buf tail = {0};

	if (c->m.newer < 0)
		return;
	if (!strcmp(a->version, b->version)) {
		buf_printf(&tail, ": hwloc %s -> %s, export format %s", from, to, a->version);
		comparison_remark(c, a, 0, SEVERITY_IDENTITY, CHANGE_CHANGED, "hwloc", from, to, &tail);
		return;
	}
	buf_printf(&tail, ": export format %s -> %s", a->version, b->version);
	if (*from && *to && strcmp(from, to))
		buf_printf(&tail, " (hwloc %s -> %s)", from, to);
	comparison_remark(c, a, 0, SEVERITY_IDENTITY, CHANGE_CHANGED, "export format", a->version, b->version, &tail);
}

int compare_trees(const struct tree *a, const struct tree *b, struct changes *out, struct err *e)
{
	struct comparison c = {0};
	const struct compare_side *s = &c.m.side[0];
	int rc;

	if (compare_match_make(a, b, &c.m))
		return err_set(e, "out of memory");
	if ((c.reported = calloc(a->n, sizeof(*c.reported)))) {
		compare_formats(&c);
		for (size_t i = 0; i < a->n; i++)
			if (s->partner[i] >= 0) {
				compare_values(&c, i, s->partner[i]);
				compare_place(&c, i, s->partner[i]);
			}
		for (size_t i = 0; i < COUNT(allowed); i++)
			compare_allowed_set(&c, &allowed[i]);
		compare_presence(&c, true);
		compare_presence(&c, false);
		compare_extras(&c.m, &c.r);
	}
	c.r.failed |= !c.reported;
	rc = compare_remarks_finish(&c.r, out);
	free(c.reported);
	buf_free(&c.scratch);
	compare_match_free(&c.m);
	return rc ? err_set(e, "out of memory") : 0;
}
