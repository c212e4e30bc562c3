/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * gpu [MIB]: the bandwidth between each GPU and pinned memory in each NUMA node, from a thread there; the best of some
 * copies, "near" if the topology has the GPU at that NUMA node. Through NVIDIA's driver API or AMD's HIP, whichever
 * library is there. Exit status 77: neither is, or it has no GPU.
 */
#include <dlfcn.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NOT_HERE 77
#define COPIES 5
#define DEFAULT_MIB 256
#define MIB (1u << 20)
#define GB 1e9

/* Both interfaces return 0 for success and have addresses of 64 bits; a GPU is made current in different ways. */
enum { INIT, COUNT, PCI, ALLOC, FREE, PIN, UNPIN, TO_DEVICE, TO_HOST, USE, CONTEXT, CALLS };

static const struct api {
	const char *library;
	bool has_contexts;	/* USE retains the context of a GPU, CONTEXT makes it current; else USE does both */
	const char *names[CALLS];
} apis[] = {
	{ "libcuda.so.1", true, { "cuInit", "cuDeviceGetCount", "cuDeviceGetPCIBusId", "cuMemAlloc_v2",
		"cuMemFree_v2", "cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",
		"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent" } },
	{ "libamdhip64.so", false, { "hipInit", "hipGetDeviceCount", "hipDeviceGetPCIBusId", "hipMalloc", "hipFree",
		"hipHostRegister", "hipHostUnregister", "hipMemcpyHtoD", "hipMemcpyDtoH", "hipSetDevice" } },
};

static const struct api *api;
static void *calls[CALLS];

#define CALL(which, parameters) ((int (*) parameters) calls[which])

static bool api_load(const struct api *a)
{
	void *library = dlopen(a->library, RTLD_NOW);
	int n = 0;

	for (int i = 0; library && i < CALLS; i++)
		if (a->names[i] && !(calls[i] = dlsym(library, a->names[i])))
			return false;
	api = a;
	return library && !CALL(INIT, (unsigned))(0) && !CALL(COUNT, (int *))(&n) && n > 0;
}

static int gpu_use(int gpu)
{
	void *context;

	if (!api->has_contexts)
		return CALL(USE, (int))(gpu);
	return CALL(USE, (void **, int))(&context, gpu) || CALL(CONTEXT, (void *))(context);
}

static double best_seconds(int which, uint64_t to, uint64_t from, size_t size)
{
	double best = 0;

	for (int i = 0; i < COPIES; i++) {
		double begin = clock_now(), took;

		if (CALL(which, (uint64_t, uint64_t, size_t))(to, from, size))
			return 0;
		took = clock_now() - begin;
		best = !i || took < best ? took : best;
	}
	return best;
}

/* GB/s to the device and back; false if the driver refuses. */
static bool measure(void *memory, size_t size, double rate[static 2])
{
	double to = 0, back = 0;
	uint64_t device = 0;

	if (CALL(PIN, (void *, size_t, unsigned))(memory, size, 0))
		return false;
	if (!CALL(ALLOC, (uint64_t *, size_t))(&device, size)) {
		to = best_seconds(TO_DEVICE, device, (uintptr_t) memory, size);
		back = best_seconds(TO_HOST, (uintptr_t) memory, device, size);
		CALL(FREE, (uint64_t))(device);
	}
	CALL(UNPIN, (void *))(memory);
	if (to <= 0 || back <= 0)
		return false;
	rate[0] = size / to / GB;
	rate[1] = size / back / GB;
	return true;
}

static const char *nearness(hwloc_topology_t t, hwloc_obj_t function, hwloc_obj_t node)
{
	hwloc_obj_t at = function ? hwloc_get_non_io_ancestor_obj(t, function) : NULL;

	return !at ? "unknown" : hwloc_bitmap_isincluded(node->cpuset, at->cpuset) ? "near" : "far";
}

static int measure_from(hwloc_topology_t t, const char *bus, hwloc_obj_t node, size_t size)
{
	void *memory = NULL;
	double rate[2];
	int rc = -1;

	if (!hwloc_set_cpubind(t, node->cpuset, HWLOC_CPUBIND_THREAD))
		memory = hwloc_alloc_membind(t, size, node->nodeset, HWLOC_MEMBIND_BIND,
					     HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT);
	if (memory)
		memset(memory, 1, size);
	if (!memory || !measure(memory, size, rate)) {
		fprintf(stderr, "gpu: %s: no copies from NUMA node %u: %s\n", bus, node->os_index,
			memory ? "the driver refuses" : "its memory or CPUs can't be bound to");
	} else {
		printf("%-14s  NUMA %-4u %-8s %8.1f %8.1f\n", bus, node->os_index,
		       nearness(t, hwloc_get_pcidev_by_busidstring(t, bus), node), rate[0], rate[1]);
		rc = 0;
	}
	if (memory)
		hwloc_free(t, memory, size);
	return rc;
}

static hwloc_topology_t topology(void)
{
	hwloc_topology_t t;

	if (hwloc_topology_init(&t))
		return NULL;
	if (!hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) && !hwloc_topology_load(t))
		return t;
	hwloc_topology_destroy(t);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : DEFAULT_MIB) * MIB, a = 0;
	hwloc_topology_t t = topology();
	int n = 0, failed = 0;

	while (a < sizeof(apis) / sizeof(*apis) && !api_load(&apis[a]))
		a++;
	if (a == sizeof(apis) / sizeof(*apis)) {
		puts("not measured: neither libcuda.so.1 nor libamdhip64.so has a GPU here");
		return NOT_HERE;
	}
	if (!t || !size || CALL(COUNT, (int *))(&n)) {
		fputs("gpu: usage: gpu [MIB], on a machine whose topology hwloc can load\n", stderr);
		return 1;
	}
	printf("%-14s  %-18s %8s %8s\n", "GPU", "pinned memory in", "to GPU", "back, GB/s");
	for (int gpu = 0; gpu < n; gpu++) {
		hwloc_obj_t node = NULL;
		char bus[32] = "";

		if (gpu_use(gpu) || CALL(PCI, (char *, int, int))(bus, sizeof(bus), gpu)) {
			fprintf(stderr, "gpu: the driver refuses GPU %d\n", gpu);
			failed = 1;
			continue;
		}
		while ((node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node)))
			if (node->attr->numanode.local_memory && !hwloc_bitmap_iszero(node->cpuset))
				failed |= measure_from(t, bus, node, size) != 0;
	}
	hwloc_topology_destroy(t);
	return failed;
}
