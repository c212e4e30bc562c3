/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "collective.h"
#include "collective_model.h"
#include "comm_ranks.h"
#include "persistent.h"
#include "symbol.h"

/*
 * The wrappers of a collective: blocking, nonblocking and persistent, which is counted at each start. All count by the
 * last argument, with p the communicator's ranks, or NULL when the call failed.
 */
#define COLLECTIVE(...) COLLECTIVE_EXPANDED(__VA_ARGS__)
#define COLLECTIVE_EXPANDED(blocking, nonblocking, persistent, params, args, count) \
	WRAP(blocking, (UNPACK params)) \
	{ \
		int rc = REAL(blocking)(UNPACK args); \
		const struct comm_ranks *p = rc == MPI_SUCCESS ? comm_ranks_of(comm) : NULL; \
		count; \
		return rc; \
	} \
	WRAP(nonblocking, (UNPACK params, MPI_Request *request)) \
	{ \
		int rc = REAL(nonblocking)(UNPACK args, request); \
		const struct comm_ranks *p = rc == MPI_SUCCESS ? comm_ranks_of(comm) : NULL; \
		count; \
		return rc; \
	} \
	WRAP(persistent, (UNPACK params, handle info, MPI_Request *request)) \
	{ \
		int rc = REAL(persistent)(UNPACK args, info, request); \
		const struct comm_ranks *p = rc == MPI_SUCCESS ? comm_ranks_of(comm) : NULL; \
		struct counter_list sends = {0}; \
		counters_redirect(&sends); \
		count; \
		counters_redirect(NULL); \
		persistent_register(*request, &sends); \
		return rc; \
	}

/* With int and with MPI_Count (MPI 4.0, section 2.5.6). */
#define N int
#define AT int
#define FORMS(blocking, nonblocking) blocking, nonblocking, blocking##_init
#include "wrap_collective_calls.h"
#undef N
#undef AT
#undef FORMS
#define N MPI_Count
#define AT MPI_Aint
#define FORMS(blocking, nonblocking) blocking##_c, nonblocking##_c, blocking##_init_c
#include "wrap_collective_calls.h"
