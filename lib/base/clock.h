/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "base/err.h"

/*
 * Durations are measured by a clock that nobody sets (CLOCK_MONOTONIC): one that is set back by an hour would be an
 * hour's wait.
 */

/* In seconds; only differences mean anything. */
double clock_now(void);

/* Nanoseconds of any of the kernel's clocks. */
uint64_t clock_nanoseconds(clockid_t clock);

/*
 * Wait until that time in clock_now at the latest, far in the future if it must be: 0, or ETIMEDOUT. Who waits looks
 * why it woke.
 */
int clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, double until);
/* Take a semaphore: 0, or ETIMEDOUT. */
int clock_take(sem_t *s, double until);

/*
 * The threads of one background work of a daemon: they work, and wait for their time or until somebody wakes them. What
 * they share with others is under `lock`. Zeroed before the first start.
 */
struct background {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	unsigned n;
	pthread_t threads[4];
};
/* Starts one more thread: 0, or -1 with "cannot create a thread for WHAT". */
int background_start(struct background *b, void *(*run)(void *user), void *user, const char *what, struct err *e);
/* Makes them stop, and waits until they have. Does nothing if none was started. */
void background_stop(struct background *b);
/* Sleeps until that time in clock_now; false as soon as they are to stop. Without the lock. */
bool background_pause(struct background *b, double until);
