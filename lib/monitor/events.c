/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/events.h"

#include <linux/perf_event.h>

#include "monitor/sysfs.h"

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

/* --- what CPU this is --- */

#define ZEN2_MODELS 0x30	/* of family 0x17 */

static unsigned intel_kinds(unsigned model)
{
	/* Xeon Scalable, first generation to sixth: Skylake, Ice Lake, Sapphire and Emerald Rapids, Granite Rapids. */
	static const unsigned char xeons[] = { 0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae };

	return MONITOR_INTEL | (memchr(xeons, (int) model, sizeof(xeons)) ? MONITOR_XEON : 0);
}

unsigned monitor_cpu_kinds(const char *vendor, unsigned family, unsigned model)
{
	if (!strcmp(vendor, "GenuineIntel"))
		return family == 6 ? intel_kinds(model) : MONITOR_INTEL;
	if (strcmp(vendor, "AuthenticAMD"))
		return 0;
	return MONITOR_AMD | (family == 0x17 && model >= ZEN2_MODELS ? MONITOR_ZEN2 : 0) |
	       (family == 0x19 || family == 0x1a ? MONITOR_ZEN3 : 0);
}

unsigned monitor_this_cpu(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], vendor[32] = "";
	unsigned family = 0, model = 0;

	while (f && fgets(line, sizeof(line), f) && *line != '\n') {
		sscanf(line, "vendor_id : %31s", vendor);
		sscanf(line, "cpu family : %u", &family);
		sscanf(line, "model : %u", &model);
	}
	if (f)
		fclose(f);
	return monitor_cpu_kinds(vendor, family, model);
}

/* --- why not --- */

/* Not of perf_event_open(2). */
enum { OTHER_CPU = EXDEV, TOO_MANY = EDQUOT, WRONG_COUNTERS = EBADMSG };

/* --- the choice --- */

static struct monitor_event table[MONITOR_EVENTS_MAX];	/* monitor_events with the PMUs of this machine */

static void table_fill(void)
{
	if (table[0].name)
		return;
	for (unsigned i = 0; i < monitor_nevents; i++) {
		struct sysfs_pmu_event x;

		table[i] = monitor_events[i];
		if (!table[i].msr)
			continue;
		if (sysfs_pmu_event("", "msr", table[i].msr, &x, NULL))
			table[i].type = UINT32_MAX;	/* no PMU has it */
		else {
			table[i].type = x.type;
			table[i].config = x.config;
		}
	}
}

/* 0, or why this row is not counted. */
static int row_refused(const struct monitor_event *row, const struct monitor_choice *how, unsigned left,
		       unsigned *general)
{
	*general = row->fixed_on & how->cpu ? 0 : row->general;
	if ((row->on && !(row->on & how->cpu)) || (row->not_on & how->cpu))
		return OTHER_CPU;
	if (*general > left)
		return TOO_MANY;
	return row->hardware && monitor_selftest() ? WRONG_COUNTERS : how->can_open(how->user, row);
}

/* The first of the rows i..end-1, which are alternatives, that is counted. NULL, with *error, if none is. */
static const struct monitor_event *row_choose(unsigned i, unsigned end, const struct monitor_choice *how,
					      unsigned *left, int *error)
{
	*error = OTHER_CPU;
	for (; i < end; i++) {
		unsigned general;
		int refused = row_refused(&table[i], how, *left, &general);

		if (!refused) {
			*left -= general;
			return &table[i];
		}
		if (refused != OTHER_CPU)
			*error = refused;
	}
	return NULL;
}

/* Events that follow each other, refused for one reason. */
struct refused {
	const char *names[MONITOR_EVENTS_MAX];
	unsigned n;
	int error;
};

/* "; near_fills, far_fills and flops are not counted: REASON" */
static void refused_report(struct refused *r, const struct monitor_choice *how, struct buf *why)
{
	char text[192];
	FILE *f = r->error == EACCES || r->error == EPERM ? fopen("/proc/sys/kernel/perf_event_paranoid", "re") : NULL;
	int level;

	if (f && fscanf(f, "%d", &level) == 1)
		snprintf(text, sizeof(text), "%s; kernel.perf_event_paranoid is %d", strerror(r->error), level);
	else if (r->error == OTHER_CPU)
		snprintf(text, sizeof(text), "it is not known for this CPU");
	else if (r->error == TOO_MANY)
		snprintf(text, sizeof(text), "that would be more than %u of a PU's general counters", how->general);
	else if (r->error == WRONG_COUNTERS)
		snprintf(text, sizeof(text), "hardware counters are wrong here: %s", monitor_selftest());
	else
		snprintf(text, sizeof(text), "%s",
			 r->error == ENOENT || r->error == EOPNOTSUPP || r->error == ENODEV ?
			 "this machine has no such counter" : strerror(r->error));
	if (f)
		fclose(f);
	for (unsigned i = 0; i < r->n; i++)
		buf_printf(why, "%s%s", !i ? "; " : i + 1 < r->n ? ", " : " and ", r->names[i]);
	if (r->n)
		buf_printf(why, " %s not counted: %s", r->n > 1 ? "are" : "is", text);
	r->n = 0;
}

unsigned monitor_events_choose(const struct monitor_choice *how, const struct monitor_event **chosen, struct buf *why)
{
	unsigned n = 0, left = how->general;
	struct refused refused = {0};
	int error;

	table_fill();
	for (unsigned i = 0, end; i < monitor_nevents; i = end) {
		for (end = i + 1; end < monitor_nevents && !strcmp(table[i].name, table[end].name);)
			end++;
		if (!monitor_set_has(how->sets, table[i].set) ||
		    ((chosen[n] = row_choose(i, end, how, &left, &error)) && ++n))
			continue;
		if (error != refused.error)
			refused_report(&refused, how, why);
		refused.error = error;
		refused.names[refused.n++] = table[i].name;
	}
	refused_report(&refused, how, why);
	return n;
}
