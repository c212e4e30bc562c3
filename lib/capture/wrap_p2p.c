/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "comm_ranks.h"
#include "counters.h"
#include "persistent.h"
#include "symbol.h"

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
