/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Usage: phases MILLISECONDS REPEAT [fork|kill|threads|cost]
 * REPEAT times a phase "compute", which uses a PU for so long, and a phase "wait", which sleeps, both within "step"; a
 * mark "done" after each. fork: a child does it too. kill: it ends by SIGKILL. threads: two do. cost: only marks, and
 * prints nanoseconds a mark.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topiary_phase.h"

static unsigned milliseconds, repeat;

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void *steps(void *unused)
{
	for (unsigned i = 0; i < repeat; i++) {
		uint64_t until = nanoseconds() + milliseconds * UINT64_C(1000000);

		topiary_phase_begin("step");
		topiary_phase_begin("compute");
		while (nanoseconds() < until)
			;
		topiary_phase_end("compute");
		topiary_phase_begin("wait");
		usleep(milliseconds * 1000);
		topiary_phase_end("wait");
		topiary_phase_end("step");
		topiary_phase_mark("done");
	}
	return unused;
}

static void cost(void)
{
	uint64_t begin = nanoseconds();

	for (unsigned i = 0; i < repeat; i++)
		topiary_phase_mark("x");
	printf("%.0f\n", (double) (nanoseconds() - begin) / repeat);
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "";
	pthread_t other;

	milliseconds = atoi(argv[1]);
	repeat = atoi(argv[2]);
	if (!strcmp(how, "cost")) {
		cost();
		return 0;
	}
	if (!strcmp(how, "fork")) {
		topiary_phase_mark("before");
		fork();
	}
	if (!strcmp(how, "threads"))
		pthread_create(&other, NULL, steps, NULL);
	steps(NULL);
	if (!strcmp(how, "threads"))
		pthread_join(other, NULL);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
