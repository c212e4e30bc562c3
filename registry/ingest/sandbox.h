/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_SANDBOX_H
#define TOPIARY_REGISTRY_INGEST_SANDBOX_H

#include <linux/filter.h>

#include "base/err.h"

#define SANDBOX_CPU_SECONDS 2

/*
 * Confinement of a worker: no access but to memory, the clock and one descriptor; no other file, no new process, no
 * network; 256 MiB, 5 s wall-clock time, after which the kernel kills it, and SANDBOX_CPU_SECONDS of CPU, after which
 * SIGXCPU comes. Irrevocable.
 *
 * The filter is built once, before the many short-lived workers are forked. Called by parser.c and worker.c.
 */
struct sandbox {
	struct sock_fprog filter;	/* of system calls, as the kernel loads it */
};

/* 0 or -1. Free with sandbox_free. */
int sandbox_make(struct sandbox *s, struct err *e);
void sandbox_free(struct sandbox *s);

/* In the workers' parent: the limits that workers inherit. 0 or -1. */
int sandbox_prepare(void);

/* In the worker, once it has all it needs; fd becomes 0. 0 or -1. */
int sandbox_enter(const struct sandbox *s, int fd);

#endif
