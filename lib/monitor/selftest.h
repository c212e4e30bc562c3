/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_SELFTEST_H
#define TOPIARY_MONITOR_SELFTEST_H

#include <stddef.h>
#include <stdint.h>

/*
 * Are the hardware counters of this machine right? Those of virtual machines were seen to give zeros, and values that
 * are off by a multiple of 2^47, in some of several counters of the same event. For monitor/events_choose.c.
 */

/*
 * Count the instructions of a loop of known length in several counters at a time; once, a millisecond. NULL: they are
 * right, or there are none; else what is wrong.
 */
const char *monitor_selftest(void);

/*
 * The judgement: n counters of one event, of which there were at least `least` and few more. size: of text. NULL: all
 * are right.
 */
const char *monitor_selftest_judge(const uint64_t *counts, size_t n, uint64_t least, char *text, size_t size);

#endif
