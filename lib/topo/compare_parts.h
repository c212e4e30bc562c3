/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_COMPARE_PARTS_H
#define TOPIARY_TOPO_COMPARE_PARTS_H

#include "topo/compare_match.h"
#include "topo/compare_words.h"

/* A comparison under way. Each part adds its remarks; when memory is short it sets r.failed. */
struct comparison {
	struct match m;
	struct remarks r;
	bool *told;		/* packages of side 0, and its root, whose numbering was told of */
	struct buf scratch;
};

/* A remark on an object of t, one of the two trees: tail is taken. */
void comparison_say(struct comparison *c, const struct tree *t, size_t object, enum severity s, enum direction d, const char *what,
		    const char *from, const char *to, struct buf *tail);

/* What came, or went when `gone`: cores, memory, devices, and whatever did so alone. */
void compare_presence(struct comparison *c, bool gone);

/* Of two that are the same: where they are, what their attributes and infos say. */
void compare_place(struct comparison *c, size_t a, size_t b);
void compare_values(struct comparison *c, size_t a, size_t b);

/* What the process that exported was allowed to use. */
void compare_allowed(struct comparison *c);

/*
 * Distances, memory attributes and kinds of CPU, as far as they tell of objects that are in both trees: one remark each, of the first
 * value that differs and how many more do.
 */
void compare_extras(const struct match *m, struct remarks *r);

/* The OS device that a PCI device is known by, or the PCI device itself. */
size_t device_known_by(const struct tree *t, size_t pci);

#endif
