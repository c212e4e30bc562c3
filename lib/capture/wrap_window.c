/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "peers.h"
#include "real.h"
#include "tally.h"

static int moved(int rc, bool put, bool get, MPI_Count count, handle type, int to, handle window)
{
	const struct peers *p = rc == MPI_SUCCESS && to >= 0 ? peers_of_window(window) : NULL;
	uint64_t bytes = p ? peers_bytes(count, type) : 0;

	if (put)
		peers_tell(p, TALLY_PUT, to, bytes);
	if (get)
		peers_tell(p, TALLY_GET, to, bytes);
	return rc;
}

/* Each with and without a request, in both widths of counts. */
#define IN_ALL_FORMS(kind, name, request_name, ...) \
	kind(name, int, (), (), __VA_ARGS__) \
	kind(name##_c, MPI_Count, (), (), __VA_ARGS__) \
	kind(request_name, int, (, MPI_Request *request), (, request), __VA_ARGS__) \
	kind(request_name##_c, MPI_Count, (, MPI_Request *request), (, request), __VA_ARGS__)

#define MOVE(name, N, more, more_names, data, put, get) \
	WRAP(name, (data, N count, handle type, int to, MPI_Aint at, N to_count, handle to_type, handle w UNPACK more)) \
	{ \
		int rc = REAL(name)(mine, count, type, to, at, to_count, to_type, w UNPACK more_names); \
		return moved(rc, put, get, count, type, to, w); \
	}
#define ADD(name, N, more, more_names, ...) \
	WRAP(name, (const void *mine, N count, handle type, int to, MPI_Aint at, N to_count, handle to_type, handle op, \
		    handle w UNPACK more)) \
	{ \
		int rc = REAL(name)(mine, count, type, to, at, to_count, to_type, op, w UNPACK more_names); \
		return moved(rc, true, false, count, type, to, w); \
	}
/* What comes back is as much as is sent, even where nothing is: MPI_NO_OP. */
#define GET_AND_ADD(name, N, more, more_names, ...) \
	WRAP(name, (const void *mine, N count, handle type, void *was, N was_count, handle was_type, int to, MPI_Aint at, N to_count, \
		    handle to_type, handle op, handle w UNPACK more)) \
	{ \
		int rc = REAL(name)(mine, count, type, was, was_count, was_type, to, at, to_count, to_type, op, w UNPACK more_names); \
		return moved(rc, true, true, was_count, was_type, to, w); \
	}

IN_ALL_FORMS(MOVE, MPI_Put, MPI_Rput, const void *mine, true, false)
IN_ALL_FORMS(MOVE, MPI_Get, MPI_Rget, void *mine, false, true)
IN_ALL_FORMS(ADD, MPI_Accumulate, MPI_Raccumulate, )
IN_ALL_FORMS(GET_AND_ADD, MPI_Get_accumulate, MPI_Rget_accumulate, )

WRAP(MPI_Fetch_and_op, (const void *mine, void *was, handle type, int to, MPI_Aint at, handle op, handle w))
{
	return moved(REAL(MPI_Fetch_and_op)(mine, was, type, to, at, op, w), true, true, 1, type, to, w);
}

WRAP(MPI_Compare_and_swap, (const void *mine, const void *expected, void *was, handle type, int to, MPI_Aint at, handle w))
{
	return moved(REAL(MPI_Compare_and_swap)(mine, expected, was, type, to, at, w), true, true, 1, type, to, w);
}
