/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>

#include "trace/export_forms.h"

/*
 * Events by the numbers of these definitions. A type "lLEVEL" of containers for each level with metrics, below the
 * node's "n"; containers "lLEVEL_OBJECT" below "node"; variables "mMETRIC".
 */
enum { DEFINE_CONTAINER_TYPE, DEFINE_VARIABLE_TYPE, CREATE_CONTAINER, DESTROY_CONTAINER, SET_VARIABLE };

static const char definitions[] =
	"%EventDef PajeDefineContainerType 0\n% Alias string\n% Type string\n% Name string\n%EndEventDef\n"
	"%EventDef PajeDefineVariableType 1\n% Alias string\n% Type string\n% Name string\n"
	"% Color color\n%EndEventDef\n"
	"%EventDef PajeCreateContainer 2\n% Time date\n% Alias string\n% Type string\n% Container string\n"
	"% Name string\n"
	"%EndEventDef\n"
	"%EventDef PajeDestroyContainer 3\n% Time date\n% Type string\n% Name string\n%EndEventDef\n"
	"%EventDef PajeSetVariable 4\n% Time date\n% Type string\n% Container string\n% Value double\n%EndEventDef\n";

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

static void level_containers(const struct trace_level *l, unsigned number, FILE *out)
{
	fprintf(out, "%d l%u n \"%s\"\n", DEFINE_CONTAINER_TYPE, number, l->type);
	for (unsigned i = 0; i < l->n; i++)
		fprintf(out, "%d 0 l%u_%u l%u node \"%s %u\"\n", CREATE_CONTAINER, number, i, number, l->type,
			l->objects[i].index);
}

static void paje_begin(const struct trace *t, const struct trace_view *v, FILE *out)
{
	fputs(definitions, out);
	fprintf(out, "%d n 0 \"Node\"\n%d 0 node n 0 ", DEFINE_CONTAINER_TYPE, CREATE_CONTAINER);
	paje_string(*t->head.node ? t->head.node : "node", out);
	putc('\n', out);
	for (unsigned l = 0; l < v->head->nlevels; l++)
		if (level_has_metrics(v, l))
			level_containers(&v->head->levels[l], l, out);
	for (unsigned m = 0; m < v->n; m++)
		fprintf(out, "%d m%u l%u \"%s\" \"0 0 0\"\n", DEFINE_VARIABLE_TYPE, m, v->metrics[m].level,
			v->metrics[m].formula.name);
}

/* A variable keeps its value until the next: an interval's is set where the interval begins. */
static void paje_block(const struct trace_view *v, const struct trace_block *b, bool first, FILE *out)
{
	(void) first;
	for (unsigned t = 0; t < b->n; t++)
		for (unsigned m = 0; m < v->n; m++)
			for (unsigned i = 0; i < v->metrics[m].n; i++) {
				double x = v->metrics[m].values[(size_t) i * b->n + t];

				if (isnan(x))
					continue;
				fprintf(out, "%d %.6f m%u l%u_%u ", SET_VARIABLE,
					(t ? b->times[t - 1] : b->begin) * 1e-9, m, v->metrics[m].level, i);
				export_number(x, out);
				putc('\n', out);
			}
}

static void paje_end(const struct trace *t, FILE *out)
{
	fprintf(out, "%d %.6f n node\n", DESTROY_CONTAINER, t->end * 1e-9);
}

const struct export_form export_paje = { paje_begin, paje_block, paje_end };
