/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/settings.h"
#include "store/bases.h"
#include "store/db.h"
#include "ingest/parser.h"

/*
 * Background maintenance: a run over the database every UpkeepInterval, in small transactions, pausing as long as it
 * works, so that booting nodes do not notice it. Of several topiaryd on one database one at a time runs it. A failure
 * is logged once and retried in the next run. Called by topiaryd.c and http.
 */
struct publisher;
struct upkeep;

/*
 * Everything passed is borrowed until upkeep_stop, which waits for one transaction at most, and accepts NULL. NULL with
 * an error.
 */
struct upkeep *upkeep_start(const struct settings *s, struct db_pool *pool, struct bases *b, struct parser *p,
			    struct publisher *publisher, struct err *e);
void upkeep_stop(struct upkeep *u);

/* What happened, so that its steps run without waiting for the next run. Any thread. */
enum upkeep_event {
	UPKEEP_ON_DRIFT = 1,	/* there is new drift: run the drift hook (upkeep_steps.h) */
	UPKEEP_ON_ACCEPT = 2,	/* a node was accepted: move matching nodes to its class */
	UPKEEP_ON_COSTS = 4,	/* a node was measured: compare it with its class */
	UPKEEP_ON_PATCH = 8,	/* one was stored as a patch: many since the last run start one: they may need a base */
};
void upkeep_notify(struct upkeep *u, enum upkeep_event what);
