/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * monitor_tick FOLDER HZ SECONDS [here]: record 256 PUs, or those of this machine, as topiary-monitor does, by its own
 * code, and print the part of their CPU time that it takes, in percent. Events of PUs that this machine lacks are
 * opened on those that it has. The busy time of these is absent, and /proc/stat is as short as this machine's: the rest
 * is as on a node of 256 PUs.
 */
#include <fcntl.h>
#include <hwloc.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/std.h"
#include "../node_agent/monitor_trace.h"
#include "base/clock.h"

#define NODE "Package:2 [numa] L3Cache:16 Core:4 PU:2"

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Of perf_event_open(2): event, task, PU, group, flags. */
long __wrap_syscall(long number, ...)
{
	va_list ap;
	long a[6];

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_perf_event_open)
		a[2] = (int) a[2] % sysconf(_SC_NPROCESSORS_ONLN);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int main(int argc, char **argv)
{
	int dir = argc >= 4 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	struct monitor_ask ask = { .request = { .hz = argc >= 4 ? atoi(argv[2]) : 0, .set = "sw" } };
	hwloc_bitmap_t shared = hwloc_bitmap_alloc();
	struct monitor_trace *t = NULL;
	struct err e = {"usage: monitor_tick FOLDER HZ SECONDS [here]"};
	hwloc_topology_t topology;
	uint64_t cpu, end;

	hwloc_topology_init(&topology);
	if (argc < 5)
		hwloc_topology_set_synthetic(topology, NODE);
	hwloc_topology_load(topology);
	if (dir < 0 || !(t = monitor_trace_new(dir, "1.0", &ask, topology, &e))) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	cpu = clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	end = clock_nanoseconds(CLOCK_MONOTONIC) + atoi(argv[3]) * UINT64_C(1000000000);
	for (uint64_t now; (now = clock_nanoseconds(CLOCK_MONOTONIC)) < end;) {
		uint64_t due = monitor_trace_due(t), wait = due > now ? due - now : 0;

		nanosleep(&(struct timespec){ wait / 1000000000, wait % 1000000000 }, NULL);
		monitor_trace_tick(t, shared);
	}
	cpu = clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%.6f\n", 100 * (cpu * 1e-9 / atoi(argv[3]) / hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU)));
	monitor_trace_end(t, dir, shared);
	hwloc_topology_destroy(topology);
	hwloc_bitmap_free(shared);
	return 0;
}
