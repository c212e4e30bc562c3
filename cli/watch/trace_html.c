/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"
#include "trace_tree.h"

#include <jansson.h>
#include <math.h>

#define PAGE_MAX 5000000u	/* bytes */
#define VALUE_BYTES 5		/* of most values in the page, with their commas */
#define HOLE "@DATA@"

/* cli/watch/trace_page.html */
static const char page[] =
#include "trace_page.inc"
	;

/* What the page has: of each metric a tree, and its values step by step. A step is some ticks added up. */
struct html {
	const struct trace *trace;
	const struct trace_phases *phases;	/* NULL: none */
	struct html_metric {
		struct trace_tree tree;
		struct buf values;	/* double [step][row] */
	} *metrics;
	unsigned n, rows;		/* rows of all */
	struct buf times;		/* double: ends of the steps */
	struct buf phased;		/* int: the phase of each step, -1: none */
	struct trace_block step;	/* of one tick: what was added up */
	unsigned merged, steps, ticks;	/* ticks of a step; steps; ticks in the step so far */
};

/* --- steps --- */

static int step_end(struct html *p, struct err *e)
{
	int phase = p->phases ? trace_phases_at(p->phases, p->step.begin, p->step.times[0]) : -1;
	double time = p->step.times[0] * 1e-9;

	if (!p->ticks)
		return 0;
	for (struct html_metric *m = p->metrics; m < p->metrics + p->n; m++) {
		if (trace_tree_block(&m->tree, &p->step, e))
			return -1;
		trace_tree_tick(&m->tree, &p->step, 0);
		for (unsigned i = 0; i < m->tree.nrows; i++) {
			double x = trace_tree_value(&m->tree, &m->tree.rows[i]);

			buf_add(&m->values, &x, sizeof(x));
		}
	}
	buf_add(&p->times, &time, sizeof(time));
	buf_add(&p->phased, &phase, sizeof(phase));
	p->ticks = 0;
	p->steps++;
	return 0;
}

/* Where blocks were lost, a step ends. */
static int steps_read(struct html *p, struct err *e)
{
	const struct trace_head *h = &p->trace->head;
	struct trace_block b = {0};
	int rc = trace_block_resize(&p->step, h, 1, e);

	for (unsigned i = 0; rc == 0 && i < p->trace->nblocks; i++) {
		rc = trace_read(p->trace, i, &b, e);
		for (unsigned k = 0; rc == 0 && k < b.n; k++) {
			uint64_t begin = k ? b.times[k - 1] : b.begin;

			if (p->ticks == p->merged || (p->ticks && begin != p->step.times[0]))
				rc = step_end(p, e);
			if (!p->ticks)
				p->step.begin = begin;
			/* Counters add up, and are absent if a tick is; a gauge has its last value. */
			for (const struct trace_event *x = h->events; x < h->events + h->nevents; x++)
				for (unsigned c = x->column; c < x->column + h->levels[x->level].n; c++) {
					uint64_t *sum = &p->step.values[c], value = b.values[(size_t) c * b.n + k];

					if (x->kind == TRACE_GAUGE || !p->ticks || value == TRACE_ABSENT)
						*sum = value;
					else if (*sum != TRACE_ABSENT)
						*sum += value;
				}
			p->step.times[0] = b.times[k];
			p->ticks++;
		}
	}
	trace_block_free(&b);
	return rc || step_end(p, e) ? -1 : 0;
}

/* --- the page --- */

static void add_string(struct buf *out, const char *text)
{
	json_t *j = json_string(text);

	cmd_add_json(out, j);
	json_decref(j);
}

/* The greatest magnitude of each level. */
static double *levels_most(const struct html *p, const struct html_metric *m)
{
	const double *values = (const double *) m->values.data;
	double *most = calloc(m->tree.n, sizeof(*most));

	for (size_t i = 0; most && i < (size_t) p->steps * m->tree.nrows; i++) {
		double *level = &most[m->tree.rows[i % m->tree.nrows].level];

		*level = fmax(*level, fabs(values[i]));
	}
	return most;
}

/* In thousandths of the level's greatest magnitude. */
static void add_values(struct buf *out, const struct html *p, const struct html_metric *m, const double *most)
{
	const double *x = (const double *) m->values.data;

	for (unsigned s = 0; s < p->steps; s++) {
		buf_puts(out, s ? "],\n[" : "[");
		for (unsigned i = 0; i < m->tree.nrows; i++, x++) {
			double greatest = most[m->tree.rows[i].level];

			buf_puts(out, i ? "," : "");
			if (isnan(*x))
				buf_puts(out, "null");
			else
				buf_printf(out, "%.3g", greatest > 0 ? *x / greatest * 1000 : 0);
		}
	}
	buf_puts(out, "]");
}

