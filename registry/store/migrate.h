/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "db.h"

/*
 * The migrations NNNN_NAME.sql of a folder, read once at the start: files installed later belong to the next release. A
 * line "-- Works with: NNNN" means that a topiaryd whose newest migration is NNNN still works once this one is applied;
 * without it, only those that have this migration do. Called by identity.c and topiaryd.c.
 */
struct migrations;
struct migrations *migrations_load(const char *folder, struct err *e);
void migrations_free(struct migrations *m);

/*
 * Compare the database's schema: 0 when it is up to date, or newer and still compatible; 1 when migrations are to be
 * applied; -1 with an error, also when it is too new, or that of a development version, or an applied migration
 * differs from ours.
 */
int migrations_check(struct db *db, struct migrations *m, struct err *e);

/*
 * Apply the missing migrations in order, each in a transaction without time limit, recorded with its hash in
 * topiary_migration; several daemons may try at once. 0 or -1.
 */
int migrations_apply(struct db *db, struct migrations *m, struct err *e);

/* Was the schema refused when last compared? Waiting does not help then. */
bool migrations_refused(const struct migrations *m);
