/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_SANDBOX_H
#define TOPIARY_REGISTRY_SANDBOX_H

#include <linux/filter.h>

#include "base/err.h"

/*
 * Everything given up but memory, the clock and one descriptor: no other file, no new process, no network; 256 MiB, 2 s of CPU, 5 s by
 * the wall clock, after which the kernel kills. There is no way back.
 *
 * Workers are many and short-lived, so that what can be made once is made before they are forked.
 */
struct sandbox {
	struct sock_fprog filter;	/* of system calls, as the kernel takes it */
};

/* 0 or -1. Free with sandbox_free. */
int sandbox_make(struct sandbox *s, struct err *e);
void sandbox_free(struct sandbox *s);

/* In the workers' parent: the limits that it bears itself and that workers inherit. 0 or -1. */
int sandbox_prepare(void);

/* In the worker, once it has all it needs; fd becomes 0. 0 or -1. */
int sandbox_enter(const struct sandbox *s, int fd);

#endif
