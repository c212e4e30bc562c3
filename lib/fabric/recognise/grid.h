/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_RECOGNISE_GRID_H
#define TOPIARY_FABRIC_RECOGNISE_GRID_H

#include "fabric/model/lines.h"
#include "fabric/recognise/draft.h"

enum { GRID_DIMS = 3, GRID_MAX = 1024, GRID_CELLS = 1 << 20 };

/* A torus of switches, x fastest, built from lists of nodes. Errors name the current line of `lines`. */
struct grid {
	unsigned dim[GRID_DIMS];
	unsigned *switches;	/* ends; freed by the caller */
	struct fabric_draft *draft;
	const char *name;
};

/* Creates the switches, "NAME-X-Y-Z", and the cables between neighbours; fills dim. */
int grid_begin(struct grid *g, struct lines *l, struct fabric_draft *m, const char *name);

/* Places a node at each point of the box of these dims from anchor on, which must be within the torus. */
int grid_place(struct grid *g, struct lines *l, const char *nodes, const unsigned *anchor, const unsigned *dims);

/* Builds a ring of as many places as there are nodes. */
int grid_ring(struct lines *l, struct fabric_draft *m, const char *name, const char *nodes);

#endif
