/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_PU_COUNTERS_H
#define TOPIARY_MONITOR_PU_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "monitor/events.h"

/*
 * What some PUs of this machine do, whoever runs there: their busy time from proc_stat(5), in hundredths of a second,
 * and perf events by CPU (perf_event_open(2) without a task), which need CAP_PERFMON. For
 * node_agent/monitor_trace.c and monitor/recorder.c.
 */
struct pu_counters {
	const struct monitor_event *events[MONITOR_EVENTS_MAX];	/* busy, then those that can be counted here */
	unsigned nevents;
	const unsigned *cpus;			/* the kernel's numbers, borrowed */
	unsigned ncpus;
	struct pu_counter {
		int fd;				/* -1 of busy */
		unsigned leader;		/* of its group: an event before it, or itself */
		uint64_t value, enabled, running;	/* at the last reading */
	} *all;					/* [cpu * nevents + event] */
	bool has_given_way;			/* the general counters were closed */
};

/*
 * Open busy and the events of the sets. What this machine or its administrator does not allow is left out, as are more
 * than MONITOR_GENERAL general counters; the reasons are appended to why, each after "; ". 0 or -1.
 */
int pu_counters_open(struct pu_counters *c, const char *sets, const unsigned *cpus, unsigned ncpus, struct buf *why,
		     struct err *e);

/*
 * Read all: values[event * ncpus + cpu] is the increase since the last reading, TRACE_ABSENT where it cannot be true
 * (monitor_value_holds), or where the PU is offline. ns: the time since then. The events of a PU that comes back are
 * opened again. If others use so many counters of a PU that ours are not on the hardware all the time, the general ones
 * are closed, and has_given_way is set.
 */
void pu_counters_read(struct pu_counters *c, uint64_t ns, uint64_t *values);

/* Open again what was given way to others. */
void pu_counters_reclaim(struct pu_counters *c);

/* Leaves {0}. */
void pu_counters_close(struct pu_counters *c);

#endif
