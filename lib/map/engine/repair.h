/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_REPAIR_H
#define TOPIARY_MAP_ENGINE_REPAIR_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Resolves conflicts: of several ranks on a slot the one with the most communication stays, the others move, in order,
 * to the cheapest free slot. slot[m->ranks], m->ranks <= s->n. 0, or -1 when memory is short, slot then unchanged.
 */
int repair_mapping(const struct matrix *m, const struct slots *s, unsigned *slot);

#endif
