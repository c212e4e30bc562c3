/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_CORE_KINDS_H
#define TOPIARY_SHAPE_CORE_KINDS_H

#include "hwxml/extents.h"
#include "shape/core_kind.h"

/*
 * The kind of each core of a tree (shape/core_kind.h), by the index of its object, 0 for other objects, and for all
 * cores unless each has a kind. Malloc'ed; NULL when memory is short.
 */
unsigned char *core_kinds_find(const struct tree *t, const struct tree_extent *extents);

#endif
