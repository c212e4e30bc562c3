/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/head.h"

#include <jansson.h>

#include "base/printable.h"

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

	if (!cpus)
		return err_null(e, pus ? "out of memory" : "its topology has no PUs");
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

	return COMPARE(trace_object_end(a), trace_object_end(b)) ?: COMPARE(b->first, a->first) ?:
	       COMPARE(a->index, b->index);
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
	for (unsigned i = 0; i < h->nevents; i++) {
		struct trace_event *x = &h->events[i];
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
	}
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

#if HWLOC_API_VERSION >= 0x00030000
#define TYPE_NAME(out, size, o) hwloc_obj_type_snprintf(out, size, o, 1, NULL)
#else
#define TYPE_NAME(out, size, o) hwloc_obj_type_snprintf(out, size, o, 1)
#endif

/* The PUs of a trace by their number in it. */
struct tree_pus {
	hwloc_obj_t *list;
	unsigned n;
};

/* A NUMA node without PUs belongs to what it is attached to. */
static hwloc_const_bitmap_t cpus_of(hwloc_obj_t o)
{
	while (hwloc_bitmap_iszero(o->cpuset) && o->parent)
		o = o->parent;
	return o->cpuset;
}

static bool object_make(const struct tree_pus *pus, hwloc_obj_t o, struct trace_object *out)
{
	hwloc_const_bitmap_t cpus = cpus_of(o);

	*out = (struct trace_object){ .index = o->logical_index,
				      .os_index = o->os_index == HWLOC_UNKNOWN_INDEX ? -1 : (long) o->os_index };
	for (unsigned i = 0; i < pus->n; i++) {
		if (!hwloc_bitmap_isset(cpus, pus->list[i]->os_index))
			continue;
		if (!out->count++)
			out->first = i;
	}
	return out->count;
}

/* The objects of one depth as a new level, if any has PUs of the trace. */
static int level_add(struct trace_head *h, hwloc_topology_t t, int depth, const struct tree_pus *pus, struct err *e)
{
	unsigned n = hwloc_get_nbobjs_by_depth(t, depth);
	struct trace_level *l = &h->levels[h->nlevels];

	if (!n)
		return 0;
	if (!(l->objects = calloc(n, sizeof(*l->objects))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < n; i++)
		l->n += object_make(pus, hwloc_get_obj_by_depth(t, depth, i), &l->objects[l->n]);
	if (!l->n) {
		free(l->objects);
		return 0;
	}
	qsort(l->objects, l->n, sizeof(*l->objects), trace_object_compare);
	TYPE_NAME(l->type, sizeof(l->type), hwloc_get_obj_by_depth(t, depth, 0));
	h->nlevels++;
	return 0;
}

int trace_head_tree(struct trace_head *h, hwloc_topology_t t, hwloc_const_bitmap_t wanted, struct err *e)
{
	static const int memory[] = { HWLOC_TYPE_DEPTH_NUMANODE, HWLOC_TYPE_DEPTH_MEMCACHE };
	int depths = hwloc_topology_get_depth(t), rc = 0;
	struct tree_pus pus = { .list = calloc(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU), sizeof(*pus.list)) };

	h->levels = calloc(depths + 2, sizeof(*h->levels));
	for (hwloc_obj_t o = NULL; pus.list && (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, o));)
		if (!wanted || hwloc_bitmap_isset(wanted, o->os_index))
			pus.list[pus.n++] = o;
	if (!pus.list || !h->levels)
		rc = err_set(e, "out of memory");
	else if (!pus.n)
		rc = err_set(e, "none of these PUs is in the topology");
	for (int d = 0; !rc && d < depths; d++)
		rc = level_add(h, t, d, &pus, e);
	for (int m = 0; !rc && m < 2; m++)
		rc = level_add(h, t, memory[m], &pus, e);
	free(pus.list);
	return rc;
}

int trace_head_machine(struct trace_head *h, bool all, struct err *e)
{
	hwloc_topology_t t;
	int rc;

	if (hwloc_topology_init(&t))
		return err_set(e, "hwloc cannot be initialized");
	if (hwloc_topology_set_flags(t, all ? HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED : 0) || hwloc_topology_load(t))
		rc = err_set(e, "hwloc cannot load this machine's topology");
	else
		rc = trace_head_tree(h, t, NULL, e);
	hwloc_topology_destroy(t);
	return rc;
}

