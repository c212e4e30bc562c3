/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "trace/head.h"

/*
 * What is counted on each PU: the kernel's own events and generic hardware events of perf_event_open(2). A row is in
 * one set, and sets are what a user asks for; monitor/source.h has what is counted above the PU. For
 * monitor/counters.c.
 */
struct monitor_event {
	const char *name, *unit;	/* as in the trace */
	const char *set;
	uint32_t type;			/* of struct perf_event_attr */
	uint64_t config;
	const char *msr;		/* or of the PMU `msr` by its name there: a register that always counts */
	bool hardware;
	uint8_t on, not_on, fixed_on;	/* kinds of CPU; on 0: any */
	uint8_t general;		/* counters of a PU that it occupies, except fixed_on, where it has its own */
	bool in_kernel;			/* happens in the kernel alone: a count without the kernel is always 0 */
	double most;			/* per nanosecond of run time, more is impossible; 0: unknown */
	bool never_zero;		/* a PU that ran for MONITOR_RAN_NS has counted some */
};

#define MONITOR_RAN_NS 1000000u
#define MONITOR_EVENTS_MAX 32u

/* Kinds of CPU by what their counters are called. */
enum { MONITOR_AMD = 1, MONITOR_ZEN2 = 2, MONITOR_ZEN3 = 4 /* and later */, MONITOR_INTEL = 8, MONITOR_XEON = 16 };
unsigned monitor_cpu_kinds(const char *vendor, unsigned family, unsigned model);
unsigned monitor_this_cpu(void);

/* Rows of the same name follow each other, and are alternatives. */
extern const struct monitor_event monitor_events[];
extern const unsigned monitor_nevents;

/*
 * Sets are given as names joined by '+', and sw is always among them. Are these sets? Is one among them?
 * monitor_set_names: all, for messages.
 */
bool monitor_sets_exist(const char *sets);
bool monitor_set_has(const char *sets, const char *set);
extern const char monitor_set_names[];

/*
 * Choose the events that can be counted on this machine, in the order of monitor_events, each name once, at most
 * MONITOR_EVENTS_MAX. Those left out are appended to why, each reason after "; ". What is chosen holds until the
 * process ends. general: so many of the general hardware counters of a PU may be occupied; of a job's own events those
 * that do not fit beside are not counted at all, and perf says nothing. Returns how many are chosen.
 */
#define MONITOR_GENERAL 2u
struct monitor_choice {
	const char *sets;
	unsigned cpu, general;		/* cpu: kinds */
	int (*can_open)(void *user, const struct monitor_event *event);	/* 0 or errno */
	void *user;
};
unsigned monitor_events_choose(const struct monitor_choice *how, const struct monitor_event **chosen, struct buf *why);

/*
 * Can this be what an event counted while tasks ran for ran_ns nanoseconds on the PU? Counters of virtual machines give
 * zeros, values that stand still, and jumps of 2^47: those are to be absent in the trace. counted_ns is how long of
 * that time the counter was on the hardware: less if others shared it.
 */
bool monitor_value_holds(const struct monitor_event *event, uint64_t value, uint64_t ran_ns, uint64_t counted_ns);

/*
 * Are the hardware counters of this machine right? Those of virtual machines were seen to give zeros, and values that
 * are off by a multiple of 2^47, in some of several counters of the same event.
 */

/*
 * Count the instructions of a loop of known length in several counters at a time; once, a millisecond. NULL: they are
 * right, or there are none; else what is wrong.
 */
const char *monitor_selftest(void);

/*
 * The judgement: n counters of one event, of which there were at least `least` and few more. size: of text. NULL: all
 * are right.
 */
const char *monitor_selftest_judge(const uint64_t *counts, size_t n, uint64_t least, char *text, size_t size);
