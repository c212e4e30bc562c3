/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "deadline.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

struct deadline {
	LIST_ENTRY(deadline) link;
	int fd;
	time_t until;	/* 0: none */
};

struct deadlines {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	LIST_HEAD(, deadline) all;
};

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void shut_late(struct deadlines *d)
{
	struct deadline *one;
	time_t t = now();

	LIST_FOREACH(one, &d->all, link) {
		if (!one->until || one->until > t)
			continue;
		shutdown(one->fd, SHUT_RDWR);
		one->until = 0;
	}
}

static void *run(void *user)
{
	struct deadlines *d = user;
	struct timespec next;

	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		shut_late(d);
		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_sec++;
		pthread_cond_timedwait(&d->wake, &d->lock, &next);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct deadlines *deadlines_start(struct err *e)
{
	struct deadlines *d = calloc(1, sizeof(*d));

	if (!d) {
		err_set(e, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	LIST_INIT(&d->all);
	if (pthread_create(&d->thread, NULL, run, d)) {
		err_set(e, "no thread to watch slow clients");
		free(d);
		return NULL;
	}
	return d;
}

void deadlines_stop(struct deadlines *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	free(d);
}

struct deadline *deadline_add(struct deadlines *d, int fd, unsigned seconds)
{
	struct deadline *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->fd = fd;
	one->until = now() + seconds;
	pthread_mutex_lock(&d->lock);
	LIST_INSERT_HEAD(&d->all, one, link);
	pthread_mutex_unlock(&d->lock);
	return one;
}

void deadline_set(struct deadlines *d, struct deadline *one, unsigned seconds)
{
	if (!one)
		return;
	pthread_mutex_lock(&d->lock);
	one->until = seconds ? now() + seconds : 0;
	pthread_mutex_unlock(&d->lock);
}

void deadline_remove(struct deadlines *d, struct deadline *one)
{
	if (!one)
		return;
	pthread_mutex_lock(&d->lock);
	LIST_REMOVE(one, link);
	pthread_mutex_unlock(&d->lock);
	free(one);
}