#define VERSION 1

static const char *const kinds[] = { [TRACE_COUNTER] = "counter", [TRACE_GAUGE] = "gauge" };

/* --- writing --- */

static json_t *level_json(const struct trace_level *l)
{
	json_t *objects = json_array(), *names = l->names ? json_array() : NULL;

	for (unsigned i = 0; i < l->n; i++) {
		const struct trace_object *o = &l->objects[i];

		json_array_append_new(objects,
				      json_pack("[I, I, I, I]", (json_int_t) o->index, (json_int_t) o->os_index,
						(json_int_t) o->first, (json_int_t) o->count));
		if (names)
			json_array_append_new(names, json_string(l->names[i]));
	}
	return json_pack("{s:s, s:o, s:o*}", "type", l->type, "objects", objects, "names", names);
}

int trace_head_write(const struct trace_head *h, struct buf *out, struct err *e)
{
	json_t *levels = json_array(), *events = json_array(), *all;
	char *text;

	for (unsigned l = 0; l < h->nlevels; l++)
		json_array_append_new(levels, level_json(&h->levels[l]));
	for (const struct trace_event *x = h->events; x < h->events + h->nevents; x++)
		json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:s}", "name", x->name, "unit", x->unit,
							"kind", kinds[x->kind], "level",
							h->levels[x->level].type));
	all = json_pack("{s:i, s:s, s:s, s:I, s:I, s:o, s:o, s:s*}", "version", VERSION, "node", h->node, "topology",
			h->topology, "start", (json_int_t) h->start, "period", (json_int_t) h->period, "levels", levels,
			"events", events, "formulas", h->formulas);
	text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	if (text)
		buf_puts(out, text);
	free(text);
	json_decref(all);
	return text && !out->failed ? 0 : err_set(e, "the head of the trace is not UTF-8, or out of memory");
}

/* --- reading --- */

static int copy_text(char *to, size_t size, const char *text, const char *what, struct err *e)
{
	if (strlen(text) >= size)
		return err_set(e, "%s: longer than %zu bytes", what, size - 1);
	if (!is_printable(text))
		return err_set(e, "%s: has control characters", what);
	strcpy(to, text);
	return 0;
}

/* A file's text: lines and tabs, and nothing else that controls a terminal, because errors quote it. */
static int copy_lines(char **to, const char *text, const char *what, struct err *e)
{
	char *copy = strdup(text);

	if (!copy)
		return err_set(e, "out of memory");
	for (char *p = copy; (p = strpbrk(p, "\t\r\n"));)
		*p = ' ';
	if (!is_printable(copy)) {
		free(copy);
		return err_set(e, "%s: has control characters", what);
	}
	strcpy(copy, text);
	*to = copy;
	return 0;
}

