/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"

/*
 * Small text files of sysfs(5) and proc(5) below a root directory: "" is this machine, tests have one of their own. For
 * the sources (monitor/source.h).
 */
#define SYSFS_PATH 512
#define SYSFS_TEXT 4096u	/* bytes that are read of a file */

/* The whole text, at most size - 1 bytes, without the line end after it. False, with text "", if it cannot be read. */
bool sysfs_text(const char *path, char *text, size_t size);

/* The number that the file begins with, decimal. False if there is none. */
bool sysfs_number(const char *path, long long *number);

/* root and a path made from a format; false if it is too long. */
bool sysfs_path(char path[static SYSFS_PATH], const char *root, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Call each() with the names in a directory that begin with a prefix, in the order of strverscmp(3). */
void sysfs_each(const char *path, const char *prefix, void (*each)(void *user, const char *name), void *user);

/*
 * Events of the PMUs that the kernel describes in /sys/bus/event_source/devices (Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-* of the kernel): those of a package, and those of a PU that need no general counter.
 */
struct sysfs_pmu_event {
	uint32_t type;			/* of struct perf_event_attr */
	uint64_t config;
	double scale;			/* of a count, in unit; 1 if the kernel states none */
	char unit[16];			/* "Joules", "MiB", or "" */
};

/*
 * event: a name in the PMU's `events`, or terms of its `format` ("event=0x0a,rdwrmask=1"). root: monitor/sysfs.h.
 * 0, or -1: there is no such PMU or event.
 */
int sysfs_pmu_event(const char *root, const char *pmu, const char *event, struct sysfs_pmu_event *out, struct err *e);

/* perf_event_open(2) on one CPU, whoever runs there; its read(2) gives the count, the times enabled and running. */
int sysfs_pmu_open(const struct sysfs_pmu_event *x, unsigned cpu);
