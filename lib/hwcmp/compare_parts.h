/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWCMP_COMPARE_PARTS_H
#define TOPIARY_HWCMP_COMPARE_PARTS_H

#include "hwcmp/compare_match.h"
#include "hwcmp/compare_words.h"

/* State of a comparison. Each part adds remarks; r.failed is set when memory is short. */
struct comparison {
	struct compare_match m;
	struct compare_remarks r;
	bool *reported;		/* packages of side 0, and its root, whose renumbering was reported */
	struct buf scratch;
};

/* Add a remark on an object of t, one of the two trees; takes ownership of tail. */
void comparison_remark(struct comparison *c, const struct tree *t, size_t object, enum severity s,
		       enum change_direction d, const char *what, const char *from, const char *to, struct buf *tail);

/* Objects that are new, or gone: cores, memory, devices and others without a gone or new parent. */
void compare_presence(struct comparison *c, bool gone);

/* Of two matched objects: locality, attributes and infos. */
void compare_place(struct comparison *c, size_t a, size_t b);
void compare_values(struct comparison *c, size_t a, size_t b);

/* The PUs and NUMA nodes that the exporting process was allowed to use. */
void compare_allowed(struct comparison *c);

/*
 * Distances, memory attributes and CPU kinds between objects that are in both trees: one remark each, with the first
 * value that differs and the number of others.
 */
void compare_extras(const struct compare_match *m, struct compare_remarks *r);

/* The OS device after which a PCI device is named, or the PCI device itself. */
size_t compare_device_known_by(const struct tree *t, size_t pci);

#endif
