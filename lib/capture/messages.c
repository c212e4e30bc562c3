/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "capture.h"

#include <pthread.h>

/* --- persistent requests --- */

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
	if (counters_active()) {
		struct persistent_request **at, *s;

		pthread_mutex_lock(&lock);
		if ((s = *(at = find_request(*request))))
			*at = s->next;
		pthread_mutex_unlock(&lock);
		if (s)
			free(s->sends.entry);
		free(s);
	}
	return REAL(MPI_Request_free)(request);
}

/* --- point to point --- */

/* Point-to-point messages: counted by the sender, after the call, so that a failed call does not count. */
static int count_send(int rc, MPI_Count count, handle type, int to, handle comm)
{
	if (rc == MPI_SUCCESS && to >= 0 && counters_active())
		comm_ranks_count(comm_ranks_of(comm), COUNTER_P2P, to, datatype_bytes(count, type));
	return rc;
}

/* Counted at each start of the request. */
static int register_send(int rc, MPI_Count count, handle type, int to, handle comm, const MPI_Request *request)
{
	struct counter_list sends = {0};

	counters_redirect(&sends);
	count_send(rc, count, type, to, comm);
	counters_redirect(NULL);
	persistent_register(*request, &sends);
	return rc;
}

#define SEND(name, N) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, handle comm)) \
	{ \
		return count_send(REAL(name)(data, count, type, to, tag, comm), count, type, to, comm); \
	}
#define SEND_NONBLOCKING(name, N) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, handle comm, MPI_Request *request)) \
	{ \
		return count_send(REAL(name)(data, count, type, to, tag, comm, request), count, type, to, comm); \
	}
#define SEND_PERSISTENT(name, N) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, handle comm, MPI_Request *request)) \
	{ \
		int rc = REAL(name)(data, count, type, to, tag, comm, request); \
		return register_send(rc, count, type, to, comm, request); \
	}
#define SENDRECV(name, N, more, more_names) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, void *in, N in_count, \
		    handle in_type, int from, int in_tag, handle comm, more)) \
	{ \
		int rc = REAL(name)(data, count, type, to, tag, in, in_count, in_type, from, in_tag, comm, \
				    more_names); \
		return count_send(rc, count, type, to, comm); \
	}
#define SENDRECV_REPLACE(name, N, more, more_names) \
	WRAP(name, (void *data, N count, handle type, int to, int tag, int from, int in_tag, handle comm, more)) \
	{ \
		int rc = REAL(name)(data, count, type, to, tag, from, in_tag, comm, more_names); \
		return count_send(rc, count, type, to, comm); \
	}

