/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/annealing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Number of temperatures. */
#define STEPS 200
/* Number of random moves that set the first one. */
#define SAMPLES 512

int annealing_init(struct annealing *a, const struct matrix *m, const struct slots *s, const struct slot_level *cells,
		   uint64_t seed, const unsigned *slot)
{
	*a = (struct annealing){ .chance = seed, .best = malloc(m->ranks * sizeof(*a->best)) };
	if (mapping_state_init(&a->state, m, s, cells, slot) || !a->best)
		return -1;
	memcpy(a->best, slot, m->ranks * sizeof(*slot));
	for (unsigned i = 0; i < ANNEALING_CHANCES; i++)
		a->chances[i] = -log((i + 0.5) / ANNEALING_CHANCES);
	return 0;
}

void annealing_free(struct annealing *a)
{
	mapping_state_free(&a->state);
	free(a->best);
}

/* The average absolute change in cost of random moves that change anything. */
static double change_sample(struct annealing *a, const struct annealing_way *way)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		double change = fabs(way->sample(a));

		sum += change;
		n += change > 0;
	}
	return n ? sum / n : 0;
}

void annealing_run(struct annealing *a, const struct annealing_way *way, unsigned long long work)
{
	double change = change_sample(a, way);

	for (unsigned i = 0; i < STEPS && change > 0; i++) {
		a->warmth = way->warmth(a, change, (double) i / (STEPS - 1));
		while (a->state.work < work * (i + 1) / STEPS)
			way->step(a);
		if (a->cost >= a->least - way->least_gain * a->least)
			continue;
		a->least = a->cost;
		mapping_state_slots(&a->state, a->best);
	}
}
