/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* --- levels: the objects of all traces, each once */

static int compare_indexes(const void *a, const void *b)
{
	const struct trace_object *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

/* In a level whose objects are in the order of their indexes. */
static struct trace_object *object_find(struct trace_level *l, unsigned index)
{
	struct trace_object key = { .index = index };

	return bsearch(&key, l->objects, l->n, sizeof(key), compare_indexes);
}

static int level_add_objects(struct trace_level *to, const struct trace_level *from)
{
	struct trace_object *all;
	unsigned n = 0;

	if (array_reserve(to->objects, to->n, from->n))
		return -1;
	all = to->objects;
	memcpy(all + to->n, from->objects, from->n * sizeof(*all));
	qsort(all, to->n + from->n, sizeof(*all), compare_indexes);
	for (unsigned i = 0; i < to->n + from->n; i++)
		if (!n || all[n - 1].index != all[i].index) {
			all[n] = all[i];
			all[n++].count = 0;
		}
	to->n = n;
	return 0;
}

static const struct trace_level *pus_of(const struct trace_head *h)
{
	return &h->levels[trace_head_level(h, "PU")];
}

/* The PUs are known: an object is those that it has in any trace, which are consecutive. */
static void level_set_pus(struct trace_head *out, struct trace_level *to, const struct trace_head *h,
			  const struct trace_level *from)
{
	for (unsigned i = 0; i < from->n; i++) {
		struct trace_object *o = object_find(to, from->objects[i].index);

		for (unsigned pu = from->objects[i].first; pu < from->objects[i].first + from->objects[i].count; pu++) {
			struct trace_level *pus = &out->levels[trace_head_level(out, "PU")];
			unsigned at = object_find(pus, pus_of(h)->objects[pu].index) - pus->objects;
			unsigned end = o->count ? trace_object_end(o) : at + 1;

			o->first = o->count && o->first < at ? o->first : at;
			o->count = (end > at + 1 ? end : at + 1) - o->first;
		}
	}
}

static struct trace_level *level_add(struct trace_head *out, const char *type)
{
	struct trace_level *l = array_add(out->levels, out->nlevels);

	if (l)
		strcpy(l->type, type);
	return l;
}

static int levels_merge(struct trace_head *out, const struct trace_head *const *heads, unsigned n)
{
	for (unsigned t = 0; t < n; t++)
		for (unsigned i = 0; i < heads[t]->nlevels; i++) {
			const struct trace_level *from = &heads[t]->levels[i];
			int known = trace_head_level(out, from->type);
			struct trace_level *to = known >= 0 ? &out->levels[known] : level_add(out, from->type);

			if (!to || level_add_objects(to, from))
				return -1;
		}
	for (unsigned t = 0; t < n; t++)
		for (unsigned i = 0; i < heads[t]->nlevels; i++)
			level_set_pus(out, &out->levels[trace_head_level(out, heads[t]->levels[i].type)], heads[t],
				      &heads[t]->levels[i]);
	for (unsigned i = 0; i < out->nlevels; i++)
		qsort(out->levels[i].objects, out->levels[i].n, sizeof(struct trace_object), trace_object_compare);
	return 0;
}

/* --- events, and where each value goes */

static bool same_events(const struct trace_head *a, const struct trace_head *b)
{
	bool same = a->nevents == b->nevents;

	for (unsigned i = 0; same && i < a->nevents; i++)
		same = !strcmp(a->events[i].name, b->events[i].name) && a->events[i].kind == b->events[i].kind &&
			!strcmp(a->levels[a->events[i].level].type, b->levels[b->events[i].level].type);
	return same;
}

static int events_copy(struct trace_head *out, const struct trace_head *from)
{
	if (!(out->events = calloc(from->nevents, sizeof(*out->events))))
		return -1;
	for (; out->nevents < from->nevents; out->nevents++) {
		out->events[out->nevents] = from->events[out->nevents];
		out->events[out->nevents].level =
			trace_head_level(out, from->levels[from->events[out->nevents].level].type);
	}
	return 0;
}

/* At each index of the objects of `from`, the position of the same object among those of `to`. */
static int level_map(const struct trace_level *to, const struct trace_level *from, unsigned first, unsigned *column)
{
	struct trace_level sorted = { .objects = malloc(to->n * sizeof(*to->objects)), .n = to->n };

	if (!sorted.objects)
		return -1;
	for (unsigned i = 0; i < to->n; i++)
		sorted.objects[i] = (struct trace_object){ .index = to->objects[i].index, .first = i };
	qsort(sorted.objects, sorted.n, sizeof(*sorted.objects), compare_indexes);
	for (unsigned i = 0; i < from->n; i++)
		column[i] = first + object_find(&sorted, from->objects[i].index)->first;
	free(sorted.objects);
	return 0;
}

static unsigned *columns_map(const struct trace_head *out, const struct trace_head *h)
{
	unsigned *column = calloc(h->columns + 1, sizeof(*column));
	bool has_memory = column;

	for (unsigned x = 0; has_memory && x < h->nevents; x++)
		has_memory = !level_map(&out->levels[out->events[x].level], &h->levels[h->events[x].level],
					out->events[x].column, column + h->events[x].column);
	if (has_memory)
		return column;
	free(column);
	return NULL;
}

int trace_merge_make(struct trace_merge *m, const struct trace_head *const *heads, const char *const *names, unsigned n,
		     struct err *e)
{
	bool has_memory;

	*m = (struct trace_merge){ .n = n, .column = calloc(n, sizeof(*m->column)) };
	for (unsigned t = 1; t < n; t++) {
		bool same_node = !strcmp(heads[0]->node, heads[t]->node);

		if (same_node && same_events(heads[0], heads[t]))
			continue;
		trace_merge_free(m);
		return same_node ? err_set(e, "%s: it has other events than %s", names[t], names[0]) :
				   err_set(e, "%s: it is of node %s, and %s of %s", names[t], heads[t]->node, names[0],
					   heads[0]->node);
	}
	strcpy(m->head.node, heads[0]->node);
	m->head.period = heads[0]->period;
	has_memory = m->column && !levels_merge(&m->head, heads, n) && !events_copy(&m->head, heads[0]);
	if (has_memory && trace_head_check(&m->head, e)) {
		trace_merge_free(m);
		return -1;
	}
	for (unsigned t = 0; has_memory && t < n; t++)
		has_memory = (m->column[t] = columns_map(&m->head, heads[t]));
	if (has_memory)
		return 0;
	trace_merge_free(m);
	return err_set(e, "out of memory");
}

void trace_merge_free(struct trace_merge *m)
{
	for (unsigned t = 0; m->column && t < m->n; t++)
		free(m->column[t]);
	free(m->column);
	trace_head_free(&m->head);
	*m = (struct trace_merge){0};
}
