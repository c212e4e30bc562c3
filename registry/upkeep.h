/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_UPKEEP_H
#define TOPIARY_REGISTRY_UPKEEP_H

#include "base/settings.h"
#include "bases.h"
#include "db.h"
#include "parser.h"

/*
 * What topiaryd does when nobody asks it: every UpkeepInterval a pass over the database, in small transactions, resting as long as it
 * works, so that nodes that boot meanwhile do not feel it. Of several topiaryd on one database one at a time does so. Whatever fails is
 * logged once and tried again at the next pass.
 */
struct upkeep;

/* All that is given is borrowed until upkeep_stop, which waits for a transaction at most, and accepts NULL. NULL with an error. */
struct upkeep *upkeep_start(const struct settings *s, struct db_pool *pool, struct bases *b, struct parser *p, struct err *e);
void upkeep_stop(struct upkeep *u);

/* There is new drift: tell of it (herald.h) without waiting for the next pass. Any thread may call these; NULL does nothing. */
void upkeep_nudge(struct upkeep *u);
/* A class was accepted: let the nodes that are like it follow now (rebase.h). */
void upkeep_follow(struct upkeep *u);
/* A node is stored as a patch. Many of them since the last pass are worth one soon: they may need a base. */
void upkeep_patched(struct upkeep *u);

#endif
