/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/order.h"
#include "hwcmp/compare_parts.h"

/* One structure outside the objects: an element of the extras, and its children. */
struct part {
	const struct tree_extra *head;
	size_t n;		/* elements including the head */
	char name[96];		/* "distances NUMALatency" */
	char rank[24];		/* of a kind of CPU: the number of less efficient kinds; "" if there is no ranking */
};

struct parts {
	struct part *list;
	size_t n;
};

/* One value of one object, or of a pair. */
struct value {
	long of;		/* in the numbering of side 0: objects of side 1 by their partners */
	long to;		/* the second object, or the index among several values of an object */
	const char *text;
};

struct values {
	struct value *list;
	size_t n;
	char *text;		/* that has their texts, or NULL: the tree has them */
};

#define EFFICIENCY "forced_efficiency"
#define KINDS_MAX 64	/* of CPUs: more than any machine has are not ranked */

ORDER(part_order, struct part, strcmp(x->name, y->name) ?: COMPARE(x->head, y->head))

static int parts_make(const struct tree *t, struct parts *out)
{
	static const unsigned heads = 1u << TAG_DISTANCES | 1u << TAG_DISTANCES_HETERO |
		1u << TAG_MEMATTR | 1u << TAG_CPUKIND;
	unsigned kinds = 0;

	if (!(out->list = calloc(t->nextras + 1, sizeof(*out->list))))
		return -1;
	for (const struct tree_extra *x = t->extras; x < t->extras + t->nextras; x++) {
		if (heads & 1u << x->element->tag) {
			struct part *p = &out->list[out->n++];
			const char *name = tree_extra_attr(x, "name");

			p->head = x;
			if (x->element->tag == TAG_CPUKIND)
				snprintf(p->name, sizeof(p->name), "CPU kind %u", kinds++);
			else
				snprintf(p->name, sizeof(p->name), "%s %.64s", x->element->tag == TAG_MEMATTR ?
					 "memory attribute" : "distances", name ? name : "(unnamed)");
		}
		out->list[out->n - 1].n++;
	}
	qsort(out->list, out->n, sizeof(*out->list), part_order);
	/*
	 * hwloc 2.9 numbers kinds by their efficiency, later ones write the capacity that Linux reports: only the order
	 * counts.
	 */
	for (struct part *p = out->list; kinds > 1 && kinds <= KINDS_MAX && p < out->list + out->n; p++) {
		const char *own = tree_extra_attr(p->head, EFFICIENCY), *other;
		unsigned less = 0;

		for (const struct part *q = out->list; own && q < out->list + out->n; q++)
			less += (other = tree_extra_attr(q->head, EFFICIENCY)) &&
				strtol(other, NULL, 10) < strtol(own, NULL, 10);
		if (own)
			snprintf(p->rank, sizeof(p->rank), "%u", less);
	}
	return 0;
}

/* --- values about objects --- */

/* The object in the numbering of side 0, -1 if the other tree does not have it. */
static long common_number(const struct compare_side *s, bool second, long object)
{
	if (object < 0 || s->partner[object] < 0)
		return -1;
	return second ? s->partner[object] : object;
}

ORDER(value_order, struct value, COMPARE(x->of, y->of) ?: COMPARE(x->to, y->to))

/* With gp_index the text has "12 " or "NUMANode:12 ". */
struct named {
	long os;
	long object;
};

ORDER(named_order, struct named, COMPARE(x->os, y->os))

/* The words of all texts of this tag in a part, in *text; NULL when memory is short. Free both. */
static char **words_split(const struct part *p, enum xml_tag tag, char **text, size_t *n)
{
	char **list = NULL, *save = NULL;
	struct buf all = {0};

	buf_puts(&all, "");
	for (size_t i = 1; i < p->n; i++)
		if (p->head[i].element->tag == tag) {
			buf_puts(&all, p->head[i].text);
			buf_puts(&all, " ");
		}
	if (all.failed || !(list = calloc(all.len / 2 + 1, sizeof(*list)))) {
		buf_free(&all);
		return NULL;
	}
	*n = 0;
	for (char *w = strtok_r(all.data, " \t\r\n", &save); w; w = strtok_r(NULL, " \t\r\n", &save))
		list[(*n)++] = w;
	*text = all.data;
	return list;
}

