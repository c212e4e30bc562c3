/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
/*
 * Usage: trace_triad PASSES: a program that waits for memory, a = b + s * c over 96 MB. Prints the seconds of the
 * passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 4 << 20 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double *a = malloc(N * sizeof(*a)), *b = malloc(N * sizeof(*b)), *c = malloc(N * sizeof(*c));

	double begun;

	if (argc != 2 || !a || !b || !c)
		return 2;
	for (int i = 0; i < N; i++)
		b[i] = c[i] = i;
	begun = now();
	for (int passes = atoi(argv[1]); passes > 0; passes--)
		for (int i = 0; i < N; i++)
			a[i] = b[i] + passes * c[i];
	printf("%.6f\n", now() - begun);
	return a[N / 2] == 0;
}
