/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_XML_SET_H
#define TOPIARY_HWXML_XML_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of CPUs or NUMA nodes as hwloc writes it (hwloc_bitmap_snprintf(3)). */
struct xml_set {
	uint32_t *words;	/* the lowest bits first */
	size_t n;
	bool endless;		/* all bits beyond the words are set */
};

/* text may be NULL: the empty set. 0, or -1 when memory is short. */
int xml_set_parse(const char *text, struct xml_set *out);
void xml_set_free(struct xml_set *s);

bool xml_set_has(const struct xml_set *s, long bit);
/* Bits within the words. */
size_t xml_set_count(const struct xml_set *s);

#endif
