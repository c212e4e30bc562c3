/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWCMP_COMPARE_SET_H
#define TOPIARY_HWCMP_COMPARE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of CPUs or NUMA nodes as hwloc writes it (hwloc_bitmap_snprintf(3)). */
struct set {
	uint32_t *words;	/* the lowest bits first */
	size_t n;
	bool endless;		/* all bits beyond the words are set */
};

/* text may be NULL: the empty set. 0, or -1 when memory is short. */
int set_parse(const char *text, struct set *out);
void set_free(struct set *s);

bool set_has(const struct set *s, long bit);
/* Bits within the words. */
size_t set_count(const struct set *s);

#endif
