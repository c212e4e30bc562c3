/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include <stdlib.h>

#include "model.h"
#include "peers.h"
#include "real.h"
#include "tally.h"

/* Collectives within one group; what goes between two groups is not reckoned. */
static const struct peers *group_of(int rc, handle comm)
{
	const struct peers *p = rc == MPI_SUCCESS ? peers_of(comm) : NULL;

	return p && !p->inter ? p : NULL;
}

static uint64_t sum_of(const int *counts, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += (uint64_t) counts[i];
	return sum;
}

static void tell_scatter(const struct peers *p, int root, const int *counts, int count, handle type)
{
	for (int r = 0; p && p->me == root && r < p->n; r++)
		model_to(p, r, peers_bytes(counts ? counts[r] : count, type));
}

/* Around the ring goes all but what the next rank had itself. */
static void tell_allgather(const struct peers *p, const int *counts, int count, handle type)
{
	if (p)
		model_ring(p, (counts ? sum_of(counts, p->n) - (uint64_t) counts[(p->me + 1) % p->n] : (uint64_t) count * (p->n - 1)) *
			      peers_bytes(1, type));
}

static void tell_alltoall(const struct peers *p, const int *counts, int count, const MPI_Datatype *types, handle type)
{
	for (int r = 0; p && r < p->n; r++)
		model_to(p, r, peers_bytes(counts ? counts[r] : count, types ? (handle) types[r] : type));
}

/* A collective and its form that returns at once. Both are told by what follows the call, in which rc is its result. */
#define UNPACK(...) __VA_ARGS__
#define COLLECTIVE(now, later, takes, gives, tell) \
	WRAP(now, (UNPACK takes)) \
	{ \
		int rc = REAL(now)(UNPACK gives); \
		const struct peers *p = group_of(rc, comm); \
		tell; \
		return rc; \
	} \
	WRAP(later, (UNPACK takes, MPI_Request *request)) \
	{ \
		int rc = REAL(later)(UNPACK gives, request); \
		const struct peers *p = group_of(rc, comm); \
		tell; \
		return rc; \
	}

COLLECTIVE(MPI_Bcast, MPI_Ibcast, (void *data, int n, handle type, int root, handle comm), (data, n, type, root, comm),
	   model_down(p, root, peers_bytes(n, type)))
COLLECTIVE(MPI_Reduce, MPI_Ireduce, (const void *data, void *out, int n, handle type, handle op, int root, handle comm),
	   (data, out, n, type, op, root, comm), model_up(p, root, peers_bytes(n, type)))
COLLECTIVE(MPI_Allreduce, MPI_Iallreduce, (const void *data, void *out, int n, handle type, handle op, handle comm),
	   (data, out, n, type, op, comm), model_doubling(p, peers_bytes(n, type)))
COLLECTIVE(MPI_Scan, MPI_Iscan, (const void *data, void *out, int n, handle type, handle op, handle comm),
	   (data, out, n, type, op, comm), model_chain(p, peers_bytes(n, type)))
COLLECTIVE(MPI_Exscan, MPI_Iexscan, (const void *data, void *out, int n, handle type, handle op, handle comm),
	   (data, out, n, type, op, comm), model_chain(p, peers_bytes(n, type)))

/* Everybody but the root sends to it, where its own count may mean nothing. */
COLLECTIVE(MPI_Gather, MPI_Igather, (const void *data, int n, handle type, void *out, int out_n, handle out_type, int root,
				     handle comm),
	   (data, n, type, out, out_n, out_type, root, comm), if (p && p->me != root) model_to(p, root, peers_bytes(n, type)))
COLLECTIVE(MPI_Gatherv, MPI_Igatherv, (const void *data, int n, handle type, void *out, const int counts[], const int at[],
				       handle out_type, int root, handle comm),
	   (data, n, type, out, counts, at, out_type, root, comm), if (p && p->me != root) model_to(p, root, peers_bytes(n, type)))
COLLECTIVE(MPI_Scatter, MPI_Iscatter, (const void *data, int n, handle type, void *out, int out_n, handle out_type, int root,
				       handle comm),
	   (data, n, type, out, out_n, out_type, root, comm), tell_scatter(p, root, NULL, n, type))
COLLECTIVE(MPI_Scatterv, MPI_Iscatterv, (const void *data, const int counts[], const int at[], handle type, void *out, int out_n,
					 handle out_type, int root, handle comm),
	   (data, counts, at, type, out, out_n, out_type, root, comm), tell_scatter(p, root, counts, 0, type))

/* What is received counts where what is sent may be MPI_IN_PLACE. */
COLLECTIVE(MPI_Allgather, MPI_Iallgather, (const void *data, int n, handle type, void *out, int out_n, handle out_type,
					   handle comm),
	   (data, n, type, out, out_n, out_type, comm), tell_allgather(p, NULL, out_n, out_type))
COLLECTIVE(MPI_Allgatherv, MPI_Iallgatherv, (const void *data, int n, handle type, void *out, const int counts[], const int at[],
					     handle out_type, handle comm),
	   (data, n, type, out, counts, at, out_type, comm), tell_allgather(p, counts, 0, out_type))
COLLECTIVE(MPI_Alltoall, MPI_Ialltoall, (const void *data, int n, handle type, void *out, int out_n, handle out_type,
					 handle comm),
	   (data, n, type, out, out_n, out_type, comm), tell_alltoall(p, NULL, out_n, NULL, out_type))
