/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "exclusion.h"

#include "base/core_set.h"
#include "occupancy.h"

static void clear_from(const bitstr_t *b, unsigned at, int node, uint64_t *cores)
{
	for (unsigned c = 0, n = glue_cores(node); c < n && at + c < bit_size((bitstr_t *) b); c++)
		if (bit_test((bitstr_t *) b, at + c))
			core_set_remove(cores, c);
}

static void set_but(bitstr_t *b, unsigned at, int node, const uint64_t *keep)
{
	for (unsigned c = 0, n = glue_cores(node); c < n; c++)
		if (!core_set_has(keep, c))
			bit_set(b, at + c);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
void exclusion_apply(const slurm_exclusion_t *x, int node, uint64_t *cores)
{
	if (x && x->exc_cores && x->exc_cores[node])
		clear_from(x->exc_cores[node], 0, node, cores);
}

/* An array of all nodes without any bitmap, of the exclusion freed last: most concern few nodes. */
static bitstr_t **kept;
static int kept_nodes;

static bitstr_t **cores_new(void)
{
	bitstr_t **cores = kept_nodes == node_record_count ? kept : NULL;

	if (cores)
		kept = NULL;
	return cores ? cores : xcalloc(node_record_count, sizeof(*cores));
}

slurm_exclusion_t *exclusion_copy(const slurm_exclusion_t *came)
{
	slurm_exclusion_t *x = xmalloc(sizeof(*x));

	if (came)
		*x = *came;
	x->exc_cores = cores_new();
	for (int i = 0; came && came->exc_cores && i < node_record_count; i++)
		if (came->exc_cores[i])
			x->exc_cores[i] = bit_copy(came->exc_cores[i]);
	return x;
}

void exclusion_free(slurm_exclusion_t *x)
{
	for (int i = 0; i < node_record_count; i++)
		FREE_NULL_BITMAP(x->exc_cores[i]);
	xfree(kept);
	kept = x->exc_cores;
	kept_nodes = node_record_count;
	xfree(x);
}

void exclusion_clear(void)
{
	xfree(kept);
}

void exclusion_keep(slurm_exclusion_t *x, int node, const uint64_t *keep)
{
	if (!x->exc_cores[node])
		x->exc_cores[node] = bit_alloc(glue_cores(node));
	set_but(x->exc_cores[node], 0, node, keep);
}
#else
void exclusion_apply(const slurm_exclusion_t *x, int node, uint64_t *cores)
{
	if (x)
		clear_from(x, occupancy_offset(node), node, cores);
}

slurm_exclusion_t *exclusion_copy(const slurm_exclusion_t *came)
{
	bitstr_t *x = bit_alloc(occupancy_offset(node_record_count));

	if (came)
		bit_or(x, (bitstr_t *) came);
	return x;
}

void exclusion_free(slurm_exclusion_t *x)
{
	FREE_NULL_BITMAP(x);
}

void exclusion_clear(void)
{
}

void exclusion_keep(slurm_exclusion_t *x, int node, const uint64_t *keep)
{
	set_but(x, occupancy_offset(node), node, keep);
}
#endif
