/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/view.h"

#include "base/array.h"

/* All that was counted at an object, without the ticks that are absent. */
struct view_state {
	uint64_t counted[FORMULA_EVENTS];
	uint64_t ticks, absent;
	double seconds, min, max;
};

struct metric_own {
	const struct trace_event *events[FORMULA_EVENTS];	/* of the formula */
	struct view_run {
		unsigned first, n;			/* of the event's leaves; n 0: none is below the object */
	} *runs;						/* runs[object * nevents + event] */
	struct trace_metric *parts;				/* the formula's, each where its events are counted */
	struct view_run *part_runs;				/* part_runs[object * nparts + part] */
	struct view_state *states;				/* of each object */
};

struct trace_view *trace_view_new(const struct trace_head *h, enum trace_mode mode)
{
	struct trace_view *v = calloc(1, sizeof(*v));

	if (v)
		*v = (struct trace_view){ .head = h, .mode = mode };
	return v;
}

static void metric_free(struct trace_metric *m)
{
	for (unsigned k = 0; m->own && m->own->parts && k < m->formula.nparts; k++)
		metric_free(&m->own->parts[k]);
	if (m->own) {
		free(m->own->parts);
		free(m->own->part_runs);
		free(m->own->runs);
		free(m->own->states);
	}
	free(m->own);
	free(m->values);
	formula_free(&m->formula);
}

void trace_view_free(struct trace_view *v)
{
	if (!v)
		return;
	for (unsigned i = 0; i < v->n; i++)
		metric_free(&v->metrics[i]);
	free(v->metrics);
	free(v->sums);
	free(v);
}

/* --- metrics --- */

/* In post-order the objects below another follow each other. */
static struct view_run run_of(const struct trace_level *leaves, const struct trace_object *o)
{
	unsigned low = 0, high = leaves->n, n = 0;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (trace_object_end(&leaves->objects[middle]) <= o->first)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < leaves->n && leaves->objects[low + n].first >= o->first &&
	       trace_object_end(&leaves->objects[low + n]) <= trace_object_end(o))
		n++;
	return (struct view_run){ low, n };
}

/* Where the events of a part are counted, the widest level of several; -1: one of them is not. */
static int part_level(const struct trace_head *h, const struct formula *f, char missing[static TRACE_NAME])
{
	int level = -1;

	for (unsigned k = 0; k < f->nevents; k++) {
		int event = trace_head_event(h, f->events[k]);

		if (event < 0) {
			strcpy(missing, f->events[k]);
			return -1;
		}
		if (level < 0 || h->levels[h->events[event].level].n < h->levels[level].n)
			level = h->events[event].level;
	}
	return level;
}

static struct view_run run_at(const struct trace_head *h, unsigned level, const struct trace_metric *m, unsigned object)
{
	return level == m->level ? (struct view_run){ object, 1 } :
		run_of(&h->levels[level], &h->levels[m->level].objects[object]);
}

static void metric_restart(struct trace_metric *m)
{
	for (unsigned i = 0; i < m->n; i++)
		m->own->states[i] = (struct view_state){ .min = NAN, .max = NAN };
	for (unsigned k = 0; k < m->formula.nparts; k++)
		if (m->own->parts[k].own)
			metric_restart(&m->own->parts[k]);
}

void trace_view_restart(struct trace_view *v)
{
	for (unsigned i = 0; i < v->n; i++)
		metric_restart(&v->metrics[i]);
}

