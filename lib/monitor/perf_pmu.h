/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_PERF_PMU_H
#define TOPIARY_MONITOR_PERF_PMU_H

#include <stdint.h>

#include "base/err.h"

/*
 * Events of the PMUs that the kernel describes in /sys/bus/event_source/devices (Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-* of the kernel): those of a package, and those of a PU that need no general counter.
 */
struct perf_pmu_event {
	uint32_t type;			/* of struct perf_event_attr */
	uint64_t config;
	double scale;			/* of a count, in unit; 1 if the kernel states none */
	char unit[16];			/* "Joules", "MiB", or "" */
};

/*
 * event: a name in the PMU's `events`, or terms of its `format` ("event=0x0a,rdwrmask=1"). root: monitor/sysfs.h.
 * 0, or -1: there is no such PMU or event.
 */
int perf_pmu_event(const char *root, const char *pmu, const char *event, struct perf_pmu_event *out, struct err *e);

/* perf_event_open(2) on one CPU, whoever runs there; its read(2) gives the count, the times enabled and running. */
int perf_pmu_open(const struct perf_pmu_event *x, unsigned cpu);

#endif
