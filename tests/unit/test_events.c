/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "monitor/events.h"
#include "table.h"

#define MS UINT64_C(1000000)
#define JUMP (UINT64_C(1) << 47)

static const struct monitor_event *event_named(const char *name)
{
	for (unsigned i = 0; i < monitor_nevents; i++)
		if (!strcmp(monitor_events[i].name, name))
			return &monitor_events[i];
	fail_msg("no event %s", name);
	return NULL;
}

/* What counters of virtual machines were seen to give, and what is right. */
static void impossible_values_do_not_hold(void **state)
{
	static const struct { const char *event; uint64_t value, ran, counted; bool holds; } rows[] = {
		{ "busy", 100 * MS, 100 * MS, 100 * MS, true },
		{ "busy", 0, 0, 0, true },
		{ "busy", JUMP, 100 * MS, 100 * MS, false },
		{ "context_switches", 0, 100 * MS, 100 * MS, true },
		{ "context_switches", 1000, 100 * MS, 100 * MS, true },
		{ "minor_faults", 0, 100 * MS, 100 * MS, true },
		{ "cycles", 300 * MS, 100 * MS, 100 * MS, true },
		{ "cycles", 0, 100 * MS, 100 * MS, false },
		{ "cycles", 0, 0, 0, true },
		{ "cycles", 0, MS / 2, MS / 2, true },
		{ "cycles", 300 * MS + JUMP, 100 * MS, 100 * MS, false },
		{ "cycles", UINT64_MAX - 5, 100 * MS, 100 * MS, false },
		{ "cycles", 150 * MS, 100 * MS, 50 * MS, false },
		{ "cycles", 300 * MS, 100 * MS, 0, false },
		{ "instructions", 900 * MS, 100 * MS, 100 * MS, true },
		{ "instructions", 0, 100 * MS, 100 * MS, false },
		{ "instructions", JUMP, 100 * MS, 100 * MS, false },
		{ "instructions", 900 * MS, 100 * MS, 98 * MS, false },
		{ "l3_misses", 0, 100 * MS, 100 * MS, true },
		{ "l3_misses", 50 * MS, 100 * MS, 100 * MS, true },
		{ "l3_misses", JUMP, 100 * MS, 100 * MS, false },
	};

	(void) state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (monitor_value_holds(event_named(rows[i].event), rows[i].value, rows[i].ran, rows[i].counted) !=
		    rows[i].holds)
			fail_msg("row %zu: %s", i, rows[i].event);
}

static void sets_have_names(void **state)
{
	static const char *const good[] = { "sw", "cpu", "power", "net", "gpu", "cpu+net", "sw+cpu+power+net+gpu",
					    "CPU" };
	static const char *const bad[] = { "", "+", "cpu+", "+cpu", "cpu++net", "cp", "cpus", "cpu net", "cpu,net" };

	(void) state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(monitor_sets_exist(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(monitor_sets_exist(bad[i]));
	assert_true(monitor_set_has("cpu+net", "sw") && monitor_set_has("cpu+net", "cpu") &&
		    monitor_set_has("cpu+net", "net") && monitor_set_has("sw", "sw"));
	assert_false(monitor_set_has("cpu+net", "gpu") || monitor_set_has("sw", "cpu") ||
		     monitor_set_has("cpux", "cpu"));
	assert_string_equal(monitor_events[0].name, "busy");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_values_do_not_hold),
		cmocka_unit_test(sets_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
