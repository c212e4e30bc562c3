/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/events.h"
#include "monitor/source.h"
#include "table.h"
#include "trace/block.h"

/*
 * Fifty counters that lie, as those of virtual machines, drivers and old ports were seen to, beside as many good ones:
 * each of the former is absent, none of the latter.
 */
#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define JUMP (UINT64_C(1) << 47)
#define GB UINT64_C(1000000000)
#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* --- of a PU: what an event counted while it ran for so long, and was on the hardware for so long --- */

static const struct { const char *event; uint64_t value, ran, counted; bool is_good; } of_pus[] = {
	{ "busy", JUMP, 100 * MS, 100 * MS, false },
	{ "busy", 4 * S, S, S, false },				/* multiplied */
	{ "busy", UINT64_MAX - 10, S, S, false },		/* backwards */
	{ "cycles", 0, 100 * MS, 100 * MS, false },
	{ "cycles", 0, S, S, false },
	{ "cycles", 300 * MS + JUMP, 100 * MS, 100 * MS, false },
	{ "cycles", 2 * JUMP, S, S, false },
	{ "cycles", UINT64_MAX - 5, 100 * MS, 100 * MS, false },
	{ "cycles", (UINT64_C(1) << 48) - 1, S, S, false },	/* the width of a counter */
	{ "cycles", 48 * S, S, S, false },			/* 16 times 3 GHz */
	{ "cycles", 150 * MS, 100 * MS, 50 * MS, false },	/* multiplexed */
	{ "cycles", 297 * MS, 100 * MS, 98 * MS, false },
	{ "cycles", 300 * MS, 100 * MS, 0, false },
	{ "instructions", 0, 100 * MS, 100 * MS, false },
	{ "instructions", JUMP, 100 * MS, 100 * MS, false },
	{ "instructions", 900 * MS, 100 * MS, 98 * MS, false },
	{ "instructions", 400 * S, S, S, false },
	{ "near_fills", JUMP, S, S, false },
	{ "near_fills", 20 * S, S, S, false },
	{ "far_fills", UINT64_MAX, S, S, false },
	{ "far_fills", 5, S, S / 2, false },
	{ "l3_misses", JUMP, 100 * MS, 100 * MS, false },
	{ "flops", JUMP, 100 * MS, 100 * MS, false },
	{ "flops", 700 * S, S, S, false },
	{ "busy", 100 * MS, 100 * MS, 100 * MS, true },
	{ "busy", 0, 0, 0, true },
	{ "context_switches", 0, S, S, true },
	{ "context_switches", 100000, S, S, true },
	{ "migrations", 7, S, S, true },
	{ "minor_faults", 0, S, S, true },
	{ "cycles", 300 * MS, 100 * MS, 100 * MS, true },
	{ "cycles", 5 * S, S, S, true },
	{ "cycles", 0, 0, 0, true },
	{ "cycles", 0, MS / 2, MS / 2, true },
	{ "cycles", 1, MS / 2, MS / 2, true },
	{ "cycles", 298 * MS, 100 * MS, 995 * MS / 10, true },
	{ "instructions", 900 * MS, 100 * MS, 100 * MS, true },
	{ "instructions", 20 * S, S, S, true },
	{ "near_fills", 0, S, S, true },
	{ "near_fills", S, S, S, true },
	{ "far_fills", 0, S, S, true },
	{ "l3_misses", 50 * MS, 100 * MS, 100 * MS, true },
	{ "flops", 0, S, S, true },
	{ "flops", 200 * S, S, S, true },
};

/* --- above the PU: two readings, so long apart --- */

#define ENERGY { .most = 4e9, .range = 262143328850, .still_limit = 100 * MS }	/* microjoules */
#define PORT { .most = 12.5e9 }							/* 100 Gb/s */
#define PORT_32 { .most = 1.25e9, .narrow = 4 * (UINT64_C(1) << 32) }		/* 10 Gb/s, words of 4 bytes */
#define PORT_32_FAST { .most = 25e9, .narrow = 4 * (UINT64_C(1) << 32) }	/* 200 Gb/s */
#define DISK { .most = 64e9 }

