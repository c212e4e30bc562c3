/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/clock.h"

#include <assert.h>

double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

uint64_t clock_nanoseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static struct timespec time_at(double seconds)
{
	return (struct timespec){ .tv_sec = seconds, .tv_nsec = (seconds - (time_t) seconds) * 1e9 };
}

int clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, double until)
{
	const struct timespec t = time_at(until);

	return pthread_cond_clockwait(wake, lock, CLOCK_MONOTONIC, &t);
}

int clock_take(sem_t *s, double until)
{
	const struct timespec t = time_at(until);

	while (sem_clockwait(s, CLOCK_MONOTONIC, &t))
		if (errno != EINTR)
			return errno;
	return 0;
}

int background_start(struct background *b, void *(*run)(void *user), void *user, const char *what, struct err *e)
{
	assert(b->n < sizeof(b->threads) / sizeof(b->threads[0]) && !b->stop);
	if (!b->n) {
		pthread_mutex_init(&b->lock, NULL);
		pthread_cond_init(&b->wake, NULL);
	}
	if (pthread_create(&b->threads[b->n], NULL, run, user))
		return err_set(e, "cannot create a thread for %s", what);
	b->n++;
	return 0;
}

void background_stop(struct background *b)
{
	if (!b->n)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_broadcast(&b->wake);
	pthread_mutex_unlock(&b->lock);
	while (b->n)
		pthread_join(b->threads[--b->n], NULL);
}

bool background_pause(struct background *b, double until)
{
	bool stop;

	pthread_mutex_lock(&b->lock);
	while (!(stop = b->stop) && clock_wait(&b->wake, &b->lock, until) == 0)
		;
	pthread_mutex_unlock(&b->lock);
	return !stop;
}
