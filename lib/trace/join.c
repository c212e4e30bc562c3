/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/join.h"

#include <assert.h>

#include "base/array.h"
#include "base/order.h"

/* An object of the joined head: the node that it is of, 0 if there is one only, and its index there. */
struct joined {
	unsigned node;
	struct trace_object o;
	unsigned at;			/* where it is in its level */
};

/* The objects of one level by node and index. */
struct joined_level {
	struct joined *list;
	unsigned n;
};

struct joining {
	struct trace_join *out;
	const struct trace_head *const *heads;
	bool is_one_node;
	struct joined_level *levels;	/* as those of the head */
};

ORDER(by_index, struct joined, COMPARE(x->node, y->node) ?: COMPARE(x->o.index, y->o.index))

ORDER(by_place, struct joined, trace_object_compare(&x->o, &y->o))

static struct joined *object_find(const struct joining *j, unsigned level, unsigned trace, unsigned index)
{
	struct joined key = { .node = j->is_one_node ? 0 : trace, .o.index = index }, *found;

	found = bsearch(&key, j->levels[level].list, j->levels[level].n, sizeof(key), by_index);
	assert(found);
	return found;
}

/* --- levels */

static struct trace_level *level_insert(struct trace_head *h, unsigned at, const char *type)
{
	struct trace_level *l;

	if (array_reserve(h->levels, h->nlevels, 1))
		return NULL;
	l = &h->levels[at];
	memmove(l + 1, l, (h->nlevels++ - at) * sizeof(*l));
	*l = (struct trace_level){0};
	snprintf(l->type, sizeof(l->type), "%s", type);
	return l;
}

/* Of each type one. A type that no trace before had comes after the one that it follows in its own. */
static int types_join(struct joining *j, const char *type)
{
	struct trace_head *out = &j->out->head;

	if (type && !level_insert(out, 0, type))
		return -1;
	for (unsigned t = 0; t < j->out->n; t++) {
		int at, after = type ? 0 : -1;

		for (unsigned l = 0; l < j->heads[t]->nlevels; l++, after = at) {
			at = trace_head_level(out, j->heads[t]->levels[l].type);
			if (at < 0 && !level_insert(out, at = after + 1, j->heads[t]->levels[l].type))
				return -1;
		}
	}
	return 0;
}

/* The objects of a level of all traces, each once. 0 or -1. */
static int level_collect(struct joining *j, unsigned level)
{
	struct joined_level *to = &j->levels[level];
	unsigned n = 0;

	for (unsigned t = 0; t < j->out->n; t++) {
		int l = trace_head_level(j->heads[t], j->out->head.levels[level].type);
		const struct trace_level *from = l < 0 ? NULL : &j->heads[t]->levels[l];

		if (from && array_reserve(to->list, to->n, from->n))
			return -1;
		for (unsigned i = 0; from && i < from->n; i++)
			to->list[to->n++] = (struct joined){ j->is_one_node ? 0 : t, from->objects[i], 0 };
	}
	if (to->n)
		qsort(to->list, to->n, sizeof(*to->list), by_index);
	for (unsigned i = 0; i < to->n; i++)
		if (!n || by_index(&to->list[n - 1], &to->list[i])) {
			to->list[n] = to->list[i];
			to->list[n].o.count = 0;
			to->list[n].at = n;
			n++;
		}
	to->n = n;
	return 0;
}

static int level_write(struct trace_level *l, struct joined_level *from, const char *const *names)
{
	if (!(l->objects = calloc(from->n, sizeof(*l->objects))) ||
	    (names && !(l->names = calloc(from->n, TRACE_NAME))))
		return -1;
	qsort(from->list, from->n, sizeof(*from->list), by_place);
	for (; l->n < from->n; l->n++) {
		l->objects[l->n] = from->list[l->n].o;
		from->list[l->n].at = l->n;
		if (names)
			snprintf(l->names[l->n], TRACE_NAME, "%s", names[from->list[l->n].node]);
	}
	qsort(from->list, from->n, sizeof(*from->list), by_index);
	return 0;
}

