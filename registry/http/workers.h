/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

/*
 * Threads for the parts of requests that may wait, for munged, PostgreSQL, the parser or the resolver, so that the
 * threads of libmicrohttpd never do. A job starts at once: an idle thread runs it, or a new one. So there are as many
 * threads as jobs in progress, which the number of connections bounds; idle ones end after some seconds. Called by
 * request.c.
 */
struct workers;

/* Embedded in what the job is about. */
struct worker_job {
	void (*run)(struct worker_job *job);
	STAILQ_ENTRY(worker_job) link;
};

/* nice: of its threads, as for nice(2). NULL when out of memory. */
struct workers *workers_new(int nice);

/* False when no thread can be created, or after workers_stop. */
bool workers_run(struct workers *w, struct worker_job *job);

/* Waits for all jobs; later ones are refused. Accepts NULL, as workers_free does. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w);
