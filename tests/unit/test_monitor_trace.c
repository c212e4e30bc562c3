/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * topiary-monitor's trace of a step while the node's clock is set, the machine is suspended or stopped, and the monitor
 * is killed: its own code, and clocks that the test moves.
 */

#include "../../node_agent/monitor_trace.h"
#include "base/clock.h"
#include "monitor/live.h"
#include "table.h"
#include "topology.h"
#include "trace/reader.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define YEARS (20 * 365 * 24 * HOUR)
#define PERIOD (SECOND / 10)

static int64_t monotonic, real;

uint64_t __wrap_clock_nanoseconds(clockid_t clock);

uint64_t __wrap_clock_nanoseconds(clockid_t clock)
{
	/* CPU time stands: on a machine under load a tick may cost so much that the monitor doubles its period. */
	return clock == CLOCK_MONOTONIC ? (uint64_t) monotonic : clock == CLOCK_REALTIME ? (uint64_t) real : 0;
}

struct step {
	char *folder;
	int dir;
	hwloc_topology_t topology;
	hwloc_bitmap_t shared;
	struct monitor_trace *trace;
};

static void monitor_start(struct step *s)
{
	const struct monitor_ask ask = { .uid = 0, .request = { .hz = SECOND / PERIOD, .set = "sw" } };

	assert_made(s->trace = monitor_trace_new(s->dir, "1.0", &ask, s->topology, &err));
}

static void step_start(struct step *s)
{
	*s = (struct step){ .folder = folder_new(), .shared = hwloc_bitmap_alloc() };
	monotonic = 5000 * SECOND;
	real = 1700000000 * SECOND + PERIOD / 3;
	s->dir = open(s->folder, O_RDONLY | O_DIRECTORY);
	s->topology = synthetic_load("Package:1 [numa] Core:1 PU:1");
	monitor_start(s);
}

static void step_end(struct step *s)
{
	hwloc_topology_destroy(s->topology);
	hwloc_bitmap_free(s->shared);
	close(s->dir);
}

/* As the daemon does: asleep until a tick is due, which is never far away. */
static void ticks_pass(struct step *s, unsigned n)
{
	while (n--) {
		int64_t ns = monitor_trace_due(s->trace) - monotonic;

		assert_in_range(ns, 1, 2 * PERIOD);
		monotonic += ns;
		real += ns;
		monitor_trace_tick(s->trace, s->shared);
	}
}

/* The trace has so many ticks, each after the one before, ends then, and its longest tick took so long. */
static void trace_holds(const struct step *s, const char *name, uint64_t ticks, uint64_t end, uint64_t longest)
{
	OWNED(free) struct trace_interval *each;
	uint64_t found = 0;
	char path[64];
	struct trace *t;

	snprintf(path, sizeof(path), "%s/%s", s->folder, name);
	assert_ok(!(t = trace_open(path, &err)) || !(each = trace_intervals(t, &err)));
	assert_int_equal(t->ticks, ticks);
	assert_int_equal(t->end, end);
	for (uint64_t i = 0; i < ticks; i++) {
		assert_true(each[i].begin < each[i].end && (!i || each[i - 1].end <= each[i].begin));
		if (each[i].end - each[i].begin > found)
			found = each[i].end - each[i].begin;
	}
	assert_int_equal(found, longest);
	trace_close(t);
}

FIXTURE(skip_users)
{
	if (geteuid())
		skip();	/* the files are root's */
	return 0;
}

/* Of the clock on the wall only the moments of ticks depend, and where a trace begins. */
TEST(clock_that_is_set, .setup_func = skip_users)
{
	static const int64_t by[] = { -HOUR, HOUR, -YEARS, YEARS, PERIOD / 2, -PERIOD / 2 };

	for (size_t i = 0; i < ROWS(by); i++) {
		struct step s;
		int64_t from;

		step_start(&s);
		from = monotonic;
		ticks_pass(&s, 30);
		real += by[i];
		ticks_pass(&s, 30);
		assert_int_equal(real % PERIOD, 0);
		real += PERIOD / 4;
		monotonic += PERIOD / 4;
		monitor_trace_end(s.trace, s.dir, s.shared);
		trace_holds(&s, ASK_DONE, 61, monotonic - from, PERIOD);
		step_end(&s);
	}
}

/* The clock of a suspended machine stands; one that is stopped by its host, or a monitor by SIGSTOP, has a gap. */
TEST(machine_that_stops, .setup_func = skip_users)
{
	struct step s;
	int64_t from;

	step_start(&s);
	from = monotonic;
	ticks_pass(&s, 10);
	real += HOUR;			/* suspended */
	ticks_pass(&s, 10);
	real += 10 * SECOND;		/* stopped */
	monotonic += 10 * SECOND;
	monitor_trace_tick(s.trace, s.shared);
	ticks_pass(&s, 10);		/* and not a burst of those that were missed */
	monotonic += 7;
	monitor_trace_end(s.trace, s.dir, s.shared);
	trace_holds(&s, ASK_DONE, 32, monotonic - from, 10 * SECOND);
	step_end(&s);
}

/* What a monitor that is killed has written is continued by the next, whose clock only the wall's can be. */
TEST(killed_while_the_clock_is_set, .setup_func = skip_users)
{
	static const int64_t by[] = { 0, -HOUR, HOUR, -YEARS, YEARS };

	for (size_t i = 0; i < ROWS(by); i++) {
		uint64_t end, begun;
		struct step s;

		step_start(&s);
		begun = real;
		ticks_pass(&s, 60);	/* a block: it is written */
		end = real - begun;
		real += SECOND + by[i];
		monotonic += SECOND;
		monitor_start(&s);
		ticks_pass(&s, 1);
		monitor_trace_end(s.trace, s.dir, s.shared);
		trace_holds(&s, ASK_DONE, 61, by[i] < 0 ? end + 1 + PERIOD : real - begun, PERIOD);
		step_end(&s);
	}
}

TESTS_MAIN(NULL, NULL)
