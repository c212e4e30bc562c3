/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* An OpenMP program that tells, a line for each thread in their order, where it may run: "thread 0 of 2 on 0,2". */
#include <hwloc.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>

enum { MAX_THREADS = 1024, LINE = 256 };

static void describe(char *line)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	cpu_set_t set;
	char list[LINE / 2];

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			hwloc_bitmap_set(cpus, cpu);
	hwloc_bitmap_list_snprintf(list, sizeof(list), cpus);
	snprintf(line, LINE, "thread %d of %d on %s", omp_get_thread_num(), omp_get_num_threads(), list);
	hwloc_bitmap_free(cpus);
}

int main(void)
{
	static char lines[MAX_THREADS][LINE];

#pragma omp parallel
	if (omp_get_thread_num() < MAX_THREADS)
		describe(lines[omp_get_thread_num()]);
	for (int i = 0; i < MAX_THREADS && *lines[i]; i++)
		puts(lines[i]);
	return 0;
}
