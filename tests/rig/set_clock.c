/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * To be preloaded: the time of day is so many seconds off as the number in the file that SET_CLOCK names, and changes
 * with it, as if an administrator had set the clock of a running system. As in the kernel a wait for a time of day ends
 * when the clock shows it, however often it is set meanwhile, and CLOCK_MONOTONIC knows nothing of all that.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define STEP 50000000		/* nanoseconds between two looks at the clock */
#define COND_MONOTONIC 2	/* glibc, nptl/pthread_cond_common.c */

static const volatile int64_t none, *offset = &none;	/* libraries that begin before us ask, too */

static __attribute__((constructor)) void begin(void)
{
	const char *path = getenv("SET_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (at == MAP_FAILED)
		abort();
	offset = at;
	close(fd);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = syscall(SYS_clock_gettime, clock, t);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		t->tv_sec += *offset;
	return rc;
}

EXPORT time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

EXPORT int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec t;

	(void) zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct timeval){ t.tv_sec, t.tv_nsec / 1000 };
	return 0;
}

static bool is_over(clockid_t clock, const struct timespec *until)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

static struct timespec soon(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += STEP;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict wake, pthread_mutex_t *restrict lock,
				  const struct timespec *restrict until)
{
	clockid_t clock = wake->__data.__wrefs & COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	int rc = ETIMEDOUT;

	while (rc == ETIMEDOUT && !is_over(clock, until))
		rc = pthread_cond_clockwait(wake, lock, CLOCK_MONOTONIC, (struct timespec[]){ soon() });
	return rc;
}

EXPORT int sem_timedwait(sem_t *restrict s, const struct timespec *restrict until)
{
	int rc;

	while ((rc = sem_clockwait(s, CLOCK_MONOTONIC, (struct timespec[]){ soon() })) && errno == ETIMEDOUT)
		if (is_over(CLOCK_REALTIME, until)) {
			errno = ETIMEDOUT;
			break;
		}
	return rc;
}
