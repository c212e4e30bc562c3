/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_IMPROVE_H
#define TOPIARY_MAP_ENGINE_IMPROVE_H

#include "map/engine/search.h"

/*
 * Improve the trials there are. Which start is best shows only after improvement, because the cheapest after polishing
 * is often not the best: several are improved a little, the cheapest of those further, and finally one alone, until the
 * work is used up. 0 or -1. Called by solve.c.
 */
int improve_trials(struct search *x);

/* Computes a trial's cost, and keeps it if it is the best. Called by solve.c. */
void improve_measure(struct search *x, struct search_trial *t);

#endif
