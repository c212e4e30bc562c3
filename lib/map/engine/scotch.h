/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/engine/slots.h"
#include "map/matrix/matrix.h"

/*
 * Maps the ranks onto the slots with Scotch, the slots as one tree, as netloc does (hwloc, netloc/scotch.c; Goglin et
 * al., Euro-Par 2017, section 5.2, all levels at once). The same arguments give the same mapping. Scotch balances but
 * does not enforce one rank a slot: that is mended. slot[] holds m->ranks. 0, or -1 with slot undefined.
 */
int scotch_map(const struct matrix *m, const struct slots *s, unsigned seed, unsigned *slot, struct err *e);

/*
 * Partitions some of the ranks into parts of about the given sizes, all above 0 and summing to the number of ranks,
 * with little communication between parts: the weights that section 5.2 of the paper lacks. Uses recursive bisection
 * without the final refinement of all parts that Scotch's own strategies do, which takes three times as long for hardly
 * better results. part[n]. 0, or -1 with part undefined.
 */
int scotch_split(const struct matrix *m, const struct matrix_ranks *some, unsigned parts, const unsigned *size,
		 unsigned seed, unsigned *part, struct err *e);

/*
 * Resolves conflicts: of several ranks on a slot the one with the most communication stays, the others move, in order,
 * to the cheapest free slot. slot[m->ranks], m->ranks <= s->n. 0, or -1 when memory is short, slot then unchanged.
 */
int scotch_repair(const struct matrix *m, const struct slots *s, unsigned *slot);
