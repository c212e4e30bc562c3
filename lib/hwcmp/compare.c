/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/compare.h"
#include "base/array.h"
#include "base/order.h"
#include "hwcmp/compare_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- remarks --- */

void compare_remark_add(struct compare_remarks *r, enum severity s, enum change_direction d, size_t order,
			const char *kind, const char *label, const char *what, const char *from, const char *to,
			struct buf *tail)
{
	struct compare_remark *x = r->failed || tail->failed ? NULL : array_add(r->list, r->n);
	size_t len = kind ? strlen(kind) : 0;
	char *end = NULL;

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
	/* The number at the end of "core 17", if the label has one. */
	if (len && !strncmp(label, kind, len) && label[len] == ' ' && label[len + 1] >= '0' && label[len + 1] <= '9')
		x->number = strtoul(label + len + 1, &end, 10);
	x->kind = end && !*end ? kind : NULL;
	r->failed |= !x->c.object || !x->c.what || !x->c.from || !x->c.to || !x->c.words;
}

/* --- merging --- */

static int same_order(const struct compare_remark *a, const struct compare_remark *b)
{
	int order = COMPARE(b->c.severity, a->c.severity) ?: COMPARE(a->c.direction, b->c.direction);

	if (order || !a->kind || !b->kind)
		return order ?: (a->kind != NULL) - (b->kind != NULL);
	return strcmp(a->kind, b->kind) ?: strcmp(a->c.words, b->c.words);
}

ORDER(fold_order, struct compare_remark, same_order(x, y) ?: COMPARE(x->number, y->number) ?:
      COMPARE(x->order, y->order))

ORDER(final_order, struct compare_remark, COMPARE(y->c.severity, x->c.severity) ?: COMPARE(x->order, y->order) ?:
      strcmp(x->c.words, y->c.words))

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

/* Merge and sort the remarks into *out. 0, or -1 when memory is short; r is empty afterwards. */
static int compare_remarks_finish(struct compare_remarks *r, struct changes *out)
{
	struct changes c = {0};
	size_t n = 0;

	if (!r->failed && r->n)
		qsort(r->list, r->n, sizeof(*r->list), fold_order);
	/* Equal remarks about several objects of a kind become one. */
	for (size_t i = 0, j; !r->failed && i < r->n; i = j) {
		struct compare_remark *first = &r->list[i];
		char *label;

		for (j = i + 1; j < r->n && first->kind && !same_order(first, &r->list[j]); j++)
			if (r->list[j].order < first->order)
				first->order = r->list[j].order;
		if (j - i > 1) {
			label = fold_label(first, j - i);
			free(first->c.object);
			first->c.object = label;
			r->failed |= !label;
		}
		for (size_t k = i + 1; k < j; k++)
			change_free(&r->list[k].c);
		if (n < i) {
			r->list[n] = *first;
			first->c = (struct change){0};
		}
		n++;
	}
	if (!r->failed && n) {
		qsort(r->list, n, sizeof(*r->list), final_order);
		r->failed |= !(c.list = calloc(n, sizeof(*c.list)));
	}
	for (size_t i = 0; !r->failed && i < n; i++) {
		struct change *x = &r->list[i].c;
		struct buf words = {0};

		buf_printf(&words, "%s%s", x->object, x->words);
		r->failed |= words.failed;
		free(x->words);
		x->words = words.data;
		c.list[c.n++] = *x;
		*x = (struct change){0};
	}
	for (size_t i = 0; i < r->n; i++)
		change_free(&r->list[i].c);
	free(r->list);
	if (!r->failed)
		*out = c;
	else
		changes_free(&c);
	n = r->failed;
	*r = (struct compare_remarks){0};
	return n ? -1 : 0;
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

static void compare_attr(struct comparison *c, const struct attr_rule *rule, size_t a, size_t b)
{
	const struct tree *s = c->m.side[0].t, *t = c->m.side[1].t;
	const char *x = tree_attr(&s->objects[a], rule->attr), *y = tree_attr(&t->objects[b], rule->attr);
	const char *type = tree_attr(&s->objects[a], "pci_type");
	enum severity severity;
	struct buf tail = {0};
	char from[32], to[32];

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
	if (rule->how == AS_SIZE || rule->how == AS_MEMORY) {
		compare_size_tail(rule->what, strtoull(x, NULL, 10), strtoull(y, NULL, 10), &tail);
	} else if (rule->how == AS_SPEED) {
		snprintf(from, sizeof(from), "%.2f", strtod(x, NULL));
		snprintf(to, sizeof(to), "%.2f", strtod(y, NULL));
		if (!strcmp(from, to))
			buf_printf(&tail, ": %s %s -> %s GB/s", rule->what, x, y);
		else
			buf_printf(&tail, ": %s %s -> %s GB/s", rule->what, from, to);
	} else {
		compare_value_tail(rule->what, x, y, &tail);
	}
	comparison_remark(c, s, a, severity,
			  severity == SEVERITY_CAPACITY ? compare_value_direction(x, y) : CHANGE_CHANGED, rule->what, x,
			  y, &tail);
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

ORDER(pair_order, struct tree_pair *const, strcmp((*x)->name, (*y)->name) ?: COMPARE(*x, *y))

int compare_pairs(const struct tree_pair *x, size_t nx, const struct tree_pair *y, size_t ny,
		  void (*report)(void *user, const char *name, const char *from, const char *to), void *user)
{
	const struct tree_pair **p = calloc(nx + ny + 1, sizeof(*p)), **q = p + nx;

	if (!p)
		return -1;
	for (size_t i = 0; i < nx + ny; i++)
		p[i] = i < nx ? &x[i] : &y[i - nx];
	qsort(p, nx, sizeof(*p), pair_order);
	qsort(q, ny, sizeof(*q), pair_order);
	for (size_t i = 0, j = 0; i < nx || j < ny;) {
		int rc = i == nx ? 1 : j == ny ? -1 : strcmp(p[i]->name, q[j]->name);

		report(user, rc <= 0 ? p[i]->name : q[j]->name, rc <= 0 ? p[i]->value : "",
		       rc >= 0 ? q[j]->value : "");
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
	size_t same = 0;

	for (size_t i = 0; i < COUNT(attr_rules); i++)
		if (!strncmp(x->type->name, attr_rules[i].types, strlen(attr_rules[i].types)))
			compare_attr(c, &attr_rules[i], a, b);
	/* Usually all infos are equal, in the same order. */
	while (same < x->ninfos && same < y->ninfos && !strcmp(x->infos[same].name, y->infos[same].name) &&
	       !strcmp(x->infos[same].value, y->infos[same].value))
		same++;
	if (same < x->ninfos || same < y->ninfos)
		c->r.failed |= compare_pairs(x->infos, x->ninfos, y->infos, y->ninfos, info_remark,
					     &(struct infos){ c, a }) != 0;
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