/* m has its formula, and is to be freed on failure, too. */
static int metric_make(struct trace_view *v, struct trace_metric *m, int level, struct err *e)
{
	const struct formula *f = &m->formula;
	size_t sums;

	m->level = level;
	m->n = v->head->levels[level].n;
	sums = (size_t) m->n * (f->nevents + f->nparts + 1);
	if (sums > TRACE_VIEW_MAX - v->nsums)
		return err_set(e, "%s: more than %u sums a tick", f->name, TRACE_VIEW_MAX);
	v->nsums += sums;
	if (!(m->own = calloc(1, sizeof(*m->own))) ||
	    !(m->own->runs = calloc((size_t) m->n * f->nevents + 1, sizeof(*m->own->runs))) ||
	    !(m->own->parts = calloc(f->nparts + 1, sizeof(*m->own->parts))) ||
	    !(m->own->part_runs = calloc((size_t) m->n * f->nparts + 1, sizeof(*m->own->part_runs))) ||
	    !(m->own->states = calloc(m->n, sizeof(*m->own->states))))
		return err_set(e, "out of memory");
	metric_restart(m);
	for (unsigned k = 0; k < f->nevents; k++) {
		int event = trace_head_event(v->head, f->events[k]);
		const struct trace_event *x = event < 0 ? NULL : &v->head->events[event];
		unsigned found = 0;

		m->own->events[k] = x;
		for (unsigned i = 0; x && i < m->n; i++) {
			struct view_run *r = &m->own->runs[(size_t) i * f->nevents + k];

			*r = run_at(v->head, x->level, m, i);
			found |= r->n;
		}
		if (!found)
			strcpy(m->missing, f->events[k]);
	}
	for (unsigned k = 0; k < f->nparts; k++) {
		int of = part_level(v->head, &f->parts[k].of, m->missing);
		struct trace_metric *part = &m->own->parts[k];
		unsigned found = 0;

		if (of < 0)
			continue;
		if (formula_copy(&f->parts[k].of, v->head->levels[of].type, &part->formula, e) ||
		    metric_make(v, part, of, e))
			return -1;
		for (unsigned i = 0; i < m->n; i++) {
			struct view_run *r = &m->own->part_runs[(size_t) i * f->nparts + k];

			*r = run_at(v->head, of, m, i);
			found |= r->n;
		}
		if (!found)
			strcpy(m->missing, *f->parts[k].of.events);
	}
	return 0;
}

int trace_view_add(struct trace_view *v, struct formula *f, struct err *e)
{
	struct trace_metric m = { .formula = *f };
	int level = trace_head_level_named(v->head, f->level, e);
	unsigned nsums = v->nsums;

	*f = (struct formula){0};
	if (level < 0) {
		err_within(e, "%s", m.formula.name);
		goto error;
	}
	if (metric_make(v, &m, level, e))
		goto error;
	if (array_reserve(v->metrics, v->n, 1)) {
		err_set(e, "out of memory");
		goto error;
	}
	v->metrics[v->n++] = m;
	return 0;
error:
	v->nsums = nsums;
	metric_free(&m);
	return -1;
}

int trace_view_add_list(struct trace_view *v, struct formula_list *l, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < l->n; i++)
		rc = trace_view_add(v, &l->list[i], e);
	formula_list_free(l);
	return rc;
}

/* What is counted of the machine as a whole is of no part of it, even of one with all its PUs. */
static bool is_counted_below(const struct trace_head *h, const struct trace_event *x, unsigned level)
{
	if (!x->level)
		return false;
	return x->level == level || run_of(&h->levels[x->level], &h->levels[level].objects[h->levels[level].n - 1]).n;
}

int trace_view_add_events(struct trace_view *v, const char *level, struct err *e)
{
	const struct trace_head *h = v->head;
	int wanted = level ? trace_head_level_named(h, level, e) : -1;

	if (level && wanted < 0)
		return -1;
	for (unsigned i = 0; i < h->nevents; i++) {
		const struct trace_event *x = &h->events[i];
		unsigned at = wanted >= 0 && is_counted_below(h, x, wanted) ? (unsigned) wanted : x->level;
		struct formula f;

		if (formula_of_event(x->name, h->levels[at].type, &f, e) || trace_view_add(v, &f, e))
			return -1;
	}
	return 0;
}

/* --- blocks --- */

/* What an event's name stands for, in a formula. */
static double operand(enum trace_mode mode, const struct trace_event *x, uint64_t now, uint64_t before, double seconds)
{
	if (x->kind == TRACE_GAUGE || mode == TRACE_PER_TICK)
		return now;
	return mode == TRACE_RATE ? now / seconds : (double) (before + now);
}

