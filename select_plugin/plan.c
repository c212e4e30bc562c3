/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "plan.h"

#include <stdlib.h>

#include "exclusion.h"

static bool take(struct plan *p, struct seats *s, uint32_t nodes, uint32_t tasks)
{
	if (!nodes)
		return true;
	seats_find(s, tasks, p->nodes);
	if (s->count < nodes)
		return false;
	seats_sort(s, nodes);
	for (uint32_t i = 0; i < nodes; i++) {
		p->seats[p->count++] = s->list[i];
		bit_set(p->nodes, s->list[i].node);
	}
	return true;
}

static void clear(struct plan *p)
{
	bit_clear_all(p->nodes);
	p->count = 0;
}

static bool by_shares(struct plan *p, struct seats *s, uint32_t nodes)
{
	const struct share *share = s->ask->share;

	clear(p);
	s->count = 0;
	return ask_share(s->ask, nodes) && nodes <= (uint32_t) node_record_count &&
		take(p, s, share[0].nodes, share[0].tasks) && take(p, s, share[1].nodes, share[1].tasks);
}

/* How many nodes have a seat for a number of tasks: of up to `most` tasks, nodes[0] being those with any seat. */
struct seated {
	uint32_t *nodes, most;
};

static bool seated_count(struct seated *c, struct seats *s)
{
	uint32_t least, most;

	*c = (struct seated){ .most = seats_capacity(s) };
	if (!(c->nodes = calloc(c->most + 2, sizeof(*c->nodes))))
		return false;
	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1)) {
		if (!node_record_table_ptr[i] || !(most = seats_range_on(s, i, &least)))
			continue;
		c->nodes[0]++;
		c->nodes[least]++;
		c->nodes[most + 1]--;
	}
	for (uint32_t t = 2; t <= c->most; t++)
		c->nodes[t] += c->nodes[t - 1];
	return true;
}

/*
 * What nodes have a seat for more tasks have one for fewer too, but of a path: there, this is only what cannot be done
 * without.
 */
static bool seated_hold(const struct seated *c, struct ask *ask, uint32_t nodes)
{
	const struct share *share = ask->share;

	if (!ask_share(ask, nodes) || share[0].tasks > c->most || c->nodes[share[0].tasks] < share[0].nodes)
		return false;
	return !share[1].nodes || c->nodes[share[1].tasks] >= (ask->request.path.steps ? share[1].nodes : nodes);
}

#define TRIES 4		/* each looks at all nodes; what was counted is wrong at most for paths, on nodes with unlike threads */

/* The numbers after the first, which none but a range or a requirement has. */
static bool by_counts(struct plan *p, struct seats *s)
{
	uint32_t first = s->ask->first, last = s->ask->last, tries = 0;
	struct seated c;
	bool good = false;

	if (!seated_count(&c, s))
		return false;
	for (uint32_t n = MIN(first - 1, c.nodes[0]); n >= last && n && n < first && !good && tries < TRIES; n--)
		good = seated_hold(&c, s->ask, n) && ++tries && by_shares(p, s, n);
	for (uint32_t n = first + 1; n > first && n <= MIN(last, c.nodes[0]) && !good && tries < TRIES; n++)
		good = seated_hold(&c, s->ask, n) && ++tries && by_shares(p, s, n);
	free(c.nodes);
	return good;
}

static bool by_numbers(struct plan *p, struct seats *s)
{
	if (by_shares(p, s, s->ask->first))
		return true;
	if (s->ask->first == s->ask->last)
		return false;
	return by_counts(p, s) || by_shares(p, s, s->ask->min_nodes);
}

/* The nodes that hold most, filled; what is left goes to the node where it fits best. */
static bool by_fewest(struct plan *p, struct seats *s)
{
	uint32_t held = 0;
	unsigned n = 0;

	clear(p);
	seats_find(s, 0, NULL);
	seats_sort(s, s->count);
	while (n < s->count && held < s->ask->tasks)
		held += s->list[n++].tasks;
	if (n < 2 || held < s->ask->tasks || n > s->ask->max_nodes)
		return false;
	for (unsigned i = 0; i + 1 < n; i++) {
		p->seats[p->count++] = s->list[i];
		bit_set(p->nodes, s->list[i].node);
	}
	return take(p, s, 1, s->ask->tasks - (held - s->list[n - 1].tasks));
}

static bool begin(struct plan *p)
{
	*p = (struct plan){ .seats = malloc((node_record_count + 1) * sizeof(*p->seats)), .nodes = bit_alloc(node_record_count) };
	return p->seats;
}

bool plan_make(struct plan *p, struct seats *s)
{
	return begin(p) && (by_numbers(p, s) || (s->ask->any_nodes && by_fewest(p, s)));
}

bool plan_given(struct plan *p, struct seats *s)
{
	const job_resources_t *r = s->job->job_resrcs;
	unsigned at = 0;

	if (!begin(p) || !r)
		return false;
	p->given = true;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; at += glue_cores(i), i = glue_next(r->node_bitmap, i + 1)) {
		unsigned cores = bit_set_count_range(r->core_bitmap, at, at + glue_cores(i));

		if (!seats_given_on(s, i, cores, &p->seats[p->count++]))
			return false;
		bit_set(p->nodes, i);
	}
	return p->count;
}

void plan_end(struct plan *p)
{
	free(p->seats);
	FREE_NULL_BITMAP(p->nodes);
}

const struct seat *plan_beside(const struct plan *p, const struct seats *s)
{
	const struct seat *best = NULL, *last = &p->seats[p->count - 1];

	for (unsigned i = 0; !p->given && i < s->count; i++)
		if (!bit_test(p->nodes, s->list[i].node) && s->list[i].weight == last->weight &&
		    (!best || seat_compare(&s->list[i], best) < 0))
			best = &s->list[i];
	return best;
}

const struct seat *plan_worst(const struct plan *p)
{
	const struct seat *worst = p->seats;

	for (unsigned i = 1; i < p->count; i++)
		if (score_compare(p->seats[i].cost, worst->cost) > 0)
			worst = &p->seats[i];
	return worst;
}

slurm_exclusion_t *plan_exclusion(struct seats *s, const struct seat *seats, unsigned count)
{
	slurm_exclusion_t *x = exclusion_copy(s->excluded);
	uint64_t *chosen = malloc(core_set_words(SHAPE_MAX_CORES) * sizeof(*chosen));

	for (unsigned i = 0; chosen && i < count; i++) {
		if (!seat_cores(s, &seats[i], chosen)) {
			free(chosen);
			chosen = NULL;
			break;
		}
		exclusion_keep(x, seats[i].node, chosen);
	}
	if (!chosen) {
		exclusion_free(x);
		return NULL;
	}
	free(chosen);
	return x;
}