static const struct { struct source_bounds bounds; uint64_t before, now, ns; bool is_good; } above[] = {
	{ ENERGY, 5000, 5000, S, false },			/* stuck */
	{ ENERGY, 0, 0, S, false },
	{ ENERGY, 5000, 5000 + JUMP, S, false },
	{ ENERGY, 0, 100000 * GB, S, false },
	{ ENERGY, 0, 15 * GB, S, false },			/* in another unit: 15 kW */
	{ ENERGY, 200 * GB, 100 * GB, S, false },		/* backwards by more than a wrap explains */
	{ ENERGY, 300 * GB, 1000, S, false },			/* beyond its own range */
	{ PORT, 1000, 999, S, false },				/* backwards: reset */
	{ PORT, 1000, 0, S, false },
	{ PORT, 0, JUMP, S, false },
	{ PORT, 1000 * GB, 1040 * GB, S, false },		/* more than it can carry */
	{ PORT, 100, 400 * GB, 10 * S, false },			/* bits, or words twice multiplied */
	{ PORT_32, 17179869180, 400, S, false },		/* past 32 bits, or reset */
	{ PORT_32, 1000, 17179869180, 20 * S, false },		/* all ones: it has stopped */
	{ PORT_32, 17179869180, 17179869180, S, false },
	{ PORT_32, 0, 5000, 100 * S, false },			/* may have gone round in the meantime */
	{ PORT_32_FAST, 1000, 2000, S, false },
	{ PORT_32_FAST, 5000, 1000, S, false },
	{ DISK, 0, JUMP, S, false },
	{ DISK, 512, 0, S, false },
	{ DISK, 0, 300 * GB, S, false },
	{ ENERGY, 5000, 200005000, S, true },
	{ ENERGY, 5000, 5000, 10 * MS, true },			/* between two updates */
	{ ENERGY, 262143328000, 100000000, S, true },		/* past the end of its range */
	{ ENERGY, 0, 1, S, true },				/* an idle machine's memory */
	{ PORT, 1000, 1000, S, true },
	{ PORT, 0, 12 * GB, S, true },
	{ PORT, 0, 24 * GB, 100 * MS, true },			/* a driver that updates each two seconds */
	{ PORT, 1000 * GB, 1001 * GB, S, true },
	{ PORT_32, 1000, 2000, S, true },
	{ PORT_32, 0, GB, S, true },
	{ PORT_32_FAST, 1000, 2000, 100 * MS, true },
	{ DISK, 512, 1024, S, true },
	{ DISK, 0, 0, 10 * S, true },
};

/* --- at the start: the same event in several counters, of a loop of a million instructions --- */

#define M 1000000u

static const struct { unsigned n; uint64_t counts[8]; bool is_good; } at_start[] = {
	{ 6, { M + 90, M + 90, M + 90, M + 90, M + 90, 0 }, false },		/* five equal ones and a zero */
	{ 6, { 0, 0, 0, 0, 0, 0 }, false },
	{ 6, { M, M, M + JUMP, M, M, M }, false },
	{ 6, { M + 3 * JUMP, M + 3 * JUMP, M + 3 * JUMP, M + 3 * JUMP, M + 3 * JUMP, M + 3 * JUMP }, false },
	{ 2, { M / 2, M / 2 }, false },
	{ 4, { M, M, M, 4 * M }, false },					/* multiplied */
	{ 4, { UINT64_MAX - 7, M, M, M }, false },
	{ 1, { 7 }, false },
	{ 0, { 0 }, true },
	{ 1, { M + 12 }, true },
	{ 6, { M + 12, M + 30, M + 48, M + 66, M + 84, M + 102 }, true },
	{ 8, { M, M, M, M, M, M, M, M + 5000 }, true },
};

TEST(each_bad_one_is_absent_and_no_good_one)
{
	unsigned bad = 0, good = 0;
	char text[128];

	for (size_t i = 0; i < ROWS(of_pus); i++) {
		const struct monitor_event *event = monitor_events;

		while (strcmp(event->name, of_pus[i].event))
			event++;
		*(of_pus[i].is_good ? &good : &bad) += 1;
		if (monitor_value_holds(event, of_pus[i].value, of_pus[i].ran, of_pus[i].counted) != of_pus[i].is_good)
			fail_msg("of a PU, row %zu: %s", i, of_pus[i].event);
	}
	for (size_t i = 0; i < ROWS(above); i++) {
		uint64_t still = 0, value;

		value = source_increase(&above[i].bounds, above[i].before, above[i].now, above[i].ns, &still);
		*(above[i].is_good ? &good : &bad) += 1;
		if ((value != TRACE_ABSENT) != above[i].is_good)
			fail_msg("above the PU, row %zu: %llu", i, (unsigned long long) value);
	}
	for (size_t i = 0; i < ROWS(at_start); i++) {
		*(at_start[i].is_good ? &good : &bad) += 1;
		if (!monitor_selftest_judge(at_start[i].counts, at_start[i].n, M, text, sizeof(text)) !=
		    at_start[i].is_good)
			fail_msg("at the start, row %zu", i);
	}
	print_message("| %u planted bad counters | 100 %% absent |\n| %u good ones | 0 absent |\n", bad, good);
	assert_true(bad >= 50 && good >= 35);
}

