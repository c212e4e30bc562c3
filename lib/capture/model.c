/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "model.h"

void model_to(const struct peers *p, int rank, uint64_t bytes)
{
	if (p && (p->own || rank != p->me))
		peers_tell(p, TALLY_COLLECTIVE, rank, bytes);
}

/* A rank's number in a tree below root. */
static int below(const struct peers *p, int root)
{
	return (p->me - root + p->n) % p->n;
}

void model_down(const struct peers *p, int root, uint64_t bytes)
{
	int me, first = 1;

	if (!p || root < 0 || root >= p->n)
		return;
	me = below(p, root);
	while (first < p->n && !(me & first))
		first <<= 1;
	for (int step = first >> 1; step; step >>= 1)
		if (me + step < p->n)
			model_to(p, (me + step + root) % p->n, bytes);
}

void model_up(const struct peers *p, int root, uint64_t bytes)
{
	int me;

	if (!p || root < 0 || root >= p->n || !(me = below(p, root)))
		return;
	model_to(p, ((me & (me - 1)) + root) % p->n, bytes);
}

/* Ranks beyond a power of two lend their part to a neighbour before, and get the result from it after. */
void model_doubling(const struct peers *p, uint64_t bytes)
{
	int whole = 1, extra, me;

	if (!p)
		return;
	while (whole <= p->n / 2)
		whole <<= 1;
	extra = p->n - whole;
	if (p->me < 2 * extra)
		model_to(p, p->me ^ 1, bytes);
	if (p->me < 2 * extra && p->me % 2 == 0)
		return;
	me = p->me < 2 * extra ? p->me / 2 : p->me - extra;
	for (int step = 1; step < whole; step <<= 1)
		model_to(p, (me ^ step) < extra ? (me ^ step) * 2 + 1 : (me ^ step) + extra, bytes);
}

void model_ring(const struct peers *p, uint64_t bytes)
{
	if (p && p->n)
		model_to(p, (p->me + 1) % p->n, bytes);
}

void model_chain(const struct peers *p, uint64_t bytes)
{
	if (p)
		model_to(p, p->me + 1, bytes);
}
