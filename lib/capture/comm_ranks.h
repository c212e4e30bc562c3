/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_COMM_RANKS_H
#define TOPIARY_CAPTURE_COMM_RANKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "symbol.h"

/*
 * The ranks of a communicator or window in MPI_COMM_WORLD, cached as an MPI attribute. Called by the wrappers
 * (wrap_*.c) and collective*.c.
 */
struct comm_ranks {
	int n;			/* ranks; in an intercommunicator those of the remote group */
	int me;			/* this rank in its own group; MPI_PROC_NULL for windows */
	int *world;		/* world[rank]; negative: not in MPI_COMM_WORLD */
	struct comm_ranks *own;	/* in an intercommunicator the local group, else NULL */
};

/* MPI_COMM_WORLD, without a link-time reference to Open MPI's data. */
MPI_Comm comm_world(void);

/* Was this process started by MPI_Comm_spawn, with an MPI_COMM_WORLD of its own? */
bool process_is_spawned(void);

/* Create and free the attribute keys: after MPI_Init and before MPI_Finalize. */
void comm_ranks_start(void);
void comm_ranks_end(void);

/* Those of a communicator or window, which owns them; NULL when they cannot be determined. */
const struct comm_ranks *comm_ranks_of(handle comm);
const struct comm_ranks *comm_ranks_of_window(handle window);

/* The size of that many elements. */
uint64_t datatype_bytes(MPI_Count count, handle type);

/* Count a message to a rank of a communicator. */
static inline void comm_ranks_count(const struct comm_ranks *p, enum counter_kind kind, int rank, uint64_t bytes)
{
	if (p && rank >= 0 && rank < p->n)
		counters_add(kind, p->world[rank], bytes);
}

#endif
