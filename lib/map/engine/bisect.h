/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_BISECT_H
#define TOPIARY_MAP_ENGINE_BISECT_H

#include <stdint.h>

#include "map/engine/bisection.h"

/*
 * Effort of the search for a cut. loose: a cut that is dearer by up to this share may be preferred at random, so that
 * another seed gives another.
 */
struct bisect_way {
	bool quick;
	double loose;
	uint64_t seed;
};

/*
 * Bisect the ranks so that the first half gets exactly `first` of ranks and empty slots, and the cut is small: along
 * directions in the space of the lowest eigenvectors of the graph's Laplacian (Pothen, Simon and Liou, 1990), in the
 * order of the ranks and in that of their bias; the best cuts are refined. Several directions, because the eigenvectors
 * of a cube have no unique orientation. The result is h->second. Returns 0, or -1 when memory is short.
 */
int bisect_run(struct bisection *h, unsigned first, struct bisect_way way);

/*
 * The same, starting from the halves in h->second: 1 if better ones were found, 0 if h->second is unchanged, -1 when
 * memory is short.
 */
int bisect_again(struct bisection *h, unsigned first, struct bisect_way way);

#endif
