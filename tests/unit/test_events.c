/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "monitor/events.h"
#include "table.h"

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
		cmocka_unit_test(sets_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
