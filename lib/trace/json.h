/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TRACE_JSON_H
#define TOPIARY_TRACE_JSON_H

#include <jansson.h>
#include <math.h>

/* A value in JSON: null if it is absent. For summary.c, `topiary trace` and `topiary top`. */
static inline json_t *trace_json_value(double x)
{
	return isnan(x) ? json_null() : json_real(x);
}

#endif
