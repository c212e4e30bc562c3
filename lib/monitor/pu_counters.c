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

static int event_open(const struct monitor_event *event, unsigned cpu)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = event->type,
		.config = event->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return syscall(SYS_perf_event_open, &a, -1, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Only opening one shows which events can be counted. Busy is the kernel's own. */
static int can_open(void *user, const struct monitor_event *event)
{
	const struct pu_counters *c = user;
	int fd = !strcmp(event->name, monitor_events[0].name) ? 0 : event_open(event, c->cpus[0]);

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
			c->all[(size_t) p * c->nevents + i].fd = event_open(c->events[i], cpus[p]);
	}
	free(busy);
	return 0;
error:
	free(busy);
	pu_counters_close(c);
	return -1;
}

/*
 * The increase of a counter, TRACE_ABSENT if it cannot be read or was not on the hardware all the time; is_crowded:
 * because others use the counters.
 */
static uint64_t counter_read(struct pu_counter *at, const struct monitor_event *event, uint64_t ns, uint64_t busy,
			     bool *is_crowded)
{
	uint64_t now[3], value, enabled, running;	/* value, time enabled, time running */
	bool idle = busy < MONITOR_RAN_NS;

	if (at->fd < 0 || read(at->fd, now, sizeof(now)) != sizeof(now))
		return TRACE_ABSENT;
	value = now[0] - at->value;
	enabled = now[1] - at->enabled;
	running = now[2] - at->running;
	*at = (struct pu_counter){ at->fd, now[0], now[1], now[2] };
	if (event->hardware && running < enabled - enabled / 100) {
		*is_crowded = true;
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

void pu_counters_reclaim(struct pu_counters *c)
{
	for (size_t i = 0; c->has_given_way && i < (size_t) c->ncpus * c->nevents; i++)
		if (c->events[i % c->nevents]->general)
			c->all[i] = (struct pu_counter){ .fd = event_open(c->events[i % c->nevents],
									  c->cpus[i / c->nevents]) };
	c->has_given_way = false;
}

void pu_counters_read(struct pu_counters *c, uint64_t ns, uint64_t *values)
{
	/* The first row holds what the kernel has counted until it is replaced by the increase. */
	bool failed = read_busy(c, values), is_crowded = false;

	for (unsigned p = 0; p < c->ncpus; p++) {
		struct pu_counter *at = c->all + (size_t) p * c->nevents;

		values[p] = busy_since(at, failed ? OFFLINE : values[p], ns);
		for (unsigned i = 1; i < c->nevents; i++)
			values[(size_t) i * c->ncpus + p] =
				counter_read(at + i, c->events[i], ns, values[p] == TRACE_ABSENT ? 0 : values[p],
					     &is_crowded);
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