/* The least, greatest or mean of a part's values, one after another; absent if one is. */
static double part_join(enum formula_over over, double so_far, double x)
{
	if (isnan(x) || isnan(so_far) || over == FORMULA_AVG)
		return so_far + x;
	return over == FORMULA_MIN ? fmin(so_far, x) : fmax(so_far, x);
}

static struct trace_statistics metric_statistics(const struct trace_view *v, const struct trace_metric *m,
						 unsigned object);

/* A part of what was counted at a tick of the block, or over all blocks (tick UINT_MAX). */
static double part_value(const struct trace_view *v, const struct trace_metric *m, unsigned object, unsigned k,
			 unsigned stride, unsigned tick)
{
	const struct trace_metric *part = &m->own->parts[k];
	struct view_run r = m->own->part_runs[(size_t) object * m->formula.nparts + k];
	enum formula_over over = m->formula.parts[k].over;
	double x = NAN;

	for (unsigned i = r.first; i < r.first + r.n; i++) {
		double of = tick == UINT_MAX ? metric_statistics(v, part, i).average :
					       part->values[(size_t) i * stride + tick];

		x = i > r.first ? part_join(over, x, of) : of;
	}
	return over == FORMULA_AVG ? x / r.n : x;
}

static double tick_value(const struct trace_view *v, const struct trace_metric *m, unsigned object, unsigned tick,
			 unsigned stride, double seconds)
{
	const struct formula *f = &m->formula;
	struct view_state *s = &m->own->states[object];
	const uint64_t *sums = v->sums + tick;
	double operands[FORMULA_OPERANDS];

	for (unsigned k = 0; k < f->nevents; k++)
		if (!m->own->events[k] || sums[k * stride] == TRACE_ABSENT)
			return NAN;
	for (unsigned k = 0; k < f->nparts; k++)
		if (isnan(operands[FORMULA_EVENTS + k] = part_value(v, m, object, k, stride, tick)))
			return NAN;
	for (unsigned k = 0; k < f->nevents; k++) {
		operands[k] = operand(v->mode, m->own->events[k], sums[k * stride], s->counted[k], seconds);
		s->counted[k] += sums[k * stride];
	}
	s->ticks++;
	s->seconds += seconds;
	return formula_value(f, operands, v->mode == TRACE_RATE ? 1 : v->mode == TRACE_PER_TICK ? seconds : s->seconds);
}

static void object_block(struct trace_view *v, struct trace_metric *m, unsigned object, const struct trace_block *b)
{
	struct view_state *s = &m->own->states[object];
	double *values = m->values + (size_t) object * b->n;
	unsigned nevents = m->formula.nevents;

	for (unsigned k = 0; k < nevents; k++)
		if (m->own->events[k]) {
			struct view_run r = m->own->runs[(size_t) object * nevents + k];
			uint64_t *out = v->sums + (size_t) k * b->n;
			const uint64_t *leaf = b->values + (size_t) (m->own->events[k]->column + r.first) * b->n;

			for (unsigned t = 0; t < b->n; t++)
				out[t] = r.n ? leaf[t] : TRACE_ABSENT;
			for (unsigned i = 1; i < r.n; i++) {
				leaf += b->n;
				for (unsigned t = 0; t < b->n; t++)
					out[t] =
						leaf[t] == TRACE_ABSENT || out[t] == TRACE_ABSENT ? TRACE_ABSENT :
							out[t] + leaf[t];
			}
		}
	for (unsigned t = 0; t < b->n; t++) {
		double seconds = (b->times[t] - (t ? b->times[t - 1] : b->begin)) * 1e-9;
		double x = values[t] = tick_value(v, m, object, t, b->n, seconds);

		s->absent += isnan(x);
		/* fmin and fmax prefer a number to NAN. */
		s->min = fmin(s->min, x);
		s->max = fmax(s->max, x);
	}
}

static int metric_block(struct trace_view *v, struct trace_metric *m, const struct trace_block *b, struct err *e)
{
	double *values = realloc(m->values, ((size_t) m->n * b->n + 1) * sizeof(*values));

	if (!values)
		return err_set(e, "out of memory");
	m->values = values;
	for (unsigned k = 0; k < m->formula.nparts; k++)
		if (metric_block(v, &m->own->parts[k], b, e))
			return -1;
	for (unsigned i = 0; i < m->n; i++)
		object_block(v, m, i, b);
	return 0;
}

