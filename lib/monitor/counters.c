/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * Notes. One thread reads what it has opened; nothing is shared, and nothing locks. Descriptors are limited by
 * RLIMIT_NOFILE, which opening raises: PUs times events, of a process times its threads. A job that counts events
 * itself comes first: the kernel puts groups on the hardware as a whole or not at all, and says nothing of it, so that
 * ours are watched at each reading and closed where they do not fit.
 */
#include "monitor/counters.h"

#include <assert.h>
#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/log.h"
#include "trace/block.h"

#define SPARE_FILES 256u	/* descriptors beside the counters' */
#define PROCESS_GENERAL 4u	/* general counters; Intel has as many for a thread of two on a core */
#define OFFLINE UINT64_MAX

static int event_open(struct perf_event_attr a, const struct monitor_event *event, pid_t task, unsigned cpu, int group)
{
	a.size = sizeof(a);
	a.type = event->type;
	a.config = event->config;
	a.read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return syscall(SYS_perf_event_open, &a, task, (int) cpu, group, PERF_FLAG_FD_CLOEXEC);
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
		return err_set(e, "%zu counters are needed (PUs x events, of a process x its threads), and the limit "
			       "of open files is %llu (ulimit -Hn; LimitNOFILE of a service)", counters,
			       (unsigned long long) limit.rlim_max);
	return 0;
}

static struct counter *counters_new(size_t n)
{
	struct counter *all = calloc(n, sizeof(*all));

	for (size_t i = 0; all && i < n; i++)
		all[i].fd = -1;
	return all;
}

static void counters_free(struct counter *all, size_t n)
{
	for (size_t i = 0; all && i < n; i++)
		if (all[i].fd >= 0)
			close(all[i].fd);
	free(all);
}

int monitor_events_head(const struct monitor_event *const *events, unsigned n, struct trace_head *h, struct err *e)
{
	struct trace_event *all = array_append(h->events, h->nevents, n);

	if (!all)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < n; i++) {
		all[i].level = trace_head_level(h, "PU");
		snprintf(all[i].name, sizeof(all[i].name), "%s", events[i]->name);
		snprintf(all[i].unit, sizeof(all[i].unit), "%s", events[i]->unit);
	}
	return 0;
}

/* --- of a process --- */

