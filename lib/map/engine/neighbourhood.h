/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/engine/slots.h"
#include "map/matrix/matrix.h"

/*
 * Remembers which pairs of domains were tried, and whether a rank moved in them since: a pair that gained nothing is
 * not tried again before that, except one time in a hundred.
 */
struct attempts {
	const struct slots *s;
	unsigned now;			/* attempts so far */
	unsigned *changed[PATHS_LEVELS + 1];	/* by level and domain, in one array: the last attempt to change it */
	unsigned *kept;			/* a copy of changed, at attempts_keep */
	unsigned domains;		/* in all levels */
	struct attempt *memory;
};

/* 0, or -1 when memory is short; attempts_free may be called in either case. */
int attempts_init(struct attempts *a, const struct slots *s);
void attempts_free(struct attempts *a);

/* Records that two domains of a level are about to be tried. false: they were tried, and nothing changed since. */
bool attempts_add(struct attempts *a, unsigned level, unsigned one, unsigned other);

/* Records that this attempt moved a rank from or to the slot. */
void attempts_change(struct attempts *a, unsigned slot);

/* Saves the present state; restores it. */
void attempts_keep(struct attempts *a);
void attempts_return(struct attempts *a);

/*
 * Large-neighbourhood search (Shaw, 1998): take two domains of any level that communicate, repartition their ranks
 * between them, and refine each half below. What is not cheaper is undone, and a pair that gained nothing is not tried
 * again before a rank moved there. When no pair is left, a random one is repartitioned otherwise, those around it
 * follow, and the result is kept if the whole became cheaper (iterated local search: Lourenço, Martin and Stützle,
 * 2003). Where there are more slots than ranks, the shares of domains change as well. Ends after `work` edge
 * evaluations or what takes as long. At most one rank a slot, before and after; never dearer. Returns 0, or -1 with
 * slot undefined. Called by search.c.
 */
int neighbourhood_search(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			 unsigned *slot, struct err *e);