/*
 * The square of distances between objects in both trees. Malformed distances have no values: hwloc does not read them
 * either.
 */
static int distances_read(const struct compare_side *s, bool second, const struct part *p, struct values *out)
{
	const char *type = tree_extra_attr(p->head, "type"), *indexing = tree_extra_attr(p->head, "indexing");
	bool by_gp = p->head->element->tag == TAG_DISTANCES_HETERO || (indexing && !strcmp(indexing, "gp"));
	struct named *named = calloc(s->t->n, sizeof(*named));
	size_t m = 0, nvalues = 0, nnamed = 0;
	char *text = NULL, **index = words_split(p, TAG_INDEXES, &text, &m);
	char **value = words_split(p, TAG_VALUES, &out->text, &nvalues);
	long *objects = calloc(m + 1, sizeof(*objects));
	int rc = -1;

	if (!named || !index || !value || !objects || !(out->list = calloc(nvalues + 1, sizeof(*out->list))))
		goto done;
	for (size_t i = 0; i < s->t->n; i++)
		if (type && compare_tree_is(s->t, i, type))
			named[nnamed++] = (struct named){ s->t->objects[i].os_index, i };
	qsort(named, nnamed, sizeof(*named), named_order);
	for (size_t i = 0; i < m; i++) {
		const char *colon = strchr(index[i], ':');
		struct named key = { strtol(index[i], NULL, 10), 0 };
		const struct named *found = nnamed ? bsearch(&key, named, nnamed, sizeof(key), named_order) : NULL;

		objects[i] = common_number(s, second, !by_gp ? found ? found->object : -1 :
					   tree_by_gp(s->t, strtoull(colon ? colon + 1 : index[i], NULL, 10)));
	}
	for (size_t i = 0; m && nvalues / m == m && nvalues % m == 0 && i < nvalues; i++)
		if (objects[i / m] >= 0 && objects[i % m] >= 0)
			out->list[out->n++] = (struct value){ objects[i / m], objects[i % m], value[i] };
	qsort(out->list, out->n, sizeof(*out->list), value_order);
	rc = 0;
done:
	free(named);
	free(index);
	free(text);
	free(value);
	free(objects);
	return rc;
}

/*
 * An initiator may be a set of CPUs, which changes when one goes offline: the values of a target are compared in order.
 */
static int attributes_read(const struct compare_side *s, bool second, const struct part *p, struct values *out)
{
	if (!(out->list = calloc(p->n + 1, sizeof(*out->list))))
		return -1;
	for (size_t i = 1; i < p->n; i++) {
		const char *gp = tree_extra_attr(&p->head[i], "target_obj_gp_index");
		long object = gp ? common_number(s, second, tree_by_gp(s->t, strtoull(gp, NULL, 10))) : -1;

		if (object >= 0)
			out->list[out->n++] = (struct value){ object, i, tree_extra_attr(&p->head[i], "value") };
	}
	qsort(out->list, out->n, sizeof(*out->list), value_order);
	for (size_t i = 0, first = 0; i < out->n; i++) {
		if (out->list[i].of != out->list[first].of)
			first = i;
		out->list[i].to = i - first;
	}
	return 0;
}

/* --- remarks --- */

/* Distances, or values of a memory attribute: the first value that differs, and how many. */
static void compare_numbers(const struct compare_match *m, const struct part *p, const struct part *other,
			    struct compare_remarks *r)
{
	bool attribute = p->head->element->tag == TAG_MEMATTR;
	int (*read)(const struct compare_side *s, bool second, const struct part *p, struct values *out) =
		attribute ? attributes_read : distances_read;
	const struct value *from = NULL, *to = NULL;
	struct buf tail = {0}, what = {0};
	struct values v[2] = {0};
	size_t differ = 0;

