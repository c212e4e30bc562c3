/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_XML_IDS_H
#define TOPIARY_HWXML_XML_IDS_H

#include <stddef.h>
#include <stdint.h>

/* The numbers hwloc gave its objects (gp_index), each with its place in document order, from 1. {0} is an empty one. */
struct ids {
	struct id {
		uint64_t gp;
		unsigned place;
	} *ids;
	size_t n, cap;
};

/* The place of the object just added, or 0 when memory is short. */
unsigned ids_add(struct ids *s, uint64_t gp);

/* After the last ids_add: make ids_find possible. The number that two objects share is put in *twice, -1; or 0. */
int ids_seal(struct ids *s, uint64_t *twice);

/* The place of the object, or 0 when there is none. */
unsigned ids_find(const struct ids *s, uint64_t gp);

void ids_free(struct ids *s);

#endif
