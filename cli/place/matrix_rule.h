/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "map/matrix/matrix.h"

/*
 * A matrix by rule, in bytes:
 *	stencil2d:XxY[:5|9]	neighbours in a grid, of 64 x 64 cells of 8 bytes each
 *	stencil3d:XxYxZ[:7|27]	the same of 64 x 64 x 64
 *	pencils:XxY		a 3D Fourier transform: each rank sends 1 MiB within its row and 1 MiB within its column
 *	ring:N			each rank and the next, 1 KiB
 *	random:N		points in a square, those within reach of each other, eight on average: 1 to 1024 bytes
 *	powerlaw:N		few ranks with many partners (Barabasi, Albert, Science 286, 1999; four links a rank),
 *				1 to 1024 bytes
 * Ranks are numbered row by row. The same seed gives the same matrix. NULL on error.
 */
struct matrix *matrix_rule_make(const char *rule, uint64_t seed, struct err *e);
