/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_MATRIX_INFO_H
#define TOPIARY_REGISTRY_CMD_MATRIX_INFO_H

#include <stdbool.h>

#include "base/err.h"
#include "map/matrix.h"

/* Tell ranks, pairs, bytes and the heaviest pairs on stdout. 0 or -1. */
int matrix_tell(const struct matrix *m, bool json, struct err *e);

#endif
