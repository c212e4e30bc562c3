/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_TRACE_ADVISE_H
#define TOPIARY_CLI_TRACE_ADVISE_H

#include <stdbool.h>

#include "trace/reader.h"

/*
 * Print what is found in the traces of n files (trace/advice.h), and what could not be looked for. For trace.c. 0, or
 * -1 with an error that names the file.
 */
int trace_advise(struct trace *const *t, const char *const *names, unsigned n, bool as_json, struct err *e);

#endif
