/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_SPREAD_H
#define TOPIARY_SCORE_SCORE_SPREAD_H

#include "score/score_kind.h"

/*
 * FIT_SPREAD, as described at score_pick: chooses cores for `tasks` of the tree's task_cores over the wanted cover,
 * into chosen[], which must be empty. 0; 1 when they do not all fit as a whole; -1 when memory is short.
 */
int score_spread(const struct score_tree *t, unsigned tasks, uint64_t *chosen, struct score_cost *cost,
		 struct score_arena *arena);

#endif
