/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_PROGRESS_H
#define TOPIARY_REGISTRY_CMD_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* How far long work has come: one line on stderr, when that is a terminal, written anew ten times a second at most. */
struct progress {
	const char *what;	/* borrowed: "packing" */
	size_t done, total;	/* total 0: not known */
	struct timespec last;
	bool shown;
};

void progress_start(struct progress *p, const char *what, size_t total);
void progress_step(struct progress *p, size_t more);

/* Take the line away, before anything else is said. */
void progress_end(struct progress *p);

#endif
