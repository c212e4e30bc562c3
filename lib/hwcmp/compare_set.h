/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWCMP_COMPARE_SET_H
#define TOPIARY_HWCMP_COMPARE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of CPUs or NUMA nodes as hwloc writes it (hwloc_bitmap_snprintf(3)). */
struct compare_set {
	uint32_t *words;	/* the lowest bits first */
	size_t n;
	bool endless;		/* all bits beyond the words are set */
};

/* text may be NULL: the empty set. 0, or -1 when memory is short. */
int compare_set_parse(const char *text, struct compare_set *out);
void compare_set_free(struct compare_set *s);

bool compare_set_has(const struct compare_set *s, long bit);
/* Bits within the words. */
size_t compare_set_count(const struct compare_set *s);

#endif
