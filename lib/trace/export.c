/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/export.h"

struct export {
	const struct trace *t;
	const struct trace_view *v;
	const struct trace_phases *phases;	/* NULL: none */
	int phase;				/* Paje: the state written last */
	bool has_samples;			/* JSON */
	FILE *out;
};

/* A finite number, in full precision and independent of the locale. */
static void number(double x, FILE *out)
{
	fprintf(out, x == rint(x) && fabs(x) < 1e15 ? "%.0f" : "%.15g", x);
}

/* --- CSV */

static void csv_begin(const struct export *x)
{
	fputs("time,metric,level,object,os_index,value\n", x->out);
}

static void csv_tick(struct export *x, const struct trace_block *b, unsigned t)
{
	for (const struct trace_metric *m = x->v->metrics; m < x->v->metrics + x->v->n; m++)
		for (unsigned i = 0; i < m->n; i++) {
			const struct trace_level *l = &x->v->head->levels[m->level];
			double value = m->values[(size_t) i * b->n + t];

			fprintf(x->out, "%.6f,%s,%s,%u,", b->times[t] * 1e-9, m->formula.name, l->type,
				l->objects[i].index);
			if (l->objects[i].os_index >= 0)
				fprintf(x->out, "%ld", l->objects[i].os_index);
			putc(',', x->out);
			if (!isnan(value))
				number(value, x->out);
			putc('\n', x->out);
		}
}

/* --- JSON: samples are lines of their own, so that no trace is held in memory */

static void json_begin(const struct export *x)
{
	static const char *const modes[] = {
		[TRACE_RATE] = "rate", [TRACE_PER_TICK] = "per_tick", [TRACE_ACCUMULATED] = "accumulated",
	};
	const struct trace_head *h = &x->t->head;
	json_t *metrics = json_array(), *all;
	char *text;

	for (unsigned m = 0; m < x->v->n; m++) {
		const struct trace_level *l = &h->levels[x->v->metrics[m].level];
		json_t *objects = json_array();

		for (unsigned i = 0; i < l->n; i++)
			json_array_append_new(objects, json_pack("{s:I, s:I}", "index",
								 (json_int_t) l->objects[i].index, "os_index",
								 (json_int_t) l->objects[i].os_index));
		json_array_append_new(metrics, json_pack("{s:s, s:s, s:o}", "name", x->v->metrics[m].formula.name,
							 "level", l->type, "objects", objects));
	}
	all = json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "node", h->node, "topology", h->topology, "start_ns",
			(json_int_t) h->start, "period_ns", (json_int_t) h->period, "mode", modes[x->v->mode],
			"metrics", metrics);
	text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	/* The object stays open for the samples. */
	if (text)
		fprintf(x->out, "%.*s,\n\"samples\":[", (int) strlen(text) - 1, text);
	free(text);
	json_decref(all);
}

static void json_tick(struct export *x, const struct trace_block *b, unsigned t)
{
	fprintf(x->out, "%s\n{\"time\":%.6f,\"values\":[", x->has_samples ? "," : "", b->times[t] * 1e-9);
	for (const struct trace_metric *m = x->v->metrics; m < x->v->metrics + x->v->n; m++) {
		fputs(m > x->v->metrics ? ",[" : "[", x->out);
		for (unsigned i = 0; i < m->n; i++) {
			double value = m->values[(size_t) i * b->n + t];

			if (i)
				putc(',', x->out);
			if (isnan(value))
				fputs("null", x->out);
			else
				number(value, x->out);
		}
		putc(']', x->out);
	}
	fputs("]}", x->out);
	x->has_samples = true;
}

static void json_end(const struct export *x)
{
	fprintf(x->out, "\n],\"ticks\":%llu}\n", (unsigned long long) x->t->ticks);
}

/*
 * --- Paje: events by the numbers of these definitions. A type "lLEVEL" of containers for each level with metrics,
 * below the node's "n"; containers "lLEVEL_OBJECT" below "node"; variables "mMETRIC"; the node's state "s" is its
 * phase, with values "pPHASE", and "p-1" between them.
 */

enum { DEFINE_CONTAINER_TYPE, DEFINE_VARIABLE_TYPE, CREATE_CONTAINER, DESTROY_CONTAINER, SET_VARIABLE,
       DEFINE_STATE_TYPE, DEFINE_VALUE, SET_STATE };

static void paje_string(const char *text, FILE *out)
{
	putc('"', out);
	for (; *text; text++)
		putc(*text == '"' ? '\'' : *text, out);
	putc('"', out);
}

static bool level_has_metrics(const struct trace_view *v, unsigned level)
{
	for (unsigned m = 0; m < v->n; m++)
		if (v->metrics[m].level == level)
			return true;
	return false;
}

