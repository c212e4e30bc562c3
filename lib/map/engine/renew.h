/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_RENEW_H
#define TOPIARY_MAP_ENGINE_RENEW_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Take two domains that talk, of whatever stratum, part the ranks of both anew between them, and mend each half below:
 * a search in a large neighbourhood (Shaw, 1998). What is not cheaper is undone, and what was in vain is not tried
 * again before something changed there. When nothing is left to try, chance parts some two otherwise, those around them
 * follow, and the whole stays where it became cheaper (iterated local search: Lourenço, Martin and Stützle, 2003).
 * Where there is room for more ranks, their shares change as well. It ends after so much work, in arcs looked at or
 * what takes as long. At most one rank a slot before and after; never dearer. 0, or -1 with slot of no meaning.
 */
int renew(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
	  struct err *e);

#endif
