/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/events.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#define SW(event) .set = "sw", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##event
#define HW(event) .set = "cpu", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##event, .hardware = true
#define RAW(code) .set = "cpu", .type = PERF_TYPE_RAW, .config = code, .hardware = true
#define MSR(event) .set = "cpu", .msr = event, .hardware = true

/*
 * The others are judged by the first, the run time. Bounds are above any core: 10 GHz, 16 instructions a cycle, 64
 * operations. Names and codes differ by CPU: AMD's Processor Programming References, Intel's perfmon event lists. Fills
 * are of lines into the L1 cache from DRAM (Zen 2: on demand alone) or, on Intel, of loads that retired: what is
 * prefetched into L2 is not among them, so that their ratio is right and their bytes are not. On AMD the kernel's
 * cache-misses are those of L2. A sum of operations on Intel would take five counters.
 */
const struct monitor_event monitor_events[] = {
	{ "busy", "ns", SW(TASK_CLOCK), .most = 1.1 },
	{ "context_switches", "", SW(CONTEXT_SWITCHES), .in_kernel = true },
	{ "migrations", "", SW(CPU_MIGRATIONS), .in_kernel = true },
	{ "minor_faults", "", SW(PAGE_FAULTS_MIN) },
	{ "major_faults", "", SW(PAGE_FAULTS_MAJ) },
	{ "cycles", "", MSR("aperf"), .on = MONITOR_AMD, .most = 10, .never_zero = true },
	{ "cycles", "", HW(CPU_CYCLES), .general = 1, .fixed_on = MONITOR_INTEL, .most = 10, .never_zero = true },
	{ "instructions", "", MSR("irperf"), .on = MONITOR_AMD, .most = 160, .never_zero = true },
	{ "instructions", "", HW(INSTRUCTIONS), .general = 1, .fixed_on = MONITOR_INTEL, .most = 160,
	  .never_zero = true },
	{ "near_fills", "", RAW(0x0844), .general = 1, .on = MONITOR_ZEN3, .most = 10 },
	{ "near_fills", "", RAW(0x0843), .general = 1, .on = MONITOR_ZEN2, .most = 10 },
	{ "near_fills", "", RAW(0x01d3), .general = 1, .on = MONITOR_XEON, .most = 10 },
	{ "far_fills", "", RAW(0x4044), .general = 1, .on = MONITOR_ZEN3, .most = 10 },
	{ "far_fills", "", RAW(0x4043), .general = 1, .on = MONITOR_ZEN2, .most = 10 },
	{ "far_fills", "", RAW(0x02d3), .general = 1, .on = MONITOR_XEON, .most = 10 },
	{ "l3_misses", "", RAW(0x4844), .general = 1, .on = MONITOR_ZEN3, .most = 10 },
	{ "l3_misses", "", HW(CACHE_MISSES), .general = 1, .not_on = MONITOR_AMD, .most = 10 },
	{ "flops", "", RAW(0x0f03), .general = 2, .on = MONITOR_ZEN2 | MONITOR_ZEN3, .most = 640 },
};
_Static_assert(sizeof(monitor_events) / sizeof(monitor_events[0]) <= MONITOR_EVENTS_MAX, "MONITOR_EVENTS_MAX");
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