static void add_data(struct buf *out, const struct html *p)
{
	const struct trace_head *h = &p->trace->head;
	const double *times = (const double *) p->times.data;

	buf_puts(out, "{\"node\":");
	add_string(out, *h->node ? h->node : "node");
	buf_puts(out, ",\"topology\":");
	add_string(out, h->topology);
	buf_printf(out, ",\"start\":%.0f,\"ticks\":%llu,\"merged\":%u,\"open_end\":%s,\n\"times\":[", h->start * 1e-6,
		   (unsigned long long) p->trace->ticks, p->merged, p->trace->open_end ? "true" : "false");
	for (unsigned i = 0; i < p->steps; i++)
		buf_printf(out, "%s%.3f", i ? "," : "", times[i]);
	buf_puts(out, "]");
	const int *phased = (const int *) p->phased.data;

	buf_puts(out, ",\n\"phases\":[");
	for (unsigned i = 0; p->phases && i < p->phases->n; i++) {
		buf_puts(out, i ? "," : "");
		add_string(out, p->phases->list[i].name);
	}
	buf_puts(out, "],\"phased\":[");
	for (unsigned i = 0; p->phases && i < p->steps; i++)
		buf_printf(out, "%s%d", i ? "," : "", phased[i]);
	buf_puts(out, "]");
	buf_puts(out, ",\n\"metrics\":[");
	for (unsigned i = 0; i < p->n; i++) {
		buf_puts(out, i ? ",\n" : "");
		const struct trace_tree *t = &p->metrics[i].tree;
		double *most = levels_most(p, &p->metrics[i]);

		out->failed |= !most;
		buf_puts(out, "{\"name\":");
		add_string(out, t->metric);
		buf_puts(out, ",\"unit\":");
		add_string(out, t->unit.text);
		buf_puts(out, ",\n\"most\":[");
		for (unsigned l = 0; most && l < t->n; l++)
			buf_printf(out, "%s%.6g", l ? "," : "", most[l]);
		buf_puts(out, "],\n\"rows\":[");
		for (unsigned j = 0; j < t->nrows; j++) {
			struct buf name = {0};

			trace_tree_name(t, &t->rows[j], &name);
			buf_printf(out, "%s[%u,%u,", j ? "," : "", t->rows[j].depth, t->rows[j].level);
			add_string(out, name.data ? name.data : "");
			buf_puts(out, "]");
			buf_free(&name);
		}
		buf_puts(out, "],\n\"values\":[");
		if (most)
			add_values(out, p, &p->metrics[i], most);
		buf_puts(out, "]}");
		free(most);
	}
	buf_puts(out, "]}");
}

/* --- */

static int html_add_metric(struct html *p, const struct trace_tree_request *how, const char *name, struct err *e)
{
	struct trace_tree_request own = *how;

	own.metric = name;
	if (trace_tree_make(&p->metrics[p->n].tree, &p->trace->head, &own, e))
		return -1;
	p->rows += p->metrics[p->n++].tree.nrows;
	return 0;
}

static int html_make(struct html *p, const struct trace *t, const struct trace_tree_request *how, struct err *e)
{
	int rc = 0;

	*p = (struct html){ .trace = t };
	if (!(p->metrics = calloc(t->head.nevents + how->formulas.n + TRACE_TREE_METRICS, sizeof(*p->metrics))))
		return err_set(e, "out of memory");
	if (how->metric) {
		/* Of "cycles,busy" each. */
		char *list = strdup(how->metric), *rest = list, *name;

		rc = list ? 0 : err_set(e, "out of memory");
		for (unsigned n = 0; rc == 0 && (name = strsep(&rest, ",")); n++)
			rc = n == TRACE_TREE_METRICS ? err_set(e, "--metric=%s: more than %u metrics", how->metric, n) :
				html_add_metric(p, how, name, e);
		free(list);
		return rc;
	}
	for (unsigned i = 0; rc == 0 && i < t->head.nevents; i++)
		rc = html_add_metric(p, how, t->head.events[i].name, e);
	for (unsigned i = 0; rc == 0 && i < how->formulas.n; i++)
		rc = html_add_metric(p, how, how->formulas.list[i].name, e);
	return rc;
}

/* merged 0: as many ticks a step as will do. */
static int page_make(const struct trace *t, const struct trace_tree_request *how, const struct trace_phases *phases,
		     unsigned *merged, struct buf *out, struct err *e)
{
	struct html p;
	int rc = html_make(&p, t, how, e);

	if (!*merged)
		*merged = 1 + (uint64_t) p.rows * t->ticks * VALUE_BYTES / PAGE_MAX;
	p.merged = *merged;
	p.phases = phases;
	rc = rc || steps_read(&p, e) ? -1 : 0;
	if (rc == 0) {
		buf_add(out, page, strstr(page, HOLE) - page);
		add_data(out, &p);
		buf_puts(out, strstr(page, HOLE) + strlen(HOLE));
	}
	for (unsigned i = 0; i < p.n; i++) {
		trace_tree_free(&p.metrics[i].tree);
		buf_free(&p.metrics[i].values);
	}
	free(p.metrics);
	buf_free(&p.times);
	buf_free(&p.phased);
	trace_block_free(&p.step);
	return rc == 0 && out->failed ? err_set(e, "out of memory") : rc;
}

int trace_html(const struct trace *t, const struct trace_tree_request *how, const struct trace_phases *phases,
	       struct err *e)
{
	struct buf out = {0};
	unsigned merged = 0;
	int rc;

	if (!t->ticks)
		return err_set(e, "has no ticks");
	while ((rc = page_make(t, how, phases, &merged, &out, e)) == 0 && out.len > PAGE_MAX && merged < t->ticks) {
		merged = 1 + (uint64_t) merged * out.len / PAGE_MAX;
		buf_free(&out);
	}
	if (rc == 0 && out.len > PAGE_MAX)
		rc = err_set(e, "one tick makes a page of %zu bytes, more than %u: choose --metric or --level", out.len,
			     PAGE_MAX);
	if (rc == 0 && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)))
		rc = err_set(e, "cannot write the page");
	buf_free(&out);
	return rc;
}
