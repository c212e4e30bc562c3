/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_GROUP_H
#define TOPIARY_CAPTURE_GROUP_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers.h"
#include "real.h"

/*
 * What this rank sends in each collective. Between two groups (an intercommunicator) what is for all of the other group goes
 * through the first ranks of both; root is then MPI_ROOT, MPI_PROC_NULL or a rank of the other group. p may be NULL.
 */

/* How many elements each rank's part has: counts of either width, or the same for all. */
struct parts {
	const void *counts;
	bool wide;
	MPI_Count each;
};
#define PARTS(of) ((struct parts){ .counts = (of), .wide = sizeof(*(of)) > sizeof(int) })
#define EACH(n) ((struct parts){ .each = (n) })

void group_broadcast(const struct peers *p, int root, uint64_t bytes);
void group_reduce(const struct peers *p, int root, uint64_t bytes);
void group_allreduce(const struct peers *p, uint64_t bytes);
void group_gather(const struct peers *p, int root, uint64_t bytes);
void group_scatter(const struct peers *p, int root, struct parts parts, handle type);

/* Within a group the parts that are received tell, since what is sent may be MPI_IN_PLACE; between two what this rank sends. */
void group_allgather(const struct peers *p, MPI_Count n, handle type, struct parts parts, handle part_type);

/* types: one for each rank, or NULL: the same for all. */
void group_alltoall(const struct peers *p, struct parts parts, const MPI_Datatype *types, handle type);
void group_reduce_scatter(const struct peers *p, struct parts parts, handle type);

/* To the neighbours in the communicator's topology, in their order. */
void group_neighbours(const struct peers *p, handle comm, struct parts parts, const MPI_Datatype *types, handle type);

#endif
