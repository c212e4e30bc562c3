/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "agenda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct entry {
	int64_t due;
	unsigned number;
};

struct agenda {
	pthread_mutex_t lock;
	pthread_cond_t lead, follow;	/* the thread that waits for the first entry's time; all others */
	bool led, closed;
	size_t n;
	struct entry heap[];		/* heap[0] is the first */
};

int64_t agenda_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

struct agenda *agenda_new(size_t max)
{
	struct agenda *a = calloc(1, sizeof(*a) + max * sizeof(a->heap[0]));
	pthread_condattr_t clock;

	if (!a)
		return NULL;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->lead, &clock);
	pthread_cond_init(&a->follow, NULL);
	pthread_condattr_destroy(&clock);
	return a;
}

void agenda_free(struct agenda *a)
{
	if (!a)
		return;
	pthread_cond_destroy(&a->lead);
	pthread_cond_destroy(&a->follow);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void swap(struct agenda *a, size_t i, size_t k)
{
	struct entry was = a->heap[i];

	a->heap[i] = a->heap[k];
	a->heap[k] = was;
}

void agenda_add(struct agenda *a, unsigned number, int64_t due)
{
	size_t i;

	pthread_mutex_lock(&a->lock);
	i = a->n++;
	a->heap[i] = (struct entry){ due, number };
	for (; i && a->heap[(i - 1) / 2].due > due; i = (i - 1) / 2)
		swap(a, i, (i - 1) / 2);
	if (i == 0)
		pthread_cond_signal(&a->lead);
	pthread_mutex_unlock(&a->lock);
}

static unsigned pop(struct agenda *a)
{
	unsigned number = a->heap[0].number;
	size_t i = 0, low;

	a->heap[0] = a->heap[--a->n];
	while ((low = 2 * i + 1) < a->n) {
		low += low + 1 < a->n && a->heap[low + 1].due < a->heap[low].due;
		if (a->heap[i].due <= a->heap[low].due)
			break;
		swap(a, i, low);
		i = low;
	}
	return number;
}

/* Until the first entry's time has come, or another comes before it. */
static void wait_first(struct agenda *a)
{
	int64_t due = a->n ? a->heap[0].due : agenda_now() + 1000000;
	struct timespec until = { due / 1000000, due % 1000000 * 1000 };

	pthread_cond_timedwait(&a->lead, &a->lock, &until);
}

int agenda_take(struct agenda *a, unsigned *number)
{
	int rc = -1;

	pthread_mutex_lock(&a->lock);
	while (a->led && !a->closed)
		pthread_cond_wait(&a->follow, &a->lock);
	a->led = true;
	while (!a->closed && (!a->n || a->heap[0].due > agenda_now()))
		wait_first(a);
	if (!a->closed) {
		*number = pop(a);
		rc = 0;
	}
	a->led = false;
	pthread_cond_signal(&a->follow);
	pthread_mutex_unlock(&a->lock);
	return rc;
}

void agenda_close(struct agenda *a)
{
	pthread_mutex_lock(&a->lock);
	a->closed = true;
	pthread_cond_broadcast(&a->lead);
	pthread_cond_broadcast(&a->follow);
	pthread_mutex_unlock(&a->lock);
}
