/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwbench/hwbench.h"

#include <math.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/order.h"

/* --- teams: threads, each on a core of its own, that do the same thing at the same time --- */

struct team_member {
	hwloc_obj_t core;		/* its first PU is used */
	void *memory;			/* the member's own */
	size_t bytes;
	double rate;			/* set: of bytes, or whatever the work counts, a second */
};

/* One round of work; returns what it counts. */
typedef uint64_t team_work_t(const struct team_member *m);

struct team {
	hwloc_topology_t topology;
	team_work_t *work;
	double seconds;
	unsigned n;
	atomic_uint begun, finished;
	atomic_bool is_failed;
};

struct team_thread {
	struct team *team;
	struct team_member *member;
	pthread_t thread;
};

/* Binds the calling thread to the first PU of a core. 0, or -1. */
static int team_bind(hwloc_topology_t t, hwloc_obj_t core)
{
	hwloc_bitmap_t one = hwloc_bitmap_dup(core->cpuset);
	int rc;

	if (!one)
		return -1;
	hwloc_bitmap_singlify(one);
	rc = hwloc_set_cpubind(t, one, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(one);
	return rc;
}

/* The first NUMA node that a core is local to, or NULL. */
static hwloc_obj_t team_numa(hwloc_topology_t t, hwloc_obj_t core)
{
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o));)
		if (hwloc_bitmap_isincluded(core->cpuset, o->cpuset))
			return o;
	return NULL;
}

static void *thread_run(void *user)
{
	struct team_thread *thread = user;
	struct team *team = thread->team;
	struct team_member *m = thread->member;
	double from, until;
	uint64_t done = 0;

	if (team_bind(team->topology, m->core))
		atomic_store(&team->is_failed, true);
	team->work(m);
	atomic_fetch_add(&team->begun, 1);
	while (atomic_load(&team->begun) < team->n)
		team->work(m);
	from = clock_now();
	do
		done += team->work(m);
	while ((until = clock_now()) < from + team->seconds);
	m->rate = done / (until - from);
	atomic_fetch_add(&team->finished, 1);
	while (atomic_load(&team->finished) < team->n)
		team->work(m);
	return NULL;
}

/*
 * All members repeat the work for at least so many seconds: as long as one of them has not begun or not finished its
 * time, all others go on, so that the rates are those beside each other. 0, or -1 with an error.
 */
static int team_run(hwloc_topology_t t, struct team_member *members, unsigned n, team_work_t *work, double seconds,
		    struct err *e)
{
	struct team team = { .topology = t, .work = work, .seconds = seconds, .n = n };
	struct team_thread *threads = calloc(n, sizeof(*threads));
	unsigned started = 0;
	int rc = 0;

	if (!threads)
		return err_set(e, "out of memory");
	for (; started < n && rc == 0; started += rc == 0) {
		threads[started] = (struct team_thread){ &team, &members[started], 0 };
		rc = pthread_create(&threads[started].thread, NULL, thread_run, &threads[started]);
	}
	/* Those that run wait for the others. */
	atomic_fetch_add(&team.begun, n - started);
	atomic_fetch_add(&team.finished, n - started);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i].thread, NULL);
	free(threads);
	if (rc)
		return err_set(e, "cannot start %u threads: %s", n, strerror(rc));
	return team.is_failed ? err_set(e, "cannot bind a thread to a core") : 0;
}

/* --- handover of a cache line --- */

#define ROUNDS 1000u	/* between two looks at the clock */
#define SPINS 1000000u	/* without an answer: the other core has something else to do */
#define HANDOVER_PAIRS 5u

struct handover {
	hwloc_topology_t topology;
	hwloc_obj_t from, to;
	double seconds, best;		/* best: of a round trip */
	_Alignas(128) atomic_uint line;
	_Alignas(128) atomic_bool is_over;
};

static hwloc_obj_t domain_of(hwloc_topology_t t, hwloc_obj_t core, enum level level)
{
	static const hwloc_obj_type_t types[LEVEL_COUNT] = {
		[LEVEL_PACKAGE] = HWLOC_OBJ_PACKAGE, [LEVEL_DIE] = HWLOC_OBJ_DIE, [LEVEL_L3] = HWLOC_OBJ_L3CACHE,
		[LEVEL_L2] = HWLOC_OBJ_L2CACHE, [LEVEL_CORE] = HWLOC_OBJ_CORE,
	};

	if (level == LEVEL_CORE)
		return core;
	return level == LEVEL_NUMA ? team_numa(t, core) : hwloc_get_ancestor_obj_by_type(t, types[level], core);
}

static enum level first_difference(hwloc_topology_t t, hwloc_obj_t a, hwloc_obj_t b)
{
	for (enum level level = LEVEL_PACKAGE; level < LEVEL_CORE; level++)
		if (domain_of(t, a, level) != domain_of(t, b, level))
			return level;
	return LEVEL_CORE;
}

/* Waits until the line has a value; false when it is over. */
static bool wait_for(struct handover *h, unsigned value)
{
	for (unsigned spins = 0; atomic_load_explicit(&h->line, memory_order_acquire) != value; spins++) {
		if (spins < SPINS)
			continue;
		spins = 0;
		if (atomic_load(&h->is_over))
			return false;
	}
	return true;
}

