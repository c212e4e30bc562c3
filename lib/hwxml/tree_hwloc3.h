/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_TREE_HWLOC3_H
#define TOPIARY_HWXML_TREE_HWLOC3_H

#include <stdbool.h>

#include "hwxml/tree.h"

/*
 * Translates an object's attributes to the values of hwloc 2; called by tree.c for each object. osdev_type: hwloc 3 has
 * a set of types where hwloc 2 has one. pci_type: hwloc 3 appends the programming interface, also when it exports the
 * format of hwloc 2. Values may be shortened in place.
 */
void tree_attrs_translate(struct tree_pair *attrs, size_t n, bool hwloc3);

#endif
