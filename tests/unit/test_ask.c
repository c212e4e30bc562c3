/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/ask.h"
#include "monitor/events.h"
#include "table.h"

#define SW "topiary monitor 1\nuid 1\nhz 1\nset sw\n"
#define SIXTEEN "10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,"

TEST(values_of_the_option)
{
	static const struct { const char *value, *set; unsigned hz; bool advise; } rows[] = {
		{ "off", "sw", 0, false }, { "sw", "sw", 1, false }, { "on", "cpu", 1, false },
		{ "sw,hz=100", "sw", 100, false }, { "on,hz=20", "cpu", 20, false }, { "on,set=sw", "sw", 1, false },
		{ "sw,set=cpu,hz=2", "cpu", 2, false }, { "sw,advise", "sw", 1, true },
		{ "on,advise,hz=5", "cpu", 5, true }, { "sw,set=net,hz=5", "net", 5, false },
		{ "on,set=cpu+power+net+gpu", "cpu+power+net+gpu", 1, false },
		{ "SW,Advise,HZ=7", "sw", 7, true }, { "On,Set=sw", "sw", 1, false },
	};
	static const char *const bad[] = {
		"", ",", "sw,", "sw,,hz=1", "sw,hz=", "sw,hz=0", "sw,hz=101", "sw,hz=+1", "sw,hz=1x", "sw,hz=01",
		"sw,hz=99999999999999999999", "sw,set=", "sw,set=none", "sw,set=net+", "sw,set=net+none",
		"sw,rate=1", "sw,advise=", "off,advise", "off,hz=1",
		"hz=1", " sw", "sw ",
		"sw,hz=1,hz=2,hz=3,hz=4,hz=5,hz=6,hz=7,hz=8,hz=9,hz=10,hz=11,hz=12,hz=13",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct monitor_request r = {0};

		assert_int_equal(monitor_request_parse("o", rows[i].value, &r, &err), 0);
		assert_int_equal(r.hz, rows[i].hz);
		assert_string_equal(r.set, rows[i].set);
		assert_int_equal(r.advise, rows[i].advise);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct monitor_request r = { 7, "kept", false };

		if (!monitor_request_parse("TopoMonitor", bad[i], &r, &err))
			fail_msg("'%s' was read", bad[i]);
		assert_true(r.hz == 7 && !strcmp(r.set, "kept"));
		assert_int_equal(strncmp(err.text, "TopoMonitor=", 12), 0);
	}
}

TEST(only_what_is_written_is_read)
{
	static const char *const bad[] = {
		"", "x", "topiary monitor 1\n", "topiary monitor 2\nuid 1\nhz 1\nset sw\n",
		"topiary monitor 1\nuid -1\nhz 1\nset sw\n", "topiary monitor 1\nuid 1\nhz 101\nset sw\n",
		"topiary monitor 1\nuid 1\nhz 1\nset none\n", "topiary monitor 1\nuid 1\nhz 1\nset sw",
		"topiary monitor 1\nuid 1\nhz 1\nset sw\n\n", "topiary monitor 1 uid 1 hz 1 set sw\n",
		"topiary monitor 1\nuid 01\nhz 1\nset sw\n", "topiary monitor 1\nuid 99999999999\nhz 1\nset sw\n",
		"topiary monitor 1\nuid 1\nhz 1\nset swswswswswswswswsw\n",
		SW "gpus \n", SW "gpus nvml0\n", SW "gpus 0", SW "gpus 0 1\n", SW "gpus -1\n", SW "gpus 0\n\n",
	};
	static const struct monitor_ask asks[] = {
		{ 0, { 0, "sw", false }, "" }, { 1000, { 1, "cpu", false }, "" },
		{ 4294967294, { 100, "sw", false }, "" }, { 7, { 1, "sw+cpu+power+net+gpu", false }, "" },
		{ 7, { 1, "sw+gpu", false }, "0" },
		{ 4294967294, { 100, "sw+cpu+power+net+gpu", false }, SIXTEEN SIXTEEN SIXTEEN SIXTEEN "64,65" },
	};

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		struct monitor_ask a = {0};
		FREED(buf_free) struct buf text = {0};

		monitor_ask_write(&asks[i], &text);
		assert_true(text.len <= ASK_SIZE);
		assert_int_equal(monitor_ask_parse(text.data, &a, &err), 0);
		assert_int_equal(a.uid, asks[i].uid);
		assert_int_equal(a.request.hz, asks[i].request.hz);
		assert_string_equal(a.request.set, asks[i].request.set);
		assert_string_equal(a.gpus, asks[i].gpus);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct monitor_ask a = { 7, { 7, "kept", false }, "" };

		if (!monitor_ask_parse(bad[i], &a, &err))
			fail_msg("row %zu was read", i);
		assert_true(a.uid == 7 && a.request.hz == 7);
	}
}

TEST(sets_have_names)
{
	static const char *const good[] = { "sw", "cpu", "power", "net", "gpu", "cpu+net", "sw+cpu+power+net+gpu",
					    "CPU" };
	static const char *const bad[] = { "", "+", "cpu+", "+cpu", "cpu++net", "cp", "cpus", "cpu net", "cpu,net" };

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

TESTS_MAIN(NULL, NULL)
