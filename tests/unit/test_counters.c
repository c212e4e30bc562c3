/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * When counting ends by itself, by a clock of the test's own. */

#include "table.h"

static double now;

static int clock_told(clockid_t which, struct timespec *t)
{
	(void) which;
	*t = (struct timespec){ .tv_sec = 1000 + (time_t) now, .tv_nsec = (now - (time_t) now) * 1e9 };
	return 0;
}

#define clock_gettime clock_told
#define state counters_state
#include "../../lib/capture/counters.c"
#undef state

/* What the file says that rank 0 has sent to rank 1. */
static unsigned long long written(void)
{
	unsigned long long bytes = 0;
	FILE *in = fopen(counters_state.path, "r");
	char line[256];

	while (in && fgets(line, sizeof(line), in))
		sscanf(line, "E\t0\t1\t%llu bytes", &bytes);
	if (in)
		fclose(in);
	return bytes;
}

/*
 * Each second 100 bytes to rank 1, and from some second on as many to another rank, for so many seconds. ends: the
 * second at which the last of them was counted, bytes to rank 1 as the file has them at the end.
 */
TEST(counting_ends_when_the_pattern_is_the_same)
{
	static const struct {
		bool learn;
		int changes, seconds, ends;
		unsigned long long bytes;
	} rows[] = {
		{ true, 1000, 15, 15, 1500 }, { true, 1000, 16, 16, 1600 },
		/* What was sent afterwards is taken to be the same. */
		{ true, 1000, 64, 16, 6400 }, { false, 1000, 64, 64, 6400 },
		/* Shares that still change, less and less; a change that comes too late. */
		{ true, 9, 32, 32, 3200 }, { true, 0, 63, 63, 6300 }, { true, 0, 65, 64, 6500 },
		{ true, 17, 600, 16, 60000 },
	};
	char prefix[] = "/tmp/topiary_counters_XXXXXX", program[sizeof(prefix) + 8];

	assert_non_null(mkdtemp(prefix));
	for (size_t i = 0; i < ROWS(rows); i++) {
		int last = 0;

		memset(&counters_state, 0, sizeof(counters_state));
		if (rows[i].learn)
			counters_learn(prefix, "program");
		assert_true(counters_name_file(prefix, 0));
		now = 0;
		counters_start(0, 4, i % 2);
		for (int s = 1; s <= rows[i].seconds; s++) {
			now = s;
			last = counters_active() ? s : last;
			counters_add(COUNTER_P2P, 1, 100);
			if (s >= rows[i].changes)
				counters_add(COUNTER_P2P, 2, 100);
		}
		assert_true(counters_started());
		if (last != rows[i].ends)
			fail_msg("row %zu: it ended at %d s", i, last);
		counters_end();
		assert_false(counters_active() || counters_started());
		if (written() != rows[i].bytes)
			fail_msg("row %zu: %llu bytes", i, written());
		unlink(counters_state.path);
	}
	rmdir(prefix);
	snprintf(program, sizeof(program), "%s.program", prefix);
	assert_int_equal(unlink(program), 0);
}

TESTS_MAIN(NULL, NULL)
