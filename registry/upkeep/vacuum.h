/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_UPKEEP_VACUUM_H
#define TOPIARY_REGISTRY_UPKEEP_VACUUM_H

#include "upkeep_run.h"

/*
 * The last step of a run: vacuums tables of which a large part was moved or deleted, so that their space is reused, and
 * rebuilds a bloated index of nodes, which takes some tenths of a second for 100,000 nodes. Where the role may not do
 * so, autovacuum does it some time, and the index stays. 0 or -1.
 */
int vacuum_run(struct upkeep_run *p, struct err *e);

#endif