/* With the kernel's part where that is allowed, else without it. */
static int task_event_open(const struct monitor_event *event, pid_t task, unsigned cpu, bool waits_for_exec)
{
	struct perf_event_attr a = {
		.inherit = 1, .disabled = waits_for_exec, .enable_on_exec = waits_for_exec, .exclude_hv = 1,
	};
	int fd = event_open(a, event, task, cpu, -1);

	if (fd < 0 && (errno == EACCES || errno == EPERM) && !event->in_kernel) {
		a.exclude_kernel = 1;
		fd = event_open(a, event, task, cpu, -1);
	}
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
	int fd = task_event_open(event, o->pid, o->cpu, true);

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
	if (!(c->all = counters_new(n))) {
		err_set(e, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		const struct monitor_event *event = c->events[i % c->nevents];
		unsigned cpu = cpus[i / c->nevents % ncpus];

		c->all[i].fd = task_event_open(event, tasks[i / c->nevents / ncpus], cpu, waits_for_exec);
		/* A thread that ended meanwhile counts nothing. */
		if (c->all[i].fd < 0 && errno != ESRCH) {
			err_set(e, "perf_event_open of %s on PU %u: %s", event->name, cpu, strerror(errno));
			goto out;
		}
	}
	rc = 0;
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
	*ran += now[2] - at->running;
	at->value = now[0];
	at->running = now[2];
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
	counters_free(c->all, (size_t) c->ntasks * c->ncpus * c->nevents);
	*c = (struct counters){0};
}

/* --- of whoever runs on a PU --- */

/* group: the descriptor of its leader, -1: none. */
static int pu_event_open(const struct monitor_event *event, unsigned cpu, int group)
{
	return event_open((struct perf_event_attr){ .read_format = PERF_FORMAT_GROUP }, event, -1, cpu, group);
}

/*
 * Events of the kernel itself are one group, which one read(2), and one interrupt of another PU, brings. Counters of
 * the hardware are alone: a group is on the hardware as a whole or not at all.
 */
static void counter_open(const struct counters_pu *c, struct counter *pu, unsigned i, unsigned cpu)
{
	unsigned leader = i;

	for (unsigned k = 1; k < i && leader == i && !c->events[i]->hardware; k++)
		if (!c->events[k]->hardware && pu[k].fd >= 0 && pu[k].leader == k)
			leader = k;
	pu[i] = (struct counter){ .fd = pu_event_open(c->events[i], cpu, leader == i ? -1 : pu[leader].fd),
				     .leader = leader };
	if (pu[i].fd < 0 && leader != i)
		pu[i] = (struct counter){ .fd = pu_event_open(c->events[i], cpu, -1), .leader = i };
}

/* Only opening one shows which events can be counted. Busy is the kernel's own. */
static int pu_can_open(void *user, const struct monitor_event *event)
{
	const struct counters_pu *c = user;
	int fd = !strcmp(event->name, monitor_events[0].name) ? 0 : pu_event_open(event, c->cpus[0], -1);

	if (fd > 0)
		close(fd);
	return fd < 0 ? errno : 0;
}

/* Busy time of each of the CPUs in nanoseconds, OFFLINE if the kernel does not list it. */
static int read_busy(const struct counters_pu *c, uint64_t *busy)
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

int counters_pu_open(struct counters_pu *c, const char *sets, const unsigned *cpus, unsigned ncpus, struct buf *why,
		     struct err *e)
{
	const struct monitor_choice how = { sets, monitor_this_cpu(), MONITOR_GENERAL, pu_can_open, c };
	uint64_t *busy = calloc(ncpus, sizeof(*busy));
	size_t n;

	*c = (struct counters_pu){ .cpus = cpus, .ncpus = ncpus };
	c->nevents = monitor_events_choose(&how, c->events, why);
	n = (size_t) ncpus * c->nevents;
	if (!busy || !(c->all = counters_new(n))) {
		err_set(e, "out of memory");
		goto error;
	}
	assert(c->nevents && c->events[0] && !strcmp(c->events[0]->name, monitor_events[0].name));
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
	counters_pu_close(c);
	return -1;
}

struct reading {
	bool is_read;
	uint64_t value, enabled, running;
};

struct trouble {
	bool is_crowded;		/* others use the counters of the hardware */
	bool has_stood;			/* the kernel has taken events off their PU, which was offline */
};

/* The increase of a counter, TRACE_ABSENT if it cannot be read or did not count all the time. */
static uint64_t counter_increase(struct counter *at, const struct reading *now, const struct monitor_event *event,
				 uint64_t ns, uint64_t busy, struct trouble *t)
{
	uint64_t value = now->value - at->value, enabled = now->enabled - at->enabled;
	uint64_t running = now->running - at->running;
	bool idle = busy < MONITOR_RAN_NS;

	if (!now->is_read)
		return TRACE_ABSENT;
	*at = (struct counter){ at->fd, at->leader, now->value, now->enabled, now->running };
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

static uint64_t busy_since(struct counter *at, uint64_t now, uint64_t ns)
{
	uint64_t before = at->value, busy = now - before;

	at->value = now;
	if (now == OFFLINE || before == OFFLINE || now < before)
		return TRACE_ABSENT;
	/* The kernel counts in ticks of its own: no more than the time there was. */
	return busy < ns ? busy : ns;
}

void counters_pu_reclaim(struct counters_pu *c)
{
	for (size_t i = 0; c->has_given_way && i < (size_t) c->ncpus * c->nevents; i++)
		if (c->events[i % c->nevents]->general)
			counter_open(c, c->all + i - i % c->nevents, i % c->nevents, c->cpus[i / c->nevents]);
	c->has_given_way = false;
}

void counters_pu_read(struct counters_pu *c, uint64_t ns, uint64_t *values)
{
	/* The first row holds what the kernel has counted until it is replaced by the increase. */
	bool failed = read_busy(c, values), is_crowded = false;

	for (unsigned p = 0; p < c->ncpus; p++) {
		struct counter *at = c->all + (size_t) p * c->nevents;
		struct reading now[MONITOR_EVENTS_MAX] = {0};
		struct trouble t = {0};

		/* Of all events of a PU. */
		for (unsigned i = 1; i < c->nevents; i++) {
			uint64_t got[3 + MONITOR_EVENTS_MAX];	/* number, time enabled, time running, counts */
			unsigned n = 0;

			if (at[i].fd < 0 || at[i].leader != i ||
			    read(at[i].fd, got, sizeof(got)) < (ssize_t) (4 * sizeof(*got)))
				continue;
			for (unsigned k = i; k < c->nevents && n < got[0]; k++)
				if (at[k].fd >= 0 && at[k].leader == i)
					now[k] = (struct reading){ true, got[3 + n++], got[1], got[2] };
		}
		values[p] = busy_since(at, failed ? OFFLINE : values[p], ns);
		for (unsigned i = 1; i < c->nevents; i++)
			values[(size_t) i * c->ncpus + p] =
				counter_increase(at + i, now + i, c->events[i], ns,
						 values[p] == TRACE_ABSENT ? 0 : values[p], &t);
		if (t.has_stood && values[p] != TRACE_ABSENT) {
			/* After a PU was offline, its events count nothing any more, and the kernel does not say so. */
			struct counter *pu = c->all + (size_t) p * c->nevents;

			for (unsigned i = 1; i < c->nevents; i++) {
				if (pu[i].fd >= 0)
					close(pu[i].fd);
				pu[i].fd = -1;
			}
			for (unsigned i = 1; i < c->nevents; i++)
				if (!c->has_given_way || !c->events[i]->general)
					counter_open(c, pu, i, c->cpus[p]);
		}
		is_crowded |= t.is_crowded;
	}
	if (is_crowded) {
		/* A job that counts events itself comes first. */
		for (size_t i = 0; i < (size_t) c->ncpus * c->nevents; i++) {
			if (!c->events[i % c->nevents]->general || c->all[i].fd < 0)
				continue;
			close(c->all[i].fd);
			c->all[i].fd = -1;
			c->has_given_way = true;
		}
	}
}

void counters_pu_close(struct counters_pu *c)
{
	counters_free(c->all, (size_t) c->ncpus * c->nevents);
	*c = (struct counters_pu){0};
}
