/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_UPKEEP_PASS_H
#define TOPIARY_REGISTRY_UPKEEP_PASS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/settings.h"
#include "store/bases.h"
#include "store/db.h"
#include "ingest/parser.h"

/* Tables in which a run leaves dead rows. */
enum upkeep_emptied { IN_NODE, IN_NODE_FACT, IN_PAST, IN_JOB_SUMMARY, EMPTIED };

/* Pacing and stopping of upkeep; one lock for everything that wakes it. */
struct upkeep_pacing {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	double worked_since;	/* in clock_now */
};

/* A run of upkeep, passed by upkeep.c to its steps. */
struct upkeep_run {
	const struct settings *settings;
	struct db *db;
	struct bases *bases;
	struct parser *parser;
	struct publisher *publisher;
	struct upkeep_pacing *pace;
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

#endif
