/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_RECOGNISE_GRID_H
#define TOPIARY_FABRIC_RECOGNISE_GRID_H

#include "fabric/model/lines.h"
#include "fabric/recognise/make.h"

enum { GRID_DIMS = 3, GRID_MAX = 1024, GRID_CELLS = 1 << 20 };

/* A torus of switches, x fastest, made of what lists of nodes say. Errors name the line that lines is at. */
struct grid {
	unsigned dim[GRID_DIMS];
	unsigned *switches;	/* ends; freed by the caller */
	struct making *making;
	const char *name;
};

/* The switches, "NAME-X-Y-Z", and the cables between those side by side; dim is filled. */
int grid_begin(struct grid *g, struct lines *l, struct making *m, const char *name);

/* A node at each place of the box of these dims from anchor on, which must be within the torus. */
int grid_place(struct grid *g, struct lines *l, const char *nodes, const unsigned *anchor, const unsigned *dims);

/* A ring of as many places as there are nodes. */
int grid_ring(struct lines *l, struct making *m, const char *name, const char *nodes);

#endif
