/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "../../node_agent/deliver.h"
#include "table.h"

#define DRAWS 2000

/* Nodes that failed together come back apart: every pause is within its bounds, and they fill them. */
TEST(pauses_are_spread)
{
	static const struct {
		unsigned attempt, retry_after, min, max;	/* milliseconds */
	} rows[] = {
		{ 0, 0, 0, 1000 },
		{ 1, 0, 0, 2000 },
		{ 8, 0, 0, 256000 },
		{ 9, 0, 0, 300000 },
		{ UINT_MAX, 0, 0, 300000 },
		{ 0, 1, 1000, 2000 },
		{ 50, 5, 5000, 10000 },
		{ 0, 86399, 300000, 600000 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		unsigned lowest = UINT_MAX, highest = 0, tenth = (rows[i].max - rows[i].min) / 10;

		for (int n = 0; n < DRAWS; n++) {
			unsigned ms = deliver_pause(rows[i].attempt, rows[i].retry_after);

			lowest = ms < lowest ? ms : lowest;
			highest = ms > highest ? ms : highest;
		}
		assert_in_range(lowest, rows[i].min, rows[i].min + tenth);
		assert_in_range(highest, rows[i].max - tenth, rows[i].max);
	}
}

TEST(computes_the_time_left)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	assert_int_equal(deliver_left(&(struct delivery){ .until = 0 }), UINT_MAX);
	assert_int_equal(deliver_left(&(struct delivery){ .until = 1 }), 0);
	assert_in_range(deliver_left(&(struct delivery){ .until = now.tv_sec + 100 }), 98, 100);
}

TESTS_MAIN(NULL, NULL)
