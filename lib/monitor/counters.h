/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "monitor/events.h"

/*
 * perf events on PUs (perf_event_open(2)), of one process or of whoever runs there. What this machine or its
 * administrator does not allow is left out. Values are of all PUs of an event together, values[event * ncpus + cpu]:
 * the increase since the last reading, TRACE_ABSENT where it cannot be true (monitor_value_holds).
 */
struct counter {
	int fd;					/* -1: none */
	unsigned leader;			/* of its group: an event before it, or itself */
	uint64_t value, enabled, running;	/* at the last reading */
};

/*
 * Of a process and of all that it starts, each counted apart on each PU. Works without privileges where
 * kernel.perf_event_paranoid is 2 or less. For cli/watch/record.c.
 */
struct counters {
	const struct monitor_event *events[MONITOR_EVENTS_MAX];	/* those that can be counted here, busy first */
	unsigned nevents;
	const unsigned *cpus;			/* the kernel's numbers; borrowed */
	unsigned ncpus;
	struct counter *all;			/* [(task * ncpus + cpu) * nevents + event] */
	unsigned ntasks;
};

/*
 * Open the events of the sets sw and `set` for a process: a child that waits for its exec(3), which the counters begin
 * with; or one that runs already, all its threads. What is left out is logged. Raises the limit of open files of the
 * caller. 0, or -1 when not even the run time can be counted.
 */
int counters_open(struct counters *c, pid_t pid, bool waits_for_exec, const char *set, const unsigned *cpus,
		  unsigned ncpus, struct err *e);
/* Returns how many values were made absent. */
unsigned counters_read(struct counters *c, uint64_t *values);
/* Leaves {0}. */
void counters_close(struct counters *c);

/*
 * Of some PUs of this machine, whoever runs there: their busy time from proc_stat(5), in hundredths of a second, and
 * events by CPU, which need CAP_PERFMON. For node_agent/monitor_trace.c and cli/watch/record.c.
 */
struct counters_pu {
	const struct monitor_event *events[MONITOR_EVENTS_MAX];	/* busy, then those that can be counted here */
	unsigned nevents;
	const unsigned *cpus;			/* the kernel's numbers, borrowed */
	unsigned ncpus;
	struct counter *all;			/* [cpu * nevents + event]; of busy without a descriptor */
	bool has_given_way;			/* the general counters were closed */
};

/*
 * Open busy and the events of the sets. More than MONITOR_GENERAL general counters are left out, too; the reasons are
 * appended to why, each after "; ". 0 or -1.
 */
int counters_pu_open(struct counters_pu *c, const char *sets, const unsigned *cpus, unsigned ncpus, struct buf *why,
		     struct err *e);
/*
 * ns: the time since the last reading. A PU that is offline has absent values; the events of one that comes back are
 * opened again. If others use so many counters of a PU that ours are not on the hardware all the time, the general ones
 * are closed, and has_given_way is set.
 */
void counters_pu_read(struct counters_pu *c, uint64_t ns, uint64_t *values);
/* Open again what was given way to others. */
void counters_pu_reclaim(struct counters_pu *c);
/* Leaves {0}. */
void counters_pu_close(struct counters_pu *c);

/* Append n events to those of a head (base/array.h), whose levels are there. 0 or -1. */
int monitor_events_head(const struct monitor_event *const *events, unsigned n, struct trace_head *h, struct err *e);
