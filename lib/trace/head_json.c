/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "trace/head.h"

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

static json_t *event_json(const struct trace_head *h, const struct trace_event *x)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "name", x->name, "unit", x->unit, "kind", kinds[x->kind], "level",
			 h->levels[x->level].type);
}

int trace_head_write(const struct trace_head *h, struct buf *out, struct err *e)
{
	json_t *levels = json_array(), *events = json_array(), *all;
	char *text;

	for (unsigned l = 0; l < h->nlevels; l++)
		json_array_append_new(levels, level_json(&h->levels[l]));
	for (unsigned i = 0; i < h->nevents; i++)
		json_array_append_new(events, event_json(h, &h->events[i]));
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

static int object_read(json_t *j, struct trace_object *o, struct err *e)
{
	json_int_t index, os_index, first, count;

	if (json_unpack(j, "[I, I, I, I!]", &index, &os_index, &first, &count))
		return err_set(e, "objects: expected [index, OS index, first PU, PUs]");
	if (index < 0 || index > INT_MAX || os_index < -1 || os_index > INT_MAX || first < 0 || first > INT_MAX ||
	    count < 0 || count > INT_MAX)
		return err_set(e, "objects: a number is out of range");
	*o = (struct trace_object){ index, os_index, first, count };
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
	for (; l->n < json_array_size(objects); l->n++)
		if (object_read(json_array_get(objects, l->n), &l->objects[l->n], e))
			return -1;
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
