/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What slurmstepd and topiary-monitor(8) leave for each other in the directory of a step, all of it root's:
 *	ASK_FILE	by slurmstepd, complete from its first moment: whose the step is, and what to record. Removed
 *			when the step's last task on the node has ended.
 *	ASK_TRACE	by topiary-monitor: the trace (trace/writer.h) while it grows
 *	ASK_DONE	the same once it is complete
 * The step's PUs are those of its topology there (hwview/image.h). For spank_plugin/step/monitor.c and
 * node_agent/monitor_steps.c.
 */
#define ASK_FILE "monitor.ask"
#define ASK_TRACE "monitor.trace"
#define ASK_DONE "monitor.done"
#define ASK_LOCK "monitor.lock"		/* in RunDir: held by topiary-monitor (flock(2)) */
#define ASK_SIZE 512u			/* bytes of ASK_FILE, at most */
#define ASK_GPUS 256u			/* of its list of GPUs */
#define ASK_HZ_MAX 100u

/* Value of --topo-monitor and TopoMonitor: off|sw|on[,hz=N][,set=NAME[+NAME...]][,advise]. */
struct monitor_request {
	unsigned hz;			/* 0: off; ticks a second */
	char set[32];			/* of monitor/events.h, beside sw */
	bool advise;			/* a line of advice at the step's end; no matter of topiary-monitor's */
};

/* name: of the option or key, for errors. 0, or -1 with *out unchanged. */
int monitor_request_parse(const char *name, const char *value, struct monitor_request *out, struct err *e);

struct monitor_ask {
	uid_t uid;			/* the step's user */
	struct monitor_request request;	/* also of steps that are not recorded: whose PUs they are matters */
	char gpus[ASK_GPUS];		/* that Slurm granted it here, by its numbers ("0,2"); "" if none is known */
};

void monitor_ask_write(const struct monitor_ask *a, struct buf *out);
/* Only what monitor_ask_write writes is read. 0, or -1 with *out unchanged. */
int monitor_ask_parse(const char *text, struct monitor_ask *out, struct err *e);
