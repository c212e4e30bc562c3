/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/bisection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/tuning.h"

static int alloc_all(struct bisection *h)
{
	size_t n = h->n;

	for (h->leaves = 1; h->leaves < n; h->leaves *= 2)
		;
	h->bias = calloc(2 * n + 1, sizeof(*h->bias));
	h->second = calloc(2 * n + 1, sizeof(*h->second));
	h->swapped = malloc((2 * n + 1) * sizeof(*h->swapped));
	h->most[0] = malloc(4 * (size_t) h->leaves * sizeof(double));
	if (!h->bias || !h->second || !h->swapped || !h->most[0])
		return -1;
	h->gain = h->bias + n;
	h->locked = h->second + n;
	h->most[1] = h->most[0] + 2 * (size_t) h->leaves;
	return 0;
}

int bisection_init(struct bisection *h, const struct matrix *m, const struct matrix_ranks *some, unsigned empty)
{
	*h = (struct bisection){ .n = some->n + empty, .ranks = some->n, .m = matrix_some(m, some, empty) };
	if (!h->m || alloc_all(h))
		return -1;
	for (size_t a = 0; a < h->m->row[h->n]; a++)
		h->grain += ROUNDING * h->m->weight[a];
	return 0;
}

void bisection_free(struct bisection *h)
{
	matrix_free(h->m);
	free(h->bias);
	free(h->second);
	free(h->swapped);
	free(h->most[0]);
}

double bisection_cut(struct bisection *h)
{
	double between = 0, pulled = 0;

	h->work += 2 * h->m->row[h->n] + (unsigned long long) WORK_VALUE * h->n;
	for (unsigned i = 0; i < h->n; i++) {
		double own = 0, other = 0;

		for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
			*(h->second[i] == h->second[h->m->adj[a]] ? &own : &other) += h->m->weight[a];
		h->gain[i] = other - own + (h->second[i] ? h->bias[i] : -h->bias[i]);
		between += other;
		pulled += h->second[i] ? h->bias[i] : 0;
	}
	return between / 2 + pulled;
}

/* The first of the ranks with the largest gain. */
static unsigned best_gain(const struct bisection *h, unsigned half)
{
	const double *most = h->most[half];
	unsigned at = 1;

	while (at < h->leaves)
		at = 2 * at + (most[2 * at] < most[1]);
	return at - h->leaves;
}

static void gain_enter(struct bisection *h, unsigned i)
{
	double *most = h->most[h->second[i]];
	unsigned at = h->leaves + i;

	most[at] = h->locked[i] ? -INFINITY : h->gain[i];
	while (at /= 2)
		most[at] = most[2 * at] > most[2 * at + 1] ? most[2 * at] : most[2 * at + 1];
}

/* Unlocks all ranks. Returns the number of pairs. */
static unsigned pairs_begin(struct bisection *h)
{
	unsigned second = 0;

	for (size_t i = 0; i < 4 * (size_t) h->leaves; i++)
		h->most[0][i] = -INFINITY;
	memset(h->locked, 0, h->n * sizeof(*h->locked));
	for (unsigned i = 0; i < h->n; i++) {
		h->most[h->second[i]][h->leaves + i] = h->gain[i];
		second += h->second[i];
	}
	for (unsigned at = h->leaves; --at;)
		for (unsigned half = 0; half < 2; half++)
			h->most[half][at] = fmax(h->most[half][2 * at], h->most[half][2 * at + 1]);
	h->work += WORK_GATHER * (unsigned long long) h->n;
	return second < h->n - second ? second : h->n - second;
}

static void change_sides(struct bisection *h, unsigned i)
{
	h->second[i] = !h->second[i];
	h->gain[i] = -h->gain[i];
	for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
		h->gain[h->m->adj[a]] += (h->second[h->m->adj[a]] == h->second[i] ? -2 : 2) * h->m->weight[a];
	h->work += h->m->row[i + 1] - h->m->row[i];
}

/* Moves the rank and locks it. */
static double rank_move(struct bisection *h, unsigned i)
{
	double gain = h->gain[i];

	h->locked[i] = true;
	gain_enter(h, i);
	change_sides(h, i);
	for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
		gain_enter(h, h->m->adj[a]);
	h->work += WORK_GATHER * (h->m->row[i + 1] - h->m->row[i]) + h->n / 16 + 1 + WORK_VALUE;
	return gain;
}

double bisection_exchange(struct bisection *h)
{
	unsigned pairs = pairs_begin(h), done = 0, keep = 0;
	double sum = 0, most = 0;

	for (; done < keep + CUT_IDLE && done < pairs; done++) {
		for (unsigned half = 0; half < 2; half++) {
			h->swapped[2 * done + half] = best_gain(h, half);
			sum += rank_move(h, h->swapped[2 * done + half]);
		}
		if (sum <= most + h->grain)
			continue;
		most = sum;
		keep = done + 1;
	}
	while (done-- > keep)
		for (unsigned half = 0; half < 2; half++)
			change_sides(h, h->swapped[2 * done + half]);
	return most;
}

double bisection_refine(struct bisection *h)
{
	double all = 0, less;

	for (unsigned i = 0; i < CUT_PASSES; i++) {
		all += less = bisection_exchange(h);
		if (less <= 0)
			break;
	}
	return all;
}
