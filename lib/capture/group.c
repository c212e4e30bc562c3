/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "group.h"

#include <stdlib.h>

#include "model.h"

static MPI_Count part(struct parts p, int rank)
{
	if (!p.counts)
		return p.each;
	return p.wide ? ((const MPI_Count *) p.counts)[rank] : ((const int *) p.counts)[rank];
}

static MPI_Count sum_of(struct parts p, int n)
{
	MPI_Count sum = 0;

	for (int r = 0; r < n; r++)
		sum += part(p, r);
	return sum;
}

/* From the first rank of this group to the first of the other. */
static void across(const struct peers *p, uint64_t bytes)
{
	if (!p->me)
		model_to(p, 0, bytes);
}

static void broadcast_across(const struct peers *p, int root, uint64_t bytes)
{
	if (root == MPI_ROOT)
		model_to(p, 0, bytes);
	else if (root >= 0)
		model_down(p->own, 0, bytes);
}

void group_broadcast(const struct peers *p, int root, uint64_t bytes)
{
	if (p && p->own)
		broadcast_across(p, root, bytes);
	else
		model_down(p, root, bytes);
}

static void reduce_across(const struct peers *p, int root, uint64_t bytes)
{
	if (root < 0)
		return;
	model_up(p->own, 0, bytes);
	if (!p->me)
		model_to(p, root, bytes);
}

void group_reduce(const struct peers *p, int root, uint64_t bytes)
{
	if (p && p->own)
		reduce_across(p, root, bytes);
	else
		model_up(p, root, bytes);
}

void group_allreduce(const struct peers *p, uint64_t bytes)
{
	if (!p || !p->own) {
		model_doubling(p, bytes);
		return;
	}
	model_up(p->own, 0, bytes);
	across(p, bytes);
	model_down(p->own, 0, bytes);
}

/* At the root what it sends may mean nothing. */
void group_gather(const struct peers *p, int root, uint64_t bytes)
{
	if (root >= 0)
		model_to(p, root, bytes);
}

void group_scatter(const struct peers *p, int root, struct parts parts, handle type)
{
	if (!p || (p->own ? root != MPI_ROOT : root != p->me))
		return;
	for (int r = 0; r < p->n; r++)
		model_to(p, r, peers_bytes(part(parts, r), type));
}

static void allgather_across(const struct peers *p, uint64_t bytes, uint64_t others)
{
	model_to(p->own, 0, bytes);
	across(p, bytes * (uint64_t) p->own->n);
	model_down(p->own, 0, others);
}

/* Around the ring goes all but what the next rank had itself. */
void group_allgather(const struct peers *p, MPI_Count n, handle type, struct parts parts, handle part_type)
{
	MPI_Count all;

	if (!p)
		return;
	all = sum_of(parts, p->n);
	if (p->own)
		allgather_across(p, peers_bytes(n, type), peers_bytes(all, part_type));
	else
		model_ring(p, peers_bytes(all - part(parts, (p->me + 1) % p->n), part_type));
}

void group_alltoall(const struct peers *p, struct parts parts, const MPI_Datatype *types, handle type)
{
	for (int r = 0; p && r < p->n; r++)
		model_to(p, r, peers_bytes(part(parts, r), types ? (handle) types[r] : type));
}

static void reduce_scatter_across(const struct peers *p, struct parts parts, handle type)
{
	uint64_t all = peers_bytes(sum_of(parts, p->own->n), type);

	model_up(p->own, 0, all);
	across(p, all);
	if (!p->me)
		group_scatter(p->own, 0, parts, type);
}

/* Each rank gets its part from all others. */
void group_reduce_scatter(const struct peers *p, struct parts parts, handle type)
{
	if (p && p->own)
		reduce_scatter_across(p, parts, type);
	else
		group_alltoall(p, parts, NULL, type);
}

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

void group_neighbours(const struct peers *p, handle comm, struct parts parts, const MPI_Datatype *types, handle type)
{
	int n = 0, *to = p ? neighbours(p, (MPI_Comm) comm, &n) : NULL;

	for (int i = 0; to && i < n; i++)
		if (to[i] >= 0)
			model_to(p, to[i], peers_bytes(part(parts, i), types ? (handle) types[i] : type));
	free(to);
}
