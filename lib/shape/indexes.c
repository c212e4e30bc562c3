/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LOOPS 8

struct indexes {
	unsigned *list;
	size_t n;
	bool unknown;		/* an object has no index */
};

static void index_add(struct indexes *x, const struct tree_object *o)
{
	x->unknown |= o->os_index < 0;
	x->list[x->n++] = o->os_index;
}

static void pus_gather(const struct tree *t, struct indexes *x)
{
	for (size_t i = 0; i < t->n; i++)
		if (tree_object_is(t, i, "PU"))
			index_add(x, &t->objects[i]);
}

/*
 * Whether the object has its memory in the text, or it is written as that of the core or the object around
 * (strings_parts.h).
 */
static bool keeps_memory(const struct tree *t, const struct tree_extent *s, size_t object)
{
	const struct tree_extent *o = &s[object];

	return t->objects[object].type->family == FAMILY_TREE && o->pus && (o->core < 0 || o->core == (long)object);
}

/* hwloc numbers memory inside an object before memory attached to it. */
static void numas_gather(const struct tree *t, const struct tree_extent *s, size_t object, struct indexes *x)
{
	for (size_t i = object + 1; i < s[object].next; i = s[i].next)
		if (keeps_memory(t, s, i))
			numas_gather(t, s, i, x);
	for (size_t i = object + 1; i < s[object].next; i = keeps_memory(t, s, i) ? s[i].next : i + 1)
		if (tree_object_is(t, i, "NUMANode"))
			index_add(x, &t->objects[i]);
}

static bool counts_up(const struct indexes *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i] != i)
			return false;
	return true;
}

struct loop {
	size_t step, n;
};

/* The loop with step `by`. */
static struct loop loop_find(const struct indexes *x, size_t by)
{
	struct loop l = { 1, 1 };

	while (l.step < x->n && x->list[l.step] != by)
		l.step++;
	while (l.step * l.n < x->n && x->list[l.step * l.n] == by * l.n)
		l.n++;
	return l;
}

/* The number of loops that express the list, 0 if it cannot be expressed. */
static size_t loops_find(const struct indexes *x, struct loop *loops)
{
	size_t n = 0, by = 1;

	for (; by < x->n && n < MAX_LOOPS; by *= loops[n++].n)
		if ((loops[n] = loop_find(x, by)).n < 2)
			return 0;
	if (by != x->n)
		return 0;
	for (size_t i = 0; i < x->n; i++) {
		size_t value = 0;

		by = 1;
		for (size_t k = 0; k < n; by *= loops[k++].n)
			value += i / loops[k].step % loops[k].n * by;
		if (x->list[i] != value)
			return 0;
	}
	return n;
}

static void value_write(const struct indexes *x, struct buf *out)
{
	struct loop loops[MAX_LOOPS];
	size_t n = loops_find(x, loops);

	buf_puts(out, "indexes=");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%zu*%zu", i ? ":" : "", loops[i].step, loops[i].n);
	for (size_t i = 0; !n && i < x->n; i++)
		buf_printf(out, "%s%u", i ? "," : "", x->list[i]);
}

/* Inserts the attribute after the first `mark` of the text, into its parentheses if it has some. */
static void attribute_insert(struct buf *text, const char *mark, const struct indexes *x)
{
	struct buf out = {0};
	char *at = text->data ? strstr(text->data, mark) : NULL;

	if (!at || text->failed || x->unknown || counts_up(x))
		return;
	at += strlen(mark);
	at += strspn(at, "0123456789");
	at += *at == '(' ? strcspn(at, ")") : 0;
	buf_add(&out, text->data, at - text->data);
	buf_puts(&out, *at == ')' ? " " : "(");
	value_write(x, &out);
	buf_puts(&out, *at == ')' ? "" : ")");
	buf_puts(&out, at);
	buf_free(text);
	*text = out;
}

int indexes_append(const struct tree *t, const struct tree_extent *extents, struct buf *text)
{
	struct indexes x = { .list = malloc((t->n + 1) * sizeof(*x.list)) };

	if (!x.list)
		return -1;
	pus_gather(t, &x);
	attribute_insert(text, " PU:", &x);
	x.n = 0;
	x.unknown = false;
	numas_gather(t, extents, 0, &x);
	attribute_insert(text, "[NUMANode", &x);
	free(x.list);
	return text->failed ? -1 : 0;
}
