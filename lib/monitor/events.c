/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/events.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#define SW(event) .set = "sw", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##event
#define HW(event) .set = "cpu", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##event, .hardware = true

/* The others are judged by the first, the run time. Bounds are above any core: 10 GHz, 16 instructions a cycle. */
const struct monitor_event monitor_events[] = {
	{ "busy", "ns", SW(TASK_CLOCK), .most = 1.1 },
	{ "context_switches", "", SW(CONTEXT_SWITCHES), .in_kernel = true },
	{ "migrations", "", SW(CPU_MIGRATIONS), .in_kernel = true },
	{ "minor_faults", "", SW(PAGE_FAULTS_MIN) },
	{ "major_faults", "", SW(PAGE_FAULTS_MAJ) },
	{ "cycles", "", HW(CPU_CYCLES), .most = 10, .never_zero = true },
	{ "instructions", "", HW(INSTRUCTIONS), .most = 160, .never_zero = true },
	{ "l3_misses", "", HW(CACHE_MISSES), .most = 10 },
};
const unsigned monitor_nevents = sizeof(monitor_events) / sizeof(monitor_events[0]);
static const char *const sets_known[] = { "sw", "cpu", "power", "net", "gpu" };
const char monitor_set_names[] = "sw, cpu, power, net or gpu, or several joined by +";

/* The next name of a list is n characters long. NULL: there is none. */
static const char *set_next(const char *at, size_t *n)
{
	if (!at || !at[*n])
		return NULL;
	at += *n + 1;
	*n = strcspn(at, "+");
	return at;
}

static bool set_is(const char *at, size_t n, const char *set)
{
	return n == strlen(set) && !strncasecmp(at, set, n);
}

bool monitor_sets_exist(const char *sets)
{
	size_t n = strcspn(sets, "+");

	for (const char *at = sets; at; at = set_next(at, &n)) {
		size_t i = 0;

		while (i < sizeof(sets_known) / sizeof(sets_known[0]) && !set_is(at, n, sets_known[i]))
			i++;
		if (i == sizeof(sets_known) / sizeof(sets_known[0]))
			return false;
	}
	return true;
}

bool monitor_set_has(const char *sets, const char *set)
{
	size_t n = strcspn(sets, "+");

	for (const char *at = sets; at; at = set_next(at, &n))
		if (set_is(at, n, set))
			return true;
	return !strcmp(set, "sw");
}

bool monitor_value_holds(const struct monitor_event *event, uint64_t value, uint64_t ran_ns, uint64_t counted_ns)
{
	if (event->hardware && counted_ns < ran_ns - ran_ns / 100)
		return false;
	if (event->never_zero && !value && ran_ns >= MONITOR_RAN_NS)
		return false;
	return !event->most || value <= event->most * (ran_ns + MONITOR_RAN_NS);
}
