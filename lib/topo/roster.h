/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_ROSTER_H
#define TOPIARY_TOPO_ROSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Names, each with a number: 0 for the first that was added, 1 for the next. What belongs to a name stands in an array of the
 * caller's, at its number. Added and found in constant time; {0} is an empty one.
 */
struct roster {
	size_t count;
	struct buf text;		/* the names, each with its NUL */
	struct roster_slot {
		uint32_t hash;
		uint32_t number;	/* from 1, 0 for none */
		size_t at;		/* in text */
	} *slots;			/* open addressing; size is 0 or a power of two */
	size_t size;
};

#define ROSTER_NONE SIZE_MAX

/* The number of a name, ROSTER_NONE when it is not there. */
size_t roster_find(const struct roster *r, const char *name);

/* The number of a name, added when it is new: count has then grown. ROSTER_NONE, and r as it was, when memory is short. */
size_t roster_add(struct roster *r, const char *name);

/* Leave {0}. */
void roster_free(struct roster *r);

#endif
