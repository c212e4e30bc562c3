/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "comm_ranks.h"
#include "counters.h"
#include "symbol.h"

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
