/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * topology_start PROCESSES ROUNDS < ways: how long it takes from the first exec until all of so many processes that are
 * started at once have ended. A way is a line of words: its name, NAME=VALUE of its environment (which has nothing
 * else), "--", its command. In each round each way has its turn, in an order drawn by lot. A line of output each: name,
 * microseconds, and of the processors' time.
 */
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/std.h"

enum { MAX_WAYS = 32, MAX_WORDS = 32, MAX_LINE = 16384 };

struct way {
	char line[MAX_LINE], *name, *env[MAX_WORDS], *argv[MAX_WORDS];
};

static int way_read(struct way *w)
{
	char **to = w->env, *save = NULL;
	int n = 0;

	if (!fgets(w->line, sizeof(w->line), stdin) || !(w->name = strtok_r(w->line, " \n", &save)))
		return -1;
	for (char *word; n < MAX_WORDS - 1 && (word = strtok_r(NULL, " \n", &save));) {
		if (to == w->env && !strcmp(word, "--")) {
			to = w->argv;
			n = 0;
			continue;
		}
		to[n++] = word;
	}
	return 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

struct took {
	double wall, cpu;
};

static struct took run(const struct way *w, int processes)
{
	struct took t = { .wall = now() };
	struct rusage used;
	int status;
	pid_t pid;

	for (int i = 0; i < processes; i++)
		if (posix_spawn(&pid, w->argv[0], NULL, NULL, w->argv, w->env)) {
			perror(w->argv[0]);
			exit(1);
		}
	for (int i = 0; i < processes; i++) {
		if (wait4(-1, &status, 0, &used) < 0 || status) {
			fprintf(stderr, "topology_start: %s: status %x\n", w->name, status);
			exit(1);
		}
		t.cpu += 1e6 * (used.ru_utime.tv_sec + used.ru_stime.tv_sec) + used.ru_utime.tv_usec +
			 used.ru_stime.tv_usec;
	}
	t.wall = now() - t.wall;
	return t;
}

static void shuffle(int *order, int n, unsigned *seed)
{
	for (int i = n - 1; i > 0; i--) {
		int k = rand_r(seed) % (i + 1), other = order[k];

		order[k] = order[i];
		order[i] = other;
	}
}

int main(int argc, char **argv)
{
	static struct way ways[MAX_WAYS];
	int order[MAX_WAYS], processes = argc > 2 ? atoi(argv[1]) : 0, rounds = argc > 2 ? atoi(argv[2]) : 0, n = 0;
	unsigned seed = 1;

	for (; n < MAX_WAYS && !way_read(&ways[n]); n++)
		order[n] = n;
	/* Once for the caches. */
	for (int i = 0; i < n; i++)
		run(&ways[i], 1);
	for (int r = 0; r < rounds; r++) {
		shuffle(order, n, &seed);
		for (int i = 0; i < n; i++) {
			struct took t = run(&ways[order[i]], processes);

			printf("%s %.1f %.1f\n", ways[order[i]].name, t.wall, t.cpu);
		}
	}
	return processes && rounds && n ? 0 : 2;
}
