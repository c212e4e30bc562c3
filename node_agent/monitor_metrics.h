/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/settings.h"
#include "monitor_steps.h"

/*
 * What the whole node does, for the textfile collector of Prometheus' node_exporter: gauges by NUMA node or package,
 * the means of the last interval, in Prometheus' text format. At most 40 values, and with MonitorMetricsJobs as many
 * more that say which jobs have PUs where. Called by topiary-monitor.c.
 */
struct monitor_metrics;

/*
 * settings: MonitorMetrics is not empty; borrowed. What an earlier topiary-monitor left in the file is removed. NULL
 * with an error.
 */
struct monitor_metrics *monitor_metrics_new(const struct settings *settings, struct err *e);
/* Remove the file. Accepts NULL. */
void monitor_metrics_free(struct monitor_metrics *m);

/*
 * Write the file if that is due; the first failure of several in a row is logged. Returns nanoseconds until the next
 * time. Of NULL nothing is ever due: -1.
 */
int64_t monitor_metrics_tick(struct monitor_metrics *m, const struct monitor_steps *steps);
