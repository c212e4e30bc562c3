/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_IMPROVE_H
#define TOPIARY_MAP_ENGINE_IMPROVE_H

#include "map/engine/search.h"

/*
 * From the trials there are. What a beginning comes to shows only when it is improved: the cheapest one after polish is
 * often not the best. So some are improved a little, of those the cheapest ones further, and at last one alone, till
 * the work is done. 0 or -1.
 */
int improve(struct search *x);

#endif
