/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "workers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>

#include "base/clock.h"

/*
 * Notes
 *
 * `lock` protects all of struct workers. An idle thread waits for its own `wake` and is in `idle` exactly as long as it
 * has no job; the list is a stack, so that few threads serve a steady load and the others end. A thread that ends
 * touches nothing of the pool after it has released the lock.
 */
#define IDLE_SECONDS 5
#define STACK_BYTES (512u << 10)

struct worker {
	LIST_ENTRY(worker) link;
	struct worker_job *job;
	pthread_cond_t wake;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	LIST_HEAD(, worker) idle;
	unsigned threads;
	int nice;
	bool stop;
};

/* A new thread, and its first job. */
struct worker_start {
	struct workers *pool;
	struct worker_job *job;
};

static void *worker_thread(void *user)
{
	struct worker_start start = *(struct worker_start *) user;
	struct workers *w = start.pool;
	struct worker self = { .job = start.job, .wake = PTHREAD_COND_INITIALIZER };

	free(user);
	if (w->nice)
		setpriority(PRIO_PROCESS, 0, w->nice);
	while (self.job) {
		double until;
		int rc = 0;

		self.job->run(self.job);
		self.job = NULL;
		until = clock_now() + IDLE_SECONDS;
		pthread_mutex_lock(&w->lock);
		LIST_INSERT_HEAD(&w->idle, &self, link);
		while (!self.job && !w->stop && rc != ETIMEDOUT)
			rc = clock_wait(&self.wake, &w->lock, until);
		if (!self.job) {
			LIST_REMOVE(&self, link);
			w->threads--;
			pthread_cond_signal(&w->ended);
		}
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static bool thread_start(struct workers *w, struct worker_job *job)
{
	struct worker_start *start = malloc(sizeof(*start));
	pthread_attr_t attributes;
	pthread_t thread;
	int rc;

	if (!start)
		return false;
	*start = (struct worker_start){ w, job };
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	rc = pthread_create(&thread, &attributes, worker_thread, start);
	pthread_attr_destroy(&attributes);
	if (rc)
		free(start);
	return !rc;
}

struct workers *workers_new(int nice)
{
	struct workers *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->ended, NULL);
	LIST_INIT(&w->idle);
	w->nice = nice;
	return w;
}

bool workers_run(struct workers *w, struct worker_job *job)
{
	struct worker *idle;
	bool started = false;

	pthread_mutex_lock(&w->lock);
	idle = w->stop ? NULL : LIST_FIRST(&w->idle);
	if (idle) {
		assert(!idle->job);
		LIST_REMOVE(idle, link);
		idle->job = job;
		pthread_cond_signal(&idle->wake);
		started = true;
	} else if (!w->stop) {
		w->threads++;
		started = thread_start(w, job);
		w->threads -= !started;
	}
	pthread_mutex_unlock(&w->lock);
	return started;
}

void workers_stop(struct workers *w)
{
	struct worker *idle;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	LIST_FOREACH(idle, &w->idle, link)
		pthread_cond_signal(&idle->wake);
	while (w->threads)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

void workers_free(struct workers *w)
{
	free(w);
}
