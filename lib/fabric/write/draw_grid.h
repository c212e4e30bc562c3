/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_WRITE_DRAW_GRID_H
#define TOPIARY_FABRIC_WRITE_DRAW_GRID_H

#include "fabric/write/export.h"

/*
 * Draws a torus of up to three dimensions as a grid, for draw.c: the first dimension to the right, the second down, the
 * third as slices side by side; wrap-around links are stubs at both ends. Starts at *top; *top and *right are set to
 * its lower and right edge. 0, or -1 when memory is short.
 */
bool draw_is_grid(const struct fabric_plane *p);
int draw_grid(const struct fabric *f, unsigned plane, const struct fabric_hosts *c, struct buf *out, double *top,
	      double *right);

#endif
