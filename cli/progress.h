/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/* Progress of long work: one line on stderr if that is a terminal, updated at most ten times a second. */
struct progress {
	const char *what;	/* borrowed: "packing" */
	size_t done, total;	/* total 0: not known */
	double last;
	bool shown;
};

void progress_start(struct progress *p, const char *what, size_t total);
void progress_step(struct progress *p, size_t more);

/* Erase the line, before other output. */
void progress_end(struct progress *p);
