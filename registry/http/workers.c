/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "workers.h"

#include <assert.h>
#include <sys/resource.h>

#include "base/clock.h"

/*
 * Notes
 *
 * `lock` protects all of struct workers. A thread that is not running a job is idle, also before its first; there are
 * never more jobs queued than idle threads, so that none waits for another that waits for munged or PostgreSQL. A
 * thread that has done its job runs the next without having slept. A thread that ends touches nothing of the pool after
 * it has released the lock.
 */
#define IDLE_SECONDS 5
#define STACK_BYTES (512u << 10)

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t wake, ended;
	STAILQ_HEAD(, worker_job) jobs;
	unsigned queued, idle, threads;
	int nice;
	bool stop;
};

static void *worker_thread(void *user)
{
	double until = clock_now() + IDLE_SECONDS;
	struct workers *w = user;
	struct worker_job *job;
	int rc = 0;

	if (w->nice)
		setpriority(PRIO_PROCESS, 0, w->nice);
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!(job = STAILQ_FIRST(&w->jobs)) && !w->stop && rc != ETIMEDOUT)
			rc = clock_wait(&w->wake, &w->lock, until);
		w->idle--;
		if (!job)
			break;
		STAILQ_REMOVE_HEAD(&w->jobs, link);
		w->queued--;
		assert(w->queued <= w->idle);
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		until = clock_now() + IDLE_SECONDS;
		rc = 0;
		pthread_mutex_lock(&w->lock);
		w->idle++;
	}
	w->threads--;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct workers *workers_new(int nice)
{
	struct workers *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	pthread_cond_init(&w->ended, NULL);
	STAILQ_INIT(&w->jobs);
	w->nice = nice;
	return w;
}

bool workers_run(struct workers *w, struct worker_job *job)
{
	bool accepted;

	pthread_mutex_lock(&w->lock);
	accepted = !w->stop;
	if (accepted && w->queued == w->idle) {
		pthread_attr_t attributes;
		pthread_t thread;
		int rc;

		pthread_attr_init(&attributes);
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		pthread_attr_setstacksize(&attributes, STACK_BYTES);
		rc = pthread_create(&thread, &attributes, worker_thread, w);
		pthread_attr_destroy(&attributes);
		accepted = !rc;
		w->threads += accepted;
		w->idle += accepted;
	}
	if (accepted) {
		STAILQ_INSERT_TAIL(&w->jobs, job, link);
		w->queued++;
	}
	pthread_mutex_unlock(&w->lock);
	/* Behind the lock, which the thread that wakes would wait for. */
	if (accepted)
		pthread_cond_signal(&w->wake);
	return accepted;
}

void workers_stop(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->wake);
	while (w->threads)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

void workers_free(struct workers *w)
{
	free(w);
}
