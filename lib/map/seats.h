/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_SEATS_H
#define TOPIARY_MAP_SEATS_H

#include <stdbool.h>

#include "map/matrix.h"
#include "map/slots.h"

/* Who sits where, while a search changes it. */
struct seats {
	const struct matrix *m;
	const struct slots *s;
	unsigned *slot;			/* of each rank, the caller's */
	unsigned *rank;			/* on each slot, or SLOT_NONE */
	unsigned long long work;	/* arcs looked at so far */
};

/* The slots first .. first+count-1. */
struct run {
	unsigned first, count;
};

/* 0, or -1 when memory is short. */
int seats_init(struct seats *t, const struct matrix *m, const struct slots *s, unsigned *slot);
void seats_free(struct seats *t);

/* The first `most` slots of a domain, or all that there are. */
struct run seats_run(const struct stratum *t, unsigned domain, unsigned most);

/* Exchange who sits on two runs of one length that have no slot in common, in order. Twice, and all is as before. */
void seats_exchange(struct seats *t, struct run a, struct run b);

/* What the ranks on the two runs pay, each pair of them once. */
double seats_cost(struct seats *t, struct run a, struct run b);

#endif
