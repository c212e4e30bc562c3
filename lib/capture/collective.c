/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "capture.h"

/* --- algorithms --- */

/*
 * The messages of a collective are not visible at the MPI interface; they are modelled by the usual algorithms
 * (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005). Bytes are those
 * of one rank's contribution, which every rank knows. p may be NULL: nothing is counted.
 */

static void model_send(const struct comm_ranks *p, int rank, uint64_t bytes)
{
	if (p && (p->own || rank != p->me))
		comm_ranks_count(p, COUNTER_COLLECTIVE, rank, bytes);
}

/* This rank's number relative to root. */
static int relative_rank(const struct comm_ranks *p, int root)
{
	return (p->me - root + p->n) % p->n;
}

static void model_broadcast(const struct comm_ranks *p, int root, uint64_t bytes)
{
	int me, first = 1;

	if (!p || root < 0 || root >= p->n)
		return;
	me = relative_rank(p, root);
	while (first < p->n && !(me & first))
		first <<= 1;
	for (int step = first >> 1; step; step >>= 1)
		if (me + step < p->n)
			model_send(p, (me + step + root) % p->n, bytes);
}

static void model_reduce(const struct comm_ranks *p, int root, uint64_t bytes)
{
	int me;

	if (!p || root < 0 || root >= p->n || !(me = relative_rank(p, root)))
		return;
	model_send(p, ((me & (me - 1)) + root) % p->n, bytes);
}

static void model_scan(const struct comm_ranks *p, uint64_t bytes)
{
	if (p)
		model_send(p, p->me + 1, bytes);
}

/* --- collectives --- */

/*
 * The messages that this rank sends in each collective, by the algorithms above. In an intercommunicator data for all
 * of the remote group is sent through rank 0 of both groups; root is then MPI_ROOT, MPI_PROC_NULL or a rank of the
 * remote group. p may be NULL: nothing is counted.
 */

/* The number of elements for each rank: an array of int or MPI_Count, or the same number for all. */
struct collective_counts {
	const void *counts;
	bool is_large;			/* MPI_Count */
	MPI_Count each;
};
#define COUNTS(of) ((struct collective_counts){ .counts = (of), .is_large = sizeof(*(of)) > sizeof(int) })
#define EACH(n) ((struct collective_counts){ .each = (n) })

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

static void collective_broadcast(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (!p || !p->own)
		model_broadcast(p, root, bytes);
	else if (root == MPI_ROOT)
		model_send(p, 0, bytes);
	else if (root >= 0)
		model_broadcast(p->own, 0, bytes);
}

static void collective_reduce(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (!p || !p->own) {
		model_reduce(p, root, bytes);
	} else if (root >= 0) {
		model_reduce(p->own, 0, bytes);
		if (!p->me)
			model_send(p, root, bytes);
	}
}

/* Ranks beyond a power of two send their part to a neighbour first, and receive the result from it at the end. */
static void collective_allreduce(const struct comm_ranks *p, uint64_t bytes)
{
	int whole = 1, extra, me;

	if (!p)
		return;
	if (p->own) {
		model_reduce(p->own, 0, bytes);
		send_to_remote(p, bytes);
		model_broadcast(p->own, 0, bytes);
		return;
	}
	while (whole <= p->n / 2)
		whole <<= 1;
	extra = p->n - whole;
	if (p->me < 2 * extra)
		model_send(p, p->me ^ 1, bytes);
	if (p->me < 2 * extra && p->me % 2 == 0)
		return;
	me = p->me < 2 * extra ? p->me / 2 : p->me - extra;
	for (int step = 1; step < whole; step <<= 1)
		model_send(p, (me ^ step) < extra ? (me ^ step) * 2 + 1 : (me ^ step) + extra, bytes);
}

/* The send count is not significant at the root. */
static void collective_gather(const struct comm_ranks *p, int root, uint64_t bytes)
{
	if (root >= 0)
		model_send(p, root, bytes);
}

static void collective_scatter(const struct comm_ranks *p, int root, struct collective_counts counts, handle type)
{
	if (!p || (p->own ? root != MPI_ROOT : root != p->me))
		return;
	for (int r = 0; r < p->n; r++)
		model_send(p, r, datatype_bytes(count_of(counts, r), type));
}

