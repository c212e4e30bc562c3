/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_PU_COUNTERS_H
#define TOPIARY_MONITOR_PU_COUNTERS_H

#include <stdint.h>

#include "base/err.h"
#include "monitor/events.h"

/*
 * What some PUs of this machine do, whoever runs there: their busy time from proc_stat(5), in hundredths of a second,
 * and perf events by CPU (perf_event_open(2) without a task), which need CAP_PERFMON. For node_agent/monitor_steps.c.
 */
struct pu_counters {
	const struct monitor_event *events[16];	/* busy, then those that can be counted here */
	unsigned nevents;
	const unsigned *cpus;			/* the kernel's numbers, borrowed */
	unsigned ncpus;
	struct pu_counter {
		int fd;				/* -1 of busy */
		uint64_t value, enabled, running;	/* at the last reading */
	} *all;					/* [cpu * nevents + event] */
};

/*
 * Open busy and the events of the sets sw and `set`. What this machine or its administrator does not allow is left out;
 * the first reason is appended to why, which has room for 128 bytes. 0 or -1.
 */
#define PU_COUNTERS_WHY 128
int pu_counters_open(struct pu_counters *c, const char *set, const unsigned *cpus, unsigned ncpus,
		     char why[static PU_COUNTERS_WHY], struct err *e);

/*
 * Read all: values[event * ncpus + cpu] is the increase since the last reading, TRACE_ABSENT where it cannot be true
 * (monitor_value_holds), or where the PU is offline. ns: the time since then.
 */
void pu_counters_read(struct pu_counters *c, uint64_t ns, uint64_t *values);

/* Leaves {0}. */
void pu_counters_close(struct pu_counters *c);

#endif
