/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_POLICY_H
#define TOPIARY_REPLAY_POLICY_H

#include "base/err.h"
#include "score/request.h"

/* The policies of a replay. */
enum policy_kind {
	POLICY_STOCK,		/* Slurm without Topiary (replay/stock.h); requests of jobs are ignored */
	POLICY_BLOCK,		/* the same with CR_CORE_DEFAULT_DIST_BLOCK */
	POLICY_FIT,		/* with Topiary: a job's own request, for others the policy's */
};

#define POLICY_NAME 24
struct policy {
	char name[POLICY_NAME];
	enum policy_kind kind;
	struct request request;
};

/*
 * "stock", "block", or a fit (score/request.h), optionally followed by ":" and a level, and by ":mem=" and a value of
 * --topo-mem, by default prefer: "prefer", "require:l3", "prefer:mem=off". 0 or -1.
 */
int policy_parse(const char *word, struct policy *out, struct err *e);

#endif
