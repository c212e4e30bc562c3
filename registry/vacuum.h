/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_VACUUM_H
#define TOPIARY_REGISTRY_VACUUM_H

#include "pass.h"

/*
 * The last step of a pass: tables of which it moved or deleted a large part are vacuumed, so that the room is used again, and an index
 * of nodes that grew loose is built anew, which takes some tenths of a second for 100,000 nodes. Where the role may not do that,
 * PostgreSQL vacuums by itself some time, and the index stays as it is. 0 or -1.
 */
int vacuum_run(struct pass *p, struct err *e);

#endif
