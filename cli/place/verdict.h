/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "../table.h"	/* tests have a table.h of their own */
#include "score/verdict.h"

/*
 * Add a verdict to a table of two columns, a heading and an explanation: what the job has; with `all` also how it was
 * chosen.
 */
void verdict_add_rows(const struct verdict *v, bool all, struct table *t);

/* In short: "placed by Topiary"; and, appended to out, the request, "prefer l3" or "/l3=1/core=4". */
const char *verdict_outcome(const struct verdict *v);
void verdict_asked(const struct verdict *v, struct buf *out);

/* The whole verdict as JSON; NULL when memory is short. */
json_t *verdict_json(const struct verdict *v);
