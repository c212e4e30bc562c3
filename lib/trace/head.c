/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/head.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHARED_MAX 256u		/* objects of a level that a PU is in: its own, and NUMA nodes without PUs */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct head_alias {
	const char *name, *is;
};

static const char *alias_resolve(const struct head_alias *aliases, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(name, aliases[i].name))
			return aliases[i].is;
	return name;
}

const char *trace_head_name(const struct trace_level *l, unsigned object)
{
	return l->names ? l->names[object] : NULL;
}

int trace_head_level(const struct trace_head *h, const char *type)
{
	static const struct head_alias aliases[] = {
		{ "Node", "Machine" }, { "Socket", "Package" }, { "NUMA", "NUMANode" },
		{ "L1", "L1dCache" },  { "L1d", "L1dCache" },	{ "L2", "L2Cache" },
		{ "L3", "L3Cache" },   { "L4", "L4Cache" },	{ "Thread", "PU" },
	};
	const char *wanted = alias_resolve(aliases, COUNT(aliases), type);

	for (unsigned l = 0; l < h->nlevels; l++)
		if (!strcasecmp(h->levels[l].type, wanted))
			return l;
	return -1;
}

int trace_head_level_named(const struct trace_head *h, const char *type, struct err *e)
{
	int level = trace_head_level(h, type);
	char known[256] = "";
	size_t n = 0;

	if (level >= 0)
		return level;
	for (unsigned l = 0; l < h->nlevels && n < sizeof(known); l++)
		n += snprintf(known + n, sizeof(known) - n, "%s%s", !l ? "" : l + 1 < h->nlevels ? ", " : " and ",
			      h->levels[l].type);
	return err_set(e, "the trace has no level '%.64s', but %s", type, known);
}

unsigned *trace_head_cpus(const struct trace_head *h, unsigned *n, struct err *e)
{
	int level = trace_head_level(h, "PU");
	const struct trace_level *pus = level < 0 ? NULL : &h->levels[level];
	unsigned *cpus = pus ? calloc(pus->n, sizeof(*cpus)) : NULL;

	if (!cpus) {
		err_set(e, pus ? "out of memory" : "its topology has no PUs");
		return NULL;
	}
	for (*n = 0; *n < pus->n; ++*n)
		cpus[*n] = pus->objects[*n].os_index;
	return cpus;
}

int trace_head_event(const struct trace_head *h, const char *name)
{
	/* papi_avail(1) */
	static const struct head_alias aliases[] = {
		{ "PAPI_TOT_CYC", "cycles" }, { "PAPI_TOT_INS", "instructions" }, { "PAPI_L3_TCM", "l3_misses" },
	};
	const char *wanted = alias_resolve(aliases, COUNT(aliases), name);

	for (unsigned i = 0; i < h->nevents; i++)
		if (!strcmp(h->events[i].name, wanted) || !strcmp(h->events[i].name, name))
			return i;
	return -1;
}

size_t trace_name_length(const char *text)
{
	size_t n = 0;

	if (isalpha((unsigned char) *text) || *text == '_')
		while (isalnum((unsigned char) text[n]) || (text[n] && strchr("_.:", text[n])))
			n++;
	return n;
}

int trace_object_compare(const void *x, const void *y)
{
	const struct trace_object *a = x, *b = y;
	unsigned enda = trace_object_end(a), endb = trace_object_end(b);

	if (enda != endb)
		return enda < endb ? -1 : 1;
	if (a->first != b->first)
		return a->first > b->first ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int level_check(const struct trace_head *h, const struct trace_level *l, struct err *e)
{
	uint64_t pus = 0;

	for (const char *p = l->type; *p; p++)
		if (!isalnum((unsigned char) *p))
			return err_set(e, "'%s' is no type of object", l->type);
	if (!l->n || !*l->type)
		return err_set(e, "level '%s' has no objects", l->type);
	if (h->levels + trace_head_level(h, l->type) != l)
		return err_set(e, "two levels are named '%s'", l->type);
	for (unsigned i = 0; i < l->n; i++) {
		const struct trace_object *o = &l->objects[i];

		if (!o->count || o->first >= h->pus || o->count > h->pus - o->first)
			return err_set(e, "%s %u: its PUs are not among the %u of the trace", l->type, o->index,
				       h->pus);
		if (i && trace_object_compare(o - 1, o) > 0)
			return err_set(e, "%s %u: objects are not in order", l->type, o->index);
		if ((pus += o->count) > (uint64_t) SHARED_MAX * h->pus)
			return err_set(e, "%s: objects overlap more than %u times", l->type, SHARED_MAX);
	}
	return 0;
}

static int event_check(struct trace_head *h, struct trace_event *x, struct err *e)
{
	unsigned n;

	if (!trace_name_length(x->name) || x->name[trace_name_length(x->name)])
		return err_set(e, "'%s' cannot be the name of an event", x->name);
	if (x->level >= h->nlevels || x->kind > TRACE_GAUGE)
		return err_set(e, "event %s: no such level or kind", x->name);
	for (struct trace_event *other = h->events; other < x; other++)
		if (!strcmp(other->name, x->name))
			return err_set(e, "two events are named '%s'", x->name);
	n = h->levels[x->level].n;
	if (n > TRACE_COLUMNS_MAX - h->columns)
		return err_set(e, "more than %u values a tick", TRACE_COLUMNS_MAX);
	x->column = h->columns;
	h->columns += n;
	return 0;
}

int trace_head_check(struct trace_head *h, struct err *e)
{
	int pu = trace_head_level(h, "PU");

	if (pu < 0 || !h->nevents || h->nevents > TRACE_EVENTS_MAX)
		return err_set(e, "expected a level of PUs and 1 to %u events", TRACE_EVENTS_MAX);
	h->pus = h->levels[pu].n;
	h->columns = 0;
	for (unsigned l = 0; l < h->nlevels; l++)
		if (level_check(h, &h->levels[l], e))
			return -1;
	for (unsigned i = 0; i < h->pus; i++)
		if (h->levels[pu].objects[i].first != i || h->levels[pu].objects[i].count != 1)
			return err_set(e, "PUs are not in order");
	for (unsigned i = 0; i < h->nevents; i++)
		if (event_check(h, &h->events[i], e))
			return -1;
	return 0;
}

void trace_head_free(struct trace_head *h)
{
	for (unsigned l = 0; l < h->nlevels; l++) {
		free(h->levels[l].objects);
		free(h->levels[l].names);
	}
	free(h->levels);
	free(h->events);
	free(h->formulas);
	*h = (struct trace_head){0};
}
