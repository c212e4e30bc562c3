/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * LD_PRELOAD: the affinity calls of a machine that has other CPUs and NUMA nodes than this host, for clusters of real
 * machines' topologies on one machine. A mask is recorded in a file of its thread under $RIG_CPUS_DIR, a memory policy
 * in another, and both are inherited as the kernel would: from the process, then from its parent. What was never bound
 * may run on the CPUs of the list in $RIG_CPUS ("0-63,128") and use the NUMA nodes of the list in $RIG_MEMS. The list
 * in $RIG_PRESENT has CPUs that are offline, too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct process {
	int parent;
	unsigned long long start;	/* tells a thread from a later one with its number */
};

enum { ANCESTORS = 32, MAX_NODES = 1024 };

#define MASK ""
#define POLICY ".memory"

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
	if (!after_name ||
	    sscanf(after_name + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &p->parent, &p->start) != 2)
		return -1;
	return 0;
}

/* A record that root wrote of a task is the task's own to change. */
static int record_open(int tid, const struct process *p, const char *kind, int flags)
{
	char path[4096];
	const char *dir = getenv("RIG_CPUS_DIR");
	int fd;

	snprintf(path, sizeof(path), "%s/%d.%llu%s", dir ? dir : ".", tid, p->start, kind);
	fd = open(path, (flags & ~O_CREAT) | O_CLOEXEC);
	if (fd >= 0 || !(flags & O_CREAT))
		return fd;
	fd = open(path, flags | O_CLOEXEC, 0666);
	if (fd >= 0)
		fchmod(fd, 0666);
	return fd;
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

static int record_read(int tid, const char *kind, void *record, size_t size)
{
	struct process p;
	ssize_t got;
	int fd;

	if (process_read(tid, &p))
		return -1;
	fd = record_open(tid, &p, kind, O_RDONLY);
	if (fd < 0)
		return -1;
	got = read(fd, record, size);
	close(fd);
	return got > 0 ? 0 : -1;
}

static int record_write(int tid, const char *kind, const void *record, size_t size)
{
	struct process p;
	ssize_t put;
	int fd;

	if (process_read(tid, &p)) {
		errno = ESRCH;
		return -1;
	}
	fd = record_open(tid, &p, kind, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return -1;
	put = write(fd, record, size);
	close(fd);
	return put == (ssize_t) size ? 0 : -1;
}

/* The thread's own record, or that which it inherited. */
static int record_find(int tid, const char *kind, void *record, size_t size)
{
	struct process p;

	if (!record_read(tid, kind, record, size))
		return 0;
	tid = group_of(tid);
	for (int i = 0; i < ANCESTORS && tid > 1; i++, tid = p.parent) {
		if (!record_read(tid, kind, record, size))
			return 0;
		if (process_read(tid, &p))
			break;
	}
	return -1;
}

/* Set the bits that a list such as "0-3,8" names. */
static void list_read(const char *list, size_t bits, cpu_set_t *set)
{
	unsigned first, last;
	int used;

	for (const char *p = list; p && sscanf(p, "%u%n", &first, &used) == 1; p += used + (p[used] == ',')) {
		last = first;
		if (p[used] == '-') {
			p += used + 1;
			if (sscanf(p, "%u%n", &last, &used) != 1)
				return;
		}
		for (unsigned i = first; i <= last && i < bits; i++)
			CPU_SET_S(i, bits / 8, set);
	}
}

__attribute__((visibility("default"))) int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
	return record_write(pid ? pid : gettid(), MASK, mask, size);
}

__attribute__((visibility("default"))) int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask)
{
	memset(mask, 0, size);
	if (record_find(pid ? pid : gettid(), MASK, mask, size))
		list_read(getenv("RIG_CPUS"), size * 8, mask);
	return 0;
}

struct policy {
	int mode;
	unsigned long nodes[MAX_NODES / 8 / sizeof(long)];
};

static void nodes_allowed(struct policy *p)
{
	memset(p, 0, sizeof(*p));
	list_read(getenv("RIG_MEMS"), MAX_NODES, (cpu_set_t *) p->nodes);
}

/* As set_mempolicy(2): nodes that the process may not use are left out, and none that it may is an error. */
static long set_policy(int mode, const unsigned long *nodes, unsigned long bits)
{
	size_t bytes = bits ? (bits - 1) / 8 : 0;
	unsigned long any = 0;
	struct policy p;

	nodes_allowed(&p);
	p.mode = mode;
	for (size_t i = 0; i < sizeof(p.nodes) / sizeof(*p.nodes); i++)
		any |= p.nodes[i] &= i * sizeof(long) < bytes && nodes ? nodes[i] : 0;
	if (!any && (mode == MPOL_BIND || mode == MPOL_INTERLEAVE)) {
		errno = EINVAL;
		return -1;
	}
	return record_write(gettid(), POLICY, &p, sizeof(p));
}

static long get_policy(int *mode, unsigned long *nodes, unsigned long bits, unsigned long flags)
{
	struct policy p;

	nodes_allowed(&p);
	if (!(flags & MPOL_F_MEMS_ALLOWED) && record_find(gettid(), POLICY, &p, sizeof(p)))
		memset(&p, 0, sizeof(p));
	if (mode)
		*mode = p.mode;
	if (nodes) {
		memset(nodes, 0, bits / 8);
		memcpy(nodes, p.nodes, bits / 8 < sizeof(p.nodes) ? bits / 8 : sizeof(p.nodes));
	}
	return 0;
}

/* glibc has no function for the policies; libnuma's and hwloc's come here, too. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...)) dlsym(RTLD_NEXT, "syscall");
	unsigned long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	if (getenv("RIG_MEMS") && number == SYS_set_mempolicy)
		return set_policy(a[0], (const unsigned long *) a[1], a[2]);
	if (getenv("RIG_MEMS") && number == SYS_get_mempolicy && !(a[4] & MPOL_F_ADDR))
		return get_policy((int *) a[0], (unsigned long *) a[1], a[2], a[4]);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...)) dlsym(RTLD_NEXT, "open");
	const char *present = getenv("RIG_PRESENT");
	va_list args;
	int mode, fd;

	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0;
	va_end(args);
	if (!present || strcmp(path, "/sys/devices/system/cpu/present"))
		return real(path, flags, mode);
	if ((fd = memfd_create("present", MFD_CLOEXEC)) >= 0 &&
	    (write(fd, present, strlen(present)) < 0 || lseek(fd, 0, SEEK_SET)))
		close(fd), fd = -1;
	return fd;
}
