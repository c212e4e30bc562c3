/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_JUDGE_H
#define TOPIARY_REPLAY_JUDGE_H

#include "replay/cluster.h"

/*
 * Measures a placement against those that the score (score.h) would have chosen at that moment on each node that the
 * job could have had: the numbers of packages, dies, NUMA nodes and L3 caches that they touch. A level that a node
 * lacks counts as in score.h.
 */
enum judge_level { JUDGED_PACKAGE, JUDGED_NUMA, JUDGED_L3, JUDGED_LEVELS };
enum level judge_level(enum judge_level j);

struct judgement {
	bool split_own[JUDGED_LEVELS];	/* on more domains than necessary, on one of its nodes */
	bool split_any[JUDGED_LEVELS];	/* the same with another node instead */
	bool dominated;			/* another choice touches fewer domains at a level, and nowhere more */
	bool exact_possible;		/* a free domain of just that size existed and touches no more */
	bool exact_had;			/* and the job left no free core in the domain that contains it */
	unsigned broken;		/* packages that were entirely free and have some free cores left */
	unsigned touched, ideal;	/* packages, NUMA nodes, L3 caches; the least on the best empty node */
	bool memory_far;		/* the NUMA nodes of its cores did not have its memory, on one of its nodes */
	bool memory_needless;		/* and those of other free cores had, there or on another node */
};

struct judge;

/* NULL when memory is short. */
struct judge *judge_new(const struct cluster *c);
void judge_free(struct judge *j);

/* Judges the shares of a job by the room before they were allocated. 0, or -1 when memory is short. */
int judge_seats(struct judge *j, const struct cluster_room *r, const struct past_job *job,
		const struct cluster_shares *seats, struct judgement *out);

#endif
