/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_EXPLAIN_H
#define TOPIARY_CLI_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "costs.h"
#include "map/engine/solve.h"

/*
 * Print on out the cost of a mapping beside block, cyclic and Scotch alone, and whose costs these are, as a table
 * or one line of JSON. 0 or -1.
 */
int explain_mapping(const struct mapping *m, const struct places *p, const struct costs *c, bool json, FILE *out,
		    struct err *e);

#endif
