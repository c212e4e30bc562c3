/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/clock.h"
#include "base/settings.h"
#include "ingest/parser.h"
#include "store/bases.h"

/* Tables in which a run leaves dead rows. */
enum upkeep_emptied { IN_NODE, IN_NODE_FACT, IN_PAST, EMPTIED };

/* A run of upkeep, passed by upkeep.c to its steps. */
struct upkeep_run {
	const struct settings *settings;
	struct db *db;
	struct bases *bases;
	struct parser *parser;
	struct publisher *publisher;
	struct background *background;
	double worked_since;	/* in clock_now */
	bool full;		/* the interval is over; else it was requested */
	bool unfinished;	/* set by a step that wants to continue soon */
	unsigned long long emptied[EMPTIED];	/* rows */
};

/*
 * Pause between two transactions, as long as the last took. False when topiaryd stops; the step must return at once
 * then.
 */
bool upkeep_pause(struct upkeep_run *p);
/* The same without pausing. */
bool upkeep_continues(const struct upkeep_run *p);

/*
 * The last step of a run: vacuums tables of which a large part was moved or deleted, so that their space is reused, and
 * rebuilds a bloated index of nodes, which takes some tenths of a second for 100,000 nodes. Where the role may not do
 * so, autovacuum does it some time, and the index stays.
 */
int vacuum_run(struct upkeep_run *p, struct err *e);