	r->failed |= read(&m->side[0], false, p, &v[0]) || read(&m->side[1], true, other, &v[1]);
	for (size_t i = 0, j = 0; !r->failed && i < v[0].n && j < v[1].n;) {
		const struct value *a = &v[0].list[i], *b = &v[1].list[j];
		int rc = value_order(a, b);

		if (!rc && strcmp(a->text, b->text) && !differ++) {
			from = a;
			to = b;
		}
		i += rc <= 0;
		j += rc >= 0;
	}
	if (differ) {
		tree_label(m->side[0].t, from->of, &what);
		if (!attribute) {
			buf_puts(&what, " to ");
			tree_label(m->side[0].t, from->to, &what);
		}
		r->failed |= what.failed;
	}
	if (differ && !r->failed) {
		buf_printf(&tail, ": %s %s -> %s", what.data, from->text, to->text);
		if (differ > 1)
			buf_printf(&tail, " (and %zu more)", differ - 1);
		compare_remark_add(r, SEVERITY_WIRING, CHANGE_CHANGED, m->side[0].t->n + p->head->line, NULL, p->name,
				   what.data, from->text, to->text, &tail);
	}
	buf_free(&what);
	for (int i = 0; i < 2; i++) {
		free(v[i].list);
		free(v[i].text);
	}
}

struct kind {
	const struct compare_match *match;
	const struct part *part;
	struct compare_remarks *remarks;
};

static void cpu_kind_remark(void *user, const char *name, const char *from, const char *to)
{
	const struct kind *k = user;
	struct buf tail = {0};

	if (!strcmp(from, to) || compare_match_by_format(k->match, name, from, to))
		return;
	compare_value_tail(name, from, to, &tail);
	compare_remark_add(k->remarks, SEVERITY_WIRING, CHANGE_CHANGED, k->match->side[0].t->n + k->part->head->line,
			   "CPU kind", k->part->name, name, from, to, &tail);
}

/* The infos of a part, as pairs; NULL when memory is short. */
static struct tree_pair *infos_of(const struct part *p)
{
	struct tree_pair *list = calloc(p->n, sizeof(*list));

	for (size_t i = 1; list && i < p->n; i++)
		list[i - 1] = (struct tree_pair){ .name = tree_extra_attr(&p->head[i], "name"),
						  .value = tree_extra_attr(&p->head[i], "value") };
	return list;
}

/* The CPUs of a kind are not compared: CPUs that come and go are reported as such. */
static void compare_kinds(const struct compare_match *m, const struct part *a, const struct part *b,
			  struct compare_remarks *r)
{
	struct tree_pair *x = infos_of(a), *y = infos_of(b);
	struct kind k = { m, a, r };

	cpu_kind_remark(&k, "efficiency", a->rank, b->rank);
	r->failed |= !x || !y || compare_pairs(x, a->n - 1, y, b->n - 1, cpu_kind_remark, &k);
	free(x);
	free(y);
}

void compare_extras(const struct compare_match *m, struct compare_remarks *r)
{
	struct parts a = {0}, b = {0};

	if (parts_make(m->side[0].t, &a) || parts_make(m->side[1].t, &b))
		r->failed = true;
	for (size_t i = 0, j = 0; !r->failed && (i < a.n || j < b.n);) {
		int rc = i == a.n ? 1 : j == b.n ? -1 : strcmp(a.list[i].name, b.list[j].name);

		const struct part *p = rc > 0 ? &b.list[j] : &a.list[i];
		struct buf tail = {0};

		if (rc && m->newer != (rc > 0)) {		/* otherwise a later hwloc reports more */
			buf_puts(&tail, rc < 0 ? " gone" : " new");
			compare_remark_add(r, SEVERITY_WIRING, rc < 0 ? CHANGE_GONE : CHANGE_EXTRA,
					   m->side[0].t->n + p->head->line, "CPU kind", p->name, "", "", "", &tail);
		} else if (!rc) {
			(p->head->element->tag == TAG_CPUKIND ? compare_kinds : compare_numbers)(m, p, &b.list[j], r);
		}
		i += rc <= 0;
		j += rc >= 0;
	}
	free(a.list);
	free(b.list);
}
