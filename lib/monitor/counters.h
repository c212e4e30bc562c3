/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_COUNTERS_H
#define TOPIARY_MONITOR_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "monitor/events.h"

/*
 * perf events of a process and of all that it starts, each counted apart on each PU: perf_event_open(2) with the task
 * and the CPU. Works without privileges where kernel.perf_event_paranoid is 2 or less. For monitor/recorder.c.
 */
struct counters {
	const struct monitor_event *events[MONITOR_EVENTS_MAX];	/* those that can be counted here, busy first */
	unsigned nevents;
	const unsigned *cpus;			/* the kernel's numbers; borrowed */
	unsigned ncpus;
	struct counter {
		int fd;
		uint64_t value, ran;		/* at the last reading */
	} *all;					/* [(task * ncpus + cpu) * nevents + event] */
	unsigned ntasks;
};

/*
 * Open the events of the sets sw and `set` for a process: a child that waits for its exec(3), which the counters begin
 * with; or one that runs already, all its threads. An event that this machine or its administrator does not allow is
 * left out, and logged. Raises the limit of open files of the caller. 0, or -1 when not even the run time can be
 * counted.
 */
int counters_open(struct counters *c, pid_t pid, bool waits_for_exec, const char *set, const unsigned *cpus,
		  unsigned ncpus, struct err *e);

/*
 * Read all: values[event * ncpus + cpu] is the increase since the last reading, TRACE_ABSENT where it cannot be true
 * (monitor_value_holds). Returns how many were made absent.
 */
unsigned counters_read(struct counters *c, uint64_t *values);

/* Leaves {0}. */
void counters_close(struct counters *c);

#endif
