/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "trace/phases.h"
#include "trace/reader.h"
#include "trace/view.h"

/*
 * The values of a view as text, written as they are read, block by block:
 *	csv	a line for each tick, metric and object
 *	json	one object: the metrics with their objects, and the samples
 *	paje	Paje's trace format (Schnorr, "Paje trace file format", 1.2.5): a container for the node and one for
 *		each object, a variable for each metric, and the phases of the program, if
 *		there are any, as states of the node
 * An absent value is an empty field, null, or not written. Times are seconds since the trace's start.
 */
enum trace_format { TRACE_CSV = 1, TRACE_JSON, TRACE_PAJE };

/* phases: NULL: none. 0, or -1 with out written in part. */
int trace_export(const struct trace *t, struct trace_view *v, const struct trace_phases *phases,
		 enum trace_format format, FILE *out, struct err *e);
