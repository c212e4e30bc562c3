/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_HALVE_H
#define TOPIARY_MAP_ENGINE_HALVE_H

#include <stdint.h>

#include "map/engine/halves.h"

/*
 * How hard is looked for a cut. loose: chance may prefer one that is dearer by up to that part, so that another seed
 * gives another.
 */
struct halve_way {
	bool quick;
	double loose;
	uint64_t seed;
};

/*
 * Part the ranks so that the first half gets exactly so many of them and of empty slots, and little is cut: across
 * directions in the space of the graph's slowest modes (Pothen, Simon and Liou, 1990), in the order of the ranks and in
 * that of the pull, of which the best ones are mended. Several directions, for the modes of a cube are turned any way
 * in it. h->second tells. 0, or -1 when memory is short.
 */
int halve(struct halves *h, unsigned first, struct halve_way way);

/*
 * The same, beginning with the halves as they are in h->second: 1 and better ones, or 0 and these. -1 when memory is
 * short.
 */
int halve_again(struct halves *h, unsigned first, struct halve_way way);

#endif
