/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_EXPLAIN_H
#define TOPIARY_REGISTRY_CMD_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "map/solve.h"

/* Say on out what a mapping costs beside block, cyclic and Scotch alone: a table, or one line of JSON. 0 or -1. */
int explain_mapping(const struct mapping *m, const struct places *p, bool json, FILE *out, struct err *e);

#endif
