/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_VERDICT_H
#define TOPIARY_REGISTRY_CMD_VERDICT_H

#include <jansson.h>

#include "base/buf.h"
#include "cmd_table.h"
#include "fit/verdict.h"

/* A verdict for people: rows of a table of two columns, a heading and words. */
void verdict_tell(const struct verdict *v, struct table *t);

/* The same in a few words: "placed by Topiary", and, appended to out, "prefer l3" or "/l3=1/core=4". */
const char *verdict_outcome(const struct verdict *v);
void verdict_asked(const struct verdict *v, struct buf *out);

/* All of it: the words of the line as keys; NULL when memory is short. */
json_t *verdict_json(const struct verdict *v);

#endif
