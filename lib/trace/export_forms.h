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

/* A finite number, in full precision and independent of the locale. */
void export_number(double x, FILE *out);

#endif
