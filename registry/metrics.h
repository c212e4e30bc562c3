/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_METRICS_H
#define TOPIARY_REGISTRY_METRICS_H

#include "service.h"

/* What topiaryd counts of itself, and GET /metrics: Prometheus's text format, version 0.0.4. */
struct metrics;

/* NULL when memory is short. metrics_free accepts NULL. */
struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* A route to count for; the texts are constants. Its number, from 0, or -1 when there are too many. */
int metrics_add(struct metrics *m, const char *method, const char *pattern);
/* Count a request that took so many seconds from its headers to its reply. */
void metrics_observe(struct metrics *m, int route, unsigned status, double seconds);

void read_metrics(struct call *c);

#endif
