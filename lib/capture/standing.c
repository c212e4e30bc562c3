/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "standing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

struct standing {
	MPI_Request request;
	struct tally_list sends;
	struct standing *next;
};

enum { BUCKETS = 1024 };

static struct standing *standing[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct standing **bucket_of(MPI_Request request)
{
	uintptr_t key = 0;

	memcpy(&key, &request, sizeof(request));
	return &standing[(key ^ key >> 7 ^ key >> 17) % BUCKETS];
}

/* Called with the lock. */
static struct standing **place_of(MPI_Request request)
{
	struct standing **at = bucket_of(request);

	while (*at && (*at)->request != request)
		at = &(*at)->next;
	return at;
}

void standing_keep(MPI_Request request, struct tally_list *list)
{
	struct standing *s = list->n ? malloc(sizeof(*s)) : NULL;

	if (s) {
		pthread_mutex_lock(&lock);
		*s = (struct standing){ request, *list, *bucket_of(request) };
		*bucket_of(request) = s;
		pthread_mutex_unlock(&lock);
	} else {
		free(list->note);
	}
	*list = (struct tally_list){0};
}

static void started(MPI_Request request)
{
	struct standing *s;

	if (!tally_runs())
		return;
	pthread_mutex_lock(&lock);
	if ((s = *place_of(request)))
		tally_add_list(&s->sends);
	pthread_mutex_unlock(&lock);
}

static void forget(MPI_Request request)
{
	struct standing **at, *s;

	pthread_mutex_lock(&lock);
	if ((s = *(at = place_of(request))))
		*at = s->next;
	pthread_mutex_unlock(&lock);
	if (s)
		free(s->sends.note);
	free(s);
}

WRAP(MPI_Start, (MPI_Request *request))
{
	int rc = REAL(MPI_Start)(request);

	if (rc == MPI_SUCCESS)
		started(*request);
	return rc;
}

WRAP(MPI_Startall, (int count, MPI_Request requests[]))
{
	int rc = REAL(MPI_Startall)(count, requests);

	for (int i = 0; rc == MPI_SUCCESS && i < count; i++)
		started(requests[i]);
	return rc;
}

WRAP(MPI_Request_free, (MPI_Request *request))
{
	if (tally_runs())
		forget(*request);
	return REAL(MPI_Request_free)(request);
}
