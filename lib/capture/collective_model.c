/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "collective_model.h"

void model_send(const struct comm_ranks *p, int rank, uint64_t bytes)
{
	if (p && (p->own || rank != p->me))
		comm_ranks_count(p, COUNTER_COLLECTIVE, rank, bytes);
}

/* This rank's number relative to root. */
static int relative_rank(const struct comm_ranks *p, int root)
{
	return (p->me - root + p->n) % p->n;
}

void model_broadcast(const struct comm_ranks *p, int root, uint64_t bytes)
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

void model_reduce(const struct comm_ranks *p, int root, uint64_t bytes)
{
	int me;

	if (!p || root < 0 || root >= p->n || !(me = relative_rank(p, root)))
		return;
	model_send(p, ((me & (me - 1)) + root) % p->n, bytes);
}

/* Ranks beyond a power of two send their part to a neighbour first, and receive the result from it at the end. */
void model_allreduce(const struct comm_ranks *p, uint64_t bytes)
{
	int whole = 1, extra, me;

	if (!p)
		return;
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

void model_allgather(const struct comm_ranks *p, uint64_t bytes)
{
	if (p && p->n)
		model_send(p, (p->me + 1) % p->n, bytes);
}

void model_scan(const struct comm_ranks *p, uint64_t bytes)
{
	if (p)
		model_send(p, p->me + 1, bytes);
}