COLLECTIVE(MPI_Alltoallv, MPI_Ialltoallv, (const void *data, const int counts[], const int at[], handle type, void *out,
					   const int out_counts[], const int out_at[], handle out_type, handle comm),
	   (data, counts, at, type, out, out_counts, out_at, out_type, comm),
	   if (data == MPI_IN_PLACE) tell_alltoall(p, out_counts, 0, NULL, out_type);
	   else tell_alltoall(p, counts, 0, NULL, type))
COLLECTIVE(MPI_Alltoallw, MPI_Ialltoallw, (const void *data, const int counts[], const int at[], const MPI_Datatype types[], void *out,
					   const int out_counts[], const int out_at[], const MPI_Datatype out_types[], handle comm),
	   (data, counts, at, types, out, out_counts, out_at, out_types, comm),
	   if (data == MPI_IN_PLACE) tell_alltoall(p, out_counts, 0, out_types, 0);
	   else tell_alltoall(p, counts, 0, types, 0))

/* Each rank gets its part from all others. */
COLLECTIVE(MPI_Reduce_scatter, MPI_Ireduce_scatter, (const void *data, void *out, const int counts[], handle type, handle op,
						     handle comm),
	   (data, out, counts, type, op, comm), tell_alltoall(p, counts, 0, NULL, type))
COLLECTIVE(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, (const void *data, void *out, int n, handle type, handle op,
								 handle comm),
	   (data, out, n, type, op, comm), tell_alltoall(p, NULL, n, NULL, type))

/* The ranks that this one sends to in a communicator with neighbours, in its order: to[*n], for the caller to free, or NULL. */
static int *cart_neighbours(MPI_Comm comm, int *n)
{
	int dims = 0, *to;

	if (ASK(MPI_Cartdim_get)(comm, &dims) != MPI_SUCCESS || !(to = malloc((2 * dims + 1) * sizeof(*to))))
		return NULL;
	for (int d = 0; d < dims; d++)
		ASK(MPI_Cart_shift)(comm, d, 1, &to[2 * d], &to[2 * d + 1]);
	*n = 2 * dims;
	return to;
}

static int *graph_neighbours(const struct peers *p, MPI_Comm comm, int *n)
{
	int *to;

	if (ASK(MPI_Graph_neighbors_count)(comm, p->me, n) != MPI_SUCCESS || !(to = malloc((*n + 1) * sizeof(*to))))
		return NULL;
	ASK(MPI_Graph_neighbors)(comm, p->me, *n, to);
	return to;
}

static int *dist_graph_neighbours(MPI_Comm comm, int *n)
{
	int in = 0, weighted, *all, *to = NULL;

	if (ASK(MPI_Dist_graph_neighbors_count)(comm, &in, n, &weighted) != MPI_SUCCESS ||
	    !(all = malloc((2 * in + *n + 1) * sizeof(*all))))
		return NULL;
	if ((to = malloc((*n + 1) * sizeof(*to))))
		ASK(MPI_Dist_graph_neighbors)(comm, in, all, all + in, *n, to, all + 2 * in);
	free(all);
	return to;
}

static int *neighbours(const struct peers *p, MPI_Comm comm, int *n)
{
	int kind = MPI_UNDEFINED;

	if (ASK(MPI_Topo_test)(comm, &kind) != MPI_SUCCESS)
		return NULL;
	switch (kind) {
	case MPI_CART:
		return cart_neighbours(comm, n);
	case MPI_GRAPH:
		return graph_neighbours(p, comm, n);
	case MPI_DIST_GRAPH:
		return dist_graph_neighbours(comm, n);
	}
	return NULL;
}

static void tell_neighbours(const struct peers *p, handle comm, const int *counts, int count, const MPI_Datatype *types,
			    handle type)
{
	int n = 0, *to = p ? neighbours(p, (MPI_Comm) comm, &n) : NULL;

	for (int i = 0; to && i < n; i++)
		if (to[i] >= 0)
			model_to(p, to[i], peers_bytes(counts ? counts[i] : count, types ? (handle) types[i] : type));
	free(to);
}

COLLECTIVE(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, (const void *data, int n, handle type, void *out, int out_n,
							     handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), tell_neighbours(p, comm, NULL, n, NULL, type))
COLLECTIVE(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, (const void *data, int n, handle type, void *out, const int counts[],
							       const int at[], handle out_type, handle comm),
	   (data, n, type, out, counts, at, out_type, comm), tell_neighbours(p, comm, NULL, n, NULL, type))
COLLECTIVE(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, (const void *data, int n, handle type, void *out, int out_n,
							   handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), tell_neighbours(p, comm, NULL, n, NULL, type))
COLLECTIVE(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, (const void *data, const int counts[], const int at[], handle type,
							     void *out, const int out_counts[], const int out_at[],
							     handle out_type, handle comm),
	   (data, counts, at, type, out, out_counts, out_at, out_type, comm), tell_neighbours(p, comm, counts, 0, NULL, type))
COLLECTIVE(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, (const void *data, const int counts[], const MPI_Aint at[],
							     const MPI_Datatype types[], void *out, const int out_counts[],
							     const MPI_Aint out_at[], const MPI_Datatype out_types[], handle comm),
	   (data, counts, at, types, out, out_counts, out_at, out_types, comm), tell_neighbours(p, comm, counts, 0, types, 0))
