/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ATTEMPTS_H
#define TOPIARY_MAP_ENGINE_ATTEMPTS_H

#include <stdbool.h>

#include "map/engine/slots.h"

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

#endif
