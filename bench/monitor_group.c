/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * monitor_group EVENTS SECONDS: how much of the time a user's own group of so many hardware events is counted while
 * topiary-monitor counts the set cpu on all PUs, by its own code at 10 Hz: "A B", in percent, in the first second and
 * after it. Exit status 77: this machine lets nobody count such events.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/pu_counters.h"

#define SECOND UINT64_C(1000000000)
#define NOT_HERE 77
#define GROUP_MAX 4u
#define PUS_MAX 1024u

/* Those that every CPU counts by its general counters. */
static const uint64_t events[GROUP_MAX] = {
	PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	PERF_COUNT_HW_BRANCH_MISSES,
};

struct times {
	uint64_t enabled, running;
};

/* perf's own way: a group of one's own process, wherever it is. The leader, -1 with errno. */
static int group_open(unsigned n)
{
	int leader = -1;

	for (unsigned i = 0; i < n; i++) {
		struct perf_event_attr a = {
			.size = sizeof(a), .type = PERF_TYPE_HARDWARE, .config = events[i],
			.exclude_kernel = 1, .exclude_hv = 1,
			.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		};
		int fd = syscall(SYS_perf_event_open, &a, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0)
			return -1;
		if (!i)
			leader = fd;
	}
	return leader;
}

static struct times group_read(int leader)
{
	uint64_t got[3];	/* count, time enabled, time running */

	if (read(leader, got, sizeof(got)) != sizeof(got))
		exit(EXIT_FAILURE);
	return (struct times){ got[1], got[2] };
}

static double percent(struct times from, struct times to)
{
	return 100.0 * (to.running - from.running) / (to.enabled - from.enabled);
}

/* Compute, and read the monitor's counters each tenth of a second. */
static void pass(struct pu_counters *c, uint64_t *values, unsigned seconds)
{
	for (unsigned i = 0; i < 10 * seconds; i++) {
		uint64_t from = clock_nanoseconds(CLOCK_MONOTONIC), now;

		while ((now = clock_nanoseconds(CLOCK_MONOTONIC)) - from < SECOND / 10)
			;
		pu_counters_read(c, now - from, values);
	}
}

int main(int argc, char **argv)
{
	unsigned n = argc == 3 ? atoi(argv[1]) : 0, seconds = argc == 3 ? atoi(argv[2]) : 0;
	static unsigned cpus[PUS_MAX];
	struct pu_counters c;
	struct buf why = {0};
	struct times begin, first, end;
	struct err e;
	uint64_t *values;
	int leader;

	if (!n || n > GROUP_MAX || !seconds)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < PUS_MAX; i++)
		cpus[i] = i;
	if (pu_counters_open(&c, "cpu", cpus, sysconf(_SC_NPROCESSORS_ONLN), &why, &e) ||
	    !(values = calloc((size_t) c.ncpus * c.nevents, sizeof(*values)))) {
		fprintf(stderr, "monitor_group: %s\n", e.text);
		return EXIT_FAILURE;
	}
	if ((leader = group_open(n)) < 0) {
		fprintf(stderr, "this machine lets nobody count hardware events (%s)%s\n", strerror(errno),
			why.data ? why.data : "");
		return NOT_HERE;
	}
	begin = group_read(leader);
	pass(&c, values, 1);
	first = group_read(leader);
	pass(&c, values, seconds);
	end = group_read(leader);
	printf("%.1f %.1f%s\n", percent(begin, first), percent(first, end), c.has_given_way ? " given" : "");
	return EXIT_SUCCESS;
}
