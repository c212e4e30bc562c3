/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/replay_parts.h"

#include <stdlib.h>

int tally_init(struct tally *t, const struct cluster *c, size_t jobs, long long from)
{
	*t = (struct tally){
		.cluster = c, .waits = malloc((jobs + 1) * sizeof(*t->waits)), .free_now = c->cores, .first = from,
		.last = from,
	};
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		if (!(t->loose[i] = calloc(c->n, sizeof(*t->loose[i]))))
			goto error;
	if (t->waits)
		return 0;
error:
	tally_free(t);
	return -1;
}

void tally_free(struct tally *t)
{
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		free(t->loose[i]);
	free(t->waits);
	*t = (struct tally){0};
}

void tally_pass(struct tally *t, long long now)
{
	double ms = now - t->last;

	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		t->loose_time[i] += ms * t->loose_now[i];
	t->free_time += ms * t->free_now;
	t->last = now;
}

static unsigned loose_on(const struct cluster_room *r, unsigned node, enum level level)
{
	const struct cluster_ranges *at = &r->cluster->nodes[node].kind->at[level];
	unsigned n = 0;

	for (size_t i = 0; i < at->n; i++) {
		unsigned count = cluster_range_count(cluster_room_node(r, node), at->list[i]);

		n += count < at->list[i].cores ? count : 0;
	}
	return n;
}

void tally_room(struct tally *t, const struct cluster_room *r, const struct cluster_shares *s)
{
	t->free_now = r->total;
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < JUDGED_LEVELS; i++) {
			unsigned node = s->list[k].node, is = loose_on(r, node, judge_level(i));

			t->loose_now[i] = t->loose_now[i] - t->loose[i][node] + is;
			t->loose[i][node] = is;
		}
}

void tally_job(struct tally *t, const struct past_job *job, const struct judgement *j, long long wait)
{
	struct replay_result *s = &t->sums;

	t->waits[s->jobs++] = wait;
	for (size_t i = 0; i < JUDGED_LEVELS; i++) {
		s->split_own[i] += j->split_own[i];
		s->split_any[i] += j->split_any[i];
	}
	s->dominated += j->dominated;
	s->exact_possible += j->exact_possible;
	s->exact_had += j->exact_had;
	s->broken += j->broken;
	s->with_memory += job->memory > 0;
	s->memory_far += j->memory_far;
	s->memory_needless += j->memory_needless;
	t->ratios += (double) j->touched / j->ideal;
}

static int wait_compare(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The least wait that at least so many percent of the jobs did not exceed. */
static long long wait_percentile(const struct tally *t, size_t percent)
{
	size_t n = t->sums.jobs, rank = (n * percent + 99) / 100;

	return n ? t->waits[rank ? rank - 1 : 0] : 0;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

void tally_end(struct tally *t, struct replay_result *out)
{
	double all = (double) (t->last - t->first) * t->cluster->cores, waited = 0;

	*out = t->sums;
	qsort(t->waits, out->jobs, sizeof(*t->waits), wait_compare);
	for (size_t i = 0; i < out->jobs; i++)
		waited += t->waits[i];
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		out->loose[i] = share(t->loose_time[i], t->free_time);
	out->touched_to_ideal = share(t->ratios, out->jobs);
	out->utilisation = share(all - t->free_time, all);
	out->wait_mean = share(waited, out->jobs);
	out->wait_median = wait_percentile(t, 50);
	out->wait_p95 = wait_percentile(t, 95);
	out->makespan = t->last - t->first;
}
