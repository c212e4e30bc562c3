/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd_progress.h"

#include <stdio.h>
#include <unistd.h>

#define PAUSE_MS 100
#define CLEAR_LINE "\r\033[K"

static long ms_since(const struct timespec *then, const struct timespec *now)
{
	return (now->tv_sec - then->tv_sec) * 1000 + (now->tv_nsec - then->tv_nsec) / 1000000;
}

void progress_start(struct progress *p, const char *what, size_t total)
{
	*p = (struct progress){ .what = what, .total = total };
	clock_gettime(CLOCK_MONOTONIC, &p->last);
}

void progress_step(struct progress *p, size_t more)
{
	struct timespec now;

	p->done += more;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (ms_since(&p->last, &now) < PAUSE_MS || !isatty(STDERR_FILENO))
		return;
	p->last = now;
	p->shown = true;
	fprintf(stderr, CLEAR_LINE "%s: %zu", p->what, p->done);
	if (p->total)
		fprintf(stderr, " of %zu, %zu %%", p->total, p->done * 100 / p->total);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs(CLEAR_LINE, stderr);
	p->shown = false;
}
