/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_REPAIR_H
#define TOPIARY_MAP_REPAIR_H

#include "map/matrix.h"
#include "map/places.h"

/*
 * At most one rank a place: of several the one that talks most stays, the others go, in order, to the free place that is
 * cheapest. place[m->ranks], m->ranks <= p->nplaces. 0, or -1 when memory is short, place then unchanged.
 */
int repair_mapping(const struct matrix *m, const struct places *p, unsigned *place);

#endif