/* A counter that stands still is not noticed at the first tick of 100 a second, but before it could matter. */
TEST(stuck_at_any_rate)
{
	const struct source_bounds energy = ENERGY;
	uint64_t still = 0;

	for (unsigned tick = 1; tick < 20; tick++)
		assert_int_equal(source_increase(&energy, 5000, 5000, 10 * MS, &still), tick < 10 ? 0 : TRACE_ABSENT);
	assert_int_equal(source_increase(&energy, 5000, 6000, 10 * MS, &still), 1000);
	assert_int_equal(source_increase(&energy, 6000, 6000, 10 * MS, &still), 0);
}

/* --- which events --- */

struct pmu {
	bool has_msr, has_hardware;
	int error;
};

static int can_open(void *user, const struct monitor_event *event)
{
	const struct pmu *p = user;

	return !event->hardware ? 0 : (event->msr ? p->has_msr : p->has_hardware) ? 0 : p->error;
}

#define MORE_THAN_2 " not counted: that would be more than 2 of a PU's general counters"
#define NOT_KNOWN " not counted: it is not known for this CPU"

/* "a b c" of what is chosen, without the kernel's own. */
TEST(general_counters_are_few)
{
	static const struct {
		const char *vendor;
		unsigned family, model, general;
		struct pmu pmu;
		const char *chosen, *why;
	} rows[] = {
		/* Zen 3: registers of its own for the first two. */
		{ "AuthenticAMD", 0x19, 0x01, 2, { true, true, 0 }, "cycles instructions near_fills far_fills",
		  "; l3_misses and flops are" MORE_THAN_2 },
		{ "AuthenticAMD", 0x19, 0x11, 2, { false, true, ENOENT }, "cycles instructions",
		  "; near_fills, far_fills, l3_misses and flops are" MORE_THAN_2 },
		{ "AuthenticAMD", 0x1a, 0x02, 5, { true, true, 0 },
		  "cycles instructions near_fills far_fills l3_misses flops", "" },
		{ "AuthenticAMD", 0x17, 0x31, 2, { true, true, 0 }, "cycles instructions near_fills far_fills",
		  "; l3_misses is" NOT_KNOWN "; flops is" MORE_THAN_2 },
		{ "AuthenticAMD", 0x17, 0x01, 2, { true, true, 0 }, "cycles instructions",
		  "; near_fills, far_fills, l3_misses and flops are" NOT_KNOWN },
		{ "GenuineIntel", 6, 0x8f, 2, { false, true, 0 }, "cycles instructions near_fills far_fills",
		  "; l3_misses is" MORE_THAN_2 "; flops is" NOT_KNOWN },
		{ "GenuineIntel", 6, 0x9e, 2, { false, true, 0 }, "cycles instructions l3_misses",
		  "; near_fills, far_fills and flops are" NOT_KNOWN },
		{ "", 0, 0, 2, { false, true, 0 }, "cycles instructions", NULL },
		{ "AuthenticAMD", 0x19, 0x01, 2, { true, false, ENOENT }, "cycles instructions", NULL },
		{ "AuthenticAMD", 0x19, 0x01, 0, { true, true, 0 }, "cycles instructions", NULL },
		{ "GenuineIntel", 6, 0x55, 0, { false, true, 0 }, "cycles instructions", NULL },
		{ "GenuineIntel", 6, 0x55, 2, { false, false, ENOENT }, "",
		  "; cycles, instructions, near_fills, far_fills and l3_misses are not counted: this machine has no "
		  "such counter; flops is" NOT_KNOWN },
	};

	if (monitor_selftest())
		skip();		/* this machine's own counters are wrong */
	for (size_t i = 0; i < ROWS(rows); i++) {
		const struct monitor_event *chosen[MONITOR_EVENTS_MAX];
		struct pmu pmu = rows[i].pmu;
		struct monitor_choice how = { "cpu", monitor_cpu_kinds(rows[i].vendor, rows[i].family, rows[i].model),
					      rows[i].general, can_open, &pmu };
		FREED(buf_free) struct buf names = {0}, why = {0};
		unsigned n = monitor_events_choose(&how, chosen, &why), general = 0;

		assert_true(n >= 5 && !strcmp(chosen[0]->name, "busy"));
		for (unsigned k = 5; k < n; k++) {
			buf_printf(&names, "%s%s", names.len ? " " : "", chosen[k]->name);
			general += chosen[k]->fixed_on & how.cpu ? 0 : chosen[k]->general;
		}
		if (strcmp(names.len ? names.data : "", rows[i].chosen))
			fail_msg("row %zu: %s", i, names.len ? names.data : "");
		if (rows[i].why && strcmp(why.len ? why.data : "", rows[i].why))
			fail_msg("row %zu: %s", i, why.data);
		assert_true(general <= rows[i].general);
	}
}

TESTS_MAIN(NULL, NULL)
