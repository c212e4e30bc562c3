/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_SPREAD_H
#define TOPIARY_SCORE_SCORE_SPREAD_H

#include "score/score_kind.h"

/*
 * FIT_SPREAD, as score_pick says: `tasks` of the tree's task_cores over the cover that it wants, into chosen[], which
 * begins empty. 0; 1 when they do not fit in whole; -1 when memory is short.
 */
int score_spread(const struct score_tree *t, unsigned tasks, uint64_t *chosen, struct score_cost *cost,
		 struct score_arena *arena);

#endif
