/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_DRAW_H
#define TOPIARY_FABRIC_DRAW_H

#include "fabric/export.h"

/* What the pictures of a fabric have in common. Sizes in SVG units: a letter of the font is about 6.1 wide. */
enum { HOST_HEIGHT = 16, HOST_GAP = 3, BLOCK_GAP = 26, SWITCH_HEIGHT = 24, ROW_GAP = 130, MARGIN = 20, TITLE = 30 };

/* How much of a name is shown, in letters, and how wide a box of so many is. */
unsigned draw_letters(const char *name);
double draw_width(unsigned letters);

/* class: "s" a switch, "h" a host, "h c" one that was chosen, "o" the place below a spine of its hosts. */
void draw_box(struct buf *out, const char *class, double x, double y, double width, double height, const char *name);
double draw_stroke(unsigned cables);
void draw_title(const struct fabric *f, unsigned plane, double y, struct buf *out);

/*
 * A torus of up to three dimensions as a grid: the first to the right, the second down, the third in slices side by side; links that
 * go round are stubs at both ends. Below *top; how far down and right it goes is left in *top and *right. 0 or -1 (memory).
 */
bool draw_is_grid(const struct fabric_plane *p);
int draw_grid(const struct fabric *f, unsigned plane, const struct chosen *c, struct buf *out, double *top, double *right);

#endif
