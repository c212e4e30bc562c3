/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "peers.h"
#include "real.h"
#include "standing.h"
#include "tally.h"

/* Messages from rank to rank: counted where they are sent, after the call, so that what MPI refuses does not count. */
static int sent(int rc, MPI_Count count, handle type, int to, handle comm)
{
	if (rc == MPI_SUCCESS && to >= 0 && tally_runs())
		peers_tell(peers_of(comm), TALLY_MESSAGE, to, peers_bytes(count, type));
	return rc;
}

/* At each start of the request. */
static int will_send(int rc, MPI_Count count, handle type, int to, handle comm, const MPI_Request *request)
{
	struct tally_list sends = {0};

	tally_divert(&sends);
	sent(rc, count, type, to, comm);
	tally_divert(NULL);
	standing_keep(*request, &sends);
	return rc;
}

#define SEND(name, N) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, handle comm)) \
	{ \
		return sent(REAL(name)(data, count, type, to, tag, comm), count, type, to, comm); \
	}
#define SEND_LATER(name, N) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, handle comm, MPI_Request *request)) \
	{ \
		return sent(REAL(name)(data, count, type, to, tag, comm, request), count, type, to, comm); \
	}
#define SEND_OFTEN(name, N) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, handle comm, MPI_Request *request)) \
	{ \
		return will_send(REAL(name)(data, count, type, to, tag, comm, request), count, type, to, comm, request); \
	}
#define EXCHANGE(name, N, more, more_names) \
	WRAP(name, (const void *data, N count, handle type, int to, int tag, void *in, N in_count, handle in_type, int from, \
		    int in_tag, handle comm, more)) \
	{ \
		int rc = REAL(name)(data, count, type, to, tag, in, in_count, in_type, from, in_tag, comm, more_names); \
		return sent(rc, count, type, to, comm); \
	}
#define EXCHANGE_IN_PLACE(name, N, more, more_names) \
	WRAP(name, (void *data, N count, handle type, int to, int tag, int from, int in_tag, handle comm, more)) \
	{ \
		return sent(REAL(name)(data, count, type, to, tag, from, in_tag, comm, more_names), count, type, to, comm); \
	}

#define IN_BOTH_WIDTHS(kind, name, ...) \
	kind(name, int, ##__VA_ARGS__) \
	kind(name##_c, MPI_Count, ##__VA_ARGS__)

IN_BOTH_WIDTHS(SEND, MPI_Send)
IN_BOTH_WIDTHS(SEND, MPI_Bsend)
IN_BOTH_WIDTHS(SEND, MPI_Ssend)
IN_BOTH_WIDTHS(SEND, MPI_Rsend)
IN_BOTH_WIDTHS(SEND_LATER, MPI_Isend)
IN_BOTH_WIDTHS(SEND_LATER, MPI_Ibsend)
IN_BOTH_WIDTHS(SEND_LATER, MPI_Issend)
IN_BOTH_WIDTHS(SEND_LATER, MPI_Irsend)
IN_BOTH_WIDTHS(SEND_OFTEN, MPI_Send_init)
IN_BOTH_WIDTHS(SEND_OFTEN, MPI_Bsend_init)
IN_BOTH_WIDTHS(SEND_OFTEN, MPI_Ssend_init)
IN_BOTH_WIDTHS(SEND_OFTEN, MPI_Rsend_init)
IN_BOTH_WIDTHS(EXCHANGE, MPI_Sendrecv, MPI_Status *status, status)
IN_BOTH_WIDTHS(EXCHANGE, MPI_Isendrecv, MPI_Request *request, request)
IN_BOTH_WIDTHS(EXCHANGE_IN_PLACE, MPI_Sendrecv_replace, MPI_Status *status, status)
IN_BOTH_WIDTHS(EXCHANGE_IN_PLACE, MPI_Isendrecv_replace, MPI_Request *request, request)

/* Every partition is made ready once a start. */
WRAP(MPI_Psend_init, (const void *data, int parts, MPI_Count count, handle type, int to, int tag, handle comm, handle info,
		      MPI_Request *request))
{
	return will_send(REAL(MPI_Psend_init)(data, parts, count, type, to, tag, comm, info, request), parts * count, type, to, comm,
			 request);
}
