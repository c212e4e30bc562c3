/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE 20

struct gate {
	sem_t turns;
	pthread_mutex_t lock;
	double rate, level;	/* of a bucket that each announcement fills and that drains at the rate */
	double at;
};

struct gate *gate_new(unsigned at_once, unsigned rate)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	sem_init(&g->turns, 0, at_once);
	pthread_mutex_init(&g->lock, NULL);
	g->rate = rate;
	return g;
}

void gate_free(struct gate *g)
{
	if (g)
		sem_destroy(&g->turns);
	free(g);
}

int gate_enter(struct gate *g)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE;
	while (sem_timedwait(&g->turns, &until))
		if (errno != EINTR)
			return -1;
	return 0;
}

void gate_leave(struct gate *g)
{
	sem_post(&g->turns);
}

unsigned gate_window(struct gate *g)
{
	struct timespec t;
	double now, level;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec + t.tv_nsec * 1e-9;
	pthread_mutex_lock(&g->lock);
	g->level -= (now - g->at) * g->rate;
	g->level = g->level < 0 ? 1 : g->level + 1;
	g->at = now;
	level = g->level;
	pthread_mutex_unlock(&g->lock);
	return level / g->rate;
}
