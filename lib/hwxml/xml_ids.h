/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_XML_IDS_H
#define TOPIARY_HWXML_XML_IDS_H

#include <stddef.h>
#include <stdint.h>

/* hwloc's numbers of objects (gp_index), each with its position in document order, from 1. {0} is an empty set. */
struct xml_ids {
	struct xml_id {
		uint64_t gp;
		unsigned place;
	} *ids;
	size_t n;
};

/* The position of the object just added, or 0 when memory is short. */
unsigned xml_ids_add(struct xml_ids *s, uint64_t gp);

/*
 * Call it after the last xml_ids_add, for xml_ids_find. Returns -1 with *twice set to a number that two objects share;
 * or 0.
 */
int xml_ids_seal(struct xml_ids *s, uint64_t *twice);

/* The position of the object, or 0 if there is none. */
unsigned xml_ids_find(const struct xml_ids *s, uint64_t gp);

void xml_ids_free(struct xml_ids *s);

#endif
