/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "real.h"
#include "tally.h"

/* Messages from rank to rank: counted where they are sent, after the call, so that what MPI refuses does not count. */
static int sent(int rc, int count, handle type, int to, handle comm)
{
	if (rc == MPI_SUCCESS && to >= 0 && tally_runs())
		peers_tell(peers_of(comm), TALLY_MESSAGE, to, peers_bytes(count, type));
	return rc;
}

#define SEND(name) \
	WRAP(name, (const void *data, int count, handle type, int to, int tag, handle comm)) \
	{ \
		return sent(REAL(name)(data, count, type, to, tag, comm), count, type, to, comm); \
	}
#define SEND_LATER(name) \
	WRAP(name, (const void *data, int count, handle type, int to, int tag, handle comm, MPI_Request *request)) \
	{ \
		return sent(REAL(name)(data, count, type, to, tag, comm, request), count, type, to, comm); \
	}

SEND(MPI_Send)
SEND(MPI_Bsend)
SEND(MPI_Ssend)
SEND(MPI_Rsend)
SEND_LATER(MPI_Isend)
SEND_LATER(MPI_Ibsend)
SEND_LATER(MPI_Issend)
SEND_LATER(MPI_Irsend)

WRAP(MPI_Sendrecv, (const void *data, int count, handle type, int to, int tag, void *in, int in_count, handle in_type,
			int from, int in_tag, handle comm, MPI_Status *status))
{
	int rc = REAL(MPI_Sendrecv)(data, count, type, to, tag, in, in_count, in_type, from, in_tag, comm, status);

	return sent(rc, count, type, to, comm);
}

WRAP(MPI_Sendrecv_replace, (void *data, int count, handle type, int to, int tag, int from, int in_tag, handle comm,
			MPI_Status *status))
{
	return sent(REAL(MPI_Sendrecv_replace)(data, count, type, to, tag, from, in_tag, comm, status), count, type, to, comm);
}

/* Persistent requests: what each start of one sends. */
struct standing {
	MPI_Request request;
	int to;			/* in MPI_COMM_WORLD */
	uint64_t bytes;
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

static int stands(int rc, int count, handle type, int to, handle comm, const MPI_Request *request)
{
	const struct peers *p = rc == MPI_SUCCESS && to >= 0 ? peers_of(comm) : NULL;
	struct standing *s = p && to < p->n ? malloc(sizeof(*s)) : NULL;

	if (!s)
		return rc;
	*s = (struct standing){ *request, p->world[to], peers_bytes(count, type), NULL };
	pthread_mutex_lock(&lock);
	s->next = *bucket_of(*request);
	*bucket_of(*request) = s;
	pthread_mutex_unlock(&lock);
	return rc;
}

static void started(MPI_Request request)
{
	struct standing *s;

	if (!tally_runs())
		return;
	pthread_mutex_lock(&lock);
	if ((s = *place_of(request)))
		tally_add(TALLY_MESSAGE, s->to, s->bytes);
	pthread_mutex_unlock(&lock);
}

static void forget(MPI_Request request)
{
	struct standing **at, *s;

	pthread_mutex_lock(&lock);
	if ((s = *(at = place_of(request))))
		*at = s->next;
	pthread_mutex_unlock(&lock);
	free(s);
}

#define SEND_OFTEN(name) \
	WRAP(name, (const void *data, int count, handle type, int to, int tag, handle comm, MPI_Request *request)) \
	{ \
		return stands(REAL(name)(data, count, type, to, tag, comm, request), count, type, to, comm, request); \
	}

SEND_OFTEN(MPI_Send_init)
SEND_OFTEN(MPI_Bsend_init)
SEND_OFTEN(MPI_Ssend_init)
SEND_OFTEN(MPI_Rsend_init)

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