static int levels_join(struct joining *j, const char *type, const char *name, const char *const *names)
{
	struct trace_head *out = &j->out->head;
	int pus;

	if (types_join(j, type) || !(j->levels = calloc(out->nlevels, sizeof(*j->levels))))
		return -1;
	for (unsigned l = 0; l < out->nlevels; l++)
		if (level_collect(j, l))
			return -1;
	pus = trace_head_level(out, "PU");
	if (type) {
		struct joined all = { .o = { .os_index = -1, .count = j->levels[pus].n } };

		if (level_write(&out->levels[0], &(struct joined_level){ &all, 1 }, &name))
			return -1;
	}
	/* PUs are collected: an object has those that it has in any trace, which are consecutive. */
	for (unsigned l = !!type; l < out->nlevels; l++)
		for (unsigned t = 0; t < j->out->n; t++) {
			const struct trace_head *h = j->heads[t];
			int own = trace_head_level(h, out->levels[l].type), pu_level = trace_head_level(h, "PU");

			for (unsigned i = 0; own >= 0 && i < h->levels[own].n; i++) {
				const struct trace_object *from = &h->levels[own].objects[i];
				struct trace_object *o = &object_find(j, l, t, from->index)->o;

				for (unsigned pu = from->first; pu < trace_object_end(from); pu++) {
					unsigned at = object_find(j, pus, t, h->levels[pu_level].objects[pu].index)->at;
					unsigned first = o->count && o->first < at ? o->first : at;
					unsigned end = o->count && trace_object_end(o) > at ? trace_object_end(o) :
						at + 1;

					o->first = first;
					o->count = end - first;
				}
			}
		}
	for (unsigned l = !!type; l < out->nlevels; l++)
		if (level_write(&out->levels[l], &j->levels[l],
				type && !strcmp(out->levels[l].type, "Machine") ? names : NULL))
			return -1;
	return 0;
}

/* --- events */

static struct trace_event *event_find(const struct trace_head *h, const char *name)
{
	for (unsigned i = 0; i < h->nevents; i++)
		if (!strcmp(h->events[i].name, name))
			return &h->events[i];
	return NULL;
}

static int events_join(struct joining *j)
{
	struct trace_head *out = &j->out->head;

	for (unsigned t = 0; t < j->out->n; t++) {
		const struct trace_head *h = j->heads[t];

		for (const struct trace_event *x = h->events; x < h->events + h->nevents; x++) {
			if (event_find(out, x->name))
				continue;
			if (array_reserve(out->events, out->nevents, 1))
				return -1;
			out->events[out->nevents] = *x;
			out->events[out->nevents++].level = trace_head_level(out, h->levels[x->level].type);
		}
	}
	return 0;
}

static unsigned *columns_map(const struct joining *j, unsigned trace)
{
	const struct trace_head *h = j->heads[trace], *out = &j->out->head;
	unsigned *column = calloc(h->columns + 1, sizeof(*column));

	for (const struct trace_event *x = h->events; column && x < h->events + h->nevents; x++) {
		const struct trace_event *to = event_find(out, x->name);
		const struct trace_level *l = &h->levels[x->level];
		bool is_same = !strcmp(l->type, out->levels[to->level].type) && x->kind == to->kind;

		for (unsigned k = 0; k < l->n; k++)
			column[x->column + k] = !is_same ? TRACE_JOIN_NOWHERE :
				to->column + object_find(j, to->level, trace, l->objects[k].index)->at;
	}
	return column;
}

int trace_join_make(struct trace_join *out, const char *type, const char *name, const struct trace_head *const *heads,
		    const char *const *names, unsigned n, struct err *e)
{
	struct joining j = { .out = out, .heads = heads, .is_one_node = !type };
	bool has_memory;
	int rc = 0;

	*out = (struct trace_join){ .n = n, .column = calloc(n + 1, sizeof(*out->column)) };
	has_memory = out->column && !levels_join(&j, type, name, names) && !events_join(&j);
	snprintf(out->head.node, sizeof(out->head.node), "%s", type ? name : heads[0]->node);
	for (unsigned t = 0; t < n; t++)
		out->head.period = out->head.period > heads[t]->period ? out->head.period : heads[t]->period;
	if (has_memory && trace_head_check(&out->head, e))
		rc = err_within(e, "%s", out->head.node);
	for (unsigned t = 0; rc == 0 && has_memory && t < n; t++)
		has_memory = (out->column[t] = columns_map(&j, t));
	for (unsigned l = 0; j.levels && l < out->head.nlevels; l++)
		free(j.levels[l].list);
	free(j.levels);
	if (!has_memory)
		rc = err_set(e, "out of memory");
	if (rc)
		trace_join_free(out);
	return rc;
}

void trace_join_free(struct trace_join *j)
{
	for (unsigned i = 0; j->column && i < j->n; i++)
		free(j->column[i]);
	free(j->column);
	trace_head_free(&j->head);
	*j = (struct trace_join){0};
}
