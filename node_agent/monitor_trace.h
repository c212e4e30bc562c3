/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/err.h"
#include "monitor/ask.h"

/*
 * The trace of one step: what its PUs do, and what is counted of the NUMA nodes, packages and devices that are its
 * alone (monitor/source.h). ASK_TRACE in the step's directory, which is continued where an earlier topiary-monitor was
 * killed; and its sums beside it, for readers that follow it (monitor/live.h). Called by monitor_steps.c.
 */
struct monitor_trace;

/*
 * dir: the step's directory, borrowed while this is called. topology: of the step. name: of the step, for messages.
 * NULL on error.
 */
struct monitor_trace *monitor_trace_new(int dir, const char *name, const struct monitor_ask *ask,
					hwloc_topology_t topology, struct err *e);

/* When the next tick is due, in nanoseconds of CLOCK_MONOTONIC; UINT64_MAX: never, as an error ended the trace. */
uint64_t monitor_trace_due(const struct monitor_trace *t);

/* One tick; PUs of `shared` are absent. An error, and a period that was made longer, are logged. */
void monitor_trace_tick(struct monitor_trace *t, hwloc_const_bitmap_t shared);

/* A last tick; complete the file, rename it to ASK_DONE, free. */
void monitor_trace_end(struct monitor_trace *t, int dir, hwloc_const_bitmap_t shared);
