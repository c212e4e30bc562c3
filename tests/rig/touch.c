/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * A program that writes to what malloc gave it, and tells what became of that: "policy bind:0, 16384 pages of node 0,
 * 65536 kB huge".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 64 << 20, LINE = 4096 };

static unsigned long huge_kb(unsigned long at, unsigned long *begin)
{
	unsigned long first, last, kb = 0;
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[LINE];
	int mine = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &last) == 2 && (mine = first <= at && at < last))
			*begin = first;
		if (mine && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb;
}

static void tell(unsigned long begin, unsigned long huge)
{
	FILE *f = fopen("/proc/self/numa_maps", "re");
	char line[LINE], policy[256];
	unsigned long first;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %255s", &first, policy) != 2 || first != begin)
			continue;
		printf("policy %s", policy);
		for (char *at = strstr(line, " N"); at; at = strstr(at + 1, " N")) {
			unsigned node;
			unsigned long pages;

			if (sscanf(at, " N%u=%lu", &node, &pages) == 2)
				printf(", %lu pages of node %u", pages, node);
		}
	}
	printf(", %lu kB huge\n", huge);
	if (f)
		fclose(f);
}

int main(void)
{
	unsigned long begin = 0, huge;
	char *p = malloc(BYTES);

	if (!p)
		return 1;
	/* A memset that nobody reads is left out by compilers. */
	explicit_bzero(p, BYTES);
	huge = huge_kb((unsigned long) p + BYTES / 2, &begin);
	tell(begin, huge);
	free(p);
	return 0;
}
