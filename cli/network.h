/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NETWORK_H
#define TOPIARY_CLI_NETWORK_H

#include "cmd.h"
#include "fabric/model/hierarchy.h"

/*
 * The default network above the nodes: topiaryd's FabricFile, or, if there is no SnapshotFile either, the registry's.
 * NULL: there is none, or, with a warning, it cannot be read. Free with hierarchy_free.
 */
struct hierarchy *network_published(const struct cmd *c);

#endif
