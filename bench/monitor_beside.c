/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * monitor_beside FOLDER HZ PAIRS MILLISECONDS: what topiary-monitor costs a program that waits for memory. A process on
 * each PU adds arrays without end and counts pieces of its work, and topiary-monitor's own code records these PUs for
 * so many milliseconds and not for as many, in pairs of alternating order. The events are opened before a time that is
 * measured and closed after it. Prints of each pair: the program's CPU time for a piece while it is recorded, relative
 * to without, which has interrupts, cold caches and slower switches in it; and the part of the PUs' time that the
 * recording takes itself.
 */
#include <hwloc.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../node_agent/monitor_trace.h"
#include "base/clock.h"

enum { N = 4 << 20, PIECE = N / 64, PUS_MAX = 1024 };

/* Of one process: its CPU time after each piece of its work; that after the last one is at [pieces % 2]. */
struct progress {
	_Alignas(128) atomic_ulong pieces;
	uint64_t cpu[2];
};

static struct progress *programs;
static unsigned pus;

/* a = b + s * c over 96 MB, as bench/trace_triad.c. */
static void program(struct progress *p, unsigned pu)
{
	double *a = malloc(N * sizeof(*a)), *b = malloc(N * sizeof(*b)), *c = malloc(N * sizeof(*c));
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(pu, &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!a || !b || !c || sched_setaffinity(0, sizeof(set), &set))
		_exit(1);
	for (int i = 0; i < N; i++)
		a[i] = b[i] = c[i] = i;
	for (unsigned at = 0;; at = (at + PIECE) % N) {
		for (unsigned i = at; i < at + PIECE; i++)
			a[i] = b[i] + 3 * c[i];
		p->cpu[(p->pieces + 1) % 2] = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
		p->pieces++;
	}
}

/* The writer may have lost its PU to us at any point: it is not waited for. */
static uint64_t progress_read(struct progress *p, uint64_t *cpu)
{
	uint64_t pieces;

	do {
		pieces = p->pieces;
		*cpu = p->cpu[pieces % 2];
	} while (pieces != p->pieces);
	return pieces;
}

static void wait_until(uint64_t when)
{
	struct timespec t = { when / 1000000000, when % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Nanoseconds of CPU time for a piece, the mean of the programs; own: CPU time of the recording, a part of the PUs'. */
static double measure(struct monitor_trace *t, hwloc_const_bitmap_t shared, uint64_t ns, double *own)
{
	uint64_t begun = clock_nanoseconds(CLOCK_MONOTONIC), cpu = clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t pieces[PUS_MAX], spent[PUS_MAX];
	double sum = 0;

	for (unsigned i = 0; i < pus; i++)
		pieces[i] = progress_read(&programs[i], &spent[i]);
	for (uint64_t due; t && (due = monitor_trace_due(t)) < begun + ns;) {
		wait_until(due);
		monitor_trace_tick(t, shared);
	}
	wait_until(begun + ns);
	for (unsigned i = 0; i < pus; i++) {
		uint64_t now, n = progress_read(&programs[i], &now) - pieces[i];

		sum += (double) (now - spent[i]) / n / pus;
	}
	*own = (double) (clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) /
		(clock_nanoseconds(CLOCK_MONOTONIC) - begun) / pus;
	return sum;
}

static double measure_recorded(int dir, const struct monitor_ask *ask, hwloc_topology_t topology, uint64_t ns,
			       double *own)
{
	hwloc_bitmap_t shared = hwloc_bitmap_alloc();
	struct monitor_trace *t;
	struct err e;
	double cost;

	if (!(t = monitor_trace_new(dir, "1.0", ask, topology, &e))) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	cost = measure(t, shared, ns, own);
	monitor_trace_end(t, dir, shared);
	hwloc_bitmap_free(shared);
	return cost;
}

int main(int argc, char **argv)
{
	int dir = argc == 5 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	struct monitor_ask ask = { .request = { .hz = argc == 5 ? atoi(argv[2]) : 0, .set = "sw" } };
	hwloc_topology_t topology;

	if (dir < 0 || !ask.request.hz) {
		fprintf(stderr, "usage: monitor_beside FOLDER HZ PAIRS MILLISECONDS\n");
		return 64;
	}
	hwloc_topology_init(&topology);
	hwloc_topology_load(topology);
	pus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	programs = mmap(NULL, PUS_MAX * sizeof(*programs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pus > PUS_MAX || programs == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < pus; i++)
		if (!fork())
			program(&programs[i], hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, i)->os_index);
	for (unsigned i = 0; i < pus; i++)
		while (programs[i].pieces < 64)
			usleep(10000);
	for (int i = 0, n = atoi(argv[3]); i < n; i++) {
		uint64_t ns = atoi(argv[4]) * UINT64_C(1000000);
		double own[2] = {0}, cost[2] = {0};

		for (int turn = 0; turn < 2; turn++)
			if ((i + turn) % 2)
				cost[1] = measure_recorded(dir, &ask, topology, ns, &own[1]);
			else
				cost[0] = measure(NULL, NULL, ns, &own[0]);
		printf("%.6f %.8f\n", cost[1] / cost[0], own[1] - own[0]);
		fflush(stdout);
	}
	return 0;
}
