/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * PUs that go and come, and counters that others need. Software events are the kernel's own. A machine without a PMU
 * has no hardware events, and no test may take a PU from the machine: hardware events are software events here, whose
 * time on the hardware is changed where it is read, and an event of a PU that was offline is one that was switched off.
 * How the kernel shares counters is not tested by this.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "monitor/counters.h"
#include "table.h"
#include "trace/block.h"

#define NO_SUCH_PU 8191u
#define VALUES (2 * MONITOR_EVENTS_MAX)

static bool has_pmu;			/* a made one */
static unsigned crowd;			/* percent of the time that events are not on it */
static int on_pmu[64], non_pmu;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);

long __wrap_syscall(long number, ...)
{
	struct perf_event_attr attr;
	bool is_hardware;
	va_list ap;
	long a[5];
	int fd;

	va_start(ap, number);
	for (int i = 0; i < 5; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number != SYS_perf_event_open)
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4]);
	memcpy(&attr, (void *) a[0], sizeof(attr));
	is_hardware = attr.type != PERF_TYPE_SOFTWARE;
	if (is_hardware && !has_pmu) {
		errno = ENOENT;
		return -1;
	}
	if (is_hardware) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
	}
	fd = __real_syscall(number, (long) &attr, a[1], a[2], a[3], a[4]);
	if (is_hardware && fd >= 0 && non_pmu < (int) (sizeof(on_pmu) / sizeof(*on_pmu)))
		on_pmu[non_pmu++] = fd;
	return fd;
}

/* Number, enabled, running, counts: monitor/counters.c. */
ssize_t __wrap_read(int fd, void *to, size_t size)
{
	ssize_t n = __real_read(fd, to, size);
	uint64_t *got = to;

	for (int i = 0; i < non_pmu && crowd && n > 24; i++)
		if (on_pmu[i] == fd)
			got[2] -= got[2] / 100 * crowd;
	return n;
}

/* Of a Zen 3, whatever this machine is. */
unsigned __wrap_monitor_this_cpu(void);
const char *__wrap_monitor_selftest(void);

unsigned __wrap_monitor_this_cpu(void)
{
	return MONITOR_AMD | MONITOR_ZEN2 | MONITOR_ZEN3;
}

const char *__wrap_monitor_selftest(void)
{
	return NULL;
}

struct counting {
	struct counters_pu c;
	unsigned cpus[2];
	uint64_t values[VALUES], last;
};

static bool counting_open(struct counting *x, const char *sets, unsigned other)
{
	FREED(buf_free) struct buf why = {0};

	*x = (struct counting){ .cpus = { sched_getcpu(), other } };
	assert_ok(counters_pu_open(&x->c, sets, x->cpus, other == x->cpus[0] ? 1 : 2, &why, &err));
	x->last = clock_nanoseconds(CLOCK_MONOTONIC);
	return x->c.nevents > 1;
}

/* The values of PU p after some work there. */
static uint64_t counting_read(struct counting *x, const char *event, unsigned p)
{
	uint64_t now, until = clock_nanoseconds(CLOCK_MONOTONIC) + 60000000;

	while (clock_nanoseconds(CLOCK_MONOTONIC) < until)
		sched_yield();
	now = clock_nanoseconds(CLOCK_MONOTONIC);
	counters_pu_read(&x->c, now - x->last, x->values);
	x->last = now;
	for (unsigned i = 0; i < x->c.nevents; i++)
		if (!strcmp(x->c.events[i]->name, event))
			return x->values[i * x->c.ncpus + p];
	fail_msg("%s is not counted", event);
	return 0;
}

static struct counter *counter_find(struct counting *x, const char *event)
{
	for (unsigned i = 0; i < x->c.nevents; i++)
		if (!strcmp(x->c.events[i]->name, event))
			return &x->c.all[i];
	fail_msg("%s is not counted", event);
	return NULL;
}

static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

TEST(pu_that_is_not_there)
{
	struct counting x;

	if (!counting_open(&x, "sw", NO_SUCH_PU))
		skip();
	assert_true(counting_read(&x, "busy", 0) != TRACE_ABSENT);
	assert_true(counting_read(&x, "context_switches", 0) != TRACE_ABSENT);
	for (unsigned i = 0; i < x.c.nevents; i++)
		assert_true(x.values[i * 2 + 1] == TRACE_ABSENT);
	counters_pu_close(&x.c);
}

TEST(pu_that_comes_back)
{
	struct counting x;
	int fd;

	if (!counting_open(&x, "sw", sched_getcpu()))
		skip();
	assert_true(counting_read(&x, "context_switches", 0) != TRACE_ABSENT);
	fd = counter_find(&x, "context_switches")->fd;
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), 0);
	counting_read(&x, "context_switches", 0);	/* it counted until then */
	/* A tick without a count is absent rather than 0, and the next has one. */
	assert_true(counting_read(&x, "context_switches", 0) == TRACE_ABSENT);
	assert_true(counting_read(&x, "context_switches", 0) != TRACE_ABSENT);
	assert_true(x.values[0] != TRACE_ABSENT);
	counters_pu_close(&x.c);
}

TEST(others_come_first)
{
	struct counting x;

	has_pmu = true;
	if (!counting_open(&x, "cpu", sched_getcpu()))
		skip();
	counting_read(&x, "near_fills", 0);
	assert_false(x.c.has_given_way);
	crowd = 2;
	counting_read(&x, "near_fills", 0);
	assert_true(x.c.has_given_way);
	for (unsigned i = 1; i < x.c.nevents; i++)
		assert_int_equal(x.c.all[i].fd < 0, x.c.events[i]->general > 0);
	crowd = 0;
	assert_true(counting_read(&x, "near_fills", 0) == TRACE_ABSENT);
	assert_true(counting_read(&x, "context_switches", 0) != TRACE_ABSENT);
	counters_pu_reclaim(&x.c);
	assert_true(counter_find(&x, "near_fills")->fd >= 0);
	counters_pu_close(&x.c);
	has_pmu = false;
}

int main(void)
{
	stay_here();
	return tests_run(NULL, NULL);
}
