/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/summary.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/advice.h"
#include "trace/view.h"

#define DIGITS 6		/* of a number */
#define LEVEL "NUMANode"
#define AT 160			/* bytes of an object's name */

struct summary_metric {
	char name[TRACE_NAME], level[TRACE_NAME], unit[2 * TRACE_NAME];
	bool has_total;
	uint64_t total;
	double sum, least, most;	/* of the objects' averages; NAN: absent in all */
	unsigned objects;		/* that have one */
	char least_at[AT], most_at[AT];
};

struct trace_summary {
	struct summary_metric *metrics;
	unsigned n;
	unsigned nodes, pus;
	uint64_t ticks, end;
	int64_t start;
	json_t *found;
};

/* --- metrics --- */

static struct summary_metric *metric_find(struct trace_summary *s, const char *name, const char *level)
{
	struct summary_metric *m;

	for (unsigned i = 0; i < s->n; i++)
		if (!strcmp(s->metrics[i].name, name) && !strcmp(s->metrics[i].level, level))
			return &s->metrics[i];
	if (!(m = array_add(s->metrics, s->n)))
		return NULL;
	*m = (struct summary_metric){ .has_total = true, .least = NAN, .most = NAN };
	snprintf(m->name, TRACE_NAME, "%s", name);
	snprintf(m->level, TRACE_NAME, "%s", level);
	return m;
}

/* "cn1 NUMANode 0", with '?' for what JSON would escape: a trace may be anybody's. */
static void object_name(char out[static AT], const struct trace_head *h, const char *level, unsigned index)
{
	snprintf(out, AT, "%.64s %s %u", h->node, level, index);
	for (char *c = out; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '?';
}

static void object_add(struct summary_metric *m, const struct trace_head *h, unsigned index,
		       const struct trace_statistics *x)
{
	m->has_total &= x->has_total;
	m->total += x->has_total ? x->total : 0;
	if (isnan(x->average))
		return;
	m->sum += x->average;
	m->objects++;
	if (!(x->average >= m->least)) {
		m->least = x->average;
		object_name(m->least_at, h, m->level, index);
	}
	if (!(x->average <= m->most)) {
		m->most = x->average;
		object_name(m->most_at, h, m->level, index);
	}
}

static int view_add(struct trace_summary *s, const struct trace_view *v, struct err *e)
{
	for (unsigned i = 0; i < v->n; i++) {
		const struct trace_level *l = &v->head->levels[v->metrics[i].level];
		struct summary_metric *m = metric_find(s, v->metrics[i].formula.name, l->type);
		/* The events come first (view_fill), then the formulas. */
		struct trace_unit unit = trace_unit_of(i < v->head->nevents ? &v->head->events[i] : NULL, v->mode);

		if (!m)
			return err_set(e, "out of memory");
		snprintf(m->unit, sizeof(m->unit), "%s", unit.text);
		for (unsigned object = 0; object < v->metrics[i].n; object++) {
			struct trace_statistics x = trace_unit_statistics(&unit, v, i, object);

			object_add(m, v->head, l->objects[object].index, &x);
		}
	}
	return 0;
}

static int view_fill(struct trace_view *v, const struct trace *t, struct err *e)
{
	const struct trace_head *h = &t->head;
	struct trace_block b = {0};
	struct formula_list l = {0};
	int rc = trace_view_add_events(v, trace_head_level(h, LEVEL) >= 0 ? LEVEL : NULL, e) ||
		(h->formulas && formula_list_parse(h->formulas, strlen(h->formulas), "its formulas", &l, e)) ||
		trace_view_add_list(v, &l, e) ? -1 : 0;

	formula_list_free(&l);
	for (unsigned i = 0; rc == 0 && i < t->nblocks; i++)
		rc = trace_read(t, i, &b, e) || trace_view_block(v, &b, e) ? -1 : 0;
	trace_block_free(&b);
	return rc;
}

static int trace_add(struct trace_summary *s, const struct trace *t, struct err *e)
{
	struct trace_view *v = trace_view_new(&t->head, TRACE_RATE);
	int rc = !v ? err_set(e, "out of memory") : view_fill(v, t, e) || view_add(s, v, e) ? -1 : 0;

	trace_view_free(v);
	s->pus += t->head.pus;
	s->ticks += t->ticks;
	s->end = t->end > s->end ? t->end : s->end;
	s->start = !s->start || t->head.start < s->start ? t->head.start : s->start;
	return rc;
}

/* --- checks --- */

/* Traces that cannot be checked, because they are too short or not of the same events, find nothing. */
static void node_check(struct trace_summary *s, struct trace *const *traces, const char *const *names, unsigned n,
		       const struct trace_tasks *tasks)
{
	unsigned checks = 0;
	struct err e;
	struct advice *list = advice_list(&(struct advice_node){ traces, names, n, tasks, NULL, NULL }, &checks, &e);

	for (unsigned i = 0; list && i < checks; i++)
		if (list[i].result == ADVICE_FOUND) {
			json_int_t nodes = json_integer_value(json_object_get(s->found, list[i].kind));

			json_object_set_new(s->found, list[i].kind, json_integer(nodes + 1));
		}
	free(list);
}

/* --- JSON --- */

static json_t *metric_json(const struct summary_metric *m)
{
	return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o, s:s, s:o, s:s}", "metric", m->name, "level", m->level,
			 "unit", *m->unit ? m->unit : NULL, "total",
			 m->has_total ? json_integer(m->total) : json_null(), "average",
			 trace_json_value(m->objects ? m->sum / m->objects : NAN), "least", trace_json_value(m->least),
			 "least_at", m->least_at, "most", trace_json_value(m->most), "most_at", m->most_at);
}

/* With the first n metrics. malloc'ed, NULL when memory is short. */
static char *summary_text(const struct trace_summary *s, unsigned n)
{
	json_t *metrics = json_array(), *all;
	char *text;

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(metrics, metric_json(&s->metrics[i]));
	all = json_pack("{s:I, s:I, s:I, s:f, s:I, s:O, s:o, s:I}", "nodes", (json_int_t) s->nodes, "pus",
			(json_int_t) s->pus, "ticks", (json_int_t) s->ticks, "seconds", s->end * 1e-9, "start",
			(json_int_t) (s->start / 1000000000), "found", s->found, "metrics", metrics, "omitted",
			(json_int_t) (s->n - n));
	text = all ? json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS)) : NULL;
	json_decref(all);
	return text;
}

int trace_summary_write(const struct trace_summary *s, struct buf *out, struct err *e)
{
	for (unsigned n = s->n;; n--) {
		char *text = summary_text(s, n);
		bool fits = text && (strlen(text) <= SUMMARY_MAX || !n);

		if (fits)
			buf_puts(out, text);
		free(text);
		if (!text || out->failed)
			return err_set(e, "out of memory");
		if (fits)
			return 0;
	}
}

int trace_summary_add(struct trace_summary *s, struct trace *const *traces, const char *const *names, unsigned n,
		      const struct trace_tasks *tasks, struct err *e)
{
	s->nodes++;
	node_check(s, traces, names, n, tasks);
	for (unsigned i = 0; i < n; i++)
		if (trace_add(s, traces[i], e))
			return err_within(e, "%s", names[i]);
	return 0;
}

struct trace_summary *trace_summary_new(void)
{
	struct trace_summary *s = calloc(1, sizeof(*s));

	if (s && !(s->found = json_object())) {
		free(s);
		s = NULL;
	}
	return s;
}

void trace_summary_free(struct trace_summary *s)
{
	if (!s)
		return;
	json_decref(s->found);
	free(s->metrics);
	free(s);
}
