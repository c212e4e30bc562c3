/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_EXPORT_FORMS_H
#define TOPIARY_TRACE_EXPORT_FORMS_H

#include "trace/export.h"

/* One form of trace/export.h: what comes first, a block's values, what comes last (may be NULL). */
struct export_form {
	void (*begin)(const struct trace *t, const struct trace_view *v, FILE *out);
	void (*block)(const struct trace_view *v, const struct trace_block *b, bool first, FILE *out);
	void (*end)(const struct trace *t, FILE *out);
};

extern const struct export_form export_csv, export_json, export_paje;

/* Apart from the others, as its values are not in the trace's order. 0, or -1 with out written in part. */
#define EXPORT_NAME (TRACE_NAME + 32)	/* bytes of a metric's name there */
int export_openmetrics(const struct trace *t, struct trace_view *v, FILE *out, struct err *e);

/* A finite number, in full precision and independent of the locale. */
void export_number(double x, FILE *out);

#endif
