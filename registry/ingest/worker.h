/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

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

/* The protocol between parser.c and its workers. Called by parser.c. */
enum worker_op { OP_PARSE, OP_CANON, OP_COMPARE, OP_COUNT };

/*
 * One message with two descriptors: the socket for the reply, and a sealed file with the documents one after the other.
 * Once it has parsed a document, the worker waits for others to be compared with it: OP_COMPARE on its socket, then the
 * first document. It ends when the socket is closed, or by its limits.
 */
struct worker_request {
	enum worker_op op;
	bool drift;
	size_t bytes[2];	/* of each document; the second is 0 for operations on one */
};
enum { REQUEST_SOCKET, REQUEST_FILE, REQUEST_FDS };

/* Followed by its parts: all of them for OP_PARSE, the first alone for others. When refused the first is the reason. */
enum { PART_CORES, PART_HIERARCHY, PART_DETAIL, PART_ALLOCATION, PART_FACTS, PARTS };
struct worker_reply {
	uint32_t refused;
	uint32_t ncores, npus;
	uint32_t bytes[PARTS];
};

/* Maximum bytes of each part, checked on both sides. */
extern const uint32_t part_max[OP_COUNT][PARTS];

/* The parent of the workers: a single thread with this loop alone. Ends when control is closed. */
_Noreturn void worker_parent(int control, const struct sandbox *s);
