/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_MIGRATE_H
#define TOPIARY_REGISTRY_MIGRATE_H

#include "db.h"

/*
 * Apply the migrations of folder (NNNN_NAME.sql) that the database does not have yet, in order, each in its own transaction and
 * recorded in topiary_migration; several daemons may try at once. Migrations newer than ours are left alone. 0 or -1.
 */
int migrate(struct db *db, const char *folder, struct err *e);

#endif
