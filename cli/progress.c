/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "progress.h"

#include "base/clock.h"

#define PAUSE 0.1	/* seconds */
#define CLEAR_LINE "\r\033[K"

void progress_start(struct progress *p, const char *what, size_t total)
{
	*p = (struct progress){ .what = what, .total = total, .last = clock_now() };
}

void progress_step(struct progress *p, size_t more)
{
	double now = clock_now();

	p->done += more;
	if (now - p->last < PAUSE || !isatty(STDERR_FILENO))
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
