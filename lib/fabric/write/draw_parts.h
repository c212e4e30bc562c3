/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_WRITE_DRAW_PARTS_H
#define TOPIARY_FABRIC_WRITE_DRAW_PARTS_H

#include "fabric/write/export.h"

/* SVG elements shared by draw.c and draw_grid.c. Sizes in SVG units: a letter of the font is about 6.1 wide. */
enum { HOST_HEIGHT = 16, HOST_GAP = 3, BLOCK_GAP = 26, SWITCH_HEIGHT = 24, ROW_GAP = 130, MARGIN = 20, TITLE = 30 };

/* How many letters of a name are shown, and the width of a box for that many. */
unsigned draw_letters(const char *name);
double draw_width(unsigned letters);

/* class: "s" a switch, "h" a host, "h c" a selected one, "o" the frame of the hosts below a spine. */
void draw_box(struct buf *out, const char *class, double x, double y, double width, double height, const char *name);
double draw_stroke(unsigned cables);
/* The description of a plane at height y; returns its right edge. */
double draw_title(const struct fabric *f, unsigned plane, double y, struct buf *out);

/*
 * Draws a torus of up to three dimensions as a grid, for draw.c: the first dimension to the right, the second down, the
 * third as slices side by side; wrap-around links are stubs at both ends. Starts at *top; *top and *right are set to
 * its lower and right edge. 0, or -1 when memory is short.
 */
bool draw_is_grid(const struct fabric_plane *p);
int draw_grid(const struct fabric *f, unsigned plane, const struct fabric_hosts *c, struct buf *out, double *top,
	      double *right);

#endif
