/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/pu_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace/block.h"

#define SPARE_FILES 256u	/* descriptors beside the counters' */
#define OFFLINE UINT64_MAX

/* group: the descriptor of its leader, -1: none. */
static int event_open(const struct monitor_event *event, unsigned cpu, int group)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = event->type,
		.config = event->config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return syscall(SYS_perf_event_open, &a, -1, (int) cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/*
 * Events of the kernel itself are one group, which one read(2), and one interrupt of another PU, brings. Counters of
 * the hardware are alone: a group is on the hardware as a whole or not at all.
 */
static void counter_open(const struct pu_counters *c, struct pu_counter *pu, unsigned i, unsigned cpu)
{
	unsigned leader = i;

	for (unsigned k = 1; k < i && leader == i && !c->events[i]->hardware; k++)
		if (!c->events[k]->hardware && pu[k].fd >= 0 && pu[k].leader == k)
			leader = k;
	pu[i] = (struct pu_counter){ .fd = event_open(c->events[i], cpu, leader == i ? -1 : pu[leader].fd),
				     .leader = leader };
	if (pu[i].fd < 0 && leader != i)
		pu[i] = (struct pu_counter){ .fd = event_open(c->events[i], cpu, -1), .leader = i };
}

/* Only opening one shows which events can be counted. Busy is the kernel's own. */
static int can_open(void *user, const struct monitor_event *event)
{
	const struct pu_counters *c = user;
	int fd = !strcmp(event->name, monitor_events[0].name) ? 0 : event_open(event, c->cpus[0], -1);

	if (fd > 0)
		close(fd);
	return fd < 0 ? errno : 0;
}

/* 0, or -1 with an error. */
static int raise_file_limit(size_t more, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || more + SPARE_FILES > limit.rlim_max)
		return err_set(e, "%zu counters exceed the limit of open files (LimitNOFILE)", more);
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) ? err_set(e, "limit of open files: %s", strerror(errno)) : 0;
}

/* Busy time of each of the CPUs in nanoseconds, OFFLINE if the kernel does not list it. */
static int read_busy(const struct pu_counters *c, uint64_t *busy)
{
	static const unsigned long long second = 1000000000;
	FILE *f = fopen("/proc/stat", "re");
	unsigned long long user, nice, system, idle, wait, irq, soft;
	char line[512];
	unsigned cpu;

	for (unsigned i = 0; i < c->ncpus; i++)
		busy[i] = OFFLINE;
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "cpu ", 4))
			continue;
		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle, &wait,
			   &irq, &soft) != 8)
			break;
		for (unsigned i = 0; i < c->ncpus; i++)
			if (c->cpus[i] == cpu)
				busy[i] = (user + nice + system + irq + soft) * (second / sysconf(_SC_CLK_TCK));
	}
	if (f)
		fclose(f);
	return f ? 0 : -1;
}

int pu_counters_open(struct pu_counters *c, const char *sets, const unsigned *cpus, unsigned ncpus, struct buf *why,
		     struct err *e)
{
	const struct monitor_choice how = { sets, monitor_this_cpu(), MONITOR_GENERAL, can_open, c };
	uint64_t *busy = calloc(ncpus, sizeof(*busy));
	size_t n;

	*c = (struct pu_counters){ .cpus = cpus, .ncpus = ncpus };
	c->nevents = monitor_events_choose(&how, c->events, why);
	n = (size_t) ncpus * c->nevents;
	c->all = busy ? calloc(n, sizeof(*c->all)) : NULL;
	if (!c->all) {
		err_set(e, "out of memory");
		goto error;
	}
	for (size_t i = 0; i < n; i++)
		c->all[i].fd = -1;
	if (raise_file_limit(n, e))
		goto error;
	if (read_busy(c, busy)) {
		err_set(e, "/proc/stat: %s", strerror(errno));
		goto error;
	}
	for (unsigned p = 0; p < ncpus; p++) {
		c->all[(size_t) p * c->nevents].value = busy[p];
		for (unsigned i = 1; i < c->nevents; i++)
			counter_open(c, c->all + (size_t) p * c->nevents, i, cpus[p]);
	}
	free(busy);
	return 0;
error:
	free(busy);
	pu_counters_close(c);
	return -1;
}

struct reading {
	bool is_read;
	uint64_t value, enabled, running;
};

