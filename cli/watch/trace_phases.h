/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TRACE_PHASES_H
#define TOPIARY_CLI_WATCH_TRACE_PHASES_H

#include <stdbool.h>

#include "trace/phases.h"

/* For cli/watch/trace.c. path: of the trace, beside which the phases are that the program named. 0 or -1. */

/* Print them. */
int trace_phases_print(const struct trace *t, const char *path, bool as_json, struct err *e);

/* Leave the ticks of a phase in the trace. */
int trace_phases_choose(struct trace *t, const char *path, const char *phase, bool is_joined, struct err *e);

/* Those of the file. NULL: there is none, or there is an error, which is a warning. */
struct trace_phases *trace_phases_beside(const struct trace *t, const char *path);

#endif
