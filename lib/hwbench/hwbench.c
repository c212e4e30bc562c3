/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwbench/hwbench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hwbench/hwbench_parts.h"

#define LINE 64u		/* bytes */
#define MIB ((size_t) 1 << 20)
#define CHASE_STEPS 100000u	/* loads between two looks at the clock */
#define CHASE_LEAST (64 * MIB)
#define CHASE_MOST (1024 * MIB)
#define STREAM_LEAST (16 * MIB)
#define STREAM_MOST (256 * MIB)

struct run {
	struct hwbench *b;
	hwloc_topology_t t;
	double seconds;
	unsigned done, all;
	void (*progress)(void *user, unsigned done, unsigned all);
	void *user;
	struct err *err;
};

static void step(struct run *r)
{
	if (r->progress)
		r->progress(r->user, ++r->done, r->all);
}

/* --- memory --- */

static size_t between(size_t n, size_t least, size_t most)
{
	return n < least ? least : n > most ? most : n;
}

static unsigned cores_in(const struct run *r, hwloc_const_cpuset_t set)
{
	return hwloc_get_nbobjs_inside_cpuset_by_type(r->t, set, HWLOC_OBJ_CORE);
}

/*
 * Twice the largest cache, or twice a core's part of it where each of `members` has a buffer of its own, as far as a
 * quarter of the NUMA node's memory for all of them allows.
 */
static size_t buffer_bytes(const struct run *r, hwloc_obj_t numa, unsigned members, size_t least, size_t most)
{
	size_t cache = 0, room = numa->attr->numanode.local_memory / 4 / members, bytes;

	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(r->t, HWLOC_OBJ_L3CACHE, o));) {
		unsigned cores = cores_in(r, o->cpuset);
		size_t part = o->attr->cache.size / (cores && cores < members ? cores : members);

		cache = part > cache ? part : cache;
	}
	bytes = between(2 * cache, least, most);
	return (room && room < bytes ? room : bytes) / LINE * LINE;
}

/* NULL: not on this NUMA node. Where there is one only, a container may forbid to name it. */
static void *memory_on(const struct run *r, hwloc_obj_t numa, size_t bytes)
{
	void *p = hwloc_alloc_membind(r->t, bytes, numa->nodeset, HWLOC_MEMBIND_BIND,
				      HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT);

	if (!p && r->b->numas == 1)
		p = hwloc_alloc(r->t, bytes);
	if (!p)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 1, bytes);
	return p;
}

static hwloc_obj_t numa_at(const struct run *r, unsigned i)
{
	return hwloc_get_obj_by_type(r->t, HWLOC_OBJ_NUMANODE, i);
}

static hwloc_obj_t core_in(const struct run *r, hwloc_const_cpuset_t set, unsigned i)
{
	return hwloc_get_obj_inside_cpuset_by_type(r->t, set, HWLOC_OBJ_CORE, i);
}

/* --- cache lines --- */

/* The first core that a NUMA node is the nearest to; NULL: it has memory alone. */
static hwloc_obj_t own_core(const struct run *r, unsigned numa)
{
	hwloc_obj_t core = core_in(r, numa_at(r, numa)->cpuset, 0);

	return core && team_numa(r->t, core) == numa_at(r, numa) ? core : NULL;
}

static int handovers_between(struct run *r)
{
	struct hwbench *b = r->b;

	for (unsigned from = 0; from < b->numas; from++)
		for (unsigned to = from + 1; to < b->numas; to++, step(r)) {
			hwloc_obj_t x = own_core(r, from), y = own_core(r, to);
			double *way = &b->between[from * b->numas + to];

			if (!x || !y)
				continue;
			if (handover_pair(r->t, x, y, r->seconds, way, r->err))
				return -1;
			b->between[to * b->numas + from] = *way;
		}
	return 0;
}

/* --- latency --- */

/* One cycle through all lines in random order (Sattolo): each holds the address of the next. */
static void chase_make(char *memory, size_t bytes)
{
	uint32_t n = bytes / LINE, *order = malloc(n * sizeof(*order));
	uint64_t state = 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; order && i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; order && i > 0; i--) {
		uint32_t j, was = order[i];

		state = state * 6364136223846793005u + 1442695040888963407u;
		j = (state >> 33) % i;
		order[i] = order[j];
		order[j] = was;
	}
	for (uint32_t i = 0; i < n; i++)
		*(void **) (memory + (size_t) (order ? order[i] : i) * LINE) =
			memory + (size_t) (order ? order[(i + 1) % n] : (i + 1) % n) * LINE;
	free(order);
}

