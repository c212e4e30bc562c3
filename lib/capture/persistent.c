/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "persistent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbol.h"

struct persistent_request {
	MPI_Request request;
	struct counter_list sends;
	struct persistent_request *next;
};

enum { BUCKETS = 1024 };

static struct persistent_request *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct persistent_request **bucket_of(MPI_Request request)
{
	uintptr_t key = 0;

	memcpy(&key, &request, sizeof(request));
	return &buckets[(key ^ key >> 7 ^ key >> 17) % BUCKETS];
}

/* Called with the lock. */
static struct persistent_request **find_request(MPI_Request request)
{
	struct persistent_request **at = bucket_of(request);

	while (*at && (*at)->request != request)
		at = &(*at)->next;
	return at;
}

void persistent_register(MPI_Request request, struct counter_list *list)
{
	struct persistent_request *s = list->n ? malloc(sizeof(*s)) : NULL;

	if (s) {
		pthread_mutex_lock(&lock);
		*s = (struct persistent_request){ request, *list, *bucket_of(request) };
		*bucket_of(request) = s;
		pthread_mutex_unlock(&lock);
	} else {
		free(list->entry);
	}
	*list = (struct counter_list){0};
}

static void count_start(MPI_Request request)
{
	struct persistent_request *s;

	if (!counters_active())
		return;
	pthread_mutex_lock(&lock);
	if ((s = *find_request(request)))
		counters_add_list(&s->sends);
	pthread_mutex_unlock(&lock);
}

static void request_remove(MPI_Request request)
{
	struct persistent_request **at, *s;

	pthread_mutex_lock(&lock);
	if ((s = *(at = find_request(request))))
		*at = s->next;
	pthread_mutex_unlock(&lock);
	if (s)
		free(s->sends.entry);
	free(s);
}

WRAP(MPI_Start, (MPI_Request *request))
{
	int rc = REAL(MPI_Start)(request);

	if (rc == MPI_SUCCESS)
		count_start(*request);
	return rc;
}

WRAP(MPI_Startall, (int count, MPI_Request requests[]))
{
	int rc = REAL(MPI_Startall)(count, requests);

	for (int i = 0; rc == MPI_SUCCESS && i < count; i++)
		count_start(requests[i]);
	return rc;
}

WRAP(MPI_Request_free, (MPI_Request *request))
{
	if (counters_active())
		request_remove(*request);
	return REAL(MPI_Request_free)(request);
}
