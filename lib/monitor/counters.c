/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/counters.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "trace/block.h"

#define SPARE_FILES 64u		/* descriptors beside the counters' */
#define PROCESS_GENERAL 4u	/* general counters; Intel has as many for a thread of two on a core */

static int event_open(const struct monitor_event *event, pid_t task, unsigned cpu, bool waits_for_exec, bool kernel)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = event->type,
		.config = event->config,
		.inherit = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = waits_for_exec,
		.enable_on_exec = waits_for_exec,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};

	return syscall(SYS_perf_event_open, &a, task, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* With the kernel's part where that is allowed, else without it. */
static int event_open_allowed(const struct monitor_event *event, pid_t task, unsigned cpu, bool waits_for_exec)
{
	int fd = event_open(event, task, cpu, waits_for_exec, true);

	if (fd < 0 && (errno == EACCES || errno == EPERM) && !event->in_kernel)
		fd = event_open(event, task, cpu, waits_for_exec, false);
	return fd;
}

struct openable {
	pid_t pid;
	unsigned cpu;
};

/* Only opening one shows it. */
static int can_open(void *user, const struct monitor_event *event)
{
	const struct openable *o = user;
	int fd = event_open_allowed(event, o->pid, o->cpu, true);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? errno : 0;
}

/* The first reason: "; busy and minor_faults are not counted: REASON; flops is not counted: ANOTHER". */
static const char *refusal(char *why)
{
	static const char before[] = " not counted: ";
	char *first = strstr(why, before) + strlen(before), *next = strstr(first, before);

	for (; next && next > first && strncmp(next, "; ", 2); next--)
		;
	if (next)
		*next = '\0';
	return first;
}

/* Which events of the sets can be counted: the process is the user's own, and so are all its counters. */
static int choose_events(struct counters *c, pid_t pid, const char *sets, struct err *e)
{
	struct openable first = { pid, c->cpus[0] };
	struct monitor_choice how = { sets, monitor_this_cpu(), PROCESS_GENERAL, can_open, &first };
	struct buf why = {0};
	int rc = 0;

	c->nevents = monitor_events_choose(&how, c->events, &why);
	if (!c->nevents || strcmp(c->events[0]->name, monitor_events[0].name))
		rc = err_set(e, "perf_event_open: %s", why.data ? refusal(why.data) : "out of memory");
	else if (why.data)
		log_info("%s", why.data + strlen("; "));
	buf_free(&why);
	return rc;
}

/* The threads of a process; *n of them. NULL on error. */
static pid_t *threads_of(pid_t pid, unsigned *n, struct err *e)
{
	pid_t *all = NULL;
	char path[64];
	DIR *folder;

	*n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
	folder = opendir(path);
	for (struct dirent *d; folder && (d = readdir(folder));) {
		if (*d->d_name == '.')
			continue;
		if (array_reserve(all, *n, 1))
			break;
		all[(*n)++] = atoi(d->d_name);
	}
	if (folder)
		closedir(folder);
	if (!*n)
		err_set(e, "process %d: %s", (int) pid, strerror(errno == ENOENT ? ESRCH : errno));
	return all;
}

static int raise_file_limit(size_t counters, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return err_set(e, "limit of open files: %s", strerror(errno));
	if (limit.rlim_cur >= counters + SPARE_FILES)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < counters + SPARE_FILES || setrlimit(RLIMIT_NOFILE, &limit))
		return err_set(e,
			       "%zu counters are needed (threads x PUs x events), and the limit of open files is %llu "
			       "(ulimit -Hn)",
			       counters, (unsigned long long) limit.rlim_max);
	return 0;
}

/* A thread that ended meanwhile counts nothing. */
static int open_task(struct counters *c, struct counter *at, pid_t task, bool waits_for_exec, struct err *e)
{
	for (unsigned p = 0; p < c->ncpus; p++)
		for (unsigned i = 0; i < c->nevents; i++, at++) {
			at->fd = event_open_allowed(c->events[i], task, c->cpus[p], waits_for_exec);
			if (at->fd < 0 && errno != ESRCH)
				return err_set(e, "perf_event_open of %s on PU %u: %s", c->events[i]->name, c->cpus[p],
					       strerror(errno));
		}
	return 0;
}

int counters_open(struct counters *c, pid_t pid, bool waits_for_exec, const char *set, const unsigned *cpus,
		  unsigned ncpus, struct err *e)
{
	pid_t *tasks;
	size_t n;
	int rc = -1;

	*c = (struct counters){ .cpus = cpus, .ncpus = ncpus };
	tasks = threads_of(pid, &c->ntasks, e);
	if (!tasks || choose_events(c, pid, set, e))
		goto out;
	n = (size_t) c->ntasks * ncpus * c->nevents;
	if (raise_file_limit(n, e))
		goto out;
	if (!(c->all = calloc(n, sizeof(*c->all)))) {
		err_set(e, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < n; i++)
		c->all[i].fd = -1;
	rc = 0;
	for (unsigned t = 0; rc == 0 && t < c->ntasks; t++)
		rc = open_task(c, c->all + (size_t) t * ncpus * c->nevents, tasks[t], waits_for_exec, e);
out:
	free(tasks);
	if (rc)
		counters_close(c);
	return rc;
}

/*
 * Add what a counter, and the time that it was on the hardware, have increased by. A task that ended keeps its counts.
 * False when it cannot be read.
 */
static bool read_one(struct counter *at, uint64_t *value, uint64_t *ran)
{
	uint64_t now[3];	/* value, time enabled, time running */

	if (at->fd < 0)
		return true;
	if (read(at->fd, now, sizeof(now)) != sizeof(now))
		return false;
	*value += now[0] - at->value;
	*ran += now[2] - at->ran;
	at->value = now[0];
	at->ran = now[2];
	return true;
}

unsigned counters_read(struct counters *c, uint64_t *values)
{
	unsigned absent = 0;

	for (unsigned p = 0; p < c->ncpus; p++) {
		uint64_t ran_ns = 0;

		for (unsigned i = 0; i < c->nevents; i++) {
			uint64_t *value = &values[(size_t) i * c->ncpus + p], counted_ns = 0;
			bool is_read = true;

			*value = 0;
			for (unsigned t = 0; t < c->ntasks; t++)
				is_read &= read_one(&c->all[((size_t) t * c->ncpus + p) * c->nevents + i], value,
						    &counted_ns);
			if (i == 0)
				ran_ns = counted_ns;
			if (is_read && monitor_value_holds(c->events[i], *value, ran_ns, counted_ns))
				continue;
			*value = TRACE_ABSENT;
			absent++;
		}
	}
	return absent;
}

void counters_close(struct counters *c)
{
	for (size_t i = 0; c->all && i < (size_t) c->ntasks * c->ncpus * c->nevents; i++)
		if (c->all[i].fd >= 0)
			close(c->all[i].fd);
	free(c->all);
	*c = (struct counters){0};
}
