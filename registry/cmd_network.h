/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_NETWORK_H
#define TOPIARY_REGISTRY_CMD_NETWORK_H

#include "cmd.h"
#include "fabric/hierarchy.h"

/*
 * The levels above the nodes where nobody names any: those that topiaryd published in FabricFile, or, where there is no SnapshotFile
 * either, those that the registry tells. NULL: there are none, or, with a warning, none that can be read. Free with hierarchy_free.
 */
struct hierarchy *network_published(const struct cmd *c);

#endif