/* Of all events of a PU. */
static void groups_read(const struct pu_counters *c, const struct pu_counter *pu, struct reading *out)
{
	for (unsigned i = 1; i < c->nevents; i++) {
		uint64_t got[3 + MONITOR_EVENTS_MAX];	/* their number, time enabled, time running, their counts */
		unsigned n = 0;

		if (pu[i].fd < 0 || pu[i].leader != i ||
		    read(pu[i].fd, got, sizeof(got)) < (ssize_t) (4 * sizeof(*got)))
			continue;
		for (unsigned k = i; k < c->nevents && n < got[0]; k++)
			if (pu[k].fd >= 0 && pu[k].leader == i)
				out[k] = (struct reading){ true, got[3 + n++], got[1], got[2] };
	}
}

struct trouble {
	bool is_crowded;		/* others use the counters of the hardware */
	bool has_stood;			/* the kernel has taken events off their PU, which was offline */
};

/* The increase of a counter, TRACE_ABSENT if it cannot be read or did not count all the time. */
static uint64_t counter_increase(struct pu_counter *at, const struct reading *now, const struct monitor_event *event,
				 uint64_t ns, uint64_t busy, struct trouble *t)
{
	uint64_t value = now->value - at->value, enabled = now->enabled - at->enabled;
	uint64_t running = now->running - at->running;
	bool idle = busy < MONITOR_RAN_NS;

	if (!now->is_read)
		return TRACE_ABSENT;
	*at = (struct pu_counter){ at->fd, at->leader, now->value, now->enabled, now->running };
	if (!enabled) {
		t->has_stood = true;
		return TRACE_ABSENT;
	}
	if (event->hardware && running < enabled - enabled / 100) {
		t->is_crowded = true;
		return TRACE_ABSENT;
	}
	/* A PU that idles may count nothing. */
	return (idle && !value) || monitor_value_holds(event, value, ns, ns) ? value : TRACE_ABSENT;
}

static uint64_t busy_since(struct pu_counter *at, uint64_t now, uint64_t ns)
{
	uint64_t before = at->value, busy = now - before;

	at->value = now;
	if (now == OFFLINE || before == OFFLINE || now < before)
		return TRACE_ABSENT;
	/* The kernel counts in ticks of its own: no more than the time there was. */
	return busy < ns ? busy : ns;
}

/* A job that counts events itself comes first. */
static void give_way(struct pu_counters *c)
{
	for (size_t i = 0; i < (size_t) c->ncpus * c->nevents; i++) {
		if (!c->events[i % c->nevents]->general || c->all[i].fd < 0)
			continue;
		close(c->all[i].fd);
		c->all[i].fd = -1;
		c->has_given_way = true;
	}
}

/* After a PU was offline, its events count nothing any more, and the kernel does not say so. */
static void pu_open_again(struct pu_counters *c, unsigned p)
{
	struct pu_counter *pu = c->all + (size_t) p * c->nevents;

	for (unsigned i = 1; i < c->nevents; i++) {
		if (pu[i].fd >= 0)
			close(pu[i].fd);
		pu[i].fd = -1;
	}
	for (unsigned i = 1; i < c->nevents; i++)
		if (!c->has_given_way || !c->events[i]->general)
			counter_open(c, pu, i, c->cpus[p]);
}

void pu_counters_reclaim(struct pu_counters *c)
{
	for (size_t i = 0; c->has_given_way && i < (size_t) c->ncpus * c->nevents; i++)
		if (c->events[i % c->nevents]->general)
			counter_open(c, c->all + i - i % c->nevents, i % c->nevents, c->cpus[i / c->nevents]);
	c->has_given_way = false;
}

void pu_counters_read(struct pu_counters *c, uint64_t ns, uint64_t *values)
{
	/* The first row holds what the kernel has counted until it is replaced by the increase. */
	bool failed = read_busy(c, values), is_crowded = false;

	for (unsigned p = 0; p < c->ncpus; p++) {
		struct pu_counter *at = c->all + (size_t) p * c->nevents;
		struct reading now[MONITOR_EVENTS_MAX] = {0};
		struct trouble t = {0};

		groups_read(c, at, now);
		values[p] = busy_since(at, failed ? OFFLINE : values[p], ns);
		for (unsigned i = 1; i < c->nevents; i++)
			values[(size_t) i * c->ncpus + p] =
				counter_increase(at + i, now + i, c->events[i], ns,
						 values[p] == TRACE_ABSENT ? 0 : values[p], &t);
		if (t.has_stood && values[p] != TRACE_ABSENT)
			pu_open_again(c, p);
		is_crowded |= t.is_crowded;
	}
	if (is_crowded)
		give_way(c);
}

void pu_counters_close(struct pu_counters *c)
{
	for (size_t i = 0; c->all && i < (size_t) c->ncpus * c->nevents; i++)
		if (c->all[i].fd >= 0)
			close(c->all[i].fd);
	free(c->all);
	*c = (struct pu_counters){0};
}
