/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BENCH_AGENDA_H
#define TOPIARY_BENCH_AGENDA_H

#include <stddef.h>
#include <stdint.h>

/*
 * What is due when, shared by threads: numbers in the order of their times (microseconds of CLOCK_MONOTONIC). Each
 * number is in it at most once, so that few threads act for many nodes, most of which wait.
 */
struct agenda;

struct agenda *agenda_new(size_t max);	/* NULL when memory is short */
void agenda_free(struct agenda *a);

void agenda_add(struct agenda *a, unsigned number, int64_t due);

/* The next one, when its time has come; 0, or -1 once the agenda is closed. */
int agenda_take(struct agenda *a, unsigned *number);

/* Whoever waits or comes later gets -1. */
void agenda_close(struct agenda *a);

int64_t agenda_now(void);

#endif