static uint64_t chase(const struct team_member *m)
{
	static _Thread_local void *volatile last;
	void *at = last && (char *) last >= (char *) m->memory && (char *) last < (char *) m->memory + m->bytes ?
			   last : m->memory;

	for (unsigned i = 0; i < CHASE_STEPS; i++)
		at = *(void **) at;
	last = at;
	return CHASE_STEPS;
}

static int latencies_to(struct run *r, unsigned to)
{
	struct hwbench *b = r->b;
	struct team_member m = { .bytes = buffer_bytes(r, numa_at(r, to), 1, CHASE_LEAST, CHASE_MOST) };
	int rc = 0;

	if ((m.memory = memory_on(r, numa_at(r, to), m.bytes)))
		chase_make(m.memory, m.bytes);
	for (unsigned from = 0; rc == 0 && from < b->numas; from++, step(r)) {
		m.core = core_in(r, numa_at(r, from)->cpuset, 0);
		if (!m.memory || !m.core)
			continue;
		rc = team_run(r->t, &m, 1, chase, r->seconds, r->err);
		b->latency[from * b->numas + to] = 1 / m.rate;
	}
	if (m.memory)
		hwloc_free(r->t, m.memory, m.bytes);
	return rc;
}

/* --- bandwidth --- */

static uint64_t stream(const struct team_member *m)
{
	const uint64_t *at = m->memory, *end = at + m->bytes / sizeof(*at);
	uint64_t sum[8] = {0};

	for (; at < end; at += 8)
		for (unsigned i = 0; i < 8; i++)
			sum[i] += at[i];
	for (unsigned i = 1; i < 8; i++)
		sum[0] += sum[i];
	__asm__ volatile("" : : "r"(sum[0]));
	return m->bytes;
}

static double rate_of(const struct team_member *m, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += m[i].rate;
	return sum;
}

static void team_end(const struct run *r, struct team_member *m, unsigned n)
{
	for (unsigned i = 0; m && i < n; i++)
		if (m[i].memory)
			hwloc_free(r->t, m[i].memory, m[i].bytes);
	free(m);
}

/* Members with memory on one NUMA node, or each on its own core's (to: NULL). NULL: some memory is not there. */
static struct team_member *team_in(const struct run *r, hwloc_const_cpuset_t set, unsigned n, hwloc_obj_t to)
{
	struct team_member *m = calloc(n + 1, sizeof(*m));

	for (unsigned i = 0; m && i < n; i++) {
		hwloc_obj_t numa;

		m[i].core = core_in(r, set, i);
		numa = to ? to : team_numa(r->t, m[i].core);
		m[i].bytes = numa ? buffer_bytes(r, numa, n, STREAM_LEAST, STREAM_MOST) : 0;
		if (numa && m[i].bytes && (m[i].memory = memory_on(r, numa, m[i].bytes)))
			continue;
		team_end(r, m, n);
		return NULL;
	}
	return m;
}

static int bandwidths_to(struct run *r, unsigned to)
{
	struct hwbench *b = r->b;
	int rc = 0;

	for (unsigned from = 0; rc == 0 && from < b->numas; from++, step(r)) {
		hwloc_const_cpuset_t set = numa_at(r, from)->cpuset;
		unsigned n = cores_in(r, set);
		struct team_member *m = n ? team_in(r, set, n, numa_at(r, to)) : NULL;

		if (!m)
			continue;
		rc = team_run(r->t, m, n, stream, r->seconds, r->err);
		b->bandwidth[from * b->numas + to] = rate_of(m, n);
		team_end(r, m, n);
	}
	return rc;
}

/* --- bandwidth by number of cores --- */

static unsigned counts_of(unsigned cores, unsigned *used)
{
	unsigned n = 0;

	for (unsigned k = 1; k < cores; k *= 2, n++)
		if (used)
			used[n] = k;
	if (used)
		used[n] = cores;
	return n + 1;
}

