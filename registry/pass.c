/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "pass.h"

#define REST_MIN 0.01		/* seconds */
#define REST_MAX 1.0

void pace_init(struct pace *p)
{
	pthread_condattr_t steady;

	*p = (struct pace){0};
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, &steady);
	pthread_condattr_destroy(&steady);
}

double pace_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

struct timespec pace_at(double seconds)
{
	return (struct timespec){ .tv_sec = seconds, .tv_nsec = (seconds - (time_t) seconds) * 1e9 };
}

bool pass_goes_on(const struct pass *p)
{
	bool stop;

	pthread_mutex_lock(&p->pace->lock);
	stop = p->pace->stop;
	pthread_mutex_unlock(&p->pace->lock);
	return !stop;
}

bool pass_rest(struct pass *p)
{
	struct pace *pace = p->pace;
	double begin = pace_now(), rest = begin - pace->worked_since;
	struct timespec until = pace_at(begin + (rest < REST_MIN ? REST_MIN : rest > REST_MAX ? REST_MAX : rest));
	bool stop;

	pthread_mutex_lock(&pace->lock);
	while (!pace->stop && pthread_cond_timedwait(&pace->wake, &pace->lock, &until) == 0)
		;
	stop = pace->stop;
	pthread_mutex_unlock(&pace->lock);
	pace->worked_since = pace_now();
	return !stop;
}