static int names_read(const json_t *names, struct trace_level *l, struct err *e)
{
	if (json_array_size(names) != l->n)
		return err_set(e, "%s: expected a name for each object", l->type);
	if (!(l->names = calloc(l->n + 1, sizeof(*l->names))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < l->n; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (!name || copy_text(l->names[i], sizeof(l->names[i]), name, "levels: names", e))
			return name ? -1 : err_set(e, "%s: a name is no string", l->type);
	}
	return 0;
}

static int level_read(json_t *j, struct trace_level *l, struct err *e)
{
	const char *type;
	json_t *objects, *names = NULL;

	if (json_unpack(j, "{s:s, s:o, s?o}", "type", &type, "objects", &objects, "names", &names) ||
	    !json_is_array(objects))
		return err_set(e, "levels: expected type and objects");
	if (copy_text(l->type, sizeof(l->type), type, "levels: type", e))
		return -1;
	if (json_array_size(objects) > TRACE_OBJECTS_MAX)
		return err_set(e, "%s: more than %u objects", type, TRACE_OBJECTS_MAX);
	if (!(l->objects = calloc(json_array_size(objects) + 1, sizeof(*l->objects))))
		return err_set(e, "out of memory");
	for (; l->n < json_array_size(objects); l->n++) {
		json_int_t index, os_index, first, count;

		if (json_unpack(json_array_get(objects, l->n), "[I, I, I, I!]", &index, &os_index, &first, &count))
			return err_set(e, "objects: expected [index, OS index, first PU, PUs]");
		if (index < 0 || index > INT_MAX || os_index < -1 || os_index > INT_MAX || first < 0 ||
		    first > INT_MAX || count < 0 || count > INT_MAX)
			return err_set(e, "objects: a number is out of range");
		l->objects[l->n] = (struct trace_object){ index, os_index, first, count };
	}
	return names ? names_read(names, l, e) : 0;
}

static int event_read(const struct trace_head *h, json_t *j, struct trace_event *x, struct err *e)
{
	const char *name, *unit, *kind, *level;
	int at;

	if (json_unpack(j, "{s:s, s:s, s:s, s:s}", "name", &name, "unit", &unit, "kind", &kind, "level", &level))
		return err_set(e, "events: expected name, unit, kind and level");
	if (copy_text(x->name, sizeof(x->name), name, "events: name", e) ||
	    copy_text(x->unit, sizeof(x->unit), unit, "events: unit", e))
		return -1;
	if ((at = trace_head_level(h, level)) < 0)
		return err_set(e, "event %s: the trace has no level '%.64s'", name, level);
	x->level = at;
	x->kind = !strcmp(kind, kinds[TRACE_COUNTER]) ? TRACE_COUNTER : TRACE_GAUGE;
	return x->kind == TRACE_COUNTER || !strcmp(kind, kinds[TRACE_GAUGE]) ? 0 :
		err_set(e, "event %s: kind '%.64s', expected counter or gauge", name, kind);
}

static int lists_read(struct trace_head *h, const json_t *levels, const json_t *events, struct err *e)
{
	size_t nlevels = json_array_size(levels), nevents = json_array_size(events);

	if (nlevels > 64 || nevents > TRACE_EVENTS_MAX)
		return err_set(e, "more than 64 levels or %u events", TRACE_EVENTS_MAX);
	h->levels = calloc(nlevels + 1, sizeof(*h->levels));
	h->events = calloc(nevents + 1, sizeof(*h->events));
	if (!h->levels || !h->events)
		return err_set(e, "out of memory");
	for (size_t l = 0; l < nlevels; l++, h->nlevels++)
		if (level_read(json_array_get(levels, l), &h->levels[l], e)) {
			free(h->levels[l].objects);
			free(h->levels[l].names);
			return -1;
		}
	for (; h->nevents < nevents; h->nevents++)
		if (event_read(h, json_array_get(events, h->nevents), &h->events[h->nevents], e))
			return -1;
	return 0;
}

static int head_read(struct trace_head *h, json_t *all, struct err *e)
{
	const char *node, *topology, *formulas = NULL;
	json_int_t start, period;
	json_t *levels, *events;
	int version;

	if (json_unpack(all, "{s:i}", "version", &version) || version != VERSION)
		return err_set(e, "not a trace of version %d", VERSION);
	if (json_unpack(all, "{s:s, s:s, s:I, s:I, s:o, s:o, s?s}", "node", &node, "topology", &topology, "start",
			&start, "period", &period, "levels", &levels, "events", &events, "formulas", &formulas) ||
	    period < 0)
		return err_set(e, "the head lacks a member, or one is of another type");
	h->start = start;
	h->period = period;
	if (copy_text(h->node, sizeof(h->node), node, "node", e) ||
	    copy_text(h->topology, sizeof(h->topology), topology, "topology", e))
		return -1;
	if (formulas && copy_lines(&h->formulas, formulas, "formulas", e))
		return -1;
	return lists_read(h, levels, events, e) ? -1 : trace_head_check(h, e);
}

int trace_head_parse(const char *text, size_t len, struct trace_head *out, struct err *e)
{
	json_error_t why;
	json_t *all = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	struct trace_head h = {0};
	int rc = all ? head_read(&h, all, e) : err_set(e, "the head is not JSON: %s", why.text);

	json_decref(all);
	if (rc)
		trace_head_free(&h);
	*out = h;
	return rc;
}
