/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/unit.h"

#include <stdio.h>
#include <string.h>

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

struct trace_unit trace_unit_named(const char *text)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].kind == TRACE_COUNTER && !strcmp(text, others[i].is.text))
			return others[i].is;
	return (struct trace_unit){ .factor = 1 };
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
