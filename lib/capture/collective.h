/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_COLLECTIVE_H
#define TOPIARY_CAPTURE_COLLECTIVE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm_ranks.h"
#include "symbol.h"

/*
 * The messages that this rank sends in each collective, by the algorithms of collective_model.h. Called by
 * wrap_collective.c. In an intercommunicator data for all of the remote group is sent through rank 0 of both groups;
 * root is then MPI_ROOT, MPI_PROC_NULL or a rank of the remote group. p may be NULL: nothing is counted.
 */

/* The number of elements for each rank: an array of int or MPI_Count, or the same number for all. */
struct collective_counts {
	const void *counts;
	bool is_large;			/* MPI_Count */
	MPI_Count each;
};
#define COUNTS(of) ((struct collective_counts){ .counts = (of), .is_large = sizeof(*(of)) > sizeof(int) })
#define EACH(n) ((struct collective_counts){ .each = (n) })

void collective_broadcast(const struct comm_ranks *p, int root, uint64_t bytes);
void collective_reduce(const struct comm_ranks *p, int root, uint64_t bytes);
void collective_allreduce(const struct comm_ranks *p, uint64_t bytes);
void collective_gather(const struct comm_ranks *p, int root, uint64_t bytes);
void collective_scatter(const struct comm_ranks *p, int root, struct collective_counts counts, handle type);

/*
 * In an intracommunicator by the receive counts, as the send buffer may be MPI_IN_PLACE; in an intercommunicator by
 * what this rank sends.
 */
void collective_allgather(const struct comm_ranks *p, MPI_Count n, handle type, struct collective_counts counts,
			  handle recv_type);

/* types: one for each rank, or NULL: type for all. */
void collective_alltoall(const struct comm_ranks *p, struct collective_counts counts, const MPI_Datatype *types,
			 handle type);
void collective_reduce_scatter(const struct comm_ranks *p, struct collective_counts counts, handle type);

/* To the neighbours in the communicator's virtual topology, in their order. */
void collective_neighbours(const struct comm_ranks *p, handle comm, struct collective_counts counts,
			   const MPI_Datatype *types, handle type);

#endif
