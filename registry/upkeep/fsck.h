/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "upkeep_steps.h"

/*
 * Rebuilds stored documents, present and past, and compares hash and shape. With `record`, those that cannot be rebuilt
 * are recorded in the table unreadable, which makes the registry ask the node for its present document again
 * (ingest/commit.h), obsolete records are deleted, a base damaged in the database but cached is written again, and a
 * shape that is not the document's is corrected. Called by http/admin.c and upkeep.
 */
struct fsck {
	struct bases *bases;	/* the cache */
	struct db *db;
	struct parser *parser;
	bool record;
	/* Set by each call: */
	struct bases *stored;	/* loaded for this call alone: the cache may be better than what is stored */
	unsigned checked;
	json_t *unreadable;	/* [{"node", "since", "present", "reason"}]; json_decref it */
	char next[320];		/* cursor to continue from; empty at the end */
};

/* Check a batch of documents after the cursor `after`, "" or the `next` of an earlier call. 0, or -1 with an error. */
int fsck_some(struct fsck *f, const char *after, struct err *e);

/* A step of upkeep: some thousand documents, from where the last run stopped. 0 or -1. */
int fsck_run(struct upkeep_run *p, struct err *e);
