/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"
#include "trace/advice.h"

/* `topiary trace advise`: of traces of one node, and of NODE.tasks beside the first. 0 or -1. */
int advise_traces(struct trace *const *t, const char *const *names, unsigned n, bool as_json, struct err *e);
