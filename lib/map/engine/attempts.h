/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ATTEMPTS_H
#define TOPIARY_MAP_ENGINE_ATTEMPTS_H

#include <stdbool.h>

#include "map/engine/slots.h"

/*
 * Which pairs of domains were tried, and whether anything changed in them since: what was in vain once is so again, but
 * for one time in a hundred.
 */
struct attempts {
	const struct slots *s;
	unsigned now;			/* how many there were */
	unsigned *changed[PATHS_LEVELS + 1];	/* of each domain of each stratum, in one piece: the attempt that changed it last */
	unsigned *kept;			/* the same, as it was kept */
	unsigned domains;		/* of all strata */
	struct attempt *memory;
};

/* 0, or -1 when memory is short; attempts_free does also after that. */
int attempts_init(struct attempts *a, const struct slots *s);
void attempts_free(struct attempts *a);

/* Two domains are about to be tried. false: they were already, and nothing changed. */
bool attempts_add(struct attempts *a, unsigned stratum, unsigned one, unsigned other);

/* This attempt changed who is on the slot. */
void attempts_change(struct attempts *a, unsigned slot);

/* Who is where is as now, later, again. */
void attempts_keep(struct attempts *a);
void attempts_return(struct attempts *a);

#endif
