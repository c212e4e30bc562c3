/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/join.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* --- levels: of each type one, with the objects of all nodes */

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

static int level_append(struct trace_level *to, const struct trace_level *from, unsigned pus, const char *name)
{
	if (array_reserve(to->objects, to->n, from->n) || (name && array_reserve(to->names, to->n, from->n)))
		return -1;
	for (unsigned i = 0; i < from->n; i++, to->n++) {
		to->objects[to->n] = from->objects[i];
		to->objects[to->n].first += pus;
		if (name)
			snprintf(to->names[to->n], TRACE_NAME, "%s", name);
	}
	return 0;
}

/* A type that no node before had comes after the one that it follows on its node. */
static int levels_append(struct trace_head *out, const struct trace_head *h, const char *name)
{
	unsigned after = 0;

	for (unsigned l = 0; l < h->nlevels; l++) {
		const struct trace_level *from = &h->levels[l];
		int at = trace_head_level(out, from->type);

		if (at < 0) {
			at = after + 1;
			if (!level_insert(out, at, from->type))
				return -1;
		}
		if (level_append(&out->levels[at], from, out->pus, !strcmp(from->type, "Machine") ? name : NULL))
			return -1;
		after = at;
	}
	out->pus += h->pus;
	return 0;
}

static int root_add(struct trace_head *out, const char *type, const char *name)
{
	struct trace_object all = { .os_index = -1 };
	struct trace_level *l = level_insert(out, 0, type);

	return l ? level_append(l, &(struct trace_level){ .objects = &all, .n = 1 }, 0, name) : -1;
}

/* --- events */

static struct trace_event *event_find(const struct trace_head *h, const char *name)
{
	for (unsigned i = 0; i < h->nevents; i++)
		if (!strcmp(h->events[i].name, name))
			return &h->events[i];
	return NULL;
}

static int events_add(struct trace_head *out, const struct trace_head *h)
{
	for (unsigned i = 0; i < h->nevents; i++) {
		if (event_find(out, h->events[i].name))
			continue;
		if (array_reserve(out->events, out->nevents, 1))
			return -1;
		out->events[out->nevents] = h->events[i];
		out->events[out->nevents++].level = trace_head_level(out, h->levels[h->events[i].level].type);
	}
	return 0;
}

/* --- columns */

/* Objects of nodes before, at the level of the joined head. */
static unsigned objects_before(const char *type, const struct trace_head *const *heads, unsigned node)
{
	unsigned n = 0;

	for (unsigned i = 0; i < node; i++) {
		int l = trace_head_level(heads[i], type);

		n += l < 0 ? 0 : heads[i]->levels[l].n;
	}
	return n;
}

static unsigned *columns_map(const struct trace_head *out, const struct trace_head *const *heads, unsigned node)
{
	const struct trace_head *h = heads[node];
	unsigned *column = calloc(h->columns + 1, sizeof(*column));

	for (unsigned i = 0; column && i < h->nevents; i++) {
		const struct trace_event *from = &h->events[i], *to = event_find(out, from->name);
		const struct trace_level *l = &h->levels[from->level];
		bool is_same = !strcmp(l->type, out->levels[to->level].type) && from->kind == to->kind;
		unsigned first = is_same ? to->column + objects_before(l->type, heads, node) : 0;

		for (unsigned k = 0; k < l->n; k++)
			column[from->column + k] = is_same ? first + k : TRACE_JOIN_NOWHERE;
	}
	return column;
}

int trace_join_make(struct trace_join *j, const char *type, const char *name, const struct trace_head *const *heads,
		    const char *const *names, unsigned n, struct err *e)
{
	struct trace_head *out = &j->head;
	bool has_memory;

	*j = (struct trace_join){ .n = n, .column = calloc(n + 1, sizeof(*j->column)) };
	has_memory = j->column && !root_add(out, type, name);
	for (unsigned i = 0; has_memory && i < n; i++) {
		has_memory = !levels_append(out, heads[i], names[i]);
		out->period = out->period > heads[i]->period ? out->period : heads[i]->period;
	}
	for (unsigned i = 0; has_memory && i < n; i++)
		has_memory = !events_add(out, heads[i]);
	if (has_memory) {
		out->levels[0].objects[0].count = out->pus;
		snprintf(out->node, sizeof(out->node), "%s", name);
		if (trace_head_check(out, e)) {
			trace_join_free(j);
			return err_within(e, "%s", name);
		}
	}
	for (unsigned i = 0; has_memory && i < n; i++)
		has_memory = (j->column[i] = columns_map(out, heads, i));
	if (has_memory)
		return 0;
	trace_join_free(j);
	return err_set(e, "out of memory");
}

void trace_join_free(struct trace_join *j)
{
	for (unsigned i = 0; j->column && i < j->n; i++)
		free(j->column[i]);
	free(j->column);
	trace_head_free(&j->head);
	*j = (struct trace_join){0};
}
