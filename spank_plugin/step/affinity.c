/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "affinity.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

enum { MAX_CPUS = 65536, WORDS = MAX_CPUS / (sizeof(long) * CHAR_BIT) };

int affinity_get(hwloc_bitmap_t out, struct err *e)
{
	unsigned long words[WORDS] = {0};
	unsigned n = WORDS;

	if (sched_getaffinity(0, sizeof(words), (cpu_set_t *) words))
		return err_set(e, "CPU affinity: %s", strerror(errno));
	while (n && !words[n - 1])
		n--;
	return hwloc_bitmap_from_ulongs(out, n, words) ? err_set(e, "out of memory") : 0;
}

int affinity_set(hwloc_const_bitmap_t cpus, struct err *e)
{
	unsigned long words[WORDS] = {0};

	if (hwloc_bitmap_to_ulongs(cpus, WORDS, words) || sched_setaffinity(0, sizeof(words), (cpu_set_t *) words))
		return err_set(e, "CPU affinity: %s", strerror(errno));
	return 0;
}
