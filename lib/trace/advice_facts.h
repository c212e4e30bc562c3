/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"
#include "trace/advice.h"
#include "trace/join.h"

/* What the rules of advice.c are about: the sums of traces of one node that were recorded at the same time. */
enum advice_role { BUSY, SWITCHES, MIGRATIONS, MINOR, MAJOR, CYCLES, INSTRUCTIONS, MISSES, NEAR, FAR, MEMORY,
		   DELAY, SWAPPED, ROLES,
		   TASKS = ROLES };
extern const char *const role_names[ROLES + 1];	/* of the events */

/* Of a PU's time. */
#define WORKING 0.5
#define FULL 0.9		/* other programs run now and then */
#define SHARED_SWITCHES 30	/* a second: threads that share a PU get slices of 3 to 24 ms; one alone has below 5 */

#define DISK_FAULTS 50		/* a second: a fault waits for a disk, 0.1 to 10 ms */

/* An interval of the run. */
struct advice_interval {
	unsigned working;		/* cores */
	double misses, instructions;	/* of all PUs */
};

struct advice_facts {
	const struct trace_tasks *tasks;	/* or NULL */
	struct trace_join join;
	const struct trace_head *h;	/* the joined one; NULL: there is no trace, and each event is -1 */
	int event[ROLES];		/* -1: the traces do not have it, or it is mostly absent */
	double *rate;			/* of each column: a counter's increase a second, a gauge's mean */
	unsigned *contended;		/* of each PU: intervals in which it was full and switched threads */
	unsigned disk_faults;		/* intervals with DISK_FAULTS or more a second, on all PUs */
	struct advice_interval *each;
	unsigned intervals;
	double length;			/* of one, seconds */
	double seconds, alone;		/* alone: seconds in which one PU worked and no other */
	int core;			/* the level, or that of PUs */
};

/* 0, or -1 with f {0}. facts_free leaves {0}. */
int facts_read(struct advice_facts *f, const struct advice_node *node, struct err *e);
void facts_free(struct advice_facts *f);

/* Is the event, which is there, counted at PUs? */
bool facts_at_pus(const struct advice_facts *f, enum advice_role r);

/* A counter of the PUs in a set of the system's indices, a second. The event is there, and counted at PUs. */
double facts_rate(const struct advice_facts *f, enum advice_role r, hwloc_const_bitmap_t pus);

/* --- rules about tasks (advice_tasks.c): whether it is so, with the evidence */

bool advice_far_gpu(const struct advice_facts *f, char *out, size_t size);
bool advice_lacks_cores(const struct advice_facts *f);
bool advice_far_nic(const struct advice_facts *f, char *out, size_t size);
bool advice_shared_cores(const struct advice_facts *f, char *out, size_t size);
bool advice_outside(const struct advice_facts *f, char *out, size_t size);
bool advice_far_policy(const struct advice_facts *f, char *out, size_t size);

/* Migrations a second on PUs of ranks with several cores: those with one core have none that cost. */
double advice_free_moves(const struct advice_facts *f);

/* Of the tasks with `least` memory accesses a second that with the greatest part to far NUMA nodes; -1: none. */
int advice_far_task(const struct advice_facts *f, double least, double *part);
