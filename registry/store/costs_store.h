/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "db.h"
#include "hwbench/hwbench.h"

/*
 * Measured costs of nodes (hwbench/hwbench.h): a list of quantities, shared by all nodes of a shape, and a node's
 * values as an array of 4 bytes each. Called by http and upkeep.
 */

/* COSTS_ABSENT: the node exported nothing yet. COSTS_BAD: not measured on all its cores, or nothing was measured. */
enum costs_result { COSTS_OK, COSTS_ABSENT, COSTS_BAD, COSTS_FAILED };
enum costs_result costs_save(struct db *db, const char *node, unsigned uid, const struct hwbench *b, struct err *e);

/* Computes anew the medians and slow nodes of classes with new measurements. 1 when there were any, 0, -1. */
int costs_refresh(struct db *db, struct err *e);

/* CostsFile: for the nodes of each class the costs that topiary map uses. 0 or -1. */
int costs_text(struct db *db, struct buf *out, struct err *e);
