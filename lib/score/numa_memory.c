/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/numa_memory.h"

/* Of a NUMA node, in units. */
struct numa_state {
	const struct shape_domain *domain;
	uint64_t has, used;
};

/*
 * The part of the node's memory that is the normal memory of its cores, in MB: in proportion, unless what Slurm may
 * allocate is no more than that, so that the site has left other tiers out.
 */
static uint64_t normal_memory(const struct shape *s, const struct numa_memory *m)
{
	const struct shape_numas *n = &s->numas;

	if (!n->others || m->capacity <= n->all >> 20)
		return m->capacity;
	return (unsigned __int128) m->capacity * n->all / ((unsigned __int128) n->all + n->others);
}

static struct numa_state state_of(const struct shape *s, const struct numa_memory *m, uint64_t normal, unsigned nth)
{
	struct numa_state n = { .domain = &s->domains[s->numas.domains[nth]] };
	unsigned __int128 part = (unsigned __int128) normal * NUMA_MEMORY_UNIT * n.domain->memory;

	n.has = (part + s->numas.all - 1) / s->numas.all;
	for (unsigned c = n.domain->first; c < n.domain->first + n.domain->cores; c++)
		n.used += m->used[c];
	return n;
}

unsigned numa_memory_limits(const struct shape *shape, const struct numa_memory *m, unsigned cores,
			    const uint64_t *free_cores, struct score_limit *out, unsigned room)
{
	uint64_t left = 0, excess = 0, normal = normal_memory(shape, m);
	unsigned n = 0;

	if (!m->wanted || !shape->numas.count)
		return 0;
	/* Any NUMA node could hold all of it, whatever cores the jobs have: most nodes, most of the time. */
	if (m->wanted + m->held <= (unsigned __int128) normal * shape->numas.least / shape->numas.all)
		return 0;
	for (unsigned i = 0; i < shape->numas.count; i++) {
		struct numa_state s = state_of(shape, m, normal, i);

		left += s.has > s.used ? s.has - s.used : 0;
		excess += s.used > s.has ? s.used - s.has : 0;
	}
	for (unsigned i = 0; i < shape->numas.count && n < room; i++) {
		struct numa_state s = state_of(shape, m, normal, i);
		uint64_t own = s.has > s.used ? s.has - s.used : 0, fit;
		unsigned free = 0;

		if (excess)
			own = left > excess ? (unsigned __int128) own * (left - excess) / left : 0;
		fit = (unsigned __int128) own * cores / (m->wanted * NUMA_MEMORY_UNIT);
		for (unsigned c = s.domain->first; fit < cores && c < s.domain->first + s.domain->cores; c++)
			free += core_set_has(free_cores, c);
		if (fit < cores && fit < free)
			out[n++] = (struct score_limit){ s.domain->first, s.domain->cores, fit };
	}
	return n;
}
