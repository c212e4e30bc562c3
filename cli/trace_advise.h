/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_TRACE_ADVISE_H
#define TOPIARY_CLI_TRACE_ADVISE_H

#include <stdbool.h>

#include "trace/reader.h"

/* Print what is found in a trace (trace/advice.h), and what could not be looked for. For trace.c. 0 or -1. */
int trace_advise(const struct trace *t, bool as_json, struct err *e);

#endif
