/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_PUBLISHED_H
#define TOPIARY_CLI_PLACE_PUBLISHED_H

#include "cmd.h"
#include "fabric/model/hierarchy.h"
#include "shape/snapshot.h"

/* What the registry publishes of the site, for cli/place/map.c and cli/watch/advise_map.c. */

/* The nodes' shapes: from that file; path NULL: from SnapshotFile, otherwise from the registry. NULL on error. */
struct snapshot *published_snapshot(const struct cmd *c, const char *path, struct err *e);

/*
 * The network above the nodes: topiaryd's FabricFile, or, if there is no SnapshotFile either, the registry's. NULL:
 * there is none, or, with a warning, it cannot be read.
 */
struct hierarchy *published_network(const struct cmd *c);

#endif
