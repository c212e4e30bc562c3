/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * LD_PRELOAD: the affinity calls of a machine that has other CPUs than this host, for clusters of real machines' topologies on
 * one machine. A mask is recorded in a file of its thread under $RIG_CPUS_DIR and inherited as the kernel would: from the
 * process, then from its parent. What was never bound may run on the CPUs of the list in $RIG_CPUS ("0-63,128").
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
	int parent;
	unsigned long long start;	/* tells a thread from a later one with its number */
};

enum { ANCESTORS = 32 };

static int process_read(int tid, struct process *p)
{
	char path[64], line[1024];
	FILE *f;
	char *after_name = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fgets(line, sizeof(line), f))
		after_name = strrchr(line, ')');
	fclose(f);
	if (!after_name || sscanf(after_name + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		    &p->parent, &p->start) != 2)
		return -1;
	return 0;
}

static int record_open(int tid, const struct process *p, int flags)
{
	char path[4096];
	const char *dir = getenv("RIG_CPUS_DIR");

	snprintf(path, sizeof(path), "%s/%d.%llu", dir ? dir : ".", tid, p->start);
	return open(path, flags | O_CLOEXEC, 0666);
}

static int group_of(int tid)
{
	char path[64], line[256];
	int group = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	if (!f)
		return tid;
	while (fgets(line, sizeof(line), f) && sscanf(line, "Tgid: %d", &group) != 1)
		;
	fclose(f);
	return group;
}

static int record_read(int tid, size_t size, cpu_set_t *mask)
{
	struct process p;
	ssize_t got;
	int fd;

	if (process_read(tid, &p))
		return -1;
	fd = record_open(tid, &p, O_RDONLY);
	if (fd < 0)
		return -1;
	got = read(fd, mask, size);
	close(fd);
	return got > 0 ? 0 : -1;
}

static void machine_cpus(size_t size, cpu_set_t *mask)
{
	const char *p = getenv("RIG_CPUS");
	unsigned first, last;
	int used;

	for (; p && sscanf(p, "%u%n", &first, &used) == 1; p += used + (p[used] == ',')) {
		last = first;
		if (p[used] == '-') {
			p += used + 1;
			if (sscanf(p, "%u%n", &last, &used) != 1)
				return;
		}
		for (unsigned cpu = first; cpu <= last && cpu < size * 8; cpu++)
			CPU_SET_S(cpu, size, mask);
	}
}

__attribute__((visibility("default"))) int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
	int tid = pid ? pid : gettid(), fd;
	struct process p;
	ssize_t put;

	if (process_read(tid, &p)) {
		errno = ESRCH;
		return -1;
	}
	fd = record_open(tid, &p, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return -1;
	put = write(fd, mask, size);
	close(fd);
	return put == (ssize_t) size ? 0 : -1;
}

__attribute__((visibility("default"))) int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask)
{
	int tid = pid ? pid : gettid();
	struct process p;

	memset(mask, 0, size);
	if (!record_read(tid, size, mask))
		return 0;
	tid = group_of(tid);
	for (int i = 0; i < ANCESTORS && tid > 1; i++, tid = p.parent) {
		if (!record_read(tid, size, mask))
			return 0;
		if (process_read(tid, &p))
			break;
	}
	machine_cpus(size, mask);
	return 0;
}
