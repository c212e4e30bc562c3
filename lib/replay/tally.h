/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_TALLY_H
#define TOPIARY_REPLAY_TALLY_H

#include "replay/replay.h"

/* The sums of a replay, and its figures in the end. */
struct tally {
	const struct cluster *cluster;
	struct replay_result sums;
	long long *waits;
	unsigned *loose[JUDGED_LEVELS];	/* of each node: free cores in domains that are partly taken; */
	unsigned long long loose_now[JUDGED_LEVELS], free_now;
	double loose_time[JUDGED_LEVELS], free_time;
	long long first, last;		/* time */
	double ratios;
};

/* For so many jobs, from a time on, on an empty cluster. 0, or -1 when memory is short; free with tally_free. */
int tally_init(struct tally *t, const struct cluster *c, size_t jobs, long long from);
void tally_free(struct tally *t);

/* Time goes on to a moment. */
void tally_pass(struct tally *t, long long now);
/* The room changed on these nodes. */
void tally_room(struct tally *t, const struct room *r, const struct job_nodes *s);
void tally_job(struct tally *t, const struct judgement *j, long long wait);

void tally_end(struct tally *t, struct replay_result *out);

#endif
