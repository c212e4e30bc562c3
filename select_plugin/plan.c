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
	return ask_share(s->ask, nodes) && nodes <= (uint32_t) node_record_count && take(p, s, share[0].nodes, share[0].tasks) &&
	       take(p, s, share[1].nodes, share[1].tasks);
}

/*
 * Fewer nodes must hold more tasks each, so that of fewer there are no more seats than were found now, where these are of one
 * share: the numbers in between need not be tried.
 */
static uint32_t next_number(const struct seats *s, uint32_t nodes)
{
	if (s->ask->last > s->ask->first)
		return nodes + 1;
	return MAX(s->ask->last, MIN(nodes - 1, s->ask->share[1].nodes ? nodes - 1 : s->count));
}

static bool by_numbers(struct plan *p, struct seats *s)
{
	for (uint32_t nodes = s->ask->first; !by_shares(p, s, nodes); nodes = next_number(s, nodes))
		if (nodes == s->ask->last) {
			ask_share(s->ask, s->ask->min_nodes);
			return false;
		}
	return true;
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

bool plan_make(struct plan *p, struct seats *s)
{
	*p = (struct plan){ .seats = malloc((node_record_count + 1) * sizeof(*p->seats)), .nodes = bit_alloc(node_record_count) };
	if (!p->seats)
		return false;
	return by_numbers(p, s) || (s->ask->any_nodes && by_fewest(p, s));
}

void plan_end(struct plan *p)
{
	free(p->seats);
	FREE_NULL_BITMAP(p->nodes);
}

const struct seat *plan_beside(const struct plan *p, const struct seats *s)
{
	const struct seat *best = NULL, *last = &p->seats[p->count - 1];

	for (unsigned i = 0; i < s->count; i++)
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
	uint64_t *chosen = malloc(score_words(SHAPE_MAX_CORES) * sizeof(*chosen));

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
