/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/err.h"

/*
 * The steps of this node that are recorded, by what slurmstepd leaves in their directories of RunDir (monitor/ask.h).
 * The counts are of PUs, whoever runs there: of a PU that steps of two users have at a time, nobody gets any. Called by
 * topiary-monitor.c.
 */
struct monitor_steps;

/* run_dir is borrowed. NULL with an error. */
struct monitor_steps *monitor_steps_new(const char *run_dir, struct err *e);
/* Complete all traces. Accepts NULL. */
void monitor_steps_free(struct monitor_steps *m);

/* A descriptor that becomes readable when a step begins or ends: then call monitor_steps_look. */
int monitor_steps_fd(const struct monitor_steps *m);

/* Begin to record the steps that ask for it, complete the traces of those that have ended. What fails is logged. */
void monitor_steps_look(struct monitor_steps *m);

/* Record the ticks that are due. Returns nanoseconds until the next one, -1 if no step is recorded. */
int64_t monitor_steps_tick(struct monitor_steps *m);

/* Calls each() with every step of which the PUs are known, recorded or not. */
void monitor_steps_each(const struct monitor_steps *m,
			void (*each)(void *user, const char *step, hwloc_const_bitmap_t cpus, bool is_recorded),
			void *user);
