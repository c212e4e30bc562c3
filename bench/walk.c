/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * walk scattered|packed [MILLISECONDS]: the experiment of Denoyelle, Goglin and Jeannot, "A Topology-Aware Performance
 * Monitoring Tool for Shared Resource Management in Multicore Systems", section 5, to be recorded by `topiary record`:
 * eight threads that walk lists, linked at random so that nothing is prefetched. Half of the threads have lists that
 * fit into the last level cache together, the others lists of 16 times that. Of two packages (L3 caches on a machine of
 * one package) each has half of both kinds, or (packed) all of one kind. Prints how, the steps in small lists and in
 * large ones, in this time after the lists were made.
 */
#include <err.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/std.h"

enum { THREADS = 8, DOMAINS = 2, LINE = 64, LARGE = 16 };

struct item {
	struct item *next;
	char rest[LINE - sizeof(struct item *)];
};

static hwloc_topology_t topology;
static atomic_bool is_over;
static pthread_barrier_t ready;
static struct walker {
	pthread_t thread;
	hwloc_obj_t core;
	size_t items;
	unsigned seed;
	unsigned long steps;
} walkers[THREADS];

/* One cycle through all items, in random order (Sattolo). */
static struct item *list_make(size_t n, unsigned seed)
{
	struct item *items = malloc(n * sizeof(*items));
	size_t *order = malloc(n * sizeof(*order));

	if (!items || !order)
		err(1, "lists of %zu MiB", n * LINE >> 20);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = ((size_t) rand_r(&seed) << 16 ^ rand_r(&seed)) % i, was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
	for (size_t i = 0; i < n; i++)
		items[order[i]].next = &items[order[(i + 1) % n]];
	free(order);
	return items;
}

static void *walk(void *arg)
{
	struct walker *w = arg;
	struct item *at;

	hwloc_set_cpubind(topology, w->core->cpuset, HWLOC_CPUBIND_THREAD);
	at = list_make(w->items, w->seed);
	for (size_t i = 0; i < w->items; i++)
		at = at->next;
	pthread_barrier_wait(&ready);
	while (!is_over)
		for (int i = 0; i < 1024; i++, w->steps++)
			at = at->next;
	return at;
}

/* Package or L3 cache `domain`, core `n` of it, again from the first where there are too few. */
static hwloc_obj_t core_of(unsigned domain, unsigned n)
{
	hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) > 1 ? HWLOC_OBJ_PACKAGE :
		HWLOC_OBJ_L3CACHE;
	int domains = hwloc_get_nbobjs_by_type(topology, type);
	hwloc_obj_t inside = domains > 0 ? hwloc_get_obj_by_type(topology, type, domain % domains) :
		hwloc_get_root_obj(topology);
	int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, inside->cpuset, HWLOC_OBJ_CORE);

	return cores > 0 ? hwloc_get_obj_inside_cpuset_by_type(topology, inside->cpuset, HWLOC_OBJ_CORE, n % cores) :
			   inside;
}

int main(int argc, char **argv)
{
	unsigned long milliseconds = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000, steps[2] = {0};
	bool is_packed = argc > 1 && !strcmp(argv[1], "packed");
	hwloc_obj_t l3;
	size_t cache;

	if (argc < 2 || argc > 3 || !milliseconds || (!is_packed && strcmp(argv[1], "scattered")))
		errx(64, "usage: walk scattered|packed [MILLISECONDS]");
	if (hwloc_topology_init(&topology) ||
	    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
				     HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING) || hwloc_topology_load(topology))
		errx(1, "hwloc cannot discover this machine");
	l3 = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L3CACHE, 0);
	/* Virtual machines have caches of size 0. */
	cache = l3 && l3->attr->cache.size >= THREADS * LINE ? l3->attr->cache.size : 8 << 20;
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		unsigned is_large = i % 2, n = i / 2, domain = is_packed ? is_large : n % DOMAINS;

		/* Four small lists take half of a cache. */
		walkers[i].items = cache / (THREADS * LINE) * (is_large ? LARGE : 1);
		walkers[i].core = core_of(domain, is_packed ? n : n / DOMAINS * 2 + is_large);
		walkers[i].seed = i;
		if (pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]))
			err(1, "cannot start %u threads", THREADS);
	}
	pthread_barrier_wait(&ready);
	usleep(milliseconds * 1000);
	is_over = true;
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(walkers[i].thread, NULL);
		steps[i % 2] += walkers[i].steps;
	}
	printf("%s: %lu steps in small lists, %lu in large ones\n", argv[1], steps[0], steps[1]);
	return 0;
}
