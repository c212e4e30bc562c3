/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/traffic.h"

#include <math.h>

#include "map/engine/tuning.h"

static double largest(const double *of, unsigned n)
{
	double most = 0;

	for (unsigned i = 0; i < n; i++)
		most = of[i] > most ? of[i] : most;
	return most;
}

int traffic_of(const struct matrix *m, const struct slots *s, const unsigned *slot, struct traffic *out)
{
	double *sent = calloc(2 * (size_t) m->ranks + s->n + 1, sizeof(*sent));
	double *received, *load, far = 0;

	if (!sent)
		return -1;
	received = sent + m->ranks;
	load = received + m->ranks;
	*out = (struct traffic){0};
	for (unsigned t = 0; t < s->nlevels; t++)
		far = s->level[t].typical > far ? s->level[t].typical : far;
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++) {
			double distance = slots_distance(s, slot[r], slot[m->adj[i]]),
			       time = m->messages[i] * HALF_SPEED_BYTES * sqrt(distance * far) +
				      m->weight[i] / 2 * distance;

			sent[r] += time;
			received[m->adj[i]] += time;
			out->time += time;
		}
	out->sent = largest(sent, m->ranks);
	out->received = largest(received, m->ranks);
	for (unsigned t = 0; t < s->nlevels; t++) {
		const unsigned *of = s->level[t].of;

		memset(load, 0, s->level[t].n * sizeof(*load));
		for (unsigned r = 0; r < m->ranks; r++)
			for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
				load[of[slot[r]]] += of[slot[r]] != of[slot[m->adj[i]]] ? m->weight[i] : 0;
		out->out[t] = largest(load, s->level[t].n);
	}
	free(sent);
	return 0;
}

static bool exceeds(double value, double bound)
{
	return value > bound * (1 + ROUNDING);
}

bool traffic_is_less(const struct traffic *from, const struct traffic *to, unsigned levels)
{
	for (unsigned t = 0; t < levels; t++)
		if (exceeds(to->out[t], from->out[t]))
			return false;
	return to->time < (1 - TIME_GAIN) * from->time && !exceeds(to->sent, from->sent) &&
	       !exceeds(to->received, from->received);
}
