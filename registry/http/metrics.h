/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "call.h"

/* topiaryd's own counters, and GET /metrics: Prometheus text format, version 0.0.4. */
struct metrics;

/* NULL when out of memory. metrics_free accepts NULL. */
struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* Register a route, numbered from 0 in turn; the strings are constants. */
void metrics_add(struct metrics *m, const char *method, const char *pattern);
/* Count a request by its status and its seconds from headers to reply. */
void metrics_observe(struct metrics *m, int route, unsigned status, double seconds);

/* The host that sent has the current snapshot: its request named it. May wait for the resolver. */
void metrics_snapshot_current(struct call *c);

void read_metrics(struct call *c);