static int domain_measure(struct run *r, struct hwbench_domain *d, hwloc_obj_t o)
{
	int rc = 0;

	for (unsigned i = 0; i < d->n && rc == 0; i++, step(r)) {
		struct team_member *m = team_in(r, o->cpuset, d->used[i], NULL);

		d->bandwidth[i] = NAN;
		if (!m)
			continue;
		rc = team_run(r->t, m, d->used[i], stream, r->seconds, r->err);
		d->bandwidth[i] = rate_of(m, d->used[i]);
		team_end(r, m, d->used[i]);
	}
	return rc;
}

static const struct {
	enum level level;
	hwloc_obj_type_t type;
} measured[] = {
	{ LEVEL_PACKAGE, HWLOC_OBJ_PACKAGE }, { LEVEL_NUMA, HWLOC_OBJ_NUMANODE }, { LEVEL_L3, HWLOC_OBJ_L3CACHE },
};

#define MEASURED (sizeof(measured) / sizeof(measured[0]))

static hwloc_obj_t domain_object(const struct run *r, size_t i)
{
	hwloc_obj_t o = hwloc_get_obj_by_type(r->t, measured[i].type, 0);

	return o && cores_in(r, o->cpuset) > 1 ? o : NULL;
}

/* Domains of the same cores are measured once: the outermost. */
static int domains_begin(struct run *r, hwloc_obj_t objects[static MEASURED])
{
	struct hwbench *b = r->b;

	if (!(b->domains = calloc(MEASURED, sizeof(*b->domains))))
		return err_set(r->err, "out of memory");
	for (size_t i = 0; i < MEASURED; i++) {
		struct hwbench_domain *d = &b->domains[b->ndomains];
		hwloc_obj_t o = domain_object(r, i);

		if (!o || (b->ndomains && hwloc_bitmap_isequal(o->cpuset, objects[b->ndomains - 1]->cpuset)))
			continue;
		*d = (struct hwbench_domain){ .level = measured[i].level, .cores = cores_in(r, o->cpuset) };
		d->n = counts_of(d->cores, NULL);
		objects[b->ndomains++] = o;
		d->used = calloc(d->n, sizeof(*d->used));
		d->bandwidth = calloc(d->n, sizeof(*d->bandwidth));
		if (!d->used || !d->bandwidth)
			return err_set(r->err, "out of memory");
		counts_of(d->cores, d->used);
		r->all += d->n;
	}
	return 0;
}

/* --- all --- */

static int begin(struct run *r)
{
	int numas = hwloc_get_nbobjs_by_type(r->t, HWLOC_OBJ_NUMANODE), cores = hwloc_get_nbobjs_by_type(r->t,
												 HWLOC_OBJ_CORE);

	if (cores < 1 || numas < 1)
		return err_set(r->err, "this process may use none of the cores or NUMA nodes that hwloc finds");
	if (hwbench_init(r->b, cores, numas, r->err))
		return -1;
	for (int i = 0; i < numas; i++)
		r->b->os_index[i] = numa_at(r, i)->os_index;
	r->all = 2 * numas * numas + numas * (numas - 1) / 2 + LEVEL_COUNT;
	return 0;
}

int hwbench_run(struct hwbench *b, hwloc_topology_t t, double seconds,
		void (*progress)(void *user, unsigned done, unsigned all), void *user, struct err *e)
{
	struct run r = { .b = b, .t = t, .seconds = seconds, .progress = progress, .user = user, .err = e };
	hwloc_obj_t objects[MEASURED];

	*b = (struct hwbench){0};
	if (begin(&r) || domains_begin(&r, objects))
		return -1;
	for (int level = LEVEL_PACKAGE; level < LEVEL_COUNT; level++, step(&r)) {
		b->handovers[level].level = level;
		if (handover_measure(t, level, seconds, &b->handovers[level], e))
			return -1;
	}
	if (handovers_between(&r))
		return -1;
	for (unsigned to = 0; to < b->numas; to++)
		if (latencies_to(&r, to) || bandwidths_to(&r, to))
			return -1;
	for (unsigned i = 0; i < b->ndomains; i++)
		if (domain_measure(&r, &b->domains[i], objects[i]))
			return -1;
	return 0;
}
