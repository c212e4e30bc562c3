/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_PATHS_H
#define TOPIARY_MAP_ENGINE_PATHS_H

#include <stdbool.h>

#include "map/places/places.h"

/*
 * The tree that the search follows: for each place a number for each level, from the top down. It is the tree of the
 * places, except where their distances have a structure that this lacks. A torus is halved repeatedly across its
 * longest side, before the level that separates its routers. Where a matrix of distances replaces the costs, its
 * clusters are the tree (single linkage: a level for each distance at which some join).
 */
enum { PATHS_CUTS = 16, PATHS_LEVELS = PLACES_LEVELS + PATHS_CUTS };

struct paths {
	unsigned levels;
	unsigned level[PATHS_LEVELS];	/* by level: the level of the places that it is, or is part of */
	bool is_tree;			/* distances depend on the level at which a pair parts alone; by level: */
	double cost[PATHS_LEVELS];
	unsigned *number;		/* number[place * levels + level] */
};

/* 0, or -1 when memory is short. paths_free may be called in either case. */
int paths_find(struct paths *t, const struct places *p);
void paths_free(struct paths *t);

/* The first level at which two places differ; levels: none. */
unsigned paths_parted(const struct paths *t, unsigned a, unsigned b);

#endif
