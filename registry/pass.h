/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_PASS_H
#define TOPIARY_REGISTRY_PASS_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/settings.h"
#include "bases.h"
#include "db.h"
#include "parser.h"

/* Tables in which a pass leaves dead rows: of those that it moved or deleted. */
enum emptied { IN_NODE, IN_NODE_FACT, IN_PAST, EMPTIED };

/* How a pass rests, and how it is ended: one lock for all who wake it. */
struct pace {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	double worked_since;	/* in pace_now */
};
void pace_init(struct pace *p);
double pace_now(void);
struct timespec pace_at(double seconds);

/* A pass of upkeep, as its steps see it. */
struct pass {
	const struct settings *settings;
	struct db *db;
	struct bases *bases;
	struct parser *parser;
	struct pace *pace;
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
