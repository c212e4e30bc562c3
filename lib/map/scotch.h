/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_SCOTCH_H
#define TOPIARY_MAP_SCOTCH_H

#include "base/err.h"
#include "map/matrix.h"
#include "map/places.h"

enum scotch_method { SCOTCH_MAP_DEFAULT, SCOTCH_MAP_QUALITY, SCOTCH_MAP_RECURSIVE };

/*
 * Map the ranks with Scotch onto the first nplaces places, seen as a tree (Goglin et al., Euro-Par 2017, section 5.2). The
 * same arguments give the same mapping. Several ranks may come to one place: Scotch balances, it does not forbid. place[]
 * holds m->ranks. 0, or -1 with place of no meaning.
 */
int scotch_map(const struct matrix *m, const struct places *p, unsigned nplaces, enum scotch_method method,
	       unsigned seed, unsigned *place, struct err *e);

#endif