static void paje_begin(const struct export *x)
{
	static const char definitions[] =
		"%EventDef PajeDefineContainerType 0\n% Alias string\n% Type string\n% Name string\n%EndEventDef\n"
		"%EventDef PajeDefineVariableType 1\n% Alias string\n% Type string\n% Name string\n"
		"% Color color\n%EndEventDef\n"
		"%EventDef PajeCreateContainer 2\n% Time date\n% Alias string\n% Type string\n% Container string\n"
		"% Name string\n%EndEventDef\n"
		"%EventDef PajeDestroyContainer 3\n% Time date\n% Type string\n% Name string\n%EndEventDef\n"
		"%EventDef PajeSetVariable 4\n% Time date\n% Type string\n% Container string\n% Value double\n"
		"%EndEventDef\n";
	static const char state_definitions[] =
		"%EventDef PajeDefineStateType 5\n% Alias string\n% Type string\n% Name string\n%EndEventDef\n"
		"%EventDef PajeDefineEntityValue 6\n% Alias string\n% Type string\n% Name string\n% Color color\n"
		"%EndEventDef\n"
		"%EventDef PajeSetState 7\n% Time date\n% Type string\n% Container string\n% Value string\n"
		"%EndEventDef\n";
	const struct trace_head *h = &x->t->head;
	FILE *out = x->out;

	fputs(definitions, out);
	if (x->phases)
		fputs(state_definitions, out);
	fprintf(out, "%d n 0 \"Node\"\n%d 0 node n 0 ", DEFINE_CONTAINER_TYPE, CREATE_CONTAINER);
	paje_string(*h->node ? h->node : "node", out);
	putc('\n', out);
	for (unsigned l = 0; l < h->nlevels; l++) {
		if (!level_has_metrics(x->v, l))
			continue;
		fprintf(out, "%d l%u n \"%s\"\n", DEFINE_CONTAINER_TYPE, l, h->levels[l].type);
		for (unsigned i = 0; i < h->levels[l].n; i++)
			fprintf(out, "%d 0 l%u_%u l%u node \"%s %u\"\n", CREATE_CONTAINER, l, i, l, h->levels[l].type,
				h->levels[l].objects[i].index);
	}
	for (unsigned m = 0; m < x->v->n; m++)
		fprintf(out, "%d m%u l%u \"%s\" \"0 0 0\"\n", DEFINE_VARIABLE_TYPE, m, x->v->metrics[m].level,
			x->v->metrics[m].formula.name);
	if (x->phases)
		fprintf(out, "%d s n \"Phase\"\n%d p-1 s \"no phase\" \"0.9 0.9 0.9\"\n", DEFINE_STATE_TYPE,
			DEFINE_VALUE);
	for (unsigned i = 0; x->phases && i < x->phases->n; i++) {
		fprintf(out, "%d p%u s ", DEFINE_VALUE, i);
		paje_string(x->phases->list[i].name, out);
		fprintf(out, " \"%.2f %.2f %.2f\"\n", 0.3 + i % 3 * 0.3, 0.3 + i / 3 % 3 * 0.3, 0.3 + i / 9 % 3 * 0.3);
	}
}

/* A state or variable keeps its value until the next: an interval's is set where the interval begins. */
static void paje_tick(struct export *x, const struct trace_block *b, unsigned t)
{
	uint64_t begin = t ? b->times[t - 1] : b->begin;
	int phase = x->phases ? trace_phases_at(x->phases, begin, b->times[t]) : x->phase;

	if (phase != x->phase)
		fprintf(x->out, "%d %.6f s node p%d\n", SET_STATE, begin * 1e-9, x->phase = phase);
	for (unsigned m = 0; m < x->v->n; m++)
		for (unsigned i = 0; i < x->v->metrics[m].n; i++) {
			double value = x->v->metrics[m].values[(size_t) i * b->n + t];

			if (isnan(value))
				continue;
			fprintf(x->out, "%d %.6f m%u l%u_%u ", SET_VARIABLE, begin * 1e-9, m,
				x->v->metrics[m].level, i);
			number(value, x->out);
			putc('\n', x->out);
		}
}

static void paje_end(const struct export *x)
{
	fprintf(x->out, "%d %.6f n node\n", DESTROY_CONTAINER, x->t->end * 1e-9);
}

int trace_export(const struct trace *t, struct trace_view *v, const struct trace_phases *phases,
		 enum trace_format format, FILE *out, struct err *e)
{
	static const struct {
		void (*begin)(const struct export *x);
		void (*tick)(struct export *x, const struct trace_block *b, unsigned t);
		void (*end)(const struct export *x);	/* NULL: nothing comes last */
	} forms[] = {
		[TRACE_CSV] = { csv_begin, csv_tick, NULL }, [TRACE_JSON] = { json_begin, json_tick, json_end },
		[TRACE_PAJE] = { paje_begin, paje_tick, paje_end },
	};
	struct export x = { .t = t, .v = v, .phases = phases, .phase = -2, .out = out };
	struct trace_block b = {0};
	int rc = 0;

	forms[format].begin(&x);
	for (unsigned i = 0; rc == 0 && !ferror(out) && i < t->nblocks; i++) {
		rc = trace_read(t, i, &b, e) || trace_view_block(v, &b, e) ? -1 : 0;
		for (unsigned k = 0; rc == 0 && k < b.n; k++)
			forms[format].tick(&x, &b, k);
	}
	trace_block_free(&b);
	if (rc == 0 && forms[format].end)
		forms[format].end(&x);
	if (rc)
		return -1;
	return fflush(out) || ferror(out) ? err_set(e, "cannot write the export: %s", strerror(errno)) : 0;
}
