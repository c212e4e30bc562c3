/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/clock.h"

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