#define WITH_LARGE_COUNTS(kind, name, ...) \
	kind(name, int, ##__VA_ARGS__) \
	kind(name##_c, MPI_Count, ##__VA_ARGS__)

WITH_LARGE_COUNTS(SEND, MPI_Send)
WITH_LARGE_COUNTS(SEND, MPI_Bsend)
WITH_LARGE_COUNTS(SEND, MPI_Ssend)
WITH_LARGE_COUNTS(SEND, MPI_Rsend)
WITH_LARGE_COUNTS(SEND_NONBLOCKING, MPI_Isend)
WITH_LARGE_COUNTS(SEND_NONBLOCKING, MPI_Ibsend)
WITH_LARGE_COUNTS(SEND_NONBLOCKING, MPI_Issend)
WITH_LARGE_COUNTS(SEND_NONBLOCKING, MPI_Irsend)
WITH_LARGE_COUNTS(SEND_PERSISTENT, MPI_Send_init)
WITH_LARGE_COUNTS(SEND_PERSISTENT, MPI_Bsend_init)
WITH_LARGE_COUNTS(SEND_PERSISTENT, MPI_Ssend_init)
WITH_LARGE_COUNTS(SEND_PERSISTENT, MPI_Rsend_init)
WITH_LARGE_COUNTS(SENDRECV, MPI_Sendrecv, MPI_Status *status, status)
WITH_LARGE_COUNTS(SENDRECV, MPI_Isendrecv, MPI_Request *request, request)
WITH_LARGE_COUNTS(SENDRECV_REPLACE, MPI_Sendrecv_replace, MPI_Status *status, status)
WITH_LARGE_COUNTS(SENDRECV_REPLACE, MPI_Isendrecv_replace, MPI_Request *request, request)

/* Each start sends every partition once. */
WRAP(MPI_Psend_init, (const void *data, int parts, MPI_Count count, handle type, int to, int tag, handle comm,
	handle info,       MPI_Request *request))
{
	return register_send(REAL(MPI_Psend_init)(data, parts, count, type, to, tag, comm, info, request),
	       parts * count, type, to, comm,
			 request);
}

/* --- one-sided --- */

static int count_transfer(int rc, bool put, bool get, MPI_Count count, handle type, int to, handle window)
{
	const struct comm_ranks *p = rc == MPI_SUCCESS && to >= 0 ? comm_ranks_of_window(window) : NULL;
	uint64_t bytes = p ? datatype_bytes(count, type) : 0;

	if (put)
		comm_ranks_count(p, COUNTER_PUT, to, bytes);
	if (get)
		comm_ranks_count(p, COUNTER_GET, to, bytes);
	return rc;
}

/* Each with and without a request, with int and with MPI_Count. */
#define IN_ALL_FORMS(kind, name, request_name, ...) \
	kind(name, int, (), (), __VA_ARGS__) \
	kind(name##_c, MPI_Count, (), (), __VA_ARGS__) \
	kind(request_name, int, (, MPI_Request *request), (, request), __VA_ARGS__) \
	kind(request_name##_c, MPI_Count, (, MPI_Request *request), (, request), __VA_ARGS__)

#define TRANSFER(name, N, more, more_names, data, put, get) \
	WRAP(name, (data, N count, handle type, int to, MPI_Aint at, N to_count, handle to_type, \
		    handle w UNPACK more)) \
	{ \
		int rc = REAL(name)(mine, count, type, to, at, to_count, to_type, w UNPACK more_names); \
		return count_transfer(rc, put, get, count, type, to, w); \
	}
#define ACCUMULATE(name, N, more, more_names, ...) \
	WRAP(name, (const void *mine, N count, handle type, int to, MPI_Aint at, N to_count, handle to_type, \
		    handle op, handle w UNPACK more)) \
	{ \
		int rc = REAL(name)(mine, count, type, to, at, to_count, to_type, op, w UNPACK more_names); \
		return count_transfer(rc, true, false, count, type, to, w); \
	}
/* The result is as large as the data sent, even with MPI_NO_OP, which sends none. */
#define GET_ACCUMULATE(name, N, more, more_names, ...) \
	WRAP(name, (const void *mine, N count, handle type, void *was, N was_count, handle was_type, int to, \
		    MPI_Aint at, N to_count, handle to_type, handle op, handle w UNPACK more)) \
	{ \
		int rc = REAL(name)(mine, count, type, was, was_count, was_type, to, at, to_count, to_type, op, \
				    w UNPACK more_names); \
		return count_transfer(rc, true, true, was_count, was_type, to, w); \
	}

IN_ALL_FORMS(TRANSFER, MPI_Put, MPI_Rput, const void *mine, true, false)
IN_ALL_FORMS(TRANSFER, MPI_Get, MPI_Rget, void *mine, false, true)
IN_ALL_FORMS(ACCUMULATE, MPI_Accumulate, MPI_Raccumulate, )
IN_ALL_FORMS(GET_ACCUMULATE, MPI_Get_accumulate, MPI_Rget_accumulate, )

WRAP(MPI_Fetch_and_op, (const void *mine, void *was, handle type, int to, MPI_Aint at, handle op, handle w))
{
	return count_transfer(REAL(MPI_Fetch_and_op)(mine, was, type, to, at, op, w), true, true, 1, type, to, w);
}

WRAP(MPI_Compare_and_swap, (const void *mine, const void *expected, void *was, handle type, int to, MPI_Aint at,
	handle w))
{
	return count_transfer(REAL(MPI_Compare_and_swap)(mine, expected, was, type, to, at, w), true, true, 1, type, to,
	       w);
}
