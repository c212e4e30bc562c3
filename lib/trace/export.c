/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/export.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "trace/export_forms.h"

void export_number(double x, FILE *out)
{
	if (x == rint(x) && fabs(x) < 1e15)
		fprintf(out, "%.0f", x);
	else
		fprintf(out, "%.15g", x);
}

static void csv_begin(const struct trace *t, const struct trace_view *v, FILE *out)
{
	(void) t;
	(void) v;
	fputs("time,metric,level,object,os_index,value\n", out);
}

static void csv_block(const struct trace_view *v, const struct trace_block *b, bool first, FILE *out)
{
	(void) first;
	for (unsigned t = 0; t < b->n; t++)
		for (const struct trace_metric *m = v->metrics; m < v->metrics + v->n; m++)
			for (unsigned i = 0; i < m->n; i++) {
				const struct trace_level *l = &v->head->levels[m->level];
				double x = m->values[(size_t) i * b->n + t];

				fprintf(out, "%.6f,%s,%s,%u,", b->times[t] * 1e-9, m->formula.name, l->type,
					l->objects[i].index);
				if (l->objects[i].os_index >= 0)
					fprintf(out, "%ld", l->objects[i].os_index);
				putc(',', out);
				if (!isnan(x))
					export_number(x, out);
				putc('\n', out);
			}
}

const struct export_form export_csv = { csv_begin, csv_block, NULL };

int trace_export(const struct trace *t, struct trace_view *v, enum trace_format format, FILE *out, struct err *e)
{
	static const struct export_form *const forms[] = {
		[TRACE_CSV] = &export_csv, [TRACE_JSON] = &export_json, [TRACE_PAJE] = &export_paje,
	};
	const struct export_form *form = forms[format];
	struct trace_block b = {0};
	int rc = 0;

	form->begin(t, v, out);
	for (unsigned i = 0; rc == 0 && !ferror(out) && i < t->nblocks; i++) {
		rc = trace_read(t, i, &b, e) || trace_view_block(v, &b, e) ? -1 : 0;
		if (rc == 0)
			form->block(v, &b, !i, out);
	}
	trace_block_free(&b);
	if (rc == 0 && form->end)
		form->end(t, out);
	if (rc)
		return -1;
	return fflush(out) || ferror(out) ? err_set(e, "cannot write the export: %s", strerror(errno)) : 0;
}
