/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "later.h"

#include <stdlib.h>

#include "occupancy.h"

#define TRIES 8		/* each is a simulation of Slurm's own */

struct leaving {
	job_record_t **jobs;
	unsigned count;
};

static int by_end(const void *a, const void *b)
{
	const job_record_t *x = *(job_record_t *const *) a, *y = *(job_record_t *const *) b;

	return (x->end_time > y->end_time) - (x->end_time < y->end_time);
}

static bool is_there(const job_record_t *job, const bitstr_t *nodes)
{
	const job_resources_t *r = job->job_resrcs;

	return (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && r && r->node_bitmap &&
	       bit_size(r->node_bitmap) == node_record_count && bit_overlap_any(r->node_bitmap, (bitstr_t *) nodes);
}

static int leaving_read(struct leaving *l, const bitstr_t *nodes)
{
	slurm_iterator_t it;
	job_record_t *job;

	*l = (struct leaving){ .jobs = malloc((list_count(job_list) + 1) * sizeof(*l->jobs)) };
	if (!l->jobs)
		return -1;
	it = list_iterator_create(job_list);
	while ((job = list_next(it)))
		if (is_there(job, nodes))
			l->jobs[l->count++] = job;
	list_iterator_destroy(it);
	qsort(l->jobs, l->count, sizeof(*l->jobs), by_end);
	return 0;
}

/* The job's nodes as they are without it: add those that have a seat now. */
static void let_go(struct seats *s, const job_record_t *job, uint64_t *taken, bitstr_t *seated)
{
	const bitstr_t *nodes = job->job_resrcs->node_bitmap;
	struct seat seat;

	occupancy_without(job, taken);
	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1))
		if (bit_test((bitstr_t *) s->nodes, i) && !bit_test(seated, i) &&
		    seats_find_on(s, s->ask->share[0].tasks, i, &seat))
			bit_set(seated, i);
}

static bool ask(struct seats *s, bool (*try)(void *, struct seats *, const struct plan *), void *user)
{
	struct plan p;
	bool good = plan_make(&p, s) && try(user, s, &p);

	plan_end(&p);
	return good;
}

/* Those that end in the same second go together. */
static bool go_through(struct seats *s, const struct leaving *l, uint64_t *taken, bitstr_t *seated,
		       bool (*try)(void *, struct seats *, const struct plan *), void *user)
{
	int want = s->ask->share[0].nodes + s->ask->share[1].nodes, have, tried = -1, tries = 0;

	for (unsigned i = 0; i < l->count && tries < TRIES; i++) {
		let_go(s, l->jobs[i], taken, seated);
		have = bit_set_count(seated);
		if (have < want || have == tried || (i + 1 < l->count && !by_end(&l->jobs[i], &l->jobs[i + 1])))
			continue;
		tried = have;
		tries++;
		if (ask(s, try, user))
			return true;
	}
	return false;
}

bool later_find(struct seats *s, bool (*try)(void *user, struct seats *s, const struct plan *p), void *user)
{
	uint64_t *taken = occupancy_copy();
	bitstr_t *seated = bit_alloc(node_record_count);
	struct leaving l = {0};
	bool found = false;

	if (taken && !leaving_read(&l, s->nodes)) {
		s->taken = taken;
		seats_find(s, s->ask->share[0].tasks, NULL);
		for (unsigned i = 0; i < s->count; i++)
			bit_set(seated, s->list[i].node);
		found = go_through(s, &l, taken, seated, try, user);
		s->taken = NULL;
	}
	FREE_NULL_BITMAP(seated);
	free(l.jobs);
	free(taken);
	return found;
}

static bool yes(void *user, struct seats *s, const struct plan *p)
{
	(void) user;
	(void) s;
	(void) p;
	return true;
}

bool later_possible(struct seats *s)
{
	uint64_t *taken = occupancy_none();
	bool possible;

	s->taken = taken;
	possible = !taken || ask(s, yes, NULL);
	s->taken = NULL;
	free(taken);
	return possible;
}
