/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_RECORDER_H
#define TOPIARY_MONITOR_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Record what a process, or all there are, does on each PU of this machine into a trace (trace/writer.h). For
 * cli/watch/record.c.
 */
struct recorder;

struct recorder_request {
	pid_t pid;		/* 0: all, by what monitor/pu_counters.h may count */
	bool waits_for_exec;	/* a child of the caller that has not called exec(3) yet */
	const char *set;	/* of monitor/events.h, beside sw */
	uint64_t period;	/* nanoseconds between two ticks */
	const char *output;	/* created or replaced */
	/* Write each tick within 0.1 s, for readers that follow the trace, not 60 together: several times the bytes. */
	bool is_live;
};

/*
 * Prepare to count; no file is touched yet. The machine is the one that hwloc finds: in a Slurm job the job's part of
 * the node. NULL on error.
 */
struct recorder *recorder_new(const struct recorder_request *how, struct err *e);

/* Create the output; the time of the first tick begins. 0, or -1 with nothing left of it. */
int recorder_begin(struct recorder *r, struct err *e);

/* Read the counters into one tick, of the time since the last. 0 or -1. */
int recorder_tick(struct recorder *r, struct err *e);

/*
 * One last tick, if the last one wrote well; then complete the file, log what it holds, free. A file without any tick
 * is removed. 0 or -1.
 */
int recorder_close(struct recorder *r, struct err *e);

/* Free one that has not begun; NULL is accepted. */
void recorder_free(struct recorder *r);

#endif
