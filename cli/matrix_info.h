/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_MATRIX_INFO_H
#define TOPIARY_CLI_MATRIX_INFO_H

#include <stdbool.h>

#include "base/err.h"
#include "map/matrix/matrix.h"

/* Print the number of ranks and pairs, bytes, and the heaviest pairs on stdout. 0 or -1. */
int matrix_print_info(const struct matrix *m, bool json, struct err *e);

#endif