static void *answer(void *user)
{
	struct handover *h = user;

	team_bind(h->topology, h->to);
	for (unsigned i = 1; wait_for(h, i); i += 2)
		atomic_store_explicit(&h->line, i + 1, memory_order_release);
	return NULL;
}

static void *ask(void *user)
{
	struct handover *h = user;
	double end;
	unsigned value = 0;

	team_bind(h->topology, h->from);
	for (end = clock_now() + h->seconds; clock_now() < end;) {
		double from = clock_now(), took;

		for (unsigned i = 0; i < ROUNDS; i++, value += 2) {
			atomic_store_explicit(&h->line, value + 1, memory_order_release);
			wait_for(h, value + 2);
		}
		took = (clock_now() - from) / ROUNDS;
		h->best = !h->best || took < h->best ? took : h->best;
	}
	atomic_store(&h->is_over, true);
	return NULL;
}

/* How long two cores take to pass a cache line to each other, one way. 0, or -1 with an error. */
static int handover_pair(hwloc_topology_t t, hwloc_obj_t from, hwloc_obj_t to, double seconds, double *out,
			 struct err *e)
{
	struct handover h = { .topology = t, .from = from, .to = to, .seconds = seconds };
	pthread_t threads[2];
	int rc = pthread_create(&threads[0], NULL, answer, &h);

	if (rc)
		return err_set(e, "cannot start a thread: %s", strerror(rc));
	rc = pthread_create(&threads[1], NULL, ask, &h);
	if (rc)
		atomic_store(&h.is_over, true);
	else
		pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
	if (rc)
		return err_set(e, "cannot start a thread: %s", strerror(rc));
	*out = h.best / 2;
	return 0;
}

ORDER(by_time, double, COMPARE(*x, *y))

/* Pairs that begin at cores all over the node: the first other core that differs first at this level. */
static unsigned pairs_find(hwloc_topology_t t, enum level level, hwloc_obj_t pairs[static HANDOVER_PAIRS][2])
{
	unsigned cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE), n = 0, last = UINT_MAX;

	for (unsigned i = 0; i < HANDOVER_PAIRS; i++) {
		unsigned first = (unsigned long) i * cores / HANDOVER_PAIRS;
		hwloc_obj_t a = hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, first), b = NULL;

		if (first == last)
			continue;
		last = first;
		while ((b = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, b)))
			if (b != a && first_difference(t, a, b) == level)
				break;
		if (!b)
			continue;
		pairs[n][0] = a;
		pairs[n++][1] = b;
	}
	return n;
}

/* --- what a node takes --- */

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

/* --- latency --- */

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

	if ((m.memory = memory_on(r, numa_at(r, to), m.bytes))) {
		/* One cycle through all lines in random order (Sattolo): each holds the address of the next. */
		uint32_t n = m.bytes / LINE, *order = malloc(n * sizeof(*order));
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
			*(void **) (m.memory + (size_t) (order ? order[i] : i) * LINE) =
				m.memory + (size_t) (order ? order[(i + 1) % n] : (i + 1) % n) * LINE;
		free(order);
	}
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

/* Domains of the same cores are measured once: the outermost. */
static int domains_begin(struct run *r, hwloc_obj_t objects[static MEASURED])
{
	struct hwbench *b = r->b;

	if (!(b->domains = calloc(MEASURED, sizeof(*b->domains))))
		return err_set(r->err, "out of memory");
	for (size_t i = 0; i < MEASURED; i++) {
		struct hwbench_domain *d = &b->domains[b->ndomains];
		hwloc_obj_t o = hwloc_get_obj_by_type(r->t, measured[i].type, 0);

		if (!o || cores_in(r, o->cpuset) < 2 ||
		    (b->ndomains && hwloc_bitmap_isequal(o->cpuset, objects[b->ndomains - 1]->cpuset)))
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
		/*
		 * The same of pairs that are first in different domains of the level, from the node inwards: of at most
		 * HANDOVER_PAIRS pairs, which share the time. 0, or -1 with an error.
		 */
		hwloc_obj_t pairs[HANDOVER_PAIRS][2];
		double times[HANDOVER_PAIRS];

		b->handovers[level].pairs = pairs_find(t, level, pairs);
		for (unsigned i = 0; i < b->handovers[level].pairs; i++)
			if (handover_pair(t, pairs[i][0], pairs[i][1], seconds / b->handovers[level].pairs, &times[i],
					  e))
				return -1;
		qsort(times, b->handovers[level].pairs, sizeof(*times), by_time);
		b->handovers[level].seconds = b->handovers[level].pairs ? times[b->handovers[level].pairs / 2] : 0;
	}
	for (unsigned from = 0; from < b->numas; from++)
		for (unsigned to = from + 1; to < b->numas; to++, step(&r)) {
			hwloc_obj_t x = own_core(&r, from), y = own_core(&r, to);
			double *way = &b->between[from * b->numas + to];

			if (!x || !y)
				continue;
			if (handover_pair(r.t, x, y, r.seconds, way, r.err))
				return -1;
			b->between[to * b->numas + from] = *way;
		}
	for (unsigned to = 0; to < b->numas; to++)
		if (latencies_to(&r, to) || bandwidths_to(&r, to))
			return -1;
	for (unsigned i = 0; i < b->ndomains; i++)
		if (domain_measure(&r, &b->domains[i], objects[i]))
			return -1;
	return 0;
}
