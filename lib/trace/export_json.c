/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/export_forms.h"

static const char *const modes[] = {
	[TRACE_RATE] = "rate", [TRACE_PER_TICK] = "per_tick", [TRACE_ACCUMULATED] = "accumulated",
};

static json_t *metric_json(const struct trace_head *h, const struct trace_metric *m)
{
	const struct trace_level *l = &h->levels[m->level];
	json_t *objects = json_array();

	for (unsigned i = 0; i < l->n; i++)
		json_array_append_new(objects,
				      json_pack("{s:I, s:I}", "index", (json_int_t) l->objects[i].index, "os_index",
						(json_int_t) l->objects[i].os_index));
	return json_pack("{s:s, s:s, s:o}", "name", m->formula.name, "level", l->type, "objects", objects);
}

/* Samples are lines of their own, so that no trace is held in memory. */
static void json_begin(const struct trace *t, const struct trace_view *v, FILE *out)
{
	json_t *metrics = json_array(), *all;
	char *text;

	for (unsigned i = 0; i < v->n; i++)
		json_array_append_new(metrics, metric_json(v->head, &v->metrics[i]));
	all = json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "node", t->head.node, "topology", t->head.topology,
			"start_ns", (json_int_t) t->head.start, "period_ns", (json_int_t) t->head.period, "mode",
			modes[v->mode], "metrics", metrics);
	text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	/* The object stays open for the samples. */
	if (text)
		fprintf(out, "%.*s,\n\"samples\":[", (int) strlen(text) - 1, text);
	free(text);
	json_decref(all);
}

static void metric_values(const struct trace_metric *m, const struct trace_block *b, unsigned t, FILE *out)
{
	for (unsigned i = 0; i < m->n; i++) {
		double x = m->values[(size_t) i * b->n + t];

		putc(i ? ',' : '[', out);
		if (isnan(x))
			fputs("null", out);
		else
			export_number(x, out);
	}
	putc(']', out);
}

static void json_block(const struct trace_view *v, const struct trace_block *b, bool first, FILE *out)
{
	for (unsigned t = 0; t < b->n; t++) {
		fprintf(out, "%s\n{\"time\":%.6f,\"values\":[", first && !t ? "" : ",", b->times[t] * 1e-9);
		for (unsigned m = 0; m < v->n; m++) {
			if (m)
				putc(',', out);
			metric_values(&v->metrics[m], b, t, out);
		}
		fputs("]}", out);
	}
}

static void json_end(const struct trace *t, FILE *out)
{
	fprintf(out, "\n],\"ticks\":%llu}\n", (unsigned long long) t->ticks);
}

const struct export_form export_json = { json_begin, json_block, json_end };
