/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "collective.h"

#include <stdlib.h>

#include "collective_model.h"

static MPI_Count count_of(struct collective_counts c, int rank)
{
	if (!c.counts)
		return c.each;
	return c.is_large ? ((const MPI_Count *) c.counts)[rank] : ((const int *) c.counts)[rank];
}

static MPI_Count sum_of(struct collective_counts c, int n)
{
	MPI_Count sum = 0;

	for (int r = 0; r < n; r++)
		sum += count_of(c, r);
	return sum;
}

/* From rank 0 of the local group to rank 0 of the remote group. */
static void send_to_remote(const struct comm_ranks *p, uint64_t bytes)
{
	if (!p->me)
		model_send(p, 0, bytes);
}

static void inter_broadcast(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (root == MPI_ROOT)
		model_send(p, 0, bytes);
	else if (root >= 0)
		model_broadcast(p->own, 0, bytes);
}

void collective_broadcast(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (p && p->own)
		inter_broadcast(p, root, bytes);
	else
		model_broadcast(p, root, bytes);
}

static void inter_reduce(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (root < 0)
		return;
	model_reduce(p->own, 0, bytes);
	if (!p->me)
		model_send(p, root, bytes);
}

void collective_reduce(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (p && p->own)
		inter_reduce(p, root, bytes);
	else
		model_reduce(p, root, bytes);
}

void collective_allreduce(const struct comm_ranks *p, uint64_t bytes)
{
	if (!p || !p->own) {
		model_allreduce(p, bytes);
		return;
	}
	model_reduce(p->own, 0, bytes);
	send_to_remote(p, bytes);
	model_broadcast(p->own, 0, bytes);
}

/* The send count is not significant at the root. */
void collective_gather(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (root >= 0)
		model_send(p, root, bytes);
}

void collective_scatter(const struct comm_ranks *p, int root, struct collective_counts counts, handle type)
{
	if (!p || (p->own ? root != MPI_ROOT : root != p->me))
		return;
	for (int r = 0; r < p->n; r++)
		model_send(p, r, datatype_bytes(count_of(counts, r), type));
}

static void inter_allgather(const struct comm_ranks *p, uint64_t bytes, uint64_t others)
{
	model_send(p->own, 0, bytes);
	send_to_remote(p, bytes * (uint64_t) p->own->n);
	model_broadcast(p->own, 0, others);
}

/* A ring passes on everything except the next rank's own part. */
void collective_allgather(const struct comm_ranks *p, MPI_Count n, handle type, struct collective_counts counts,
			  handle recv_type)
{
	MPI_Count all;

	if (!p)
		return;
	all = sum_of(counts, p->n);
	if (p->own)
		inter_allgather(p, datatype_bytes(n, type), datatype_bytes(all, recv_type));
	else
		model_allgather(p, datatype_bytes(all - count_of(counts, (p->me + 1) % p->n), recv_type));
}

void collective_alltoall(const struct comm_ranks *p, struct collective_counts counts, const MPI_Datatype *types,
			 handle type)
{
	for (int r = 0; p && r < p->n; r++)
		model_send(p, r, datatype_bytes(count_of(counts, r), types ? (handle) types[r] : type));
}

static void inter_reduce_scatter(const struct comm_ranks *p, struct collective_counts counts, handle type)
{
	uint64_t all = datatype_bytes(sum_of(counts, p->own->n), type);

	model_reduce(p->own, 0, all);
	send_to_remote(p, all);
	if (!p->me)
		collective_scatter(p->own, 0, counts, type);
}

/* Each rank receives its part from all others. */
void collective_reduce_scatter(const struct comm_ranks *p, struct collective_counts counts, handle type)
{
	if (p && p->own)
		inter_reduce_scatter(p, counts, type);
	else
		collective_alltoall(p, counts, NULL, type);
}

/* The destinations of this rank in a virtual topology, in its order: to[*n], for the caller to free, or NULL. */
static int *cart_neighbours(MPI_Comm comm, int *n)
{
	int dims = 0, *to;

	if (PMPI(MPI_Cartdim_get)(comm, &dims) != MPI_SUCCESS || !(to = malloc((2 * dims + 1) * sizeof(*to))))
		return NULL;
	for (int d = 0; d < dims; d++)
		PMPI(MPI_Cart_shift)(comm, d, 1, &to[2 * d], &to[2 * d + 1]);
	*n = 2 * dims;
	return to;
}

static int *graph_neighbours(const struct comm_ranks *p, MPI_Comm comm, int *n)
{
	int *to;

	if (PMPI(MPI_Graph_neighbors_count)(comm, p->me, n) != MPI_SUCCESS || !(to = malloc((*n + 1) * sizeof(*to))))
		return NULL;
	PMPI(MPI_Graph_neighbors)(comm, p->me, *n, to);
	return to;
}

static int *dist_graph_neighbours(MPI_Comm comm, int *n)
{
	int in = 0, weighted, *all, *to = NULL;

	if (PMPI(MPI_Dist_graph_neighbors_count)(comm, &in, n, &weighted) != MPI_SUCCESS ||
	    !(all = malloc((2 * in + *n + 1) * sizeof(*all))))
		return NULL;
	if ((to = malloc((*n + 1) * sizeof(*to))))
		PMPI(MPI_Dist_graph_neighbors)(comm, in, all, all + in, *n, to, all + 2 * in);
	free(all);
	return to;
}

static int *topology_neighbours(const struct comm_ranks *p, MPI_Comm comm, int *n)
{
	int kind = MPI_UNDEFINED;

	if (PMPI(MPI_Topo_test)(comm, &kind) != MPI_SUCCESS)
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

void collective_neighbours(const struct comm_ranks *p, handle comm, struct collective_counts counts,
			   const MPI_Datatype *types, handle type)
{
	int n = 0, *to = p ? topology_neighbours(p, (MPI_Comm) comm, &n) : NULL;

	for (int i = 0; to && i < n; i++)
		if (to[i] >= 0)
			model_send(p, to[i], datatype_bytes(count_of(counts, i), types ? (handle) types[i] : type));
	free(to);
}