int trace_view_block(struct trace_view *v, const struct trace_block *b, struct err *e)
{
	uint64_t *sums = realloc(v->sums, (size_t) b->n * FORMULA_EVENTS * sizeof(*sums));

	if (!sums)
		return err_set(e, "out of memory");
	v->sums = sums;
	for (struct trace_metric *m = v->metrics; m < v->metrics + v->n; m++)
		if (metric_block(v, m, b, e))
			return -1;
	return 0;
}

static struct trace_statistics metric_statistics(const struct trace_view *v, const struct trace_metric *m,
						 unsigned object)
{
	const struct view_state *s = &m->own->states[object];
	/* What one tick, one second or the whole trace is a part of. */
	double parts = v->mode == TRACE_RATE ? s->seconds : v->mode == TRACE_PER_TICK ? s->ticks : 1;
	double operands[FORMULA_OPERANDS];

	for (unsigned k = 0; k < m->formula.nevents; k++) {
		const struct trace_event *x = m->own->events[k];

		operands[k] = s->ticks ? s->counted[k] / (x->kind == TRACE_GAUGE ? (double) s->ticks : parts) : NAN;
	}
	for (unsigned k = 0; s->ticks && k < m->formula.nparts; k++)
		operands[FORMULA_EVENTS + k] = part_value(v, m, object, k, 0, UINT_MAX);
	return (struct trace_statistics){
		.min = s->min, .max = s->max, .absent = s->absent,
		.average = s->ticks ? formula_value(&m->formula, operands, s->seconds / parts) : NAN,
		.has_total = m->formula.nsteps == 1 && m->formula.nevents && m->own->events[0] &&
			     m->own->events[0]->kind == TRACE_COUNTER && s->ticks,
		.total = s->counted[0],
	};
}

struct trace_statistics trace_view_statistics(const struct trace_view *v, unsigned metric, unsigned object)
{
	return metric_statistics(v, &v->metrics[metric], object);
}

/* Where people have another unit than the trace, whose values are integers. */
static const struct { const char *unit; enum trace_kind kind; struct trace_unit is; } others[] = {
	{ "ns", TRACE_COUNTER, { "%", 1e-7, true, "s", 1e-9 } },
	{ "uJ", TRACE_COUNTER, { "W", 1e-6, false, "J", 1e-6 } },
	{ "uW", TRACE_GAUGE, { "W", 1e-6, false, "", 0 } },
};

struct trace_unit trace_unit_of(const struct trace_event *x, enum trace_mode mode)
{
	struct trace_unit u = { .factor = 1 };

	if (!x)
		return u;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (x->kind == others[i].kind && (x->kind == TRACE_GAUGE || mode == TRACE_RATE) &&
		    !strcmp(x->unit, others[i].unit))
			return others[i].is;
	snprintf(u.text, sizeof(u.text), "%s%s", x->unit, x->kind != TRACE_GAUGE && mode == TRACE_RATE ? "/s" : "");
	return u;
}

double trace_unit_value(const struct trace_unit *u, const struct trace_object *o, double value)
{
	return value * u->factor / (u->is_by_pus ? o->count : 1);
}

struct trace_statistics trace_unit_statistics(const struct trace_unit *u, const struct trace_view *v, unsigned metric,
					      unsigned object)
{
	const struct trace_object *o = &v->head->levels[v->metrics[metric].level].objects[object];
	struct trace_statistics s = trace_view_statistics(v, metric, object);

	s.min = trace_unit_value(u, o, s.min);
	s.max = trace_unit_value(u, o, s.max);
	s.average = trace_unit_value(u, o, s.average);
	return s;
}

const char *trace_unit_total(const struct trace_unit *u, uint64_t total, char text[static TRACE_TOTAL])
{
	if (*u->total)
		snprintf(text, TRACE_TOTAL, "%.3f %s", total * u->total_factor, u->total);
	else
		snprintf(text, TRACE_TOTAL, "%llu", (unsigned long long) total);
	return text;
}
