/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_UPKEEP_H
#define TOPIARY_REGISTRY_UPKEEP_H

#include <stdbool.h>

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

/* Tables in which a pass leaves dead rows: of those that it moved or deleted. */
enum emptied { IN_NODE, IN_NODE_FACT, IN_PAST, EMPTIED };

/* A pass, as its steps see it. */
struct pass {
	const struct settings *settings;
	struct db *db;
	struct bases *bases;
	struct parser *parser;
	struct upkeep *upkeep;
	int *highest_base;	/* key of a base that was there once, kept from pass to pass */
	bool full;		/* the interval is over; else it was nudged */
	bool unfinished;	/* set by a step that wants to go on soon */
	unsigned long long emptied[EMPTIED];	/* rows */
};

/* Between two transactions: rest. False when topiaryd ends, and the step is to return at once. */
bool pass_rest(struct pass *p);
/* The same without the rest. */
bool pass_goes_on(const struct pass *p);

#endif
