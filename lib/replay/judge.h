/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_JUDGE_H
#define TOPIARY_REPLAY_JUDGE_H

#include "replay/cluster.h"

/*
 * How good a placement was, of all that could have been had at that moment. It does not ask the score: it works out by
 * itself what numbers of domains so many free cores of a node can lie in, all that are not worse than another in every
 * level, by putting together those of its parts.
 *
 * A level that a node does not have counts as score.h has it. Where tasks have several cores, another placement counts
 * only when it cuts no task at a NUMA node or an L3 cache, where the node has one that is large enough for a task.
 */
enum judged { JUDGED_PACKAGE, JUDGED_NUMA, JUDGED_L3, JUDGED_LEVELS };
enum level judged_level(enum judged j);

struct judgement {
	bool split_own[JUDGED_LEVELS];	/* on more domains than it need have been, on one of its nodes */
	bool split_any[JUDGED_LEVELS];	/* or had it another node instead */
	bool dominated;			/* another choice touches fewer domains at a level, and nowhere more */
	bool exact_possible;		/* a free domain of just that size existed and touches no more */
	bool exact_had;			/* and the job left no free core over in the one that it lies in */
	unsigned broken;		/* packages that were wholly free and have some free cores left */
	unsigned touched, ideal;	/* packages, NUMA nodes, L3 caches; the least on the best empty node */
};

struct judge;

/* NULL when memory is short. */
struct judge *judge_new(const struct cluster *c);
void judge_free(struct judge *j);

/* Judge the seats of a job by the room as it was before they were taken. 0, or -1 when memory is short. */
int judge_seats(struct judge *j, const struct room *r, const struct past_job *job, const struct job_nodes *seats,
		struct judgement *out);

#endif