/* A ring passes on everything except the next rank's own part. */
static void collective_allgather(const struct comm_ranks *p, MPI_Count n, handle type, struct collective_counts counts,
			  handle recv_type)
{
	MPI_Count all;

	if (!p)
		return;
	all = sum_of(counts, p->n);
	if (p->own) {
		model_send(p->own, 0, datatype_bytes(n, type));
		send_to_remote(p, datatype_bytes(n, type) * (uint64_t) p->own->n);
		model_broadcast(p->own, 0, datatype_bytes(all, recv_type));
	} else if (p->n) {
		model_send(p, (p->me + 1) % p->n,
			   datatype_bytes(all - count_of(counts, (p->me + 1) % p->n), recv_type));
	}
}

static void collective_alltoall(const struct comm_ranks *p, struct collective_counts counts, const MPI_Datatype *types,
			 handle type)
{
	for (int r = 0; p && r < p->n; r++)
		model_send(p, r, datatype_bytes(count_of(counts, r), types ? (handle) types[r] : type));
}

/* Each rank receives its part from all others. */
static void collective_reduce_scatter(const struct comm_ranks *p, struct collective_counts counts, handle type)
{
	uint64_t all;

	if (!p || !p->own) {
		collective_alltoall(p, counts, NULL, type);
		return;
	}
	all = datatype_bytes(sum_of(counts, p->own->n), type);
	model_reduce(p->own, 0, all);
	send_to_remote(p, all);
	if (!p->me)
		collective_scatter(p->own, 0, counts, type);
}

/* The destinations of this rank in a virtual topology, in its order: to[*n], for the caller to free, or NULL. */
static int *topology_neighbours(const struct comm_ranks *p, MPI_Comm comm, int *n)
{
	int kind = MPI_UNDEFINED, in = 0, dims = 0, weighted, *all, *to = NULL;

	if (PMPI(MPI_Topo_test)(comm, &kind) != MPI_SUCCESS)
		return NULL;
	if (kind == MPI_CART && PMPI(MPI_Cartdim_get)(comm, &dims) == MPI_SUCCESS &&
	    (to = malloc((2 * dims + 1) * sizeof(*to)))) {
		*n = 2 * dims;
		for (int d = 0; d < dims; d++)
			PMPI(MPI_Cart_shift)(comm, d, 1, &to[2 * d], &to[2 * d + 1]);
	} else if (kind == MPI_GRAPH && PMPI(MPI_Graph_neighbors_count)(comm, p->me, n) == MPI_SUCCESS &&
		   (to = malloc((*n + 1) * sizeof(*to)))) {
		PMPI(MPI_Graph_neighbors)(comm, p->me, *n, to);
	} else if (kind == MPI_DIST_GRAPH &&
		   PMPI(MPI_Dist_graph_neighbors_count)(comm, &in, n, &weighted) == MPI_SUCCESS &&
		   (all = malloc((2 * in + *n + 1) * sizeof(*all)))) {
		if ((to = malloc((*n + 1) * sizeof(*to))))
			PMPI(MPI_Dist_graph_neighbors)(comm, in, all, all + in, *n, to, all + 2 * in);
		free(all);
	}
	return to;
}

static void collective_neighbours(const struct comm_ranks *p, handle comm, struct collective_counts counts,
			   const MPI_Datatype *types, handle type)
{
	int n = 0, *to = p ? topology_neighbours(p, (MPI_Comm) comm, &n) : NULL;

	for (int i = 0; to && i < n; i++)
		if (to[i] >= 0)
			model_send(p, to[i], datatype_bytes(count_of(counts, i), types ? (handle) types[i] : type));
	free(to);
}

/* --- wrappers --- */

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
#include "collective_calls.h"
#undef N
#undef AT
#undef FORMS
#define N MPI_Count
#define AT MPI_Aint
#define FORMS(blocking, nonblocking) blocking##_c, nonblocking##_c, blocking##_init_c
#include "collective_calls.h"
