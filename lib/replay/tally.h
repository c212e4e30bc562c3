/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_TALLY_H
#define TOPIARY_REPLAY_TALLY_H

#include "replay/replay.h"

/* The sums during a replay, and the resulting figures. */
struct tally {
	const struct cluster *cluster;
	struct replay_result sums;
	long long *waits;
	unsigned *loose[JUDGED_LEVELS];	/* by node: free cores in partly used domains; */
	unsigned long long loose_now[JUDGED_LEVELS], free_now;
	double loose_time[JUDGED_LEVELS], free_time;
	long long first, last;		/* times */
	double ratios;
};

/* For so many jobs, beginning at a time, on an empty cluster. 0, or -1 when memory is short; free with tally_free. */
int tally_init(struct tally *t, const struct cluster *c, size_t jobs, long long from);
void tally_free(struct tally *t);

/* Advances the time. */
void tally_pass(struct tally *t, long long now);
/* The room changed on these nodes. */
void tally_room(struct tally *t, const struct cluster_room *r, const struct cluster_shares *s);
void tally_job(struct tally *t, const struct past_job *job, const struct judgement *j, long long wait);

void tally_end(struct tally *t, struct replay_result *out);

#endif
