/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_VERDICT_H
#define TOPIARY_SCORE_VERDICT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "score/score.h"

/*
 * Why a job is where it is: what slurmctld's plugin decided, as it stands in the job's SystemComment (scontrol show
 * job, sacct) and as `topiary why` tells it. One line of words, without newlines, quotes, backslashes and bars (Slurm
 * writes it into SQL as it is, sacct sets columns apart by bars), that may stand beside what others wrote into the
 * comment:
 *
 *	topiary:1 placed fit=prefer level=l3 nodes=2 tasks=8x1 candidates=12 room=9 touched=1,1,1,1,8
 *	broken=1,1,1,1,8 beside=cn7 decided=open:l3 cores=cn[1-2]:0-7;cn3:8-15 end
 *	topiary:1 waits fit=require level=l3 nodes=1 tasks=12x1 candidates=4 reason=no_L3_has_12_cores end
 *
 * A word that is not there stands for 0, none or the node's level. Counts stand in the order of enum level, package to
 * l2; those of "cuts" are NUMA and L3, and those of "left" begin with the node. What has several words is one here: ';'
 * stands between nodes, '_' for the blanks of a reason. From 1 on, words may be added, which a reader passes over, and
 * none changes its meaning.
 */
enum outcome {
	VERDICT_PLACED,		/* by Topiary */
	VERDICT_LEFT,		/* to Slurm alone: reason */
	VERDICT_WAITS,		/* required, and not to be had now: reason */
	VERDICT_COUNT,
};

#define VERDICT_TEXT 512

struct verdict {
	enum outcome outcome;
	struct request request;
	unsigned nodes, tasks, task_cores;	/* tasks on each node, the most where nodes differ */
	unsigned cores_per_node;		/* for these tasks, which may share cores (SMT); 0: not told */
	unsigned own_cores;			/* 1: spread tasks were given whole cores, though nobody said so */
	unsigned candidates, room;		/* nodes that Slurm offered; of these, where the cores could be had */
	struct score_cost cost;			/* on the worst of the nodes chosen; VERDICT_PLACED only */
	char beside[64];			/* the best node that was not chosen; "" when all were */
	int decided_row, decided_level;		/* where the choice is better (score_differ); -1: equal, lower index */
	char cores[VERDICT_TEXT];		/* "cn[1-2]:0-7 cn3:8-11"; truncated after a word: ends with "..." */
	char reason[128];			/* a sentence's part: "no L3 has 12 cores" */
};

/* "placed", "left", "waits" and "beyond", "cuts", "touched", "open", "broken", "left": constants. */
const char *outcome_name(enum outcome outcome);
const char *score_row_name(enum score_row row);

/*
 * Append the line. The cores are cut so that it has at most VERDICT_TEXT bytes; what may not stand in it becomes '?'.
 * Memory that is short is the buf's failure.
 */
void verdict_write(const struct verdict *v, struct buf *out);

/*
 * Where the first whole line stands in a comment, of whatever version, so that it can be replaced: 0 with start and
 * length, or 1. The comment may be NULL, here and below.
 */
int verdict_find(const char *comment, size_t *start, size_t *len);

/*
 * Find and read the line in a comment: 0, 1 when there is none, -1 with an error when there is one that cannot be read.
 */
int verdict_read(const char *comment, struct verdict *out, struct err *e);

#endif
